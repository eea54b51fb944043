"""From a path to the sessions and recordings that lie there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

from ctxscope import agents, capture, resources
from ctxscope.agents.reading import files
from ctxscope.capture.events import Meta
from ctxscope.model import CtxscopeError, SessionRef
from ctxscope.session import copies
from ctxscope.session.wholes import place_of, without_parts
from ctxscope.sources import open_readers

HEAD_BYTES = files.HEAD_BYTES
_SQLITE = b"SQLite format 3\0"
DEPTH = 3
"""A folder is searched itself and this many levels down (DESIGN §5)."""
MOST_FOLDERS = 4_000
"""Where a search stops, so that a mistyped path does not walk a whole disk."""
MOST_FILES = 2_000
"""Files of a folder in no agent's layout that are looked into."""
_LOG_SUFFIXES = (".jsonl", ".json", ".ndjson", *files.ZSTD, ".db", ".sqlite")
SURE = 0.5
"""What an agent must claim at least for a file to count as its log."""
RECORDINGS = "a .ctxrec file, or a folder with index.jsonl and NNNN.req files"
SLACK_SECONDS = 60.0
"""How much earlier than a recording's first moment its log may have been written to last, and the other way round."""


@dataclass
class Found:
    """What lies at a path."""

    sessions: list[SessionRef] = field(default_factory=list)
    recordings: list[Path] = field(default_factory=list)
    containers: list[SessionRef] = field(default_factory=list)
    """The files that hold many sessions, each a reference without an id; some of them may be ``unread``."""
    unread: dict[Path, str] = field(default_factory=dict)
    """Why a log could not be read, or not all of it, by file."""
    copies: list[copies.Copy] = field(default_factory=list)
    """Logs and recordings that are left out, since others hold the same."""
    named_log: bool = False
    """The path was a log itself, so its recordings were looked for beside it and may not belong to it."""
    tops: tuple[Path, ...] = ()
    """Folders that were searched for recordings."""
    homes: Path | None = None
    """The folder that was searched for logs, if one was."""
    joined_only: bool = False
    """The path was a recording of its own: a session that it does not join has no business here."""
    since: float | None = None
    """Only logs written to since then can belong to what was opened (seconds since the epoch)."""


def find(path: Path, *, log: str | None = None, recording: str | None = None) -> Found:
    """Sessions and recordings at ``path`` (a log file, a recording, or a folder that holds either).

    ``log`` and ``recording`` name the other side explicitly. Raises ``CtxscopeError`` when nothing readable is there,
    or when the one file asked for cannot be read; of several logs one that cannot is ``unread``.
    """
    path = path.expanduser()
    if not path.exists():
        raise CtxscopeError(f"{path}: no such file or folder; expected an agent's log, a recording or a folder of them")
    found = _at(path)
    if log is not None:
        named = _at(Path(log).expanduser())
        found.sessions, found.containers, found.unread = named.sessions, named.containers, named.unread
        found.homes = named.homes
        if not found.sessions:
            raise _nothing(found, f"{log}: no agent's log found; expected one of {_known()}")
    if recording is not None:
        named_recording = Path(recording).expanduser()
        found.tops = () if named_recording.is_file() else (named_recording,)
        found.recordings = list(recordings_at(named_recording))
        if not found.recordings:
            raise CtxscopeError(f"{recording}: no recording found; expected {RECORDINGS}")
    if not found.sessions and not found.recordings:
        missing = f"neither an agent's log nor a recording found, here and {DEPTH} levels down"
        raise _nothing(found, f"{path}: {missing}; expected one of {_known()}")
    return _once(found)


def _once(found: Found) -> Found:
    """What was found without what is there a second time."""
    found.sessions, logs = copies.of_sessions(found.sessions)
    found.recordings, recordings = copies.of_recordings(found.recordings)
    found.copies = [*logs, *recordings]
    return found


def _nothing(found: Found, otherwise: str) -> CtxscopeError:
    """The error for a search that found nothing readable: the first log that could not be read, if there was any."""
    return CtxscopeError(next(iter(found.unread.values()), otherwise))


