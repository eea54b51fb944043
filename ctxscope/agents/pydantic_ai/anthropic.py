"""Messages as pydantic-ai sends them to Anthropic (pydantic_ai.md §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents.pydantic_ai import files, writing
from ctxscope.agents.pydantic_ai.transcript import Part, Transcript, Unit, UnknownPartError
from ctxscope.agents.pydantic_ai.writing import spelled
from ctxscope.model import Entry, Piece, Value
from ctxscope.wire.blocks import mapped, string

NOTICE = "/system/*/text"
CARRIED = ("<assistant_thinking>", "</assistant_thinking>")
THINKING = ("<thinking>", "</thinking>")
REDACTED = ("redacted_thinking", "redacted_content")


def render(unit: Unit, *, carried: bool = False) -> Sequence[Piece]:
    """The messages of a unit, each led by its comma; each block with the entry it stands in.

    ``carried``: another provider's thinking goes in a message of the user's before the answer (after 2.51, for models
    that take the tags of thinking for their own), else as a text of the answer.
    """
    if unit.role != "response":
        return _message(b"user", [(p.entry, b) for p in unit.parts for b in _of_request(unit, p)])
    away = [p for p in unit.parts if carried and foreign(p)]
    before = [(p.entry, {"text": "\n".join([CARRIED[0], _said(p), CARRIED[1]]), "type": "text"}) for p in away]
    answer = [(p.entry, b) for p in unit.parts if p not in away for b in _of_answer(p)]
    return (*_message(b"user", before), *_message(b"assistant", answer))


def _message(role: bytes, blocks: Sequence[tuple[Entry, Mapping[str, Any]]]) -> Sequence[Piece]:
    if not blocks:
        return ()
    pieces = [Piece(b',{"role":"%s","content":[' % role)]
    for at, (entry, block) in enumerate(blocks):
        pieces.append(Piece((b"," if at else b"") + spelled(block), "logged", entry.place))
    return (*pieces, Piece(b"]}"))


def _said(part: Part) -> str:
    return string(part.data.get("content"))


def foreign(part: Part) -> bool:
    """Whether a part is thinking that another provider gave, or that is not signed: it goes back as text."""
    signed = string(part.data.get("signature")) and part.data.get("provider_name") == "anthropic"
    return part.kind == "thinking" and not signed and bool(_said(part))


def first_foreign(told: Transcript) -> int | None:
    """The number of the first unit of a file with such thinking."""
    if "foreign" not in told.notes:
        numbers = (at for at, unit in enumerate(told.units) if any(foreign(part) for part in unit.parts))
        told.notes["foreign"] = next(numbers, None)
    found: int | None = told.notes["foreign"]
    return found


def system(
    prompts: Sequence[tuple[str, Entry]], told: Sequence[tuple[str, Entry]], notice: Value | None
) -> tuple[Piece, ...]:
    """The system value: one text without instructions, else a block for the prompts and one for each of ``told``.

    ``notice`` says, before all, what frames mean: a JSON string.
    """
    joined = "\n\n".join(text for text, _ in prompts)
    if not told and notice is None:
        return (Piece(spelled(joined), "logged", prompts[0][1].place),) if joined else ()
    texts = [*([(joined, prompts[0][1])] if joined else []), *told]
    pieces: list[Piece] = []
    if notice is not None and notice.data is not None:
        opening = Piece(b'[{"type":"text","text":'), Piece(notice.data, notice.provenance, path=NOTICE)
        pieces += [*opening, Piece(b"}")]
    for text, entry in texts:
        data = (b"," if pieces else b"[") + spelled({"type": "text", "text": text})
        pieces.append(Piece(data, "logged", entry.place))
    return (*pieces, Piece(b"]"))


def _of_request(unit: Unit, part: Part) -> list[dict[str, Any]]:
    called = string(part.data.get("tool_call_id"))
    if part.kind == "system-prompt" and unit.first:
        return []
    if part.kind == "user-prompt":
        content = part.data.get("content")
        items = content if isinstance(content, list) else [content]
        return [block for item in items if (block := _item(part, item))]
    if part.kind == "retry-feedback":
        return [{"text": writing.feedback_text(part), "type": "text"}]
    if part.kind == "tool-return":
        found = [block for item in writing.result_items(part) if (block := _item(part, item, empty=True))]
        error = part.data.get("outcome") in writing.ERRORS
        return [{"tool_use_id": called, "type": "tool_result", "content": found or "", "is_error": error}]
    if part.kind == "retry-prompt" and part.data.get("tool_name") is not None:
        return [{"tool_use_id": called, "type": "tool_result", "content": writing.retry_text(part), "is_error": True}]
    if part.kind == "retry-prompt":
        return [{"type": "text", "text": writing.retry_text(part)}]
    raise UnknownPartError(part.entry, f"a part {part.kind} in a request")


def _item(part: Part, item: Any, *, empty: bool = False) -> dict[str, Any]:
    """A text or an image; nothing for a text of no length, unless ``empty`` keeps it."""
    if isinstance(item, str):
        return {"text": item, "type": "text"} if item or empty else {}
    return files.in_messages(part, mapped(item))


def _of_answer(part: Part) -> list[dict[str, Any]]:
    content = string(part.data.get("content"))
    if part.kind == "text":
        return [{"text": content, "type": "text"}] if content else []
    if part.kind == "tool-call":
        call = {"id": string(part.data.get("tool_call_id")), "type": "tool_use"}
        return [{**call, "name": string(part.data.get("tool_name")), "input": writing.arguments(part.data)}]
    if part.kind == "thinking":
        signature = string(part.data.get("signature"))
        if foreign(part):
            return [{"text": "\n".join([THINKING[0], content, THINKING[1]]), "type": "text"}]
        if not signature or part.data.get("provider_name") != "anthropic":
            return []
        if part.data.get("id") in REDACTED:
            return [{"data": signature, "type": "redacted_thinking"}]
        return [{"thinking": content, "signature": signature, "type": "thinking"}]
    raise UnknownPartError(part.entry, f"a part {part.kind} in an answer")
