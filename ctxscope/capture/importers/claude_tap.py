"""claude-tap: a record a call, in JSON lines, its SQLite store, or a portable ``*.ctap.json``.

The shape: ``{timestamp, request_id, turn, duration_ms, request: {method, path, headers, body}, response: {status,
headers, body, sse_events?}, upstream_base_url?}`` of claude-tap 0.1.146. ``timestamp`` is when the record was written,
at the end of the call. A WebSocket is one record (``transport: websocket``) with its messages in ``ws_events``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from ctxscope.capture.importers import tap_store
from ctxscope.capture.importers.http_parts import decoded, headers, moment, spelled, split_url
from ctxscope.capture.importers.imported import Answer, Capture, Damage, Ending, Imported, Item, Said, UnfitError, item
from ctxscope.capture.importers.json_lines import first_objects
from ctxscope.capture.importers.tap_store import BUNDLE, MAGIC, Stored

title = "claude-tap"
notes = (
    "claude-tap keeps parsed bodies: escapes, white space, repeated keys and the spelling of numbers are left out.",
    "claude-tap notes the end of a call and how long it took, not when the reply began.",
    "claude-tap keeps no request that could not reach its upstream, and, unless told otherwise, puts streams together itself.",
    "claude-tap notes one time for all messages of a WebSocket.",
)

_SURE = 0.95
_STORE, _COLUMNS = "traces.sqlite3", (b"payload_json", b"record_index")
"""Its name, and columns of its tables, which the first page of a database tells unless they are still in the -wal."""
_MS = 1000.0
_WEBSOCKET = "WEBSOCKET"
_TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled", "error"})
"""Messages of the Responses API after which the server waits for the client (codex.md §4 of the reference)."""

_Message = tuple[bytes, bool]
"""A message of a WebSocket, and whether it is the last of an answer."""


def claims(path: Path, head: bytes) -> float:
    """See ``Importer``."""
    if head.startswith(MAGIC):
        return _SURE if path.name == _STORE or all(name in head for name in _COLUMNS) else 0.0
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return 0.0
    if BUNDLE.encode() in head:
        return _SURE
    return _SURE if any(_is_record(value) for value in first_objects(path)) else 0.0


def _is_record(value: Mapping[str, Any]) -> bool:
    request = value.get("request")
    marks = {"request_id", "turn", "duration_ms", "upstream_base_url"} & value.keys()
    return isinstance(request, dict) and {"path", "body"} <= request.keys() and len(marks) > 1


def read(path: Path) -> Capture:
    """See ``Importer``. Repeated values of a store or a bundle are kept in memory once."""
    damage = Damage(path, "record", "a claude-tap record with request.path")
    items: list[Item] = []
    for stored in _stored(path, damage):
        try:
            exchange = _exchange(stored.load())
        except ValueError as error:
            damage.add(stored.at, str(error))
        else:
            items.append(item(exchange, _reader(stored), path))
    return Capture(tuple(items), tuple(damage.sentences()))


def _stored(path: Path, damage: Damage) -> Iterator[Stored]:
    with path.open("rb") as file:
        head = file.read(1024)
    if head.startswith(MAGIC):
        return tap_store.store(path, damage)
    return tap_store.bundle(path, damage) if BUNDLE.encode() in head else tap_store.lines(path, damage)


def _reader(stored: Stored) -> Callable[[], Imported]:
    return lambda: _exchange(stored.load())


# --- a record --------------------------------------------------------------------------------------------------------


def _exchange(record: Mapping[str, Any]) -> Imported:
    """A record as an exchange. Raises ``UnfitError``."""
    request, response = record.get("request"), record.get("response")
    if not isinstance(request, Mapping) or not isinstance(request.get("path"), str):
        raise UnfitError("an object without request.path")
    ended, took = moment(record.get("timestamp")), record.get("duration_ms")
    if ended is None:
        raise UnfitError("a record without a time")
    started = max(0.0, ended - took / _MS) if isinstance(took, int | float) and took > 0 else ended
    response = response if isinstance(response, Mapping) else {}
    socket = record.get("transport") == "websocket" or request.get("method") == _WEBSOCKET
    return Imported(
        time=started,
        method="GET" if socket else str(request.get("method", "POST")),
        target=request["path"] if request["path"].startswith("/") else f"/{request['path']}",
        upstream=_origin(record.get("upstream_base_url")),
        headers=decoded(headers(request.get("headers"))),
        body=b"" if socket else spelled(request.get("body")),
        fidelity="parsed",
        answer=_answer(response, started if socket else ended, socket=socket),
        ending=_ending(response, ended),
        messages=_messages(request, response, started) if socket else (),
    )


def _origin(url: Any) -> str:
    try:
        return split_url(url)[0] if isinstance(url, str) else ""
    except ValueError:
        return ""


def _answer(response: Mapping[str, Any], time: float, *, socket: bool) -> Answer | None:
    status = response.get("status")
    if not isinstance(status, int):
        return None
    events = response.get("sse_events")
    body = b"" if socket else _stream(events) if isinstance(events, list) and events else spelled(response.get("body"))
    return Answer(time, status, headers=decoded(headers(response.get("headers"))), body=body)


def _ending(response: Mapping[str, Any], ended: float) -> Ending:
    return Ending(ended, "upstream reset", "the connection failed") if response.get("error") else Ending(ended)


def _stream(events: list[Any]) -> bytes:
    """The events of a stream as a stream; claude-tap names those without a name ``message``, and drops ``[DONE]``."""
    found: list[bytes] = []
    for event in events:
        if isinstance(event, Mapping) and "data" in event:
            name = event.get("event")
            line = f"event: {name}\n".encode() if isinstance(name, str) and name != "message" else b""
            found.append(line + b"data: " + spelled(event["data"]) + b"\n\n")
    return b"".join(found)


def _messages(request: Mapping[str, Any], response: Mapping[str, Any], started: float) -> tuple[Said, ...]:
    """What was said, each reply behind what asked for it.

    Where the messages were not kept, the one that those of each side were put together to.
    """
    said = _in_turn(_said(request), iter(_said(response)))
    return tuple(Said(started, sender, "text", data) for sender, data in said)


def _in_turn(asked: list[_Message], heard: Iterator[_Message]) -> Iterator[tuple[Literal["client", "server"], bytes]]:
    for data, _ in asked:
        yield "client", data
        for answer, ends in heard:
            yield "server", answer
            if ends:
                break
    yield from (("server", data) for data, _ in heard)


def _said(side: Mapping[str, Any]) -> list[_Message]:
    """The messages of one side."""
    events = side.get("ws_events")
    if not isinstance(events, list) or not events:
        body = side.get("body")
        events = [body] if isinstance(body, Mapping) and body else []
    return [(_spelled(event), isinstance(event, Mapping) and event.get("type") in _TERMINAL) for event in events]


def _spelled(event: Any) -> bytes:
    """One message; what was no JSON stands as ``{"raw": text}``."""
    raw = event.get("raw") if isinstance(event, Mapping) and len(event) == 1 else None
    return spelled(raw if isinstance(raw, str) else event)
