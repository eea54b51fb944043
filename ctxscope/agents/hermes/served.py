"""What a captured body shows that the log does not hold: envelope values, forms, marks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from ctxscope.agents import Log, shared_memo
from ctxscope.model import Body
from ctxscope.wire.blocks import listed, mapped, parsed
from ctxscope.wire.raw_object import member_texts, readable_members

_KEPT = 8
"""Bodies whose forms are remembered: a call is asked about together with the ones its session's values come from."""


@dataclass(frozen=True, slots=True, eq=False)
class Top:
    """A body's top-level keys in order, and the bytes of each value."""

    keys: tuple[str, ...]
    values: Mapping[str, bytes]


def top_of(body: Body) -> Top:
    """Top-level keys and values as they are spelled; of a torn body those before what is wrong."""
    try:
        values = member_texts(body.data)
    except ValueError:
        values = readable_members(body.data)
    return Top(tuple(values), values)


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What a body shows of the process and the route that made it."""

    readable: bool
    """False for what is no JSON object: it shows nothing."""
    system: tuple[str, ...]
    """The system prompt's blocks."""
    blocks: bool
    """Whether it is sent as a list of blocks."""
    mark: Mapping[str, Any] | None
    """The cache mark this route sets."""
    role: str
    """Role of a chat body's system message: GPT-5 class models get ``developer``."""
    forms: Mapping[str, bool]
    """Whether a row is in loaded form: tool results by call id, assistants by ``assistant:<call id>``."""

    @property
    def split(self) -> int | None:
        """Characters of the first block, where there are several."""
        return len(self.system[0]) if len(self.system) > 1 else None


def shown_by(log: Log, body: Body) -> Shown:
    """A body parsed once for all that it shows; only of the last few is that kept."""
    memo = shared_memo(log, "hermes.shown")
    found = memo.get(body.sha256) if body.sha256 else None
    if found is None:
        value = parsed(body.data)
        found = memo[body.sha256] = Shown(bool(value), *_system(value), tool_forms(value))
        if len(memo) > _KEPT:
            del memo[next(iter(memo))]
    return cast("Shown", found)


def _system(value: Mapping[str, Any]) -> tuple[tuple[str, ...], bool, Mapping[str, Any] | None, str]:
    system, role = value.get("system", value.get("instructions")), "system"
    messages = listed(value.get("messages"))
    first = mapped(messages[0]) if messages else {}
    if system is None and first.get("role") in {"system", "developer"}:
        system, role = first.get("content"), str(first["role"])
    if isinstance(system, str):
        return (system,), False, None, role
    blocks = [mapped(b) for b in listed(system)]
    marks = [b["cache_control"] for b in blocks if isinstance(b.get("cache_control"), dict)]
    return tuple(str(b.get("text", "")) for b in blocks), bool(blocks), marks[0] if marks else None, role


def tool_forms(value: Mapping[str, Any]) -> Mapping[str, bool]:
    """For each row a chat body shows the form of whether it is the loaded one; see ``Shown.forms``."""
    messages = [mapped(m) for m in listed(value.get("messages"))]
    forms = {
        str(m["tool_call_id"]): "name" not in m for m in messages if m.get("role") == "tool" and m.get("tool_call_id")
    }
    for message in messages:
        if message.get("role") == "assistant" and message.get("tool_calls"):
            late = _late(list(message))
            if late is not None:
                forms.update({f"assistant:{mapped(c).get('id')}": late for c in listed(message["tool_calls"])})
    return forms


def _late(keys: list[str]) -> bool | None:
    """Whether reasoning stands after the tool calls, as it does once loaded; ``None`` where that tells nothing.

    A padded ``reasoning_content`` stands late in a live message too.
    """
    calls = keys.index("tool_calls")
    if "reasoning_details" in keys:
        return keys.index("reasoning_details") > calls
    if "reasoning_content" in keys and keys.index("reasoning_content") < calls:
        return False
    return None
