"""What a person may name on the command line: a path, a session's id, ``last``, or this directory."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxscope.cli.diagnostics import bad_input

if TYPE_CHECKING:
    from ctxscope.model import SessionRef
    from ctxscope.session.finding import Found

LAST = "last"
HERE = "."
_DIGITS = 12
LIVE_SECONDS = 300.0
"""A session written to within this time counts as live."""


@dataclass(frozen=True, slots=True)
class Target:
    """What to open."""

    path: Path
    session: str | None = None
    unread: tuple[str, ...] = ()
    """Logs that could not be read where the session was looked for, and why: it may be in there."""


class _Once(argparse.Action):
    """An option that takes one value: a second one is an error, for neither may be left out silently."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, name: Any = None
    ) -> None:
        known = getattr(namespace, self.dest)
        if known is not None:
            others = "; a folder opens all that lies in it" if self.dest != "session" else ""
            parser.error(f"argument {name}: given twice, {known} and {values}; expected one{others}")
        setattr(namespace, self.dest, values)


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Declare the options that choose among what a path holds."""
    parser.add_argument("--session", action=_Once, metavar="ID", help="which of several sessions")
    parser.add_argument("--log", action=_Once, metavar="FILE", help="the log, when PATH is a recording")
    parser.add_argument("--recording", action=_Once, metavar="DIR", help="the recording, when PATH is a log")
    parser.add_argument(
        "--provider",
        action=_Once,
        metavar="NAME",
        help="whose cache rules hold: a provider's name, or a rules file .toml",
    )
    parser.add_argument(
        "--window",
        action=_Once,
        type=_tokens,
        metavar="TOKENS",
        help="the model's context window, where the agent does not say it or says it wrong",
    )
    parser.add_argument(
        "--tokenizer",
        action=_Once,
        metavar="FILE",
        help="a tokenizer.json to count models with whose vocabulary does not come with ctxscope",
    )


def _tokens(text: str) -> int:
    """A number of tokens above 0, with or without ``,`` or ``_`` between its digits."""
    plain = text.replace(",", "").replace("_", "")
    if not plain.isascii() or not plain.isdigit() or int(plain[:_DIGITS]) == 0 or len(plain) > _DIGITS:
        raise argparse.ArgumentTypeError(f"found {text!r}; expected a number of tokens, such as 200000")
    return int(plain)


def own_home() -> Path:
    """The user's home folder."""
    return Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is none


def resolve(word: str, session: str | None = None) -> Target:
    """The target a word means: a path if there is one, else ``last`` or the id of a session below the user's home.

    ``session`` picks one of several there. Raises ``CtxscopeError`` when there is no session to take.
    """
    path = Path(word).expanduser()
    if path.exists() or os.sep in word:
        return Target(path, session)
    found = survey(own_home())
    refs, unread = found.sessions, tuple(found.unread.values())
    if word == LAST:
        alone = recordings_alone()
        if alone and (not refs or alone[0][2] > (refs[0].updated or 0.0)):
            return Target(alone[0][0], unread=unread)
        if not refs:
            missing = f"no session below {own_home()}; expected the log of an agent that ran on this machine"
            raise bad_input(unread[0] if unread else missing)
        return of(refs[0], unread)
    named = [ref for ref in refs if ref.id == word] or [ref for ref in refs if ref.id.startswith(word)]
    if len({ref.id for ref in named}) > 1:
        raise bad_input(f"{word}: begins the id of {len(named)} sessions; expected one, such as {named[0].id}")
    return of(named[0]) if named else Target(path, session, unread)


def of(ref: SessionRef, unread: tuple[str, ...] = ()) -> Target:
    """A session found on disk as a target."""
    return Target(ref.paths[0], ref.id, unread)


def survey(home: Path) -> Found:
    """Sessions of every agent below a home folder, newest first, and the logs there that cannot be read."""
    from ctxscope.session.finding import survey as look_below  # noqa: PLC0415 - loads every agent; a path needs none

    return look_below(home)


def recordings_alone() -> list[tuple[Path, str, float]]:
    """Recordings that no session leads to: path, agent, and when they were last written to; newest first."""
    from ctxscope.session.finding import recordings_alone as alone  # noqa: PLC0415 - as above

    return [(path, told.agent or "–", written) for path, told, written in alone()]


def sessions_below(home: Path) -> list[SessionRef]:
    """Sessions of every agent below a home folder, newest first; what cannot be read is passed over."""
    return survey(home).sessions


def here(refs: Sequence[SessionRef], directory: Path) -> list[SessionRef]:
    """Those that ran in a directory."""
    real = directory.resolve()
    return [ref for ref in refs if ref.directory and Path(ref.directory).resolve() == real]


def live(refs: Sequence[SessionRef], now: float) -> list[SessionRef]:
    """Those written to just now (``now`` in seconds since the epoch)."""
    return [ref for ref in refs if ref.updated is not None and now - ref.updated <= LIVE_SECONDS]
