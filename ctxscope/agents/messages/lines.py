"""Records of a team's own log as entries: messages one by one, whole requests, spans. Never raises.

Kinds of entries: a role (``user``, ``assistant``, ``tool``, ``system``…) or ``item`` for one message; ``request`` for a
conversation or request as a whole, with its ``State``; ``span`` for a span that is no model call; else ``unknown``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ctxscope.agents.messages import spans, state
from ctxscope.agents.messages.shapes import is_message
from ctxscope.agents.messages.state import State, session_of, time_of
from ctxscope.agents.messages.tree import documents, item_texts
from ctxscope.model import Entry, Place, Record
from ctxscope.wire import json_text
from ctxscope.wire.blocks import mapped, string

_SAYS_SOMETHING = (b'"role"', b'"messages"', b'"input"', b'"contents"', b"gen_ai.", b"span_id", b"spanId")
LOG = "log"
"""Source key of the file; ``log:<session>`` for one of several sessions whose ids stand in it."""


def entries(record: Record) -> Iterator[Entry]:
    """The entries of a line, or of a whole file of one or more JSON values."""
    key = f"{record.key}"
    if record.value is None:
        yield Entry("gone", record.place, key, {}, source=record.source)
        return
    if not isinstance(record.value, bytes):
        return
    wanted = record.source.partition(":")[2]
    if wanted and wanted.encode() not in record.value and any(mark in record.value for mark in _SAYS_SOMETHING):
        return  # another session's, which need not be read
    for entry in _entries(record, key):
        if not wanted or entry.data.get("session") in (wanted, None):
            yield replace(entry, source=record.source)


def _entries(record: Record, key: str) -> Iterator[Entry]:
    data = record.value
    assert isinstance(data, bytes)
    found, rest = documents(data)
    whole = record.key == "file"
    for number, (_, text) in enumerate(found, 1):
        place = Place(record.place.log, f"value {number}") if whole and len(found) > 1 else record.place
        name = key if number == 1 else f"{key}#{number}"
        yield from _of_value(text, place, name, whole=whole)
    held_back = whole and found and not data.endswith(b"\n")  # a last line that is being written
    if rest is not None and data[rest:].strip() and not held_back:
        yield from _torn(data[rest:], record.place, f"{key}#rest", whole=whole)


def _of_value(text: bytes, place: Place, key: str, *, whole: bool) -> Iterator[Entry]:
    """One JSON value: a message, a request, an array of either, a span or a batch of them."""
    if text[:1] == b'"' and (inner := _inner(text)) is not None:
        text = inner
    if text[:1] == b"[":
        yield from _of_array(text, place, key, whole=whole)
        return
    try:
        value = json_text.loads_leniently(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        yield Entry("unknown", place, key, {}, raw=text)
    elif is_message(value):
        kind, text = string(value.get("role")) or "item", state.shared(text)
        yield Entry(kind, place, key, {"message": text, "session": session_of(value)}, time_of(value), raw=text)
    elif spans.is_batch(value) or spans.is_span(value):
        yield from _of_spans(value, place, key, text)
    elif (found := state.of_object(text)) is not None:
        about = {"state": found, "session": session_of(value), "whole": whole}
        yield Entry("request", place, key, about, time_of(value))
    else:
        yield Entry("unknown", place, key, value, raw=text)


def _of_array(text: bytes, place: Place, key: str, *, whole: bool) -> Iterator[Entry]:
    found = state.of_array(text)
    if found is not None:
        yield Entry("request", place, key, {"state": found, "session": None, "whole": whole})
        return
    try:
        inner = item_texts(text)
    except (ValueError, RecursionError):
        inner = ()
    if not inner or not all(item[:1] in (b"{", b"[") for item in inner):
        yield Entry("unknown", place, key, {}, raw=text)
        return
    for number, item in enumerate(inner, 1):
        where = Place(place.log, f"item {number}") if whole else place
        yield from _of_value(item, where, f"{key}#{number}", whole=False)


def _of_spans(value: Mapping[str, Any], place: Place, key: str, text: bytes) -> Iterator[Entry]:
    batch = spans.is_batch(value)
    for number, span in enumerate(spans.of_batch(value) if batch else (value,), 1):
        told = spans.attributes(span)
        name = f"{key}#{number}" if batch else key
        if spans.is_call(told):
            about = {"state": state.of_span(told), "session": _conversation(told), "whole": False}
            yield Entry("request", place, name, about, spans.moment(span))
        else:
            yield Entry("span", place, name, {"name": span.get("name")}, spans.moment(span), raw=b"" if batch else text)


def _conversation(told: Mapping[str, Any]) -> str | None:
    named = told.get("gen_ai.conversation.id") or told.get("session.id")
    return named if isinstance(named, str) and named else None


def _inner(text: bytes) -> bytes | None:
    """The JSON in a JSON string, as a column of text gives it."""
    try:
        inner = json_text.loads(text)
    except ValueError:
        return None
    words = inner.strip() if isinstance(inner, str) else ""
    return words.encode("utf-8", "surrogatepass") if words[:1] in ("[", "{") else None


def _torn(data: bytes, place: Place, key: str, *, whole: bool) -> Iterator[Entry]:
    """What is left of a file or line that is not JSON to its end: of an array of messages those that are whole."""
    texts = _readable_items(data)
    kept = tuple(state.shared(t) for t in texts if is_message(_parsed(t)))
    if kept and len(kept) == len(texts):
        about = {"state": State(kept), "session": None, "whole": whole, "torn": len(kept)}
        yield Entry("request", place, key.removesuffix("#rest"), about)
    else:
        yield Entry("unknown", place, key, {}, raw=data[:4096])


def _parsed(text: bytes) -> Mapping[str, Any]:
    try:
        return mapped(json_text.loads_leniently(text))
    except ValueError:
        return {}


def _readable_items(data: bytes) -> list[bytes]:
    """The items of an array that breaks off, up to where it does."""
    from ctxscope.wire.spans import blank_end, value_end  # noqa: PLC0415 - only for what is torn

    text = data.decode("latin-1")
    found: list[bytes] = []
    at = blank_end(text, 0)
    while text[at : at + 1] in ("[", ",") and (found or text[at : at + 1] == "["):
        start = blank_end(text, at + 1)
        try:
            end = value_end(text, start)
        except ValueError:
            return found
        found.append(data[start:end])
        at = blank_end(text, end)
    return found