def survey(home: Path) -> Found:
    """Every session in the agents' layouts below ``home``, newest first, and the logs there that cannot be read."""
    found = Found()
    _discover(home, found)
    found.sessions.sort(key=lambda ref: ref.updated or 0.0, reverse=True)
    return _once(found)


def _known() -> str:
    titles = ", ".join(agents.load(name).title for name in agents.names())
    return f"{titles} sessions, or {RECORDINGS}"


def _at(path: Path) -> Found:
    if path.is_file():
        return _recorded(path) if capture.is_recording(path) else _file(path)
    found = Found(tops=(path,), homes=path.parent if capture.is_recording(path) else path)
    found.recordings = list(recordings_at(path))
    for folder in folders_below(found.homes or path):
        _discover(folder, found)
    if not found.sessions and not found.containers:
        _take_loose(path, found)
        found.sessions = without_parts(found.sessions)
    return found


def _take_loose(top: Path, found: Found) -> None:
    """Logs that lie in a folder in no agent's layout: each file is asked whose it is."""
    looked = 0
    for folder in folders_below(top):
        if folder in found.recordings or capture.is_recording(folder):
            continue
        for path in _files_in(folder):
            looked += 1
            if looked > MOST_FILES:
                return
            owner = _owner_of(path)
            if owner is not None:
                with suppress(CtxscopeError):
                    for ref in owner.refs(path, place_of(path, owner)[0]):
                        _take(ref, owner, found)


def _files_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as items:
            names = [i.name for i in items if i.is_file() and i.name.endswith(_LOG_SUFFIXES)]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]


def _owner_of(path: Path) -> agents.Agent | None:
    """The agent that most surely wrote a file; ``None`` where none claims it."""
    try:
        head = head_of(path)
    except OSError:
        return None
    claims = sorted(((agents.load(name).claims(path, head), name) for name in agents.names()), reverse=True)
    return agents.load(claims[0][1]) if head and claims and claims[0][0] >= SURE else None


def _recorded(path: Path) -> Found:
    """A recording in one file, and the logs that may belong to it: near it, and in the home it names."""
    told = capture.told(path)
    own = path.parent.resolve() == resources.recordings().resolve()
    found = Found(recordings=[path], homes=None if own else path.parent, joined_only=True)
    if found.homes is not None and found.homes.resolve() != Path.home().resolve():
        for folder in folders_below(found.homes):
            _discover(folder, found)
    if told.home and Path(told.home).is_dir():
        found.homes, found.since = Path(told.home), told.time - SLACK_SECONDS
        _discover(found.homes, found, told.agent)
        found.sessions = [ref for ref in found.sessions if ref.updated is None or ref.updated >= found.since]
    return found


def recordings_of(refs: Iterable[SessionRef]) -> list[Path]:
    """The recordings in ctxscope's own folder that may hold calls of some sessions, by agent, home and time."""
    refs = tuple(refs)
    return [path for path, told, written in _own() if any(_may_hold(told, written, ref) for ref in refs)]


def recordings_alone() -> list[tuple[Path, Meta, float]]:
    """Recordings in ctxscope's own folder of agents whose logs cannot be read, with when they were last written to.

    No session leads to them. Newest first.
    """
    alone = [found for found in _own() if found[1].agent not in agents.names() and not found[1].source]
    return sorted(alone, key=itemgetter(2), reverse=True)


def _own() -> Iterator[tuple[Path, Meta, float]]:
    folder = resources.recordings()
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(capture.SUFFIX))  # noqa: PTH208 - names do
    except OSError:
        return
    for path in (folder / name for name in names):
        try:
            status = path.stat()
        except OSError:  # pruned just now
            continue
        told = _told(path, status.st_ino) if status.st_size and stat.S_ISREG(status.st_mode) else None
        if told is not None and told.time:
            yield path, told, status.st_mtime


@lru_cache(maxsize=4096)
def _told(path: Path, inode: int) -> Meta:  # noqa: ARG001 - another file of that name is asked again
    return capture.told(path)


def _may_hold(told: Meta, written: float, ref: SessionRef) -> bool:
    """Whether a recording, last written to at a time, may hold calls of a session."""
    if told.agent not in ("", ref.agent):
        return False
    if ref.updated is not None and not told.source and told.time > ref.updated + SLACK_SECONDS:
        return False
    return ref.started is None or written >= ref.started - SLACK_SECONDS


