"""OpenTelemetry GenAI spans, as an exporter writes them: ``ReadableSpan.to_json`` objects, or OTLP/JSON batches.

Attributes used: ``gen_ai.input.messages``, ``gen_ai.output.messages``, ``gen_ai.system_instructions``,
``gen_ai.tool.definitions`` (JSON strings or values; also on the event ``gen_ai.client.inference.operation.details``),
``gen_ai.request.*``, ``gen_ai.response.*``, ``gen_ai.usage.*``, ``gen_ai.conversation.id`` (wire_formats §1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ctxscope.wire.blocks import listed, mapped, string

DETAILS = "gen_ai.client.inference.operation.details"
INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
SYSTEM, TOOLS = "gen_ai.system_instructions", "gen_ai.tool.definitions"
_OTHERS = frozenset({"invoke_agent", "create_agent", "execute_tool", "embeddings", "invoke_workflow", "retrieval"})
"""Operations that are no model call."""
_SCALARS = ("stringValue", "boolValue", "doubleValue")
_NANO = 1e9
_WHOLE = re.compile(r"-?[0-9]{1,20}")


def is_span(value: Mapping[str, Any]) -> bool:
    """Whether an object is one span of either form."""
    return ("attributes" in value and isinstance(value.get("context"), dict)) or (
        "traceId" in value and "spanId" in value
    )


def is_batch(value: Mapping[str, Any]) -> bool:
    """Whether an object is an OTLP batch."""
    return isinstance(value.get("resourceSpans"), list)


def of_batch(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The spans of a batch."""
    for resource in listed(value.get("resourceSpans")):
        for scope in listed(mapped(resource).get("scopeSpans")):
            yield from map(mapped, listed(mapped(scope).get("spans")))


def attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    """A span's attributes by name, those of its details event among them."""
    try:
        found = _attributes(span.get("attributes"))
        for event in map(mapped, listed(span.get("events"))):
            if event.get("name") == DETAILS:
                found = {**_attributes(event.get("attributes")), **found}
    except RecursionError:  # values nested too deep to be any
        return {}
    return found


def is_call(told: Mapping[str, Any]) -> bool:
    """Whether attributes are those of a model call with its messages."""
    return INPUT in told and string(told.get("gen_ai.operation.name")) not in _OTHERS


def moment(span: Mapping[str, Any]) -> float | None:
    """When a span ended, in seconds since the epoch."""
    stamp = span.get("end_time") or span.get("endTimeUnixNano")
    try:
        if isinstance(stamp, str) and not stamp.isdigit():
            return datetime.fromisoformat(stamp).timestamp()
        return int(stamp) / _NANO if isinstance(stamp, int | str) else None
    except (ValueError, OverflowError):
        return None


def _attributes(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {string(mapped(a).get("key")): _plain(mapped(mapped(a).get("value"))) for a in listed(value)}


def _plain(value: Mapping[str, Any]) -> Any:
    """An OTLP value as JSON has it; integers are strings there."""
    for key in _SCALARS:
        if key in value:
            return value[key]
    if "intValue" in value:
        whole = value["intValue"]
        return int(whole) if isinstance(whole, str) and _WHOLE.fullmatch(whole) else whole
    if "arrayValue" in value:
        return [_plain(mapped(v)) for v in listed(mapped(value["arrayValue"]).get("values"))]
    if "kvlistValue" in value:
        return _attributes(mapped(value["kvlistValue"]).get("values"))
    return None
