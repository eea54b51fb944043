"""Messages of a stored history as entries (pydantic_ai.md §3)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxscope.agents.pydantic_ai.disk import is_message, seconds
from ctxscope.agents.reading.drift import Dialect
from ctxscope.model import Entry, Place, Record
from ctxscope.wire import json_text
from ctxscope.wire.spans import blank_end, items, value_end

REQUEST_FIELDS = ("instructions", "instruction_parts")
RESPONSE_FIELDS = (
    "usage",
    "model_name",
    "model_id",
    "provider_name",
    "provider_url",
    "canonical_system",
    "provider_details",
    "vendor_details",
    "provider_response_id",
    "vendor_id",
    "finish_reason",
    "workspace_ref",
    "history_digest",
    "failed_attempts",
)


END = "end"
"""Kind of the entry that ends a file: how many messages it holds, and whether it breaks off there."""


def _kind(entry: Entry) -> str:
    return entry.kind if entry.kind != "unknown" else str(entry.data.get("kind") or "")


DIALECT = Dialect(
    title="pydantic-ai",
    kinds={"request": REQUEST_FIELDS, "response": RESPONSE_FIELDS, END: ("messages", "torn")},
    common=("kind", "parts", "timestamp", "run_id", "conversation_id", "metadata", "state"),
    kind=_kind,
    sources=("history",),
)


def entries(record: Record) -> Iterator[Entry]:
    """An entry for each message of a file, or of a line; what is none is ``unknown``. Never raises.

    An entry of kind ``end`` closes them: a file rewritten with fewer messages no longer holds the rest. Of a file that
    breaks off the messages before the break are given.
    """
    if record.value is None:
        yield Entry("gone", record.place, f"{record.source}#{record.key}", {}, source=record.source)
        return
    if not isinstance(record.value, bytes) or not record.value.strip():
        return
    found, whole = _messages(record.value)
    for number, raw in enumerate(found, 1):
        yield _entry(record, number, raw)
    told = {"messages": len(found), "torn": not whole}
    yield Entry(END, record.place, f"{record.source}#{record.key}:{END}", told, source=record.source)


def _entry(record: Record, number: int, raw: bytes) -> Entry:
    if record.key == "file":
        key, place = f"{record.source}#{number}", Place(record.place.log, f"message {number}")
    else:
        key = f"{record.source}#{record.key}:{number}"
        place = Place(record.place.log, f"message {number} of {record.place.at}")
    try:
        value = json_text.loads(raw)
    except ValueError:
        value = None
    data = value if isinstance(value, dict) else {}
    kind = str(data["kind"]) if is_message(data) else "unknown"
    return Entry(kind, place, key, data, seconds(data.get("timestamp")), source=record.source, raw=raw)


def _messages(data: bytes) -> tuple[list[bytes], bool]:
    """The items of an array as spelled (or the one value that is no array), and whether it could be read to its end."""
    text = data.decode("latin-1")
    start = blank_end(text, 0)
    found: list[bytes] = []

    def visit(_: int, at: int) -> int:
        end = value_end(text, at)
        found.append(data[at:end])
        return end

    try:
        end = items(text, start, visit) if text[start : start + 1] == "[" else visit(0, start)
    except ValueError:
        return found, False
    return found, blank_end(text, end) == len(text)
