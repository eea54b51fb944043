"""The process that writes a recording: events come on stdin, acknowledgements go to stdout."""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from ctxscope import wire
from ctxscope.capture.events import Event, Loss, Message, Meta, Places, Request
from ctxscope.capture.recorder import LENGTH
from ctxscope.capture.writer import NotStoredError, Writer
from ctxscope.model import CtxscopeError

REOPEN_SECONDS = 1.0
"""How long a recording that could not be opened is left alone."""
IDLE_SECONDS = 1.0
"""How long a part of a reply is held back when nothing else comes."""
Placing = Callable[[Meta], Callable[[], tuple[tuple[str, str], ...]]]
"""Gives, for a recording, what tells where the agent's logs stand."""


def main(placing: Placing | None = None) -> None:
    """Write what comes until there is no more. The terminal's signals are for the agent, and are ignored."""
    for name in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)
    pipe, out = sys.stdin.fileno(), sys.stdout.buffer
    path, meta, salt = _received(pipe) or ("", Meta(0.0), b"")
    work = _Work(Path(path), meta, salt, placing(meta) if placing else None)
    while True:
        while not select.select([pipe], [], [], IDLE_SECONDS)[0]:
            if work.flush():
                _acknowledge(out, work)
        batch = _received(pipe)
        if batch is None:
            break
        try:
            for event in batch:
                work.take(event)
        finally:  # what an event of the batch ends in is no reason to be given those before it again
            _acknowledge(out, work)
    work.close()
    _acknowledge(out, work)


def _acknowledge(out: IO[bytes], work: _Work) -> None:
    out.write(json.dumps(asdict(work.counts)).encode() + b"\n")
    out.flush()


def _received(pipe: int) -> Any:
    """The next thing of the parent, our own program; ``None`` at the end, also one in the middle of a thing."""
    head = _read(pipe, LENGTH.size)
    if head is None:
        return None
    data = _read(pipe, *LENGTH.unpack(head))
    return None if data is None else pickle.loads(data)  # noqa: S301 - from the process that started us


def _read(pipe: int, length: int) -> bytes | None:
    """So many bytes and not one more, so that waiting for the next thing sees all that is left of the pipe."""
    parts, left = [], length
    while left:
        part = os.read(pipe, left)
        if not part:
            return None
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


@dataclass(slots=True)
class _Counts:
    """What is acknowledged, since the process began."""

    done: int = 0
    """Events, from the first on, that need not be given again."""
    calls: int = 0
    requests: int = 0
    sent: int = 0
    stored: int = 0
    lost: int = 0
    why: str = ""
    fine: bool = True
    """The last event was stored."""


class _Work:
    """One recording: what was written, and what could not be."""

    def __init__(
        self, path: Path, meta: Meta, salt: bytes, places: Callable[[], tuple[tuple[str, str], ...]] | None
    ) -> None:
        self.counts = _Counts()
        self._path, self._meta, self._salt, self._places = path, meta, salt, places
        self._writer: Writer | None = None
        self._given = 0
        """Events the writer was given."""
        self._unsettled: deque[tuple[int, int, int, int]] = deque()
        """For each event taken and not acknowledged, how many had been given by then, and what it adds to the counts of
        calls, requests and bytes: what is not acknowledged is given, and counted, again."""
        self._closed_until = 0.0
        self._unmarked = 0
        """Events lost that the recording does not tell of yet."""
        self._open()

    def take(self, event: Event) -> None:
        """Store an event, or count it as lost."""
        asks = isinstance(event, Request) or (isinstance(event, Message) and event.sender == "client")
        logs = self._noted() if asks else ()
        self.counts.fine = self._write(event)
        if logs and self.counts.fine:
            self._write(Places(getattr(event, "n", 0), time.time(), logs))
        self._unsettled.append((self._given, *_counted(event, self._writer.last_body if self._writer else None)))
        self._settle()

    def _noted(self) -> tuple[tuple[str, str], ...]:
        """Where the logs stand; nothing where that cannot be told.

        Whatever a foreign file makes a reader raise is no reason to lose the traffic.
        """
        try:
            return self._places() if self._places is not None else ()
        except Exception:  # noqa: BLE001 - see above
            return ()

    def flush(self) -> bool:
        """Store what the writer holds back; True when there was something."""
        if not self._unsettled or self._writer is None:
            return False
        try:
            self._writer.flush()
        except NotStoredError as error:
            self._lose(error.events, error)
        self._settle()
        return True

    def close(self) -> None:
        """Say what was lost, if that is possible now, and close the recording."""
        try:
            if self._unmarked:
                self._mark()
            if self._writer is not None:
                self._writer.close()
        except NotStoredError as error:
            self._lose(error.events, error)
        while self._unsettled:
            self._acknowledged()
        self._stored()

    def _write(self, event: Event) -> bool:
        if self._writer is None and (time.monotonic() < self._closed_until or not self._open()):
            self._lose(1)
            return False
        assert self._writer is not None
        try:
            if self._unmarked:
                self._mark()
            self._given += 1
            self._writer.write(event)
        except NotStoredError as error:
            self._lose(error.events, error)
            return False
        return True

    def _mark(self) -> None:
        if self._writer is None:
            return
        lost, self._unmarked = self._unmarked, 0
        self._given += 1
        try:
            self._writer.write(Loss(time.time(), lost, self.counts.why))
        except NotStoredError:
            self._unmarked = lost

    def _open(self) -> bool:
        try:
            self._writer = Writer(self._path, self._meta, salt=self._salt)
        except (OSError, CtxscopeError) as error:
            self.counts.why = getattr(error, "strerror", None) or str(error)
            self._closed_until = time.monotonic() + REOPEN_SECONDS
            return False
        self._stored()
        return True

    def _lose(self, events: int, error: OSError | None = None) -> None:
        self.counts.lost += events
        self._unmarked += events
        if error is not None:
            self.counts.why = error.strerror or type(error).__name__

    def _settle(self) -> None:
        settled = self._writer.settled if self._writer is not None else self._given
        while self._unsettled and self._unsettled[0][0] <= settled:
            self._acknowledged()
        self._stored()

    def _acknowledged(self) -> None:
        _, calls, requests, sent = self._unsettled.popleft()
        counts = self.counts
        counts.done += 1
        counts.calls += calls
        counts.requests += requests
        counts.sent += sent

    def _stored(self) -> None:
        if self._writer is not None:
            self.counts.stored = self._writer.stored


def _counted(event: Event, body: bytes | None) -> tuple[int, int, int]:
    """Calls, requests and bytes of bodies that an event brings; ``body``: its own, decoded."""
    if isinstance(event, Request):
        headers = {name.lower(): value for name, value in event.headers}
        return int(wire.detect(event.target, headers, body or event.body) is not None), 1, len(event.body)
    if isinstance(event, Message) and event.sender == "client":
        return int(wire.detect(event.target, {}, event.data) is not None), 0, len(event.data)
    return 0, 0, 0
