"""List the recordings in the data folder, newest first, and remove old ones.

Removing asks first. A recording that is being written is never removed, nor is what is named as one and unreadable.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ctxscope import resources
from ctxscope.capture import SUFFIX
from ctxscope.cli import output
from ctxscope.cli.diagnostics import OK, narrate
from ctxscope.cli.table import UNKNOWN, minute, python_spelling, share, size, table
from ctxscope.model import CtxscopeError
from ctxscope.report.text import visible

if TYPE_CHECKING:
    from ctxscope.capture.listing import Listed

_COLUMNS = ("written", "agent", "calls", "stored", "sent", "ratio", "path")
_AGE = re.compile(r"([0-9]{1,5})([mhdw])")
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LIVE = "now"


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """A file named as a recording in which none can be found."""

    path: Path
    written: float
    """When it was last written to (seconds since the epoch)."""
    stored: int
    """Its size in bytes."""

    @property
    def row(self) -> tuple[str, ...]:
        """Its line of the table."""
        unknown = (UNKNOWN, size(self.stored), UNKNOWN, UNKNOWN)
        return (minute(self.written), "unreadable", *unknown, visible(str(self.path)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare options."""
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: %(default)s")
    parser.add_argument("--prune", action="store_true", help="remove what --older-than and --keep let go, asking first")
    parser.add_argument(
        "--older-than", type=_age, metavar="AGE", help="last written so long ago: 30d, 12h, 2w, 90m; implies --prune"
    )
    parser.add_argument("--keep", type=_count, metavar="N", help="not the N newest ones; implies --prune")
    parser.add_argument("--yes", action="store_true", help="remove without asking")


def _age(text: str) -> float:
    found = _AGE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number and m, h, d or w, such as 30d")
    return float(int(found[1]) * _SECONDS[found[2]])


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of recordings, such as 20")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """List them; or list those that would go, ask, and remove them."""
    from ctxscope.capture import listing  # noqa: PLC0415 - the parser must answer without it

    if args.prune and args.older_than is None and args.keep is None:
        raise CtxscopeError("--prune removes nothing by itself; expected --older-than AGE or --keep N with it")
    folder = resources.recordings()
    try:
        named = sorted(folder.glob(f"*{SUFFIX}"))  # before the survey: one that is begun meanwhile can be read
        found = listing.survey(folder)
    except OSError as error:
        raise CtxscopeError(f"{folder}: cannot be read: {error.strerror}; expected a folder of recordings") from error
    if args.older_than is None and args.keep is None:
        unreadable = list(_unreadable(named, {each.path for each in found}))
        _show(found, args.format, unreadable)
        if not found and not unreadable:
            narrate(f"no recordings in {folder}")
        return OK
    return _prune(listing.outdated(found, time.time(), args.older_than, args.keep), len(found), args)


def _unreadable(named: Sequence[Path], found: Collection[Path]) -> Iterator[_Unreadable]:
    """Files named as recordings that were not found to be any, and are still there."""
    for path in named:
        if path in found or path.is_symlink() or not path.is_file():
            continue
        with suppress(OSError):
            status = path.stat()
            yield _Unreadable(path, status.st_mtime, status.st_size)


def _prune(going: Sequence[Listed], of: int, args: argparse.Namespace) -> int:
    from ctxscope.capture import listing  # noqa: PLC0415 - see run

    _show(going, args.format)
    if not going:
        narrate(f"nothing to remove: all {of} recordings stay")
        return OK
    words = f"{len(going)} of {of} recordings, {size(sum(each.stored for each in going))}"
    if not args.yes and not _agreed(words):
        narrate("removed nothing")
        return OK
    removed = 0
    for each in going:
        try:
            gone = listing.remove(each.path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CtxscopeError(
                f"{each.path}: cannot be removed: {error.strerror}; expected a file of one's own"
            ) from error
        removed += gone
        if not gone:
            narrate(f"{each.path}: is being written now; left")
    narrate(f"removed {removed} recordings")
    return OK


def _agreed(words: str) -> bool:
    """Ask on the terminal. Raises ``CtxscopeError`` when there is none: nobody could have said no."""
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()):
        raise CtxscopeError(f"{words} would be removed, and there is no terminal to ask on; expected one, or --yes")
    sys.stdout.flush()
    print(f"ctxscope: remove {words}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _show(found: Sequence[Listed], fmt: str, unreadable: Sequence[_Unreadable] = ()) -> None:
    if fmt == "json":
        document = {
            "schema": 1,
            "recordings": [_object(each) for each in found],
            "unreadable": [{"path": str(e.path), "written": e.written, "stored": e.stored} for e in unreadable],
        }
        output.to_stdout(json.dumps(document, indent=2) + "\n", python_spelling)
    elif found or unreadable:
        total = [_total(found)] if len(found) > 1 else []
        rows = [*map(_row, found), *total, *(each.row for each in unreadable)]
        output.to_stdout(table(_COLUMNS, rows), python_spelling)


def _object(each: Listed) -> dict[str, object]:
    return {
        "path": str(each.path),
        "written": each.written,
        "live": each.live,
        "agent": each.agent or None,
        "source": each.source or None,
        "requests": each.requests,
        "calls": each.calls,
        "stored": each.stored,
        "sent": each.sent,
    }


def _row(each: Listed) -> tuple[str, ...]:
    # The table is for the person at this machine, so in its own time zone; the JSON holds the exact time.
    written = _LIVE if each.live else minute(each.written)
    who = visible(each.agent or each.source) or UNKNOWN
    counts = (str(each.calls), size(each.stored), size(each.sent), share(each.stored, each.sent))
    return (written, who, *counts, visible(str(each.path)))


def _total(found: Sequence[Listed]) -> tuple[str, ...]:
    stored, sent = sum(each.stored for each in found), sum(each.sent for each in found)
    counts = (str(sum(each.calls for each in found)), size(stored), size(sent), share(stored, sent))
    return (f"{len(found)} in all", "", *counts, visible(str(Path(found[0].path).parent)))
