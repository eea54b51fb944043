"""A context's messages made fit for one target model, one item at a time (pi.md §4.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ctxscope.agents.pi import texts
from ctxscope.agents.pi.texts import string
from ctxscope.agents.pi.trail import Item
from ctxscope.model import Place

_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_ID, LONGEST_CHAT_ID = 64, 40
_GEMINI = re.compile(r"gemini-(?:live-)?(\d+)")
_GEMINI_WITH_IDS = 3


@dataclass(frozen=True, slots=True)
class Target:
    """The model a request goes to, and which generation of pi sends it."""

    api: str
    provider: str
    model: str
    old: bool = False
    """Version 0.73 rather than 1.x."""


@dataclass(frozen=True, slots=True)
class Msg:
    """One message for the target."""

    role: str
    content: Any
    place: Place | None
    """``None`` for a result pi makes up."""
    message: Mapping[str, Any]
    key: tuple[Any, ...]
    """Equal keys render alike in one form."""
    tool_id: str = ""


@dataclass(frozen=True, slots=True)
class Open:
    """Tool calls of the last answer, results seen since, and ids renamed so far."""

    calls: tuple[tuple[str, str], ...] = ()
    seen: frozenset[str] = frozenset()
    renamed: Mapping[str, str] | None = None


def step(item: Item, state: Open, target: Target) -> tuple[list[Msg], Open]:
    """The messages one item adds, made-up results before it included."""
    message = item.message
    if item.role == "toolResult":
        name = string(message.get("toolCallId"))
        name = (state.renamed or {}).get(name, name)
        msg = Msg("toolResult", message.get("content"), item.entry.place, message, (item, name), name)
        return [msg], replace(state, seen=state.seen | {name})
    if item.role == "system":
        return [Msg("system", None, item.entry.place, message, (item,))], state
    filled, state = fill(state)
    if item.role == "user":
        return [*filled, Msg("user", message.get("content"), item.entry.place, message, (item,))], state
    content, renamed = _answer(message, target)
    if renamed:
        state = replace(state, renamed={**(state.renamed or {}), **renamed})
    if item.dropped:
        return filled, state
    calls = tuple((string(b.get("id")), string(b.get("name"))) for b in content if b.get("type") == "toolCall")
    if calls:
        state = replace(state, calls=calls, seen=frozenset())
    return [*filled, Msg("assistant", content, item.entry.place, message, (item,))], state


def fill(state: Open) -> tuple[list[Msg], Open]:
    """Results pi makes up for tool calls without one."""
    if not state.calls:
        return [], state
    missing = [c for c in state.calls if c[0] not in state.seen]
    return [_made_up(*c) for c in missing], replace(state, calls=(), seen=frozenset())


def _made_up(call: str, name: str) -> Msg:
    content = texts.blocks(texts.NO_RESULT)
    message = {"role": "toolResult", "toolCallId": call, "toolName": name, "content": content, "isError": True}
    return Msg("toolResult", content, None, message, ("none", call, name), call)


def is_same(message: Mapping[str, Any], target: Target) -> bool:
    """Whether the target itself gave this answer."""
    source = (message.get("provider"), message.get("api"), message.get("model"))
    return source == (target.provider, target.api, target.model)


def _answer(message: Mapping[str, Any], target: Target) -> tuple[list[Mapping[str, Any]], dict[str, str]]:
    """An answer's blocks as the target may see them, and the tool ids renamed for it."""
    same = is_same(message, target)
    renamed: dict[str, str] = {}
    content: list[Mapping[str, Any]] = []
    for block in texts.blocks(message.get("content")):
        kind = block.get("type")
        if kind == "thinking":
            content += _thinking(block, target, same=same)
        elif same:
            content.append(block)
        elif kind == "text":
            content.append({"type": "text", "text": block.get("text")})
        elif kind == "toolCall":
            name = string(block.get("id"))
            fit = normalised_id(name, target)
            if fit != name:
                renamed[name] = fit
            content.append({**{k: v for k, v in block.items() if k != "thoughtSignature"}, "id": fit})
        else:
            content.append(block)
    return content, renamed


def _thinking(block: Mapping[str, Any], target: Target, *, same: bool) -> Iterator[Mapping[str, Any]]:
    blank = not string(block.get("thinking")).strip()
    if same:
        if block.get("redacted") or block.get("thinkingSignature") or not blank:
            yield block
    elif target.old and not block.get("redacted") and not blank:
        yield {"type": "text", "text": block.get("thinking")}


def normalised_id(name: str, target: Target) -> str:
    """A foreign answer's tool-call id as the target's API accepts it."""
    if target.api == "anthropic-messages":
        return _FORBIDDEN.sub("_", name)[:LONGEST_ID]
    if target.api == "openai-responses":
        return _FORBIDDEN.sub("_", name)[:LONGEST_ID].rstrip("_")
    if target.api == "google-generative-ai":
        return _FORBIDDEN.sub("_", name)[:LONGEST_ID] if gemini_ids(target.model) else name
    return _chat_id(name, target)


def gemini_ids(model: str) -> bool:
    """Whether calls to this Gemini model carry tool-call ids (source only, pi.md §4.4)."""
    found = _GEMINI.match(model)
    return found is not None and int(found[1]) >= _GEMINI_WITH_IDS


def _chat_id(name: str, target: Target) -> str:
    call, pipe, item = name.partition("|")
    if not pipe:
        return name[:LONGEST_CHAT_ID] if target.provider == "openai" else name
    call = _FORBIDDEN.sub("_", call)
    if target.old:
        return call[:LONGEST_CHAT_ID]
    whole = f"{call}_{_FORBIDDEN.sub('_', item)}"
    if len(whole) <= LONGEST_CHAT_ID:
        return whole
    digest = short_hash(name)[:8]
    return f"{call[: LONGEST_CHAT_ID - 9]}_{digest}"


def short_hash(text: str) -> str:
    """A string hashed to 64 bits as pi does, in base 36 (pi.md §4.4); arithmetic in unsigned 32 bits over UTF-16 units."""
    mask = 0xFFFFFFFF
    one, two = 0xDEADBEEF, 0x41C6CE57
    units = text.encode("utf-16-le", "surrogatepass")
    for i in range(0, len(units), 2):
        unit = units[i] | units[i + 1] << 8
        one = (one ^ unit) * 2654435761 & mask
        two = (two ^ unit) * 1597334677 & mask
    one = ((one ^ one >> 16) * 2246822507 & mask) ^ ((two ^ two >> 13) * 3266489909 & mask)
    two = ((two ^ two >> 16) * 2246822507 & mask) ^ ((one ^ one >> 13) * 3266489909 & mask)
    return _base36(two) + _base36(one)


def _base36(value: int) -> str:
    digits = ""
    while value:
        value, rest = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits or "0"
