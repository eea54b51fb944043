"""Messages as pydantic-ai sends them to Chat Completions (pydantic_ai.md §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.pydantic_ai import files, writing
from ctxscope.agents.pydantic_ai.transcript import Part, Unit, UnknownPartError
from ctxscope.agents.pydantic_ai.writing import spelled
from ctxscope.model import Entry, Piece, Value
from ctxscope.wire.blocks import mapped, string

THINKING = ("<think>", "</think>")
NOTICE = "/messages/*/content"


@dataclass(frozen=True, slots=True)
class Form:
    """What of the spelling of messages a history does not tell."""

    verbatim: bool = False
    """Tool arguments as the model wrote them."""
    prefix: str = ""
    """What the names of frames begin with."""
    notice: Value | None = None
    """What says what frames mean: a JSON string."""
    leads: bool = False
    """Whether it stands before all, where the provider takes no system message later, else before the first frame."""


def render(unit: Unit, *, form: Form, first: Part | None) -> Sequence[Piece]:
    """The messages of a unit, each led by its comma; ``first``: the part of the file that is sent in its first frame."""
    if unit.role == "response":
        message = _answer(unit, verbatim=form.verbatim)
        return () if message is None else (_piece(unit.entries[0], message),)
    found: list[Piece] = []
    sent: list[Any] = []
    for part in unit.parts:
        if leads(unit, part):
            continue
        if part is first and part.kind == "retry-feedback":
            found += [] if form.leads else notice(form)
        found.append(_piece(part.entry, _of_request(part)))
        sent += [item for file in files.returned(part) for item in _in_frame(part, file, form)]
    if sent:
        files_of = next(p for p in unit.parts if files.returned(p))
        found += notice(form) if files_of is first and not form.leads else []
        found.append(_piece(files_of.entry, {"role": "user", "content": sent}))
    return found


def notice(form: Form) -> list[Piece]:
    """The message that says what frames mean, led by its comma."""
    if form.notice is None or form.notice.data is None:
        return []
    said = Piece(form.notice.data, form.notice.provenance, path=NOTICE)
    return [Piece(b',{"role":"system","content":'), said, Piece(b"}")]


def _in_frame(part: Part, file: Mapping[str, Any], form: Form) -> list[dict[str, Any]]:
    """A file of a tool, which Chat Completions take from users alone."""
    tool, call, name = (
        string(v) for v in (part.data.get("tool_name"), part.data.get("tool_call_id"), file.get("identifier"))
    )
    tag = f"{form.prefix}tool_result"
    opening = f'<{tag} tool_name="{tool}" tool_call_id="{call}" file_id="{name}">'
    return [{"text": opening, "type": "text"}, files.in_chat(part, file), {"text": f"</{tag}>", "type": "text"}]


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
        return {"role": "user", "content": content if isinstance(content, str) else _prompt(part, content)}
    if part.kind == "retry-feedback":
        return {"role": "user", "content": writing.feedback_text(part)}
    if files.returned(part):
        return {"role": "tool", "tool_call_id": called, "content": _beside(part)}
    if part.kind == "tool-return":
        return {"role": "tool", "tool_call_id": called, "content": writing.result_text(part, wrapped=True)}
    if part.kind == "retry-prompt" and part.data.get("tool_name") is not None:
        return {"role": "tool", "tool_call_id": called, "content": writing.retry_text(part)}
    if part.kind == "retry-prompt":
        return {"role": "user", "content": writing.retry_text(part)}
    raise UnknownPartError(part.entry, f"a part {part.kind} in a request")


def _prompt(part: Part, content: Any) -> list[dict[str, Any]]:
    items = content if isinstance(content, list) else []
    return [{"text": i, "type": "text"} if isinstance(i, str) else files.in_chat(part, mapped(i)) for i in items]


def _beside(part: Part) -> str:
    """A tool's result without its files, which follow in a message of their own."""
    if part.data.get("outcome") in writing.ERRORS:
        raise UnknownPartError(part.entry, "a failed result with files")
    items = [
        i if isinstance(i, str) else f"See file {string(i.get('identifier'))}." for i in writing.result_items(part)
    ]
    return writing.text(items) if isinstance(part.data.get("content"), list) else items[0]


def _answer(unit: Unit, *, verbatim: bool) -> dict[str, Any] | None:
    texts: list[str] = []
    thoughts: dict[str, list[str]] = {}
    calls: list[dict[str, Any]] = []
    for part in unit.parts:
        content = string(part.data.get("content"))
        if part.kind == "text":
            texts.append(content)
        elif part.kind == "thinking" and (field := writing.thinking_field(part)):
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
