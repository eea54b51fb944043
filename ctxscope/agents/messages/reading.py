"""What a log tells beside the requests: what could not be read, what went wrong, why a value differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.messages.body import usual_api
from ctxscope.agents.messages.fields import unknown_fields
from ctxscope.model import Difference, Endpoint, Entry, Learned, Point, quoted
from ctxscope.wire.blocks import string
from ctxscope.wire.json_text import loads_leniently

MOST_NAMES = 6


@dataclass
class _Counted:
    upto: int = 0
    unknown: dict[str, Entry] = field(default_factory=dict)
    fields: Counter[str] = field(default_factory=Counter)
    torn: Entry | None = None


def notices(log: Log) -> Sequence[str]:
    """Units that are no messages, fields that no API has, an end that is missing."""
    counted: _Counted = shared_memo(log, "messages").setdefault("notices", _Counted())
    for entry in log.versions[counted.upto :]:
        _count(entry, counted)
    counted.upto = len(log.versions)
    return tuple(_told(counted))


def _count(entry: Entry, counted: _Counted) -> None:
    if entry.kind == "unknown":
        counted.unknown[entry.key] = entry
        return  # its data is a record's own, whatever its members are called
    if entry.kind == "gone":
        counted.unknown.pop(entry.key, None)
    if entry.kind == "request":
        counted.torn = entry if "torn" in entry.data else None
    state = entry.data.get("state")
    texts = [entry.data["message"]] if "message" in entry.data else state.messages[-1:] if state is not None else ()
    for text in texts:
        counted.fields.update(unknown_fields(text))


def _told(counted: _Counted) -> Iterator[str]:
    if counted.unknown:
        many, first = len(counted.unknown), next(iter(counted.unknown.values()))
        what = f"{first.place} is" if many == 1 else f"{many} entries, the first at {first.place}, are"
        named = sorted({string(e.data.get("type")) for e in counted.unknown.values()} - {""})
        types = f" (type {', '.join(quoted(n[:80]) for n in named[:MOST_NAMES])})" if named else ""
        yield f"{what} neither a message nor a request nor a span{types}; passed over"
    if counted.fields:
        names = sorted(counted.fields.items(), key=lambda x: (-x[1], x[0]))
        told = ", ".join(f"{quoted(name[:80])} ({n})" for name, n in names[:MOST_NAMES])
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        yield f"fields of logged messages that no API has, taken as the team's own: {told}{more}"
    if counted.torn is not None:
        kept = counted.torn.data["torn"]
        yield f"{counted.torn.place}: breaks off behind message {kept}; what is whole is shown"


def endpoint(point: Point) -> Endpoint:
    """See ``Agent.endpoint``."""
    span: Mapping[str, Any] = point.data["span"] or {}
    model = string(span.get("gen_ai.request.model"))
    raw = point.data["top"].get("model")
    if not model and raw is not None:
        model = string(_value(raw))
    provider = string(span.get("gen_ai.provider.name")) or string(span.get("gen_ai.system"))
    api = None if span else usual_api(point, point.data["trail"], point.data["length"])
    return Endpoint(api, provider or None, model or point.data["model"])


def explain(difference: Difference, learned: Learned) -> str | None:
    """Why a value differs that an earlier call taught, or that the log states."""
    top = "/" + difference.path.partition("/")[2].partition("/")[0]
    taught: Mapping[str, str] = learned.choice.get("taught", {})
    if top not in taught or (top in learned.values and learned.values[top].provenance == "echoed"):
        return None
    whole = difference.path == top and difference.cls in {"missing", "extra"}
    if whole or top in learned.values:
        was = "with another value" if top in learned.values else "without it"
        was = "with it" if difference.cls == "missing" and whole else was
        return f"{top[1:]} is not in the log, and the call answered at {taught[top]} was sent {was}"
    return None


def _value(raw: bytes) -> Any:
    try:
        return loads_leniently(raw)
    except ValueError:
        return None
