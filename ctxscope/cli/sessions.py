"""List the agent sessions on this machine, newest first."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from ctxscope.cli import output, target
from ctxscope.cli.diagnostics import OK, narrate
from ctxscope.model import CtxscopeError, SessionRef
from ctxscope.report.text import visible

_COLUMNS = ("agent", "updated", "size", "id", "directory")
_UNITS = ("B", "KB", "MB", "GB")
_STEP = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare options."""
    parser.add_argument("--home", metavar="DIR", help="look in this home folder instead of the user's own")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: %(default)s")


def run(args: argparse.Namespace) -> int:
    """List them."""
    home = Path(args.home).expanduser() if args.home else target.own_home()
    if not home.is_dir():
        raise CtxscopeError(f"{home}: no such folder; expected a home folder with the logs of agents")
    found = target.survey(home)
    refs, unread = found.sessions, list(found.unread.values())
    if unread and not refs:
        raise CtxscopeError(unread[0])
    for told in unread:
        narrate(told)
    if args.format == "json":
        document = {"schema": 1, "sessions": [_object(ref) for ref in refs]}
        output.to_stdout(json.dumps(document, indent=2) + "\n", _python_spelling)
        return OK
    if not refs:
        narrate(f"no sessions below {home}")
        return OK
    output.to_stdout(table([_row(ref) for ref in refs]), _python_spelling)
    return OK


def _python_spelling(character: str) -> str:
    return character.encode("ascii", "backslashreplace").decode()


def _object(ref: SessionRef) -> dict[str, object]:
    return {
        "agent": ref.agent,
        "id": ref.id,
        "directory": ref.directory,
        "updated": ref.updated if _date(ref.updated) else None,
        "size": ref.size,
        "title": ref.title,
        "parent": ref.parent,
        "log": [str(path) for path in ref.paths],
    }


def _row(ref: SessionRef) -> tuple[str, ...]:
    # The table is for the person at this machine, so in its own time zone; the JSON holds the exact time.
    date = _date(ref.updated)
    updated = f"{date:%Y-%m-%d %H:%M}" if date else "–"
    return (ref.agent, updated, _size(ref.size), visible(ref.id), visible(ref.directory) if ref.directory else "–")


def _date(seconds: float | None) -> datetime | None:
    """A time as a date here; ``None`` when it is none (a log may hold any number)."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def _size(size: int | None) -> str:
    if size is None:
        return "–"
    amount, unit = float(size), 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if unit == 0 or amount >= 10 else f"{amount:.1f} {_UNITS[unit]}"  # noqa: PLR2004 - two digits suffice


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows under the column names, aligned in terminal cells; the last column may be of any width."""
    from rich.cells import cell_len  # noqa: PLC0415 - only when there is a table to align

    lines = [_COLUMNS, *rows]
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(_COLUMNS) - 1)]
    padded = (
        "  ".join([c + " " * (w - cell_len(c)) for c, w in zip(line, widths, strict=False)] + [line[-1]])
        for line in lines
    )
    return "\n".join(padded) + "\n"
