"""Anthropic Messages: content blocks, merged roles, replayed thinking and cache marks (hermes.md §4.5, §4.8)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.hermes.canonical import Message, blank, sorted_arguments
from ctxscope.agents.hermes.replay import Route
from ctxscope.model import Entry

_MARKS = 4
_THINKING = frozenset({"thinking", "redacted_thinking"})
_NO_OUTPUT = "(no output)"
_EMPTY = "(empty)"
_ELIDED = "(thinking elided)"
_PICTURES = 3
_REMOVED = "[screenshot removed to save context]"


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """A message as served, with the rows it was merged from."""

    role: str
    content: str | list[dict[str, Any]]
    rows: tuple[Entry, ...]


def wire_turns(
    messages: Sequence[Message], route: Route, mark: Mapping[str, Any] | None, used: int, *, old: bool
) -> list[Turn]:
    """The messages as served: converted, marked, merged by role, thinking stripped."""
    wanted = max(_MARKS - used, 0) if mark is not None else 0
    first = len(messages) - wanted
    turns: list[Turn] = []
    for i, message in enumerate(messages):
        turn = _converted(message, mark if i >= first else None, old=old)
        if turns and turns[-1].role == turn.role:
            turns[-1] = _merged(turns[-1], turn)
        else:
            turns.append(turn)
    if turns and turns[0].role == "assistant":
        turns.insert(0, Turn("user", _EMPTY, ()))
    return _thinned(_without_old_pictures(turns), route)


def wire_tools(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The snapshot's tools in this API's shape."""
    functions = [t.get("function") or {} for t in tools]
    return [
        {"name": f.get("name"), "description": f.get("description", ""), "input_schema": f.get("parameters")}
        for f in functions
    ]


def _converted(message: Message, mark: Mapping[str, Any] | None, *, old: bool) -> Turn:
    content = message.data.get("content")
    if message.role == "tool":
        return Turn("user", [_result(message, mark)], message.rows)
    if message.role == "assistant":
        return Turn("assistant", _assistant(message, mark, old=old), message.rows)
    if isinstance(content, list):
        blocks = [_part(p) for p in content if isinstance(p, dict)]
        if mark is not None and blocks:
            blocks[-1] = {**blocks[-1], "cache_control": mark}
        return Turn("user", blocks, message.rows)
    text = str(content or "").strip()
    if mark is not None and text:
        return Turn("user", [{"type": "text", "text": text, "cache_control": mark}], message.rows)
    return Turn("user", text, message.rows)


def _result(message: Message, mark: Mapping[str, Any] | None) -> dict[str, Any]:
    content = message.data.get("content")
    sent: Any = (
        [_part(p) for p in content if isinstance(p, dict)] if isinstance(content, list) else str(content or "").strip()
    )
    out = {"type": "tool_result", "tool_use_id": message.data.get("tool_call_id"), "content": sent or _NO_OUTPUT}
    return {**out, "cache_control": mark} if mark is not None else out


def _assistant(message: Message, mark: Mapping[str, Any] | None, *, old: bool) -> list[dict[str, Any]]:
    details = message.data.get("reasoning_details")
    thinking = (
        [dict(d) for d in details if isinstance(d, dict) and d.get("type") in _THINKING]
        if isinstance(details, list)
        else []
    )
    content = message.data.get("content")
    text = [] if blank(content) else [{"type": "text", "text": str(content).strip()}]
    calls = [_call(c) for c in message.data.get("tool_calls") or ()]
    blocks = [*thinking, *text, *calls]
    if mark is None:
        return blocks
    interleaved = not message.loaded and bool(thinking and text and calls)
    if interleaved and old:  # 0.19 loses the mark of a live turn whose blocks it kept in the order received
        return blocks
    last_call = len(blocks) - 1 if calls else None
    at = last_call if interleaved or not text else len(thinking)
    if at is not None:
        blocks[at] = {**blocks[at], "cache_control": mark}
    return blocks


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    named = function if isinstance(function, dict) else {}
    arguments = named.get("arguments")
    given = json.loads(sorted_arguments(arguments, ascii_only=True)) if isinstance(arguments, str) else {}
    return {"type": "tool_use", "id": call.get("id"), "name": named.get("name"), "input": given}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    """A stored content part in this API's shape; images as far as they are data URLs."""
    kind = part.get("type")
    if kind in {"text", "input_text"}:
        return {"type": "text", "text": part.get("text", "")}
    if kind in {"image_url", "input_image"}:
        value = part.get("image_url")
        url = str(value.get("url") if isinstance(value, dict) else value or "")
        if url.startswith("data:"):
            media, _, data = url.removeprefix("data:").partition(";base64,")
            return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}
        return {"type": "image", "source": {"type": "url", "url": url}}
    return dict(part)


def _merged(first: Turn, second: Turn) -> Turn:
    rows = first.rows + second.rows
    if isinstance(first.content, str) and isinstance(second.content, str):
        return Turn(first.role, f"{first.content}\n{second.content}", rows)
    return Turn(first.role, [*_listed(first.content), *_listed(second.content)], rows)


def _listed(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _without_old_pictures(turns: Sequence[Turn]) -> list[Turn]:
    """Tool results keep their pictures in the newest three that have any, counted back turn by turn (hermes.md §4.8)."""
    seen, out = 0, []
    for turn in reversed(turns):
        blocks = turn.content
        if isinstance(blocks, list) and any(map(_pictures, blocks)):
            kept = []
            for block in blocks:
                seen += bool(_pictures(block))
                kept.append(_evicted(block) if seen > _PICTURES else block)
            turn = Turn(turn.role, kept, turn.rows)  # noqa: PLW2901 - the same turn, with less in it
        out.append(turn)
    return out[::-1]


def _pictures(block: Mapping[str, Any]) -> bool:
    inner = block.get("content") if block.get("type") == "tool_result" else None
    return isinstance(inner, list) and any(part.get("type") == "image" for part in inner)


def _evicted(block: dict[str, Any]) -> dict[str, Any]:
    if not _pictures(block):
        return block
    text = {"type": "text", "text": _REMOVED}
    return {**block, "content": [text if part.get("type") == "image" else part for part in block["content"]]}


def _thinned(turns: Sequence[Turn], route: Route) -> list[Turn]:
    """Thinking blocks a host may see again: none on third-party hosts, on native ones those of the latest assistant."""
    latest = max((i for i, t in enumerate(turns) if t.role == "assistant"), default=-1)
    out: list[Turn] = []
    for i, turn in enumerate(turns):
        if turn.role != "assistant" or isinstance(turn.content, str):
            out.append(turn)
            continue
        kept = [b for b in turn.content if b.get("type") not in _THINKING or _replayed(b, route, latest=i == latest)]
        if not kept:
            kept = [{"type": "text", "text": _ELIDED if turn.content else _EMPTY}]
        out.append(Turn(turn.role, kept, turn.rows))
    return out


def _replayed(block: Mapping[str, Any], route: Route, *, latest: bool) -> bool:
    signed = bool(block.get("signature") or block.get("data"))
    if route.host.endswith(("kimi.com", "moonshot.ai", "moonshot.cn")):
        return True
    if "deepseek" in route.host:
        return not signed
    return route.native_anthropic and latest and signed
