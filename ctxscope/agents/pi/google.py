"""Contents, system and tools as pi's Google client writes them, which orders the keys its own way (pi.md §4.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctxscope.agents.pi import texts
from ctxscope.agents.pi.fold import Form, Rendered
from ctxscope.agents.pi.head import Head
from ctxscope.agents.pi.texts import clean, spelled, string
from ctxscope.agents.pi.transform import Msg, gemini_ids, is_same
from ctxscope.model import Piece

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_IMAGES_LEAD = "Tool result image:"


def render(group: tuple[Msg, ...], form: Form, index: int, *, mark: bool) -> Rendered:  # noqa: ARG001 - one face for all APIs
    """One content: a user message, an answer, or a run of function responses and then their images."""
    if group[0].role == "toolResult":
        return _results(group, form)
    msg = group[0]
    if msg.role == "user":
        written, role = [_part(b, images=form.images) for b in texts.blocks(msg.content)], "user"
    else:
        same = is_same(msg.message, form.target)
        written = [p for p in (_answer_part(b, form, same=same) for b in msg.content) if p]
        role = "model"
    if not written:
        return []
    return [(Piece(spelled({"parts": written, "role": role}), "logged", msg.place),)]


def _part(block: Mapping[str, Any], *, images: bool) -> dict[str, Any]:
    if block.get("type") != "image":
        return {"text": clean(string(block.get("text")))}
    if not images:
        return {"text": texts.IMAGE_OMITTED}
    return {"inlineData": {"data": block.get("data"), "mimeType": block.get("mimeType")}}


def _answer_part(block: Mapping[str, Any], form: Form, *, same: bool) -> dict[str, Any]:
    kind = block.get("type")
    if kind in {"text", "thinking"}:
        text = string(block.get(kind))
        if not text.strip():
            return {}
        thought = {"thought": True} if kind == "thinking" and same else {}
        return {"text": clean(text), **thought, **_signature(block.get(f"{kind}Signature"), same=same)}
    if kind != "toolCall":
        return {}
    name = {"id": block.get("id")} if gemini_ids(form.target.model) else {}
    call = {**name, "args": block.get("arguments") or {}, "name": block.get("name")}
    return {"functionCall": call, **_signature(block.get("thoughtSignature"), same=same)}


def _signature(value: Any, *, same: bool) -> dict[str, str]:
    """A thought signature, sent only to the model that made it and only when it is whole base64."""
    valid = isinstance(value, str) and len(value) % 4 == 0 and _BASE64.fullmatch(value) is not None
    return {"thoughtSignature": value} if same and valid else {}


def _results(group: tuple[Msg, ...], form: Form) -> Rendered:
    pieces = [Piece(b'{"parts":[')]
    pictures: list[tuple[Msg, Mapping[str, Any]]] = []
    for i, msg in enumerate(group):
        text, found = texts.joined_text(msg.content), texts.images(msg.content) if form.images else []
        pictures += [(msg, b) for b in found]
        key = "error" if msg.message.get("isError") else "output"
        name = {"id": msg.tool_id} if gemini_ids(form.target.model) else {}
        response = {key: clean(text) or (texts.SEE_IMAGE if found else "")}
        part = {"functionResponse": {**name, "name": msg.message.get("toolName"), "response": response}}
        data = (b"," if i else b"") + spelled(part)
        pieces.append(Piece(data, "logged", msg.place) if msg.place else Piece(data))
    out: Rendered = [(*pieces, Piece(b'],"role":"user"}'))]
    if pictures:
        lead = Piece(b'{"parts":[' + spelled({"text": _IMAGES_LEAD}))
        images = [Piece(b"," + spelled(_part(b, images=True)), "logged", m.place) for m, b in pictures]
        out.append((lead, *images, Piece(b'],"role":"user"}')))
    return out


def system(head: Head) -> tuple[Piece, ...]:
    """The systemInstruction value; empty when there is no text."""
    text = head.text()
    return (Piece(b'{"parts":[{"text":"'), *text, Piece(b'"}],"role":"user"}')) if text else ()


def tools(head: Head) -> tuple[Piece, ...]:
    """The tools value: one list of function declarations."""
    pieces: list[Piece] = []
    for tool in head.tools.values():
        named = {k: tool.definition.get(k) for k in ("name", "description")}
        value = spelled({**named, "parametersJsonSchema": tool.definition.get("parameters")})
        pieces.append(Piece((b"," if pieces else b'[{"functionDeclarations":[') + value, "logged", tool.place))
    return (*pieces, Piece(b"]}]")) if pieces else ()
