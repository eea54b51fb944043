"""List the agent sessions on this machine, newest first."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ctxscope.cli import output, target
from ctxscope.cli.diagnostics import OK, narrate
from ctxscope.cli.table import UNKNOWN, date, minute, python_spelling, size, table
from ctxscope.model import CtxscopeError, SessionRef
from ctxscope.report.text import visible

_COLUMNS = ("agent", "updated", "size", "id", "directory")


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
    refs, unread = found.sessions, [*found.unread.values(), *(copy.notice for copy in found.copies)]
    if unread and not refs:
        raise CtxscopeError(unread[0])
    for told in unread:
        narrate(told)
    if args.format == "json":
        document = {"schema": 1, "sessions": [_object(ref) for ref in refs]}
        output.to_stdout(json.dumps(document, indent=2) + "\n", python_spelling)
        return OK
    if not refs:
        narrate(f"no sessions below {home}")
        return OK
    output.to_stdout(table(_COLUMNS, [_row(ref) for ref in refs]), python_spelling)
    return OK


def _object(ref: SessionRef) -> dict[str, object]:
    return {
        "agent": ref.agent,
        "id": ref.id,
        "directory": ref.directory,
        "updated": ref.updated if date(ref.updated) else None,
        "size": ref.size,
        "title": ref.title,
        "parent": ref.parent,
        "log": [str(path) for path in ref.paths],
    }


def _row(ref: SessionRef) -> tuple[str, ...]:
    # The table is for the person at this machine, so in its own time zone; the JSON holds the exact time.
    directory = visible(ref.directory) if ref.directory else UNKNOWN
    return (ref.agent, minute(ref.updated), size(ref.size), visible(ref.id), directory)
