"""Events into a ``.ctxrec`` file. Imports little: it runs in a process of its own beside the proxy.

Kinds of records and their fields beside ``id`` (number of the exchange) and ``ts`` (seconds since the epoch):

- ``meta``: what the recording says of itself; ``base`` is added to the numbers of the events behind it.
- ``req``: ``method``, ``target``, ``upstream``, ``headers``, ``fidelity``; the body as below.
- ``head``: ``status``, ``reason``, ``headers``. ``res``: bytes of the reply as sent, ``at`` their offset.
- ``chunks``: ``times``, ``[offset, seconds after ts]`` of each chunk. ``place``: ``logs``, ``[path, entry]`` each.
- ``end``: ``how``, ``detail``, ``first`` and ``last`` (when the first and last byte of the reply came), ``len``.
- ``ws``: one message of connection ``conn``, ``from``, ``kind``; of the client ``target``, ``upstream``,
  ``asks`` (it says that it wants a reply) and a body.
- ``loss``: ``events``, ``why``.

A body is ``len``, ``sha256``, ``body`` (a copy list over the body of ``par``) with its literals as the payload. One that
was sent encoded stands decoded, and ``enc`` tells what was sent: ``ce``, ``len``, ``sha256`` and ``by``, how it can be
made again (``encodings.encode`` with ``begins``); without ``by`` the encoded bytes follow the literals. ``undecoded``:
why an encoded one stands as it was sent.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxscope.capture import encodings, meta_record, secrets
from ctxscope.capture.delta import literal_of
from ctxscope.capture.events import Chunk, End, Event, Head, Headers, Loss, Message, Meta, Places, Request
from ctxscope.capture.parents import Parents
from ctxscope.capture.record import spell
from ctxscope.capture.record_file import RecordFile
from ctxscope.wire.json_text import loads

_PIECE_BYTES, _PIECE_CHUNKS, _PIECE_SECONDS = 1024 * 1024, 10_000, 1.0
"""A reply's chunks are written once there are so many, or bytes of them, or so much time went by since the first."""
_MOST_RECODED = 8 * 1024 * 1024
"""Larger bodies are not encoded anew to see whether the same bytes come out: it takes seconds."""
_ASKING = b"response.create"
_MOST_FAILURES = 3
"""Bodies in a row that no recipe made again; then none is tried for that encoding any more."""


class NotStoredError(OSError):
    """An event, and perhaps chunks of its exchange taken before it, are not in the file and will not be."""

    def __init__(self, error: OSError, events: int) -> None:
        super().__init__(error.errno, error.strerror)
        self.events = events
        """How many."""


@dataclass(slots=True)
class _Reply:
    """The chunks of one exchange that are not in the file yet, and the times of all."""

    first: float | None
    """When its first byte came; ``None`` when an earlier writer took that."""
    last: float
    size: int = 0
    """Bytes of the whole reply so far."""
    at: int = 0
    since: float = 0.0
    parts: list[bytes] = field(default_factory=list)
    held: int = 0
    """Bytes of these."""
    times: list[tuple[int, float]] = field(default_factory=list)
    number: int = 0
    """Of the first event held, among all of this writer."""


