"""From a path to the sessions and recordings that lie there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ctxscope import agents, capture
from ctxscope.model import CtxscopeError, Record, SessionRef
from ctxscope.sources import open_readers

HEAD_BYTES = 65_536
DEPTH = 3
"""A folder is searched itself and this many levels down (DESIGN §5)."""
MOST_FOLDERS = 4_000
"""Where a search stops, so that a mistyped path does not walk a whole disk."""
MOST_ANCESTORS = 10
SURE = 0.5
"""What an agent must claim at least for a file to count as its log."""


@dataclass
class Found:
    """What lies at a path."""

    sessions: list[SessionRef] = field(default_factory=list)
    recordings: list[Path] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    named_log: bool = False
    """The path was a log itself, so its recordings were looked for beside it and may not belong to it."""


def find(path: Path, *, log: str | None = None, recording: str | None = None) -> Found:
    """Sessions and recordings at ``path`` (a log file, a recording, or a folder that holds either).

    ``log`` and ``recording`` name the other side explicitly. Raises ``CtxscopeError`` when nothing is there.
    """
    path = path.expanduser()
    if not path.exists():
        raise CtxscopeError(f"{path}: no such file or folder; expected an agent's log, a recording or a folder of them")
    found = _at(path)
    if log is not None:
        found.sessions = _at(Path(log).expanduser()).sessions
        if not found.sessions:
            raise CtxscopeError(f"{log}: no agent's log found; expected one of {_known()}")
    if recording is not None:
        folder = Path(recording).expanduser()
        found.recordings = [folder] if capture.is_recording(folder) else list(_recordings(folder))
        if not found.recordings:
            raise CtxscopeError(
                f"{recording}: no recording found; expected a folder with index.jsonl and NNNN.req files"
            )
    if not found.sessions and not found.recordings:
        raise CtxscopeError(
            f"{path}: neither an agent's log nor a recording found, here and {DEPTH} levels down; expected one of {_known()}"
        )
    return found


def list_sessions(home: Path, folders: Sequence[Path] = ()) -> list[SessionRef]:
    """Every session in the agents' layouts below ``home`` and ``folders``, newest first."""
    refs = [ref for folder in (home, *folders) for ref in _discover(folder)]
    return sorted(refs, key=lambda ref: ref.updated or 0.0, reverse=True)


def _known() -> str:
    titles = ", ".join(agents.load(name).title for name in agents.names())
    return f"{titles} sessions, or a folder with index.jsonl and NNNN.req files"


def _at(path: Path) -> Found:
    if path.is_file():
        return _file(path)
    if capture.is_recording(path):
        return Found(sessions=list(_logs_below(path.parent)), recordings=[path])
    return Found(sessions=list(_logs_below(path)), recordings=list(_recordings(path)))


def _file(path: Path) -> Found:
    if path.name == "index.jsonl" and capture.is_recording(path.parent):
        return _at(path.parent)
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read: {error.strerror}") from error
    if not head:
        raise CtxscopeError(f"{path}: an empty file; expected one of {_known()}")
    claims = sorted(((agents.load(name).claims(path, head), name) for name in agents.names()), reverse=True)
    if not claims or claims[0][0] < SURE:
        raise CtxscopeError(f"{path}: {_describe(head)} that no known agent wrote; expected one of {_known()}")
    agent = agents.load(claims[0][1])
    home = _home_of(path, agent)
    sessions = list(_members(agent.refs(path, home), agent))
    beside = _beside(home)
    return Found(sessions, [r for folder in beside for r in _recordings(folder)], named_log=True)


def _describe(head: bytes) -> str:
    if head.startswith(b"SQLite format 3\0"):
        return "a SQLite database"
    return "binary data" if b"\0" in head else "a file"


def _home_of(path: Path, agent: agents.Agent) -> Path:
    """The folder that stands for the home the log lies in; the log's own folder when it lies outside any layout."""
    real = path.resolve()
    for ancestor in list(path.resolve().parents)[:MOST_ANCESTORS]:
        if any(real in (p.resolve() for p in ref.paths) for ref in agent.discover(ancestor)):
            return ancestor
    return path.parent


def _beside(home: Path) -> list[Path]:
    """Folders near a log where its recording may lie. Never near the user's own home: other people live there."""
    return [] if home.resolve() == Path.home().resolve() else [home, home.parent]


def _folders(top: Path) -> Iterator[Path]:
    """``top`` and the folders at most ``DEPTH`` levels below it, breadth first, hidden ones and links left out."""
    level = [top]
    count = 0
    for _ in range(DEPTH + 1):
        deeper: list[Path] = []
        for folder in level:
            count += 1
            if count > MOST_FOLDERS:
                return
            yield folder
            deeper += _children(folder)
        level = deeper


def _children(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as items:
            names = [
                i.name
                for i in items
                if i.is_dir(follow_symlinks=False) and not i.name.startswith(".") and i.name != "node_modules"
            ]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]


def _recordings(top: Path) -> Iterator[Path]:
    return (folder for folder in _folders(top) if capture.is_recording(folder))


def _logs_below(top: Path) -> Iterator[SessionRef]:
    return (ref for folder in _folders(top) for ref in _discover(folder))


def _discover(home: Path) -> Iterator[SessionRef]:
    for name in agents.names():
        agent = agents.load(name)
        yield from _members(agent.discover(home), agent)


def _members(refs: Iterable[SessionRef], agent: agents.Agent) -> Iterator[SessionRef]:
    """A reference to a file of many sessions becomes one for each; reading it is the readers' work, not the agent's."""
    for ref in refs:
        if ref.id:
            yield ref
            continue
        spec = agent.container(ref)
        (reader,) = open_readers([spec])
        try:
            records: list[Record] = reader.poll()
            yield from agent.members(ref, records)
        finally:
            reader.close()
