"""Messages, system and tools as pi writes them for Anthropic Messages (pi.md §4.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents.pi import texts
from ctxscope.agents.pi.fold import Form, Rendered
from ctxscope.agents.pi.head import Head, Tool, added, native_text, removed
from ctxscope.agents.pi.texts import quoted, spelled, string
from ctxscope.agents.pi.transform import Msg
from ctxscope.model import Piece

PLACEHOLDER = "__pi_deferred_placeholder__"
"""Name of the tool that ends the tools where mid-conversation changes are native."""


def render(group: tuple[Msg, ...], form: Form, index: int, *, mark: bool) -> Rendered:  # noqa: ARG001 - one face for all APIs
    """One wire message: a user message, an answer, a system message, or a run of tool results."""
    cache = form.cache if mark else None
    if group[0].role == "toolResult":
        return [_results(group, cache, images=form.images)]
    msg = group[0]
    if msg.role == "user":
        written = _user(msg.content, cache, images=form.images)
    elif msg.role == "assistant":
        written = [b for b in map(_answer_block, msg.content) if b]
    else:
        written = _system_blocks(msg.message, cache)
    if not written:
        return []
    content = written if isinstance(written, bytes) else b"[" + b",".join(written) + b"]"
    data = b'{"role":"%s","content":%s}' % (msg.role.encode(), content)
    return [(Piece(data, "logged", msg.place),)]


def _user(content: Any, cache: str | None, *, images: bool) -> list[bytes] | bytes:
    """Blocks of a user message, or its string; empty when nothing in it is visible."""
    if isinstance(content, str):
        if not content.strip():
            return []
        return [_marked(_text(content), cache)] if cache else quoted(content)
    written = [_block(b, images=images) for b in texts.blocks(content) if _visible(b)]
    return [*written[:-1], _marked(written[-1], cache)] if written else []


def _visible(block: Mapping[str, Any]) -> bool:
    return block.get("type") != "text" or bool(string(block.get("text")).strip())


def _block(block: Mapping[str, Any], *, images: bool) -> bytes:
    if block.get("type") != "image":
        return _text(string(block.get("text")))
    if not images:
        return _text(texts.IMAGE_OMITTED)
    source = {"type": "base64", "media_type": block.get("mimeType"), "data": block.get("data")}
    return spelled({"type": "image", "source": source})


def _text(text: str) -> bytes:
    return b'{"type":"text","text":%s}' % quoted(text)


def _marked(block: bytes, cache: str | None) -> bytes:
    return block[:-1] + b',"cache_control":' + cache.encode() + b"}" if cache else block


def _answer_block(block: Mapping[str, Any]) -> bytes:
    kind = block.get("type")
    if kind == "text":
        return _text(string(block.get("text"))) if _visible(block) else b""
    if kind == "toolCall":
        return b'{"type":"tool_use","id":%s,"name":%s,"input":%s}' % (
            spelled(block.get("id")),
            spelled(block.get("name")),
            spelled(block.get("arguments") or {}),
        )
    if kind != "thinking":
        return b""
    thinking, signature = string(block.get("thinking")), string(block.get("thinkingSignature"))
    if block.get("redacted"):
        return spelled({"type": "redacted_thinking", "data": signature})
    if not signature.strip():
        return _text(thinking) if thinking.strip() else b""
    return b'{"type":"thinking","thinking":%s,"signature":%s}' % (quoted(thinking), spelled(signature))


def _results(group: tuple[Msg, ...], cache: str | None, *, images: bool) -> tuple[Piece, ...]:
    pieces = [Piece(b'{"role":"user","content":[')]
    for i, msg in enumerate(group):
        block = b'{"type":"tool_result","tool_use_id":%s,"content":%s,"is_error":%s}' % (
            spelled(msg.tool_id),
            _result_content(msg.content, images=images),
            spelled(bool(msg.message.get("isError"))),
        )
        block = _marked(block, cache) if i == len(group) - 1 else block
        pieces += [Piece(b",")] if i else []
        pieces.append(Piece(block, "logged", msg.place) if msg.place else Piece(block))
    return (*pieces, Piece(b"]}"))


def _result_content(content: Any, *, images: bool) -> bytes:
    """A string, or where there are images a block list that never lacks a text."""
    if not texts.images(content) or not images:
        shown = [
            texts.IMAGE_OMITTED if b.get("type") == "image" else string(b.get("text")) for b in texts.blocks(content)
        ]
        return quoted("\n".join(shown))
    written = [_block(b, images=True) for b in texts.blocks(content)]
    if all(b.get("type") == "image" for b in texts.blocks(content)):
        written.insert(0, _text(texts.SEE_IMAGE))
    return b"[" + b",".join(written) + b"]"


def _system_blocks(message: Mapping[str, Any], cache: str | None) -> list[bytes]:
    """A later system message where changes are native: what it says, tools it takes away, tools it adds."""
    text, new = native_text(message), added(message)
    written = [_text(text)] if text else []
    kept = {string(t.get("name")) for t in new}
    for name in removed(message):
        if name not in kept:
            reference = {"type": "tool_reference", "name": name}
            written.append(spelled({"type": "tool_removal", "tool": reference}))
    for definition in new:
        tool = b'{"type":"tool_definition","definition":%s}' % _tool(definition, eager=True)
        written.append(b'{"type":"tool_addition","tool":%s}' % tool)
    return [*written[:-1], _marked(written[-1], cache)] if written else []


def system(head: Head, cache: str | None) -> tuple[Piece, ...]:
    """The system value: one text block with the cache mark; empty when there is no text."""
    text = head.text()
    if not text:
        return ()
    mark = b',"cache_control":' + cache.encode() if cache else b""
    return (Piece(b'[{"type":"text","text":"'), *text, Piece(b'"' + mark + b"}]"))


def tools(head: Head, cache: str | None, *, eager: bool, last: Piece | None) -> tuple[Piece, ...]:
    """The tools value, the last one marked; ``last`` is the placeholder that ends it where changes are native."""
    known: Sequence[Tool] = tuple(head.tools.values())
    pieces: list[Piece] = []
    for i, tool in enumerate(known):
        mark = cache if i == len(known) - 1 and (last is None or b'"cache_control"' not in last.data) else None
        data = _marked(_tool(tool.definition, eager=eager), mark)
        pieces.append(Piece((b"," if i else b"[") + data, "logged", tool.place))
    if last is not None:
        pieces += [Piece(b"," if known else b"["), last]
    return (*pieces, Piece(b"]")) if pieces else ()


def _tool(definition: Mapping[str, Any], *, eager: bool) -> bytes:
    parameters = definition.get("parameters")
    schema = parameters if isinstance(parameters, Mapping) else {}
    known = {"type": "object", "properties": schema.get("properties") or {}, "required": schema.get("required") or []}
    extra = {k: schema[k] for k in ("additionalProperties", "$defs", "definitions") if k in schema}
    head = {"name": definition.get("name"), "description": definition.get("description")}
    return spelled({**head, **({"eager_input_streaming": True} if eager else {}), "input_schema": {**known, **extra}})
