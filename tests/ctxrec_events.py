"""A short recorded session as events, and what must be read of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ctxscope.capture import Recording, open_recording
from ctxscope.capture.events import Chunk, End, Event, Head, Headers, Loss, Message, Meta, Places, Request
from ctxscope.capture.writer import Writer
from ctxscope.model import Exchange

META = Meta(1000.0, agent="pi", command=("pi", "--print"))
UPSTREAM = "https://api.example.com"
HEADERS: Headers = (("Host", "127.0.0.1:9"), ("User-Agent", "pi/1"), ("x-session-id", "s1"))
PATH = "/v1/responses"


def request(n: int, body: bytes, *, at: float | None = None, headers: Headers = HEADERS, target: str = PATH) -> Request:
    return Request(n, 1000.0 + n if at is None else at, "POST", target, UPSTREAM, headers, body)


def reply(n: int, *parts: bytes, encoding: str = "", at: float | None = None, how: Any = "complete") -> list[Event]:
    """A whole reply in chunks a tenth of a second apart."""
    start, offset = 1000.2 + n if at is None else at, 0
    found: list[Event] = [Head(n, start, 200, "OK", (("content-encoding", encoding),) if encoding else ())]
    for index, part in enumerate(parts):
        found.append(Chunk(n, start + 0.1 * (index + 1), offset, part))
        offset += len(part)
    return [*found, End(n, start + 0.1 * (len(parts) + 1), how)]


def body(turns: int) -> bytes:
    """A request body that continues the one with fewer turns."""
    items = [{"role": "user", "content": f"turn {n}: " + f"the tide of day {n} is late. " * 4} for n in range(turns)]
    return json.dumps({"model": "m", "input": items, "instructions": "Keep the log. " * 4}).encode()


def created(turns: int) -> bytes:
    """A WebSocket message that asks for a reply."""
    return json.dumps({"type": "response.create", **json.loads(body(turns))}).encode()


def said(n: int, *texts: bytes, at: float) -> list[Event]:
    return [Message(n, 4, at + 0.1 * i, "server", "text", text) for i, text in enumerate(texts)]


def session() -> list[Event]:
    """Three calls that grow, one of them sent packed, and two messages over a WebSocket."""
    packed = gzip.compress(body(2), mtime=0)
    return [
        request(1, body(1)),
        Places(1, 1001.1, (("/logs/a.jsonl", "line 7"),)),
        Head(1, 1001.2, 200, "OK"),
        Chunk(1, 1001.3, 0, b"data: one\n\n"),
        Chunk(1, 1003.3, 11, b"data: two\n\n"),
        Chunk(1, 1003.5, 22, b"data: end\n\n"),
        End(1, 1003.6),
        request(2, packed, headers=(*HEADERS, ("Content-Encoding", "gzip"))),
        *reply(2, gzip.compress(b'{"output":[]}', mtime=0), encoding="gzip"),
        request(3, body(3)),
        *reply(3, b"data: thr", how="client left"),
        Loss(1004.0, 2, "No space left on device"),
        Request(4, 1004.0, "GET", PATH, UPSTREAM, HEADERS),
        Head(4, 1004.1, 101, "Switching Protocols"),
        Message(5, 4, 1005.0, "client", "text", created(2), PATH, UPSTREAM),
        *said(5, b'{"type":"response.created"}', b'{"type":"response.completed","response":{"id":"r1"}}', at=1005.2),
        Message(6, 4, 1006.0, "client", "text", created(3), PATH, UPSTREAM),
        *said(6, b'{"type":"response.created"}', at=1006.2),
        End(4, 1007.0, "client left"),
    ]


def write(path: Path, events: Iterable[Event], meta: Meta = META) -> Path:
    writer = Writer(path, meta)
    for event in events:
        writer.write(event)
    writer.close()
    return path


def read(path: Path) -> tuple[Recording, dict[int, Exchange]]:
    recording = open_recording(path, 0)
    return recording, {exchange.n: exchange for exchange in recording.poll()}


def is_harmed(recording: Recording) -> bool:
    """Whether it tells of bytes that are no record."""
    words = [notice.removeprefix(f"{recording.path}: ") for notice in recording.notices]
    return any("damage" in told or "no whole record" in told for told in words)


def shown(exchange: Exchange) -> tuple[Any, ...]:
    """All that an exchange says, its bodies read."""
    return (
        *(exchange.n, exchange.time, exchange.method, exchange.path, dict(exchange.headers), exchange.request()),
        *(exchange.response(), exchange.request_bytes, exchange.response_bytes, exchange.status),
        *(exchange.first_byte, exchange.end, exchange.upstream, exchange.fidelity, exchange.places, exchange.ended),
    )


def all_shown(exchanges: dict[int, Exchange]) -> dict[int, tuple[Any, ...]]:
    return {n: shown(exchange) for n, exchange in exchanges.items()}


def requests_of(events: Sequence[Event]) -> dict[int, bytes]:
    """By number, the bodies that must be given, decoded."""
    bodies = {e.n: e.body for e in events if isinstance(e, Request)}
    messages = {e.n: e.data for e in events if isinstance(e, Message) and e.sender == "client"}
    return {n: gzip.decompress(b) if b[:2] == b"\x1f\x8b" else b for n, b in (bodies | messages).items()}
