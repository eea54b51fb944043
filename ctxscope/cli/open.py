"""Open the app on a log, a recording, a folder or a session.

Without a name: on the live session of this directory if there is exactly one, else on a list to pick from.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from ctxscope.cli import target
from ctxscope.cli.diagnostics import bad_input
from ctxscope.tui.source import Opening, PickerRow, Source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare options and positionals."""
    parser.add_argument(
        "path", nargs="?", metavar="PATH", help="a log, a recording, a folder, a session's id, . or last"
    )
    target.add_choices(parser)


def run(args: argparse.Namespace) -> int:
    """Find what to open, then show it."""
    if args.path is None and (args.session or args.log or args.recording):
        raise bad_input("--session, --log and --recording choose among what PATH holds; expected a PATH too")
    need_terminal()
    from ctxscope.tui import app  # noqa: PLC0415 - Textual is loaded once there is a terminal for it

    words = f"reading {args.path} …" if args.path is not None else "looking for sessions of this folder …"
    opening = Opening(words, lambda: _found(args))
    named = {"provider": args.provider, "window": args.window, "tokenizer": args.tokenizer}
    return app.run(opening, _rows, lambda row: opened(target.Target(Path(row.path), row.key), **named))


def _found(args: argparse.Namespace) -> Source | None:
    """The session that was named, else the one live session of this folder; ``None``: pick one."""
    what = _this_directory() if args.path is None else _named(args.path, args.session)
    named = (args.log, args.recording, args.provider, args.window, args.tokenizer)
    return None if what is None else opened(what, *named)


def opened(
    what: target.Target,
    log: str | None = None,
    recording: str | None = None,
    provider: str | None = None,
    window: int | None = None,
    tokenizer: str | None = None,
) -> Source:
    """What the app shows of a target. Raises ``CtxscopeError`` when nothing readable is there."""
    from ctxscope.cli.source import InspectionSource  # noqa: PLC0415 - loads every agent

    return InspectionSource.open(
        what, log=log, recording=recording, provider=provider, window=window, tokenizer=tokenizer
    )


def _named(word: str, session: str | None) -> target.Target:
    """A path, id or ``last``; ``.`` with nothing to open in it means the newest session that ran here."""
    if word != target.HERE:
        return target.resolve(word, session)
    from ctxscope.model import CtxscopeError  # noqa: PLC0415 - loaded with the agents
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


def _rows() -> list[PickerRow]:
    """The user's sessions, for the picker."""
    refs = target.sessions_below(target.own_home())
    live = {id(ref) for ref in target.live(refs, time.time())}
    rows = [
        PickerRow(
            agent=ref.agent,
            title=ref.title or ref.id,
            directory=ref.directory or "",
            path=str(ref.paths[0]),
            updated=ref.updated,
            size=ref.size,
            live=id(ref) in live,
            key=ref.id,
        )
        for ref in refs
    ]
    rows += [
        PickerRow(agent=agent, title=path.name, directory="", path=str(path), updated=written, size=path.stat().st_size)
        for path, agent, written in target.recordings_alone()
    ]
    return sorted(rows, key=lambda row: row.updated or 0.0, reverse=True)


def need_terminal() -> None:
    """Raise ``CtxscopeError`` where no app can be shown."""
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):  # Textual paints on stderr
        raise bad_input("the app needs a terminal; expected one, or ctxscope report PATH for a pipe or a file")
