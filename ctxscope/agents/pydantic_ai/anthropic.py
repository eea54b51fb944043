"""Messages as pydantic-ai sends them to Anthropic (pydantic_ai.md §4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxscope.agents.pydantic_ai import writing
from ctxscope.agents.pydantic_ai.transcript import Part, Unit, UnknownPartError
from ctxscope.agents.pydantic_ai.writing import spelled
from ctxscope.model import Entry, Piece
from ctxscope.wire.blocks import string

THINKING = ("<thinking>", "</thinking>")
REDACTED = ("redacted_thinking", "redacted_content")


def render(unit: Unit) -> Sequence[Piece]:
    """The message of a unit, led by its comma; each block with the entry it stands in."""
    answer = unit.role == "response"
    blocks = [(p.entry, b) for p in unit.parts for b in (_of_answer(p) if answer else _of_request(unit, p))]
    if not blocks:
        return ()
    pieces = [Piece(b',{"role":"%s","content":[' % (b"assistant" if answer else b"user"))]
    for at, (entry, block) in enumerate(blocks):
        pieces.append(Piece((b"," if at else b"") + spelled(block), "logged", entry.place))
    return (*pieces, Piece(b"]}"))


def system(prompts: Sequence[tuple[str, Entry]], told: Sequence[tuple[str, Entry]]) -> tuple[Piece, ...]:
    """The system value: one text without instructions, else a block for the prompts and one for each of ``told``."""
    joined = "\n\n".join(text for text, _ in prompts)
    if not told:
        return (Piece(spelled(joined), "logged", prompts[0][1].place),) if joined else ()
    texts = [*([(joined, prompts[0][1])] if joined else []), *told]
    pieces = [
        Piece((b"," if at else b"[") + spelled({"type": "text", "text": text}), "logged", entry.place)
        for at, (text, entry) in enumerate(texts)
    ]
    return (*pieces, Piece(b"]"))


def _of_request(unit: Unit, part: Part) -> list[dict[str, Any]]:
    called = string(part.data.get("tool_call_id"))
    if part.kind == "system-prompt" and unit.first:
        return []
    if part.kind == "user-prompt":
        content = part.data.get("content")
        texts = [content] if isinstance(content, str) else writing.prompt_texts(part)
        return [{"text": text, "type": "text"} for text in texts if text]
    if part.kind == "tool-return":
        found: list[dict[str, Any]] = [{"text": text, "type": "text"} for text in writing.result_texts(part)]
        error = part.data.get("outcome") in writing.ERRORS
        return [{"tool_use_id": called, "type": "tool_result", "content": found or "", "is_error": error}]
    if part.kind == "retry-prompt" and part.data.get("tool_name") is not None:
        return [{"tool_use_id": called, "type": "tool_result", "content": writing.retry_text(part), "is_error": True}]
    if part.kind == "retry-prompt":
        return [{"type": "text", "text": writing.retry_text(part)}]
    raise UnknownPartError(part.entry, f"a part {part.kind} in a request")


def _of_answer(part: Part) -> list[dict[str, Any]]:
    content = string(part.data.get("content"))
    if part.kind == "text":
        return [{"text": content, "type": "text"}] if content else []
    if part.kind == "tool-call":
        call = {"id": string(part.data.get("tool_call_id")), "type": "tool_use"}
        return [{**call, "name": string(part.data.get("tool_name")), "input": writing.arguments(part.data)}]
    if part.kind == "thinking":
        signature = string(part.data.get("signature"))
        if not signature or part.data.get("provider_name") != "anthropic":
            said = "\n".join([THINKING[0], content, THINKING[1]])
            return [{"text": said, "type": "text"}] if content else []
        if part.data.get("id") in REDACTED:
            return [{"data": signature, "type": "redacted_thinking"}]
        return [{"thinking": content, "signature": signature, "type": "thinking"}]
    raise UnknownPartError(part.entry, f"a part {part.kind} in an answer")
