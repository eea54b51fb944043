"""The side of a recorder that stands beside the traffic: takes events, never waits, never fails.

What writes is a process of its own (``recording_process``), so that hashing and comparing bodies takes no time from
forwarding, and so that its end is not the traffic's. Should it die, another one goes on with the same recording from
the last event that was acknowledged.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import IO

from ctxscope.capture.events import Chunk, Event, Loss, Message, Meta, Request

MOST_WAITING = 512 * 1000 * 1000
"""Bytes of events held while the writer is behind; beyond it events are lost rather than memory."""
MOST_DEATHS = 20
"""Writers that died one after another without storing anything; then no further one is started."""
CLOSING_SECONDS = 60.0
"""How long the last events may take to be stored."""
MOST_AT_ONCE, MOST_BYTES_AT_ONCE = 64, 8 * 1000 * 1000
"""Events given to the writer in one piece, and their bytes where they are several."""
_DEATHS_OF_ONE, _KILLS = 2, 6
"""Writers that may end in an error over the same event, and those that something may kill there."""
PAUSE_SECONDS = 0.2
"""Longer by this before each further writer."""
TELLING_SECONDS = 1.0
"""How long what is to be said may still take at the end."""
_SALT_BYTES = 16
LENGTH = struct.Struct(">Q")
_OVERHEAD = 200
"""Bytes an event takes beside its body, about."""
_START = "import sys; sys.path[:] = sys.argv[2:]; import importlib; importlib.import_module(sys.argv[1]).main()"
"""The parent's own path: a folder the agent runs in must not lend its modules."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of the events so far."""

    calls: int = 0
    """Model calls among the requests."""
    requests: int = 0
    sent: int = 0
    """Bytes of request bodies."""
    stored: int = 0
    """Bytes of the recording."""
    lost: int = 0
    """Events that could not be stored."""
    why: str = ""
    """Of the last loss."""


