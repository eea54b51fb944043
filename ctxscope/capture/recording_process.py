"""The process that writes a recording: events come on stdin, acknowledgements go to stdout."""

from __future__ import annotations

import json
import pickle
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from ctxscope import wire
from ctxscope.capture.encodings import decoded
from ctxscope.capture.events import Event, Loss, Message, Meta, Places, Request
from ctxscope.capture.recorder import LENGTH
from ctxscope.capture.writer import Writer

REOPEN_SECONDS = 1.0
"""How long a recording that could not be opened is left alone."""
Placing = Callable[[Meta], Callable[[], tuple[tuple[str, str], ...]]]
"""Gives, for a recording, what tells where the agent's logs stand."""


def main(placing: Placing | None = None) -> None:
    """Write what comes until there is no more. The terminal's signals are for the agent, and are ignored."""
    for name in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)
    pipe, out = sys.stdin.buffer, sys.stdout.buffer
    path, meta = _received(pipe) or ("", Meta(0.0))
    work = _Work(Path(path), meta, placing(meta) if placing else None)
    while (batch := _received(pipe)) is not None:
        for event in batch:
            work.take(event)
        out.write(json.dumps(asdict(work.counts)).encode() + b"\n")
        out.flush()
    work.close()


def _received(pipe: IO[bytes]) -> Any:
    """The next thing of the parent, our own program; ``None`` at the end, also one in the middle of a thing."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = pipe.read(length)
    return pickle.loads(data) if len(data) == length else None  # noqa: S301 - from the process that started us


@dataclass(slots=True)
class _Counts:
    """What is acknowledged, since the process began."""

    done: int = 0
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

    def __init__(self, path: Path, meta: Meta, places: Callable[[], tuple[tuple[str, str], ...]] | None) -> None:
        self.counts = _Counts()
        self._path, self._meta, self._places = path, meta, places
        self._writer: Writer | None = None
        self._closed_until = 0.0
        self._why = ""
        self._unmarked = 0
        """Events lost that the recording does not tell of yet."""
        self._open()

    def take(self, event: Event) -> None:
        """Store an event, or count it as lost."""
        asks = isinstance(event, Request) or (isinstance(event, Message) and event.sender == "client")
        logs = self._places() if self._places is not None and asks else ()
        stored = self._write(event)
        if logs and stored:
            self._write(Places(getattr(event, "n", 0), time.time(), logs))
        self._count(event, stored=stored)

    def close(self) -> None:
        """Say what was lost, if that is possible now, and close the recording."""
        if self._unmarked:
            self._mark()
        if self._writer is not None:
            self._writer.close()

    def _write(self, event: Event) -> bool:
        if self._writer is None and (time.monotonic() < self._closed_until or not self._open()):
            return False
        assert self._writer is not None
        try:
            if self._unmarked:
                self._mark()
            self._writer.write(event)
        except OSError as error:
            self._why = error.strerror or type(error).__name__
            return False
        return True

    def _mark(self) -> None:
        if self._writer is None:
            return
        self._writer.write(Loss(time.time(), self._unmarked, self._why))
        self._unmarked = 0

    def _open(self) -> bool:
        try:
            self._writer = Writer(self._path, self._meta)
        except OSError as error:
            self._why = error.strerror or type(error).__name__
            self._closed_until = time.monotonic() + REOPEN_SECONDS
            return False
        self.counts.stored = self._writer.stored
        return True

    def _count(self, event: Event, *, stored: bool) -> None:
        counts = self.counts
        counts.done += 1
        counts.fine = stored
        if not stored:
            counts.lost += 1
            counts.why = self._why
            self._unmarked += 1
        if isinstance(event, Request):
            counts.requests += 1
            counts.sent += len(event.body)
            headers = {name.lower(): value for name, value in event.headers}
            body = decoded(event.body, headers.get("content-encoding", ""))
            counts.calls += wire.detect(event.target, headers, event.body if body is None else body) is not None
        elif isinstance(event, Message) and event.sender == "client":
            counts.sent += len(event.data)
            counts.calls += wire.detect(event.target, {}, event.data) is not None
        if self._writer is not None:
            counts.stored = self._writer.stored
