"""Open the app on a log, a recording, a folder or a session.

Without a name: on the live session of this directory if there is exactly one, else on a list to pick from.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from ctxscope.cli import target
from ctxscope.model import CtxscopeError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare options and positionals."""
    parser.add_argument(
        "path", nargs="?", metavar="PATH", help="a log, a recording, a folder, a session's id, . or last"
    )
    parser.add_argument("--session", metavar="ID", help="which of several sessions")
    parser.add_argument("--log", metavar="FILE", help="the log, when PATH is a recording")
    parser.add_argument("--recording", metavar="DIR", help="the recording, when PATH is a log")


def run(args: argparse.Namespace) -> int:
    """Find what to open, then show it."""
    if args.path is None and (args.session or args.log or args.recording):
        raise CtxscopeError("--session, --log and --recording choose among what PATH holds; expected a PATH too")
    what = _this_directory() if args.path is None else _named(args.path, args.session)
    return show(what, log=args.log, recording=args.recording)


def _named(word: str, session: str | None) -> target.Target:
    """A path, id or ``last``; ``.`` with nothing to open in it means the newest session that ran here."""
    if word != target.HERE:
        return target.resolve(word, session)
    from ctxscope.session.finding import find  # noqa: PLC0415 - loads every agent; other words need none

    try:
        find(Path(word))
    except CtxscopeError:
        refs = target.here(target.sessions_below(target.own_home()), Path(word))
        if refs:
            return target.of(refs[0])
        raise
    return target.Target(Path(word), session)


def _this_directory() -> target.Target | None:
    refs = target.here(target.sessions_below(target.own_home()), Path())
    live = target.live(refs, time.time())
    return target.of(live[0]) if len(live) == 1 else None


def show(what: target.Target | None, *, log: str | None = None, recording: str | None = None) -> int:
    """Run the app on a target, or on a picker over the user's sessions; returns its exit code."""
    need_terminal()
    from ctxscope.cli.source import InspectionSource  # noqa: PLC0415 - loads every agent

    opened = None if what is None else InspectionSource.open(what, log=log, recording=recording)
    from ctxscope.tui import app  # noqa: PLC0415 - Textual is loaded once there is something to show
    from ctxscope.tui.source import PickerRow  # noqa: PLC0415 - with the app

    def rows() -> list[PickerRow]:
        refs = target.sessions_below(target.own_home())
        live = {id(ref) for ref in target.live(refs, time.time())}
        return [
            PickerRow(
                agent=ref.agent,
                project=Path(ref.directory).name if ref.directory else "",
                path=str(ref.paths[0]),
                updated=ref.updated,
                size=ref.size,
                live=id(ref) in live,
                key=ref.id,
            )
            for ref in refs
        ]

    return app.run(opened, rows, lambda row: InspectionSource.open(target.Target(Path(row.path), row.key)))


def need_terminal() -> None:
    """Raise ``CtxscopeError`` where no app can be shown."""
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):  # Textual paints on stderr
        raise CtxscopeError("the app needs a terminal; expected one, or ctxscope report PATH for a pipe or a file")
