"""Logged parts as an API would carry them, for what no served message shows the form of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from ctxscope.agents.messages.said import Part
from ctxscope.agents.messages.spelling import Spelling
from ctxscope.model import ApiName, Piece
from ctxscope.wire import json_text


def messages(parts: Sequence[Part], api: ApiName, spelling: Spelling) -> Iterator[Piece]:
    """One piece per message of an API's body, for parts in order."""
    writer = {"openai-chat": _chat, "anthropic-messages": _anthropic, "openai-responses": _items, "gemini": _gemini}[
        api
    ]
    for _, group in groupby(parts, key=lambda p: (p.message, p.sort)):
        found = list(group)
        for value in writer(found):
            yield Piece(spelling.value(value), "logged", found[0].place)


def _parsed(words: str) -> Any:
    try:
        return json_text.loads(words)
    except ValueError:
        return words


def _text(parts: Sequence[Part]) -> str:
    return "".join(p.words for p in parts if p.kind == "text")


def _chat(parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    results = [p for p in parts if p.kind == "tool_result"]
    yield from ({"role": "tool", "tool_call_id": p.id, "content": p.words} for p in results)
    rest = [p for p in parts if p.kind != "tool_result"]
    if not rest:
        return
    if rest[0].sort != "output":
        yield {"role": "system" if rest[0].sort == "system" else "user", "content": _text(rest)}
        return
    calls = [
        {"id": p.id, "type": "function", "function": {"name": p.name, "arguments": p.words}}
        for p in rest
        if p.kind == "tool_call"
    ]
    text = _text(rest)
    yield {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}


def _anthropic(parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if part.kind == "tool_call":
            blocks.append({"type": "tool_use", "id": part.id, "name": part.name, "input": _parsed(part.words)})
        elif part.kind == "tool_result":
            blocks.append({"type": "tool_result", "tool_use_id": part.id, "content": part.words})
        elif part.kind in ("text", "thinking"):
            blocks.append({"type": part.kind, part.kind: part.words})
    if blocks:
        yield {"role": "assistant" if parts[0].sort == "output" else "user", "content": blocks}


def _items(parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    for part in parts:
        if part.kind == "tool_call":
            yield {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.words}
        elif part.kind == "tool_result":
            yield {"type": "function_call_output", "call_id": part.id, "output": part.words}
        elif part.kind == "thinking":
            yield {"type": "reasoning", "summary": [{"type": "summary_text", "text": part.words}]}
        elif part.kind == "text":
            role = {"output": "assistant", "system": "system"}.get(part.sort, "user")
            yield {"role": role, "content": part.words}


def _gemini(parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for part in parts:
        value = _parsed(part.words)
        if part.kind == "tool_call":
            made.append({"functionCall": {"name": part.name, "args": value}})
        elif part.kind == "tool_result":
            response = value if isinstance(value, dict) else {"result": value}
            made.append({"functionResponse": {"name": part.name, "response": response}})
        elif part.kind == "text":
            made.append({"text": part.words})
    if made:
        yield {"role": "model" if parts[0].sort == "output" else "user", "parts": made}


def tool(name: str, description: Any, schema: Any, api: ApiName) -> dict[str, Any]:
    """One tool as an API declares it."""
    inner = {"name": name, "description": description, "parameters": schema}
    if api == "openai-chat":
        return {"type": "function", "function": inner}
    if api == "anthropic-messages":
        return {"name": name, "description": description, "input_schema": schema}
    return {"type": "function", **inner} if api == "openai-responses" else {"functionDeclarations": [inner]}


def words_as(kind: str, words: str, *, is_text: bool) -> Any:
    """Words as the value of a leaf: arguments that stand in an object, not in a text, are parsed."""
    return words if is_text or kind not in ("tool_call", "tool_result") else _parsed(words)


def spelled(value: Any) -> str:
    """A value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
