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
from ctxscope.session import copies
from ctxscope.session.finding import (
    HEAD_BYTES,
    SURE,
    Found,
    children,
    folders_below,
    head_of,
    recordings_in,
    recordings_of,
)
from ctxscope.session.others import Others
from ctxscope.session.wholes import place_of
from ctxscope.sources import Reader, open_readers
from ctxscope.sources.files import racy

MOST_FOLDERS = 256
"""Folders whose changes are looked for, the nearest first."""
MOST_HOMES = 16
"""Folders that are asked for a first session, the nearest first."""
MOST_COPIES = 8
"""Copies that are named one by one."""
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

    def __init__(self, found: Found, *, shows_newest: bool = False) -> None:
        """``shows_newest``: of the sessions that were found only the newest is shown, with those it belongs to."""
        self._troubles = dict(found.unread)
        self._copies = {copy.path: copy for copy in found.copies}
        """What is left out, since another holds the same."""
        self._untold = {copy.path for copy in found.copies if found.since is not None}
        """Those that are not spoken of: they lie in a home, or what they are copies of does not belong here either."""
        self._copied = {copy: look_at(copy.watched) for copy in found.copies if not copy.is_link}
        """Those that may become more than a copy, and how each was when last looked at."""
        self._late: dict[Name, tuple[SessionRef, copies.Copy, Look]] = {}
        """Such copies of sessions that came since."""
        self._overtaken = False
        """One of those holds more than the session it was left out for, so that a fresh look shows it instead."""
        self._searched = {ref.home for ref in found.sessions}
        self._others = Others(found.sessions) if shows_newest else None
        self._known = {name_of(ref): ref for ref in found.sessions}
        self._by_id: dict[tuple[str, str], list[SessionRef]] = {}
        for ref in found.sessions:
            self._by_id.setdefault((ref.agent, ref.id), []).append(ref)
        links = {copy.path for copy in found.copies if copy.is_link}
        self._containers = {ref.paths[0]: _Container(ref) for ref in found.containers if ref.paths[0] not in links}
        self._logs: dict[Path, _LogFolder] = {}
        self._homes = found.homes
        """Where a first session may appear."""
        self._tops = found.tops
        self._recordings = {*found.recordings, *self._copies}
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

    @property
    def unread(self) -> dict[str, str]:
        """What is not shown, or not all of it, and why: by file, or by what several have in common; as of the last look."""
        copied = [copy for path, copy in self._copies.items() if path not in self._untold]
        told = {str(copy.path): copy.notice for copy in copied[:MOST_COPIES]}
        if len(copied) > MOST_COPIES:
            told["copies"] = f"{len(copied) - MOST_COPIES:,} more copies of logs or recordings count once"
        told |= {str(path): trouble for path, trouble in self._troubles.items()}
        if self._others is not None and (notice := self._others.notice):
            told["others"] = notice
        return told

    def put_aside(self, recording: Path) -> None:
        """A recording does not belong to what was opened: nor do its copies."""
        self._untold |= {copy.path for copy in self._copies.values() if copy.of == recording}

    def failed(self, ref: SessionRef, error: CtxscopeError) -> None:
        """A session that was told cannot be read: it is told again once its list changed."""
        self._troubles[ref.paths[0]] = str(error)
        self._known[name_of(ref)] = replace(ref, updated=None)
        if self._others is not None:
            self._others.failed(ref)

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
        return [*found, *self._gone_on()]

    def written_since(self, moment: float) -> Iterator[SessionRef]:
        """The known sessions written to since then (seconds since the epoch), as their file or their list says."""
        for ref in self._known.values():
            updated = ref.updated
            if ref.paths[0] not in self._containers:
                with contextlib.suppress(OSError):
                    updated = ref.paths[0].stat().st_mtime
            if updated is not None and updated >= moment:
                yield replace(ref, updated=updated)

    def parted(self) -> bool:
        """Whether something that was left out as a copy is none any more, so that a fresh look tells what it is."""
        for copy, before in self._copied.items():
            look = look_at(copy.watched)
            if look and look == before:
                continue
            self._copied[copy] = look
            if not copy.lasts:
                return True
        overtaken, self._overtaken = self._overtaken, False
        return overtaken

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
                    logs = self._logs.setdefault(path.parent, _LogFolder(agent, place_of(path, agent)[0]))
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
        self._troubles.pop(path, None)
        if told:
            self._troubles[path] = told[0]
        return self._news(agent.members(container.ref, records))

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
            self._troubles[path] = str(error)

    def _told_of(self, ref: SessionRef) -> Iterator[SessionRef]:
        """A session that is news; of a file of many sessions, seen for the first time, those in it that are."""
        if ref.id:
            yield from self._news([ref])
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

    def _news(self, refs: Iterable[SessionRef]) -> list[SessionRef]:
        """Those that are new or were written to; what only holds what a known one does is neither."""
        refs = list(refs)
        fresh = [ref for ref in refs if name_of(ref) not in self._known]
        for ref, copy in zip(fresh, copies.of_known(fresh, self._by_id), strict=True):
            if copy is not None:
                self._late[name_of(ref)] = (ref, copy, ())  # no look: which of both holds more is still to be told
                if self._homes is not None:
                    self._copies[copy.path] = copy
        return [ref for ref in refs if name_of(ref) not in self._late and self._is_news(ref)]

    def _gone_on(self) -> Iterator[SessionRef]:
        """Sessions that came as copies and were written to since, so that they are none any more."""
        for name, (ref, copy, before) in list(self._late.items()):
            look = look_at(copy.watched)
            if copy.is_link or (look and look == before):
                continue
            self._late[name] = (ref, copy, look)
            if copy.lasts:
                continue
            if copy.leads:
                self._overtaken |= self._would_be_found(ref)
                continue
            del self._late[name]
            self._copies.pop(copy.path, None)
            yield from (ref,) if self._is_news(ref) else ()

    def _would_be_found(self, ref: SessionRef) -> bool:
        """Whether a fresh look surely lists it; one that does not would be asked for again and again."""
        if self._homes is None or ref.home not in self._searched or self._is_old(ref):
            return False
        listed = agents.load(ref.agent).discover(ref.home) if ref.paths[0].is_relative_to(self._homes) else ()
        return any(other.paths[0] == ref.paths[0] for other in listed)

    def _is_old(self, ref: SessionRef) -> bool:
        return self._since is not None and ref.updated is not None and ref.updated < self._since

    def _is_news(self, ref: SessionRef) -> bool:
        if self._is_old(ref):
            return False
        known = self._known.get(name_of(ref))
        self._known[name_of(ref)] = ref
        self._watch_folder(ref)
        if known is None:
            self._by_id.setdefault((ref.agent, ref.id), []).append(ref)
            if self._others is not None:
                self._others.add(ref)
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
