"""Where an agent's logs stand while it runs: what a recorder notes beside each request, the join's best evidence.

Runs in the process that writes the recording (``main``), so that reading logs takes no time from forwarding.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from ctxscope import agents
from ctxscope.capture import recording_process
from ctxscope.capture.events import Meta
from ctxscope.model import CtxscopeError, Place, SessionRef, SourceSpec
from ctxscope.sources import Reader, open_readers

LOOK_SECONDS = 2.0
"""How long no new session is looked for while one is followed."""
NOWHERE = Place(0, "")
_NUMBER = attrgetter("number")
SLACK_SECONDS = 2.0
"""How much before the recording's first moment a log may have been written to: clocks of file systems are coarse."""


def main() -> None:
    """Write a recording, noting where the logs of its agent stand."""
    recording_process.main(placing)


def placing(meta: Meta) -> Callable[[], tuple[tuple[str, str], ...]]:
    """What tells where the logs of a recording's agent stand; nothing where that agent's logs cannot be read."""
    if meta.agent not in agents.names() or not meta.home:
        return tuple
    return Places(agents.load(meta.agent), Path(meta.home), meta.time - SLACK_SECONDS)


@dataclass(eq=False)
class _Followed:
    readers: list[Reader]
    last: Place = NOWHERE
    """Its last entry so far."""


class Places:
    """The logs below a home that were written to since some moment, each with its last entry."""

    def __init__(self, agent: agents.Agent, home: Path, since: float) -> None:
        self._agent, self._home, self._since = agent, home, since
        self._followed: dict[tuple[str, str], _Followed] = {}
        """By path and session."""
        self._lists: dict[Path, Reader] = {}
        self._looked = float("-inf")

    def __call__(self) -> tuple[tuple[str, str], ...]:
        """Path of each log and its last entry, as of now."""
        if not self._followed or time.monotonic() - self._looked > LOOK_SECONDS:
            self._look()
            self._looked = time.monotonic()
        last: dict[str, Place] = {}
        for (path, _), followed in self._followed.items():
            self._read(followed)
            # rows of all sessions in one table are numbered together, so the newest of any tells where each of them stands
            last[path] = max(last.get(path, NOWHERE), followed.last, key=_NUMBER)
        return tuple((path, place.at) for path, place in last.items() if place.at)

    def _look(self) -> None:
        for ref in self._sessions():
            key = (os.path.realpath(ref.paths[0]), ref.id)
            if key not in self._followed and ref.updated is not None and ref.updated >= self._since:
                specs = [spec for spec in self._agent.sources(ref) if spec.log == 0 and _is_numbered(spec)]
                self._followed[key] = _Followed(open_readers(specs))

    def _sessions(self) -> Iterator[SessionRef]:
        for ref in self._agent.discover(self._home):
            if ref.id:
                yield ref
                continue
            path = ref.paths[0]
            if path not in self._lists:
                (self._lists[path],) = open_readers([self._agent.container(ref)])
            try:
                yield from self._agent.members(ref, self._lists[path].poll())
            except CtxscopeError:  # being written just now; the next request looks again
                continue

    def _read(self, followed: _Followed) -> None:
        for reader in followed.readers:
            more = True
            while more:
                try:
                    records = reader.poll()
                except CtxscopeError:  # not there yet, or being written just now
                    break
                followed.last = max((followed.last, *(record.place for record in records)), key=_NUMBER)
                more = reader.more


def _is_numbered(spec: SourceSpec) -> bool:
    """Whether it holds messages in an order that grows: lines, or rows by their own number."""
    return spec.kind == "jsonl" or (bool(spec.mutable) and spec.key_column == spec.order_by)