class Recorder:
    """Hands events to a process that writes them; forwarding goes on whatever becomes of that one."""

    def __init__(
        self,
        path: Path,
        meta: Meta,
        told: Callable[[str], None],
        *,
        process: str = "ctxscope.capture.recording_process",
    ) -> None:
        """``told`` is called, from a thread of the recorder's, with a sentence when events begin to be lost.

        ``process``: module whose ``main`` does the writing.
        """
        self._path, self._meta, self._told, self._module = path, meta, told, process
        self._salt = os.urandom(_SALT_BYTES)
        self._changed = threading.Condition()
        self._waiting: deque[Event] = deque()
        """Taken, and not acknowledged; the first ``_sent`` of them were given to the writer."""
        self._sent = self._bytes = 0
        self._closing = self._gave_up = False
        self._losing = self._deaf = False
        """``_deaf``: the writer says nothing any more."""
        self._sentences: SimpleQueue[str | None] = SimpleQueue()
        self._stored = Stored()
        self._before = Stored()
        """As it was when the present writer began."""
        self._overflown = self._code = 0
        """Events that found no room, and what the last writer ended with."""
        self._writer: subprocess.Popen[bytes] | None = None
        self._feeder = threading.Thread(target=self._feed, name="ctxscope-recorder", daemon=True)
        self._teller = threading.Thread(target=self._tell, name="ctxscope-recorder-told", daemon=True)
        self._feeder.start()
        self._teller.start()

    def __call__(self, event: Event) -> None:
        """Take an event; returns at once."""
        with self._changed:
            size = _size(event)
            if self._gave_up or self._closing or self._bytes + size > MOST_WAITING:
                self._lose(1, self._stored.why or "the writer is too far behind")
                self._overflown += not self._gave_up
                return
            if self._overflown and not isinstance(event, Chunk):
                self._waiting.append(Loss(time.time(), self._overflown, self._stored.why))
                self._bytes += _OVERHEAD
                self._overflown = 0
            self._waiting.append(event)
            self._bytes += size
            self._changed.notify_all()

    @property
    def stored(self) -> Stored:
        """As far as the writer has told."""
        with self._changed:
            return self._stored

    def close(self) -> Stored:
        """Wait until all that was taken is stored, or can not be."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._feeder.join(CLOSING_SECONDS)
        with self._changed:
            writer = self._writer
            if self._waiting:
                self._lose_all(self._stored.why or "the writer did not finish")
        if writer is not None and writer.poll() is None:
            writer.kill()
            writer.wait()
        self._sentences.put(None)
        self._teller.join(TELLING_SECONDS)
        return self.stored

    # --- the writer ---

    def _feed(self) -> None:
        """Start writers, one after another as they die, and give each what is not acknowledged."""
        deaths = 0
        while True:
            acknowledged = self._stored
            try:
                finished = self._with_a_writer()
            except OSError as error:  # no process can be started: no memory, no more processes
                finished = False
                with self._changed:
                    self._lose(0, error.strerror or type(error).__name__)
            if finished:
                return
            deaths = 1 if self._stored != acknowledged else deaths + 1
            with self._changed:
                self._sent = 0
                if deaths >= MOST_DEATHS:
                    self._gave_up = True
                    self._lose_all("the writer died again and again")
                    return
                patience = _DEATHS_OF_ONE if self._code > 0 else _KILLS
                if deaths >= patience and self._waiting and not isinstance(self._waiting[0], Loss):
                    self._pass_over()
                # the first few at once: someone killed it; then slower, since memory or processes may be short
                self._changed.wait_for(lambda: self._closing, PAUSE_SECONDS * max(0, deaths - _DEATHS_OF_ONE))

    def _pass_over(self) -> None:
        """Give up the event that two writers died of, so that the others are stored."""
        lost = self._waiting.popleft()
        self._bytes -= _size(lost)
        self._waiting.appendleft(Loss(time.time(), 1, "the writer died of it"))
        self._bytes += _OVERHEAD
        self._lose(1, "the writer died of it")

    def _with_a_writer(self) -> bool:
        """Feed one writer until it has finished, which is True, or died."""
        command = [sys.executable, "-I", "-c", _START, self._module, *sys.path]
        with subprocess.Popen(  # noqa: S603 - our own module, in our own interpreter
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        ) as writer:
            assert writer.stdin is not None
            assert writer.stdout is not None
            with self._changed:
                self._writer, self._before, self._deaf = writer, self._stored, False
                self._changed.notify_all()
            listener = threading.Thread(target=self._listen, args=(writer.stdout,), daemon=True)
            listener.start()
            with suppress(BrokenPipeError):
                send(writer.stdin, (str(self._path), self._meta, self._salt))
                self._give(writer.stdin)
            with suppress(BrokenPipeError):
                writer.stdin.close()
            self._code = writer.wait()
            listener.join()
        with self._changed:
            self._writer = None
            self._changed.notify_all()
            return self._closing and not self._waiting

    def _give(self, pipe: IO[bytes]) -> None:
        """Send events as they come; returns once the recorder closes and all are sent."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._sent < len(self._waiting) or self._closing or self._deaf)
                if self._sent == len(self._waiting) or self._deaf:
                    return
                batch = self._batch()
                self._sent += len(batch)
            send(pipe, batch)

    def _batch(self) -> list[Event]:
        """The next events, of few bytes together: a pipe and a pickle each hold them once more."""
        batch: list[Event] = []
        size = 0
        for event in islice(self._waiting, self._sent, self._sent + MOST_AT_ONCE):
            size += _size(event)
            if batch and size > MOST_BYTES_AT_ONCE:
                break
            batch.append(event)
        return batch

    def _listen(self, pipe: IO[bytes]) -> None:
        """Take acknowledgements: a JSON object a line, counts of this writer since it began."""
        done = lost = 0
        for line in pipe:
            said = json.loads(line)
            with self._changed:
                for _ in range(min(said["done"] - done, len(self._waiting))):
                    self._bytes -= _size(self._waiting.popleft())
                    self._sent -= 1
                done = said["done"]
                before = self._before
                self._stored = replace(
                    self._stored,
                    calls=before.calls + said["calls"],
                    requests=before.requests + said["requests"],
                    sent=before.sent + said["sent"],
                    stored=said["stored"],
                )
                if said["lost"] > lost:
                    self._lose(said["lost"] - lost, said["why"])
                    lost = said["lost"]
                elif said["fine"]:
                    self._losing = False
                self._changed.notify_all()
        with self._changed:
            self._deaf = True
            self._changed.notify_all()

    # --- what is said ---

    def _lose(self, events: int, why: str) -> None:
        self._stored = replace(self._stored, lost=self._stored.lost + events, why=why)
        if events and not self._losing:
            self._losing = True
            self._sentences.put(f"{self._path}: cannot be recorded: {why}; traffic goes on unrecorded")

    def _lose_all(self, why: str) -> None:
        self._lose(sum(not isinstance(event, Loss) for event in self._waiting), why)
        self._waiting.clear()

    def _tell(self) -> None:
        """Say it from here: a terminal that takes nothing must not hold up what is forwarded."""
        while (sentence := self._sentences.get()) is not None:
            self._told(sentence)


def send(pipe: IO[bytes], thing: object) -> None:
    """Write one thing so that ``receive`` reads it."""
    data = pickle.dumps(thing, protocol=5)
    pipe.write(LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _size(event: Event) -> int:
    body = event.body if isinstance(event, Request) else event.data if isinstance(event, Chunk | Message) else b""
    return len(body) + _OVERHEAD
