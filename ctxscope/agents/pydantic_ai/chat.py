"""Messages as pydantic-ai sends them to Chat Completions (pydantic_ai.md §4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxscope.agents.pydantic_ai import writing
from ctxscope.agents.pydantic_ai.transcript import Part, Unit, UnknownPartError
from ctxscope.agents.pydantic_ai.writing import spelled
from ctxscope.model import Entry, Piece
from ctxscope.wire.blocks import string

THINKING = ("<think>", "</think>")


def render(unit: Unit, *, verbatim: bool) -> Sequence[Piece]:
    """The messages of a unit, each led by its comma; ``verbatim``: tool arguments as the model wrote them."""
    if unit.role == "response":
        message = _answer(unit, verbatim=verbatim)
        return () if message is None else (_piece(unit.entries[0], message),)
    return [_piece(part.entry, _of_request(part)) for part in unit.parts if not leads(unit, part)]


def leads(unit: Unit, part: Part) -> bool:
    """Whether a part stands before the conversation: a system prompt of the first request."""
    return unit.first and part.kind == "system-prompt"


def system(texts: Sequence[tuple[str, Entry]], role: str) -> list[Piece]:
    """The messages before the conversation, each led by its comma."""
    return [_piece(entry, {"role": role, "content": text}) for text, entry in texts]


def _piece(entry: Entry, message: dict[str, Any]) -> Piece:
    return Piece(b"," + spelled(message), "logged", entry.place)


def _of_request(part: Part) -> dict[str, Any]:
    called = string(part.data.get("tool_call_id"))
    if part.kind == "user-prompt":
        content = part.data.get("content")
        parts = [{"text": t, "type": "text"} for t in writing.prompt_texts(part)]
        return {"role": "user", "content": content if isinstance(content, str) else parts}
    if part.kind == "tool-return":
        return {"role": "tool", "tool_call_id": called, "content": writing.result_text(part, wrapped=True)}
    if part.kind == "retry-prompt" and part.data.get("tool_name") is not None:
        return {"role": "tool", "tool_call_id": called, "content": writing.retry_text(part)}
    if part.kind == "retry-prompt":
        return {"role": "user", "content": writing.retry_text(part)}
    raise UnknownPartError(part.entry, f"a part {part.kind} in a request")


def _answer(unit: Unit, *, verbatim: bool) -> dict[str, Any] | None:
    texts: list[str] = []
    thoughts: dict[str, list[str]] = {}
    calls: list[dict[str, Any]] = []
    for part in unit.parts:
        content = string(part.data.get("content"))
        if part.kind == "text":
            texts.append(content)
        elif part.kind == "thinking" and (field := _field(part)):
            thoughts.setdefault(field, []).append(content)
        elif part.kind == "thinking":
            texts.append("\n".join([THINKING[0], content, THINKING[1]]))
        elif part.kind == "tool-call":
            function = {
                "name": string(part.data.get("tool_name")),
                "arguments": writing.arguments_text(part.data, verbatim=verbatim),
            }
            calls.append({"id": string(part.data.get("tool_call_id")), "type": "function", "function": function})
        else:
            raise UnknownPartError(part.entry, f"a part {part.kind} in an answer")
    if not texts and not calls:
        return None
    message: dict[str, Any] = {"role": "assistant"}
    message |= {field: "\n\n".join(said) for field, said in thoughts.items()}
    message["content"] = "\n\n".join(texts) if texts else None
    return {**message, **({"tool_calls": calls} if calls else {})}


def _field(part: Part) -> str | None:
    """The key that thinking goes back under: its own, where the provider that made it gave it one."""
    name = string(part.data.get("id"))
    same = part.data.get("provider_name") == part.entry.data.get("provider_name")
    return name if name and name != "content" and same else None