def _file(path: Path) -> Found:
    if path.name == "index.jsonl" and capture.is_recording(path.parent):
        return _at(path.parent)
    try:
        head = head_of(path)
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read: {error.strerror}") from error
    if not head:
        raise CtxscopeError(f"{path}: an empty file; expected one of {_known()}")
    claims = sorted(((agents.load(name).claims(path, head), name) for name in agents.names()), reverse=True)
    if not claims or claims[0][0] < SURE:
        raise CtxscopeError(f"{path}: {_describe(head)} that no known agent wrote; expected one of {_known()}")
    agent = agents.load(claims[0][1])
    home, whole = place_of(path, agent)
    beside = _beside(home)
    found = Found(named_log=True, tops=tuple(beside))
    found.recordings = [r for folder in beside for r in recordings_below(folder)]
    for ref in agent.refs(path, home) if whole is None else (whole,):
        _take(ref, agent, found)
    if whole is not None:
        found.unread[path] = f"{path}: part of the session in {whole.paths[0]}, which is shown whole"
    found.recordings += [r for r in recordings_of(found.sessions) if r not in found.recordings]
    if found.unread and not found.sessions:
        raise _nothing(found, "")
    return found


def head_of(path: Path) -> bytes:
    """What tells whose a file is: its beginning and, of a database, that of what is not in its file yet.

    Of compressed logs what they hold. A young database may lie in its write-ahead log alone. Raises ``OSError``.
    """
    head = files.head(path)
    if head.startswith(_SQLITE):
        with suppress(OSError), path.with_name(path.name + "-wal").open("rb") as file:
            head += file.read(HEAD_BYTES)
    return head


def _describe(head: bytes) -> str:
    if head.startswith(_SQLITE):
        return "a SQLite database"
    return "binary data" if b"\0" in head else "a file"


def _beside(home: Path) -> list[Path]:
    """Folders near a log where its recording may lie. Never near the user's own home: other people live there."""
    return [] if home.resolve() == Path.home().resolve() else [home, home.parent]


def folders_below(top: Path, depth: int = 0) -> Iterator[Path]:
    """``top`` and the folders below it, breadth first, hidden ones and links left out.

    At most ``DEPTH`` levels, counted from where ``top`` is at ``depth``.
    """
    level = [top]
    count = 0
    for _ in range(depth, DEPTH + 1):
        deeper: list[Path] = []
        for folder in level:
            count += 1
            if count > MOST_FOLDERS:
                return
            yield folder
            deeper += children(folder)
        level = deeper


def children(folder: Path) -> list[Path]:
    """The folders directly in a folder that are searched, by name."""
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


def recordings_at(path: Path) -> Iterator[Path]:
    """The recording a path is, else those in the folder and some levels down."""
    return iter((path,)) if capture.is_recording(path) else recordings_below(path)


def recordings_below(top: Path) -> Iterator[Path]:
    """The recordings in a folder and some levels down, itself perhaps."""
    return (recording for folder in folders_below(top) for recording in recordings_in(folder))


def recordings_in(folder: Path) -> Iterator[Path]:
    """The folder itself where it is a recording, and the recordings that are files in it, by name."""
    if capture.is_recording(folder):
        yield folder
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(capture.SUFFIX))  # noqa: PTH208 - names do
    except OSError:
        return
    yield from (folder / name for name in names if capture.is_recording(folder / name))


def _discover(home: Path, found: Found, only: str = "") -> None:
    for name in agents.names():
        if only not in ("", name):
            continue
        agent = agents.load(name)
        for ref in agent.discover(home):
            _take(ref, agent, found)


def _take(ref: SessionRef, agent: agents.Agent, found: Found) -> None:
    """Add a reference; one to a file of many sessions becomes one for each.

    Reading such a file is the readers' work, not the agent's.
    """
    if ref.id:
        found.sessions.append(ref)
        return
    found.containers.append(ref)
    (reader,) = open_readers([agent.container(ref)])
    try:
        found.sessions += agent.members(ref, reader.poll())
        told = reader.notices
    except CtxscopeError as error:
        told = (str(error),)
    finally:
        reader.close()
    if told:
        found.unread[ref.paths[0]] = told[0]
