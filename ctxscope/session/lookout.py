"""What appears on disk while something is followed: further sessions of an agent, and recordings.

Looking costs a few system calls while nothing changes: a list of sessions is read again when its file changed, a folder
when its own time of change did. Nothing is walked twice.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ctxscope import agents, resources
from ctxscope.model import CtxscopeError, SessionRef
from ctxscope.session.finding import (
    HEAD_BYTES,
    SURE,
    Found,
    children,
    folders_below,
    head_of,
    home_of,
    recordings_in,
    recordings_of,
)
from ctxscope.sources import Reader, open_readers
from ctxscope.sources.files import racy

MOST_FOLDERS = 256
"""Folders whose changes are looked for, the nearest first."""
MOST_HOMES = 16
"""Folders that are asked for a first session, the nearest first."""
_COMPANIONS = ("", "-wal", "-journal")

Name = tuple[str, str, Path]
"""Agent, id and file of a session."""
Look = tuple[tuple[int, int, int] | None, ...]


def name_of(ref: SessionRef) -> Name:
    """What tells a session from all others."""
    return ref.agent, ref.id, ref.paths[0]


@dataclass(eq=False)
class _Container:
    """A file of many sessions."""

    ref: SessionRef
    reader: Reader | None = None
    look: Look = ()


@dataclass(eq=False)
class _LogFolder:
    """A folder in which an agent keeps a file for each session."""

    agent: agents.Agent
    home: Path
    names: set[str] = field(default_factory=set)
    """Files known to be sessions, or to be none."""
    waiting: set[str] = field(default_factory=set)
    """Files whose first line is not there yet."""
    look: Look = ()
    suffixes: set[str] = field(default_factory=set)
    """How the names of sessions end."""


class Lookout:
    """Tells sessions and recordings that were not there, or were not read, when ``found`` was."""

    def __init__(self, found: Found) -> None:
        self.unread = dict(found.unread)
        """Why a log cannot be read, or not all of it, by file; as of the last look."""
        self._known = {name_of(ref): ref for ref in found.sessions}
        self._containers = {ref.paths[0]: _Container(ref) for ref in found.containers}
        self._logs: dict[Path, _LogFolder] = {}
        self._homes = found.homes
        """Where a first session may appear."""
        self._tops = found.tops
        self._recordings = set(found.recordings)
        self._named_log = found.named_log
        self._own: tuple[object, ...] = ()
        """Ctxscope's own recordings and the logs they may belong to, when last looked at."""
        self._since = found.since
        self._groups: dict[Path, Look] = {}
        """Folders of such folders: an agent may give each session its own."""
        self._folders: dict[Path, Look] = {}
        for ref in found.sessions:
            self._watch_folder(ref)

    @property
    def places(self) -> tuple[Path, ...]:
        """Files and folders whose changes should lead to a look."""
        return (*self._containers, *self._logs, *self._groups, *self._tops)

    def failed(self, ref: SessionRef, error: CtxscopeError) -> None:
        """A session that was told cannot be read: it is told again once its list changed."""
        self.unread[ref.paths[0]] = str(error)
        self._known[name_of(ref)] = replace(ref, updated=None)

    def sessions(self) -> list[SessionRef]:
        """Sessions that are new, or were written to since they were told last, as far as their lists say."""
        found: list[SessionRef] = []
        for container in self._containers.values():
            found += self._listed(container)
        for group in self._groups:
            self._joined(group)
        for folder, logs in self._logs.items():
            found += self._started(folder, logs)
        if not self._known:
            found += self._first()
        return found

    def written_since(self, moment: float) -> Iterator[SessionRef]:
        """The known sessions written to since then (seconds since the epoch), as their file or their list says."""
        for ref in self._known.values():
            updated = ref.updated
            if ref.paths[0] not in self._containers:
                with contextlib.suppress(OSError):
                    updated = ref.paths[0].stat().st_mtime
            if updated is not None and updated >= moment:
                yield replace(ref, updated=updated)

    def recordings(self) -> bool:
        """Whether there is a recording that was not there."""
        look = (
            list(self._tops)
            if not self._folders
            else [f for f, was in self._folders.items() if not was or look_at(f) != was]
        )
        new = False
        for top in look:
            new |= self._walked(top)
        if self._named_log:
            refs = tuple(self.written_since(0.0))
            own = (*look_at(resources.recordings()), *((ref.updated, 0, 0) for ref in refs))
            if own != self._own:
                self._own = own
                new |= self._take_recordings(recordings_of(refs))
        return new

    def named(self, places: Iterable[tuple[str, str]]) -> None:
        """A recorder saw these logs (path and entry) being written: where no folder tells of them, they are looked at."""
        for name, _ in places:
            path = Path(name)
            if path in self._containers or (path.parent in self._logs and path.name in self._logs[path.parent].names):
                continue
            head = _head(path)
            for agent in map(agents.load, agents.names()):
                if agent.claims(path, head) >= SURE:
                    logs = self._logs.setdefault(path.parent, _LogFolder(agent, home_of(path, agent)))
                    logs.waiting.add(path.name)
                    logs.suffixes.add(path.suffix)

    # --- sessions ---

    def _listed(self, container: _Container) -> list[SessionRef]:
        path = container.ref.paths[0]
        looks = [look_at(Path(f"{path}{suffix}")) for suffix in _COMPANIONS]
        look = tuple(one for each in looks for one in each) if all(looks) else ()
        if look and look == container.look and not (container.reader and container.reader.partial):
            return []
        container.look = look
        agent = agents.load(container.ref.agent)
        if container.reader is None:
            (container.reader,) = open_readers([agent.container(container.ref)])
        try:
            records = container.reader.poll()
            told = container.reader.notices
        except CtxscopeError as error:
            records, told = [], (str(error),)
        self.unread.pop(path, None)
        if told:
            self.unread[path] = told[0]
        return [ref for ref in agent.members(container.ref, records) if self._is_news(ref)]

    def _started(self, folder: Path, logs: _LogFolder) -> Iterator[SessionRef]:
        look = look_at(folder)
        if not look or look != logs.look:
            logs.look = look
            logs.waiting |= {n for n in _entries(folder) - logs.names if os.path.splitext(n)[1] in logs.suffixes}  # noqa: PTH122
        for name in sorted(logs.waiting):
            head = _head(folder / name)
            if b"\n" not in head and len(head) < HEAD_BYTES:
                continue
            logs.waiting.discard(name)
            logs.names.add(name)
            yield from self._begun(folder / name, head, logs)

    def _begun(self, path: Path, head: bytes, logs: _LogFolder) -> Iterator[SessionRef]:
        if logs.agent.claims(path, head) < SURE:
            return
        try:
            for ref in logs.agent.refs(path, logs.home):
                yield from self._told_of(ref)
        except CtxscopeError as error:
            self.unread[path] = str(error)

    def _told_of(self, ref: SessionRef) -> Iterator[SessionRef]:
        """A session that is news; of a file of many sessions, seen for the first time, those in it that are."""
        if ref.id:
            yield from (ref,) if self._is_news(ref) else ()
        elif ref.paths[0] not in self._containers:
            self._containers[ref.paths[0]] = _Container(ref)
            yield from self._listed(self._containers[ref.paths[0]])

    def _first(self) -> Iterator[SessionRef]:
        """Sessions in the nearest folders, where there were none."""
        homes = [] if self._homes is None else folders_below(self._homes)
        for home, _ in zip(homes, range(MOST_HOMES), strict=False):
            for name in agents.names():
                for ref in agents.load(name).discover(home):
                    yield from self._told_of(ref)

    def _is_news(self, ref: SessionRef) -> bool:
        if self._since is not None and ref.updated is not None and ref.updated < self._since:
            return False
        known = self._known.get(name_of(ref))
        self._known[name_of(ref)] = ref
        self._watch_folder(ref)
        return known is None or (known.updated, known.title, known.parent) != (ref.updated, ref.title, ref.parent)

    def _watch_folder(self, ref: SessionRef) -> None:
        path = ref.paths[0]
        if path in self._containers or (path.parent not in self._logs and len(self._logs) >= MOST_FOLDERS):
            return
        folder = self._logs.setdefault(path.parent, _LogFolder(agents.load(ref.agent), ref.home))
        folder.names.add(path.name)
        folder.suffixes.add(path.suffix)
        self._groups.setdefault(path.parent.parent, ())

    def _joined(self, group: Path) -> None:
        """Watch the folders that came into a group, as those that were there."""
        look = look_at(group)
        if look and look == self._groups[group]:
            return
        self._groups[group] = look
        known = [logs for folder, logs in self._logs.items() if folder.parent == group]
        for child in children(group) if known else ():
            if child not in self._logs and len(self._logs) < MOST_FOLDERS:
                suffixes = {s for logs in known for s in logs.suffixes}
                self._logs[child] = _LogFolder(known[0].agent, known[0].home, suffixes=suffixes)

    # --- recordings ---

    def _walked(self, folder: Path) -> bool:
        """Look at a folder that is new or changed, and at the new ones in it; True when a recording is among them."""
        new = False
        for place in folders_below(folder) if folder not in self._folders else self._changed(folder):
            if place not in self._folders and len(self._folders) >= MOST_FOLDERS:
                break
            self._folders[place] = look_at(place)
            new |= self._take_recordings(recordings_in(place))
        return new

    def _take_recordings(self, found: Iterable[Path]) -> bool:
        """Whether one of these was not there."""
        new = set(found) - self._recordings
        self._recordings |= new
        return bool(new)

    def _changed(self, folder: Path) -> Iterator[Path]:
        yield folder
        depth = min(len(folder.relative_to(top).parts) for top in self._tops if folder.is_relative_to(top))
        for child in children(folder):
            if child not in self._folders:
                yield from folders_below(child, depth + 1)


def look_at(path: Path) -> Look:
    """Inode, size and time of change; for a folder, whatever comes or goes directly in it changes them.

    Empty, so that it is no look at all, of what changed so lately that it may do so again without showing it.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - at every poll
    except OSError:
        return (None,)
    return () if racy(status.st_mtime_ns) else ((status.st_ino, status.st_size, status.st_mtime_ns),)


def _entries(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))  # noqa: PTH208 - names do
    except OSError:
        return set()


def _head(path: Path) -> bytes:
    try:
        return head_of(path) if path.is_file() else b""  # a pipe would wait for its writer
    except OSError:
        return b""