class Writer:
    """Writes one recording, new or continued; one process a file.

    A file that ends in a torn record is cut there first. Events of the run that began it (a meta of the same time) keep
    their numbers, those of another one are numbered on. Raises as ``RecordFile`` does.
    """

    def __init__(self, path: Path, meta: Meta, *, sync: bool = False, salt: bytes | None = None) -> None:
        """``sync``: every record is on the disk itself before ``write`` returns, which survives a loss of power.

        ``salt``: of the hashes that stand for secrets, up to 64 bytes, never stored. Writers that take turns at one
        recording are given the same, so that a secret has one hash in all of it; random when there is none.
        """
        self._file = RecordFile(path, sync=sync)
        self._cutter = secrets.Cutter(salt)
        self.last_body: bytes | None = None
        """Of the last request or client's message given: the body decoded; as sent where that cannot be had."""
        self._parents = Parents()
        self._replies: dict[int, _Reply] = {}
        self._taken = 0
        self._recipes: dict[str, tuple[str, int]] = {}
        """By encoding, the recipe that worked last, and how many bodies in a row none worked for."""
        self._base = 0
        try:
            self._begin(meta)
        except BaseException:
            self._file.close()
            raise

    @property
    def stored(self) -> int:
        """Bytes of the file."""
        return self._file.size

    @property
    def settled(self) -> int:
        """How many of the events given so far, from the first on, need not be given again: chunks wait a little.

        They are in the file, or ``write`` said that they will not be.
        """
        return min((reply.number for reply in self._replies.values() if reply.parts), default=self._taken)

    def write(self, event: Event) -> None:
        """Take an event; its records are in the file on return, but for a chunk, which may wait (see ``settled``).

        Raises ``NotStoredError``, the file being as before; what comes later may well be stored.
        """
        self._taken += 1
        try:
            self._write(event)
        except NotStoredError:
            raise
        except OSError as error:
            raise NotStoredError(error, 1) from error
        self.flush(event.time - _PIECE_SECONDS)

    def flush(self, before: float = math.inf) -> None:
        """Write the chunks that wait since ``before`` (seconds since the epoch); raises ``NotStoredError``."""
        error = None
        for n, reply in self._replies.items():
            if reply.parts and reply.since <= before:
                try:
                    self._piece(n, reply)
                except NotStoredError as failed:
                    error = NotStoredError(failed, failed.events + (error.events if error else 0))
        if error is not None:
            raise error

    def close(self) -> None:
        """Write what waits and give the file back; raises ``NotStoredError``, the file being closed all the same."""
        try:
            self.flush()
        finally:
            self._file.close()

    # --- events ---

    def _begin(self, meta: Meta) -> None:
        fields, before = meta_record.fields_of(meta), self._file.meta
        if before is not None and before.get("ts") == fields["ts"]:
            base = before.get("base")
            self._base = base if isinstance(base, int) else 0
        else:
            self._base = self._file.last_number
            self._append(meta_record.KIND, {**fields, **({"base": self._base} if self._base else {})})

    def _write(self, event: Event) -> None:
        if isinstance(event, Request):
            self._request(event)
        elif isinstance(event, Head):
            fields = {"status": event.status, "reason": secrets.text(event.reason)}
            self._of(event, "head", {**fields, "headers": self._cutter.headers(event.headers)})
        elif isinstance(event, Chunk):
            self._chunk(event)
        elif isinstance(event, End):
            self._end(event)
        elif isinstance(event, Message):
            self._message(event)
        elif isinstance(event, Places):
            self._of(event, "place", {"logs": [list(log) for log in event.logs]})
        else:
            self._loss(event)

    def _request(self, event: Request) -> None:
        head = {
            "method": event.method,
            "target": self._cutter.target(event.target),
            "upstream": secrets.origin(event.upstream),
            "headers": self._cutter.headers(event.headers),
            **({} if event.fidelity == "bytes" else {"fidelity": event.fidelity}),
        }
        self._body(event, "req", head, event.body, event.target, _encoding(event.headers))

    def _message(self, event: Message) -> None:
        head: dict[str, Any] = {"conn": event.connection + self._base, "from": event.sender, "kind": event.kind}
        if event.sender == "client":
            head |= {"asks": True} if _asks(event) else {}
            head |= {"target": self._cutter.target(event.target), "upstream": secrets.origin(event.upstream)}
            self._body(event, "ws", head, event.data, event.target, "")
        else:
            self._of(event, "ws", head, event.data)

    def _end(self, event: End) -> None:
        reply = self._replies.pop(event.n, None)
        fields: dict[str, Any] = {"how": event.how}
        if event.detail:
            fields["detail"] = secrets.text(event.detail)
        if reply is not None:
            fields |= {} if reply.first is None else {"first": round(reply.first, 6)}
            fields |= {"last": round(reply.last, 6), "len": reply.size}
        waiting = len(reply.parts) if reply else 0
        try:
            if reply is not None and reply.parts:
                self._piece(event.n, reply)
                waiting = 0
        finally:
            try:
                self._of(event, "end", fields)
            except OSError as error:
                raise NotStoredError(error, waiting + 1) from error

    def _loss(self, event: Loss) -> None:
        self._append("loss", {"ts": round(event.time, 6), "events": event.events, "why": secrets.text(event.why)})

    # --- replies ---

    def _chunk(self, event: Chunk) -> None:
        first = event.time if event.offset == 0 else None
        reply = self._replies.setdefault(event.n, _Reply(first, event.time))
        if reply.parts and event.offset != reply.size:  # one that is missing, or one that was given before
            self._piece(event.n, reply)
        if not reply.parts:
            reply.at, reply.since, reply.number = event.offset, event.time, self._taken - 1
        reply.parts.append(event.data)
        reply.held += len(event.data)
        reply.times.append((event.offset, event.time))
        reply.size, reply.last = event.offset + len(event.data), event.time
        if reply.held >= _PIECE_BYTES or len(reply.parts) >= _PIECE_CHUNKS:
            self._piece(event.n, reply)

    def _piece(self, n: int, reply: _Reply) -> None:
        """Write what is held of a reply; when that fails, it is gone."""
        parts, times = reply.parts, reply.times
        reply.parts, reply.times, reply.held = [], [], 0
        head = {"id": n + self._base, "ts": round(reply.since, 6)}
        try:
            self._append("res", {**head, "at": reply.at}, b"".join(parts))
            self._append("chunks", {**head, "times": [[at, round(t - reply.since, 6)] for at, t in times]})
        except OSError as error:
            raise NotStoredError(error, len(parts)) from error

    # --- bodies ---

    def _body(
        self, event: Request | Message, kind: str, head: dict[str, Any], sent: bytes, target: str, encoding: str
    ) -> None:
        """Write a record with a body, as a change of the parent of which least has to be stored."""
        body, wire, tail = sent, dict[str, Any](), b""
        if encodings.layers(encoding):
            found = encodings.decode(sent, encoding)
            if found.problem:
                wire = {"undecoded": found.problem}
            else:
                body = found.data
                told, tail = self._encoded(sent, body, encoding)
                wire = {"enc": told}
        self.last_body = body
        path = target.partition("?")[0]
        choice = self._parents.choose(path, body)
        fields = {
            **head,
            **({} if choice.parent is None else {"par": choice.parent}),
            "len": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
            "body": choice.pieces,
            **wire,
        }
        self._of(event, kind, fields, literal_of(body, choice.pieces) + tail)
        self._parents.keep(path, event.n + self._base, body, choice.depth)

    def _encoded(self, sent: bytes, body: bytes, encoding: str) -> tuple[dict[str, Any], bytes]:
        """What is stored of the bytes that were sent: how to make them again, or else they themselves."""
        digest = hashlib.sha256(sent).digest()
        told = {"ce": encoding, "len": len(sent), "sha256": digest.hex()}
        begins = sent[: encodings.GZIP_HEAD]
        known, failures = self._recipes.get(encoding, ("", 0))
        if failures < _MOST_FAILURES and len(body) <= _MOST_RECODED:
            for recipe in sorted(encodings.recipes(encoding), key=lambda name: name != known):
                if hashlib.sha256(encodings.encode(body, recipe, begins)).digest() == digest:
                    self._recipes[encoding] = recipe, 0
                    return {**told, "by": recipe, "begins": begins.hex()}, b""
            self._recipes[encoding] = known, failures + 1
        return told, sent

    # --- records ---

    def _of(
        self, event: Request | Head | End | Message | Places, kind: str, fields: dict[str, Any], data: bytes = b""
    ) -> None:
        self._append(kind, {"id": event.n + self._base, "ts": round(event.time, 6), **fields}, data)

    def _append(self, kind: str, fields: dict[str, Any], data: bytes = b"") -> None:
        self._file.append(spell(kind, fields, data))


def _encoding(headers: Headers) -> str:
    return ", ".join(value for name, value in headers if name.lower() == "content-encoding")


def _asks(message: Message) -> bool:
    """Whether a client's message says that it wants a reply (OpenAI's Responses API over WebSocket)."""
    if message.kind != "text" or _ASKING not in message.data:
        return False
    try:
        value = loads(message.data)
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("type") == _ASKING.decode()
