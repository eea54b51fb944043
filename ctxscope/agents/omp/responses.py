"""Input items as omp writes them for OpenAI Responses (omp.md §4.7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ctxscope.agents.omp.fold import Form
from ctxscope.agents.omp.spelling import Wire, dumped, logged, message, quoted, whole
from ctxscope.agents.omp.store import Store
from ctxscope.agents.omp.turns import Msg
from ctxscope.agents.omp.wording import NO_OUTPUT
from ctxscope.agents.pi.chat import data_url
from ctxscope.agents.pi.texts import blocks, images, joined_text, string
from ctxscope.model import Piece
from ctxscope.wire import json_text

_STATELESS = ("message", "function_call", "custom_tool_call", "compaction", "compaction_summary")
"""Items that are replayed without their status."""


def render(messages: list[Msg], form: Form, held: Store) -> list[Wire]:
    """Items of a user's message, or of an answer with its results behind."""
    found: list[tuple[str, Wire]] = []
    answered = {msg.tool_id.partition("|")[0] for msg in messages if msg.role == "toolResult"}
    for msg in messages:
        if msg.role == "toolResult":
            found.append((_OUTPUT, _result(msg, held)))
        elif msg.role == "assistant":
            found += _answer(msg, form, answered)
        else:
            found += [(_OTHER, wire) for wire in _user(msg, held)]
    return _hoisted(found)


_CALL, _OUTPUT, _MESSAGE, _OTHER = "call", "output", "message", "other"
_CALLS = ("function_call", "custom_tool_call")


def _hoisted(items: list[tuple[str, Wire]]) -> list[Wire]:
    """The items with what was said between calls and their outputs put before the calls."""
    found: list[tuple[str, Wire]] = []
    for kind, wire in items:
        if kind == _OUTPUT and found and found[-1][0] != _OUTPUT:
            start = len(found)
            while start and found[start - 1][0] in (_CALL, _MESSAGE):
                start -= 1
            if any(k == _CALL for k, _ in found[start:]):
                found[start:] = sorted(found[start:], key=lambda f: f[0] == _CALL)
        found.append((kind, wire))
    return [wire for _, wire in found]


def _user(msg: Msg, held: Store) -> list[Wire]:
    place = msg.item.entry.place
    payload = msg.item.message.get("providerPayload")
    if isinstance(payload, Mapping) and isinstance(payload.get("items"), list):
        kept = [i for i in map(_stripped, payload["items"]) if i is not None]
        return [Wire("user", (logged(dumped(i), place),)) for i in kept]
    written: list[Piece | list[Piece]] = []
    content = msg.content
    if msg.lead is not None and isinstance(content, str):
        inside = logged(quoted(content)[1:], place)
        written.append([_TEXT, *msg.lead.pieces(), Piece(b"\\n\\n"), inside, Piece(b"}")])
        content = []
    elif msg.lead is not None:
        written.append([_TEXT, *msg.lead.pieces(), Piece(b'"}')])
    parts = list(blocks(content))
    for block in sorted(parts, key=lambda b: b.get("type") == "image"):
        if block.get("type") == "image":
            written.append(_image(block, msg, held))
        elif block.get("type") == "text" and string(block.get("text")).strip():
            data = b'{"type":"input_text","text":%s}' % quoted(string(block.get("text")))
            written.append(logged(data, place, external=msg.item.external))
    return [message("user", written)] if written else []


_TEXT = Piece(b'{"type":"input_text","text":"')


def _image(block: Mapping[str, Any], msg: Msg, held: Store) -> Piece:
    data, external = held.image(string(block.get("data")))
    return logged(_picture({**block, "data": data}), msg.item.entry.place, external=external or msg.item.external)


def _answer(msg: Msg, form: Form, answered: Collection[str]) -> list[tuple[str, Wire]]:
    """The provider's own items as they came, or what stands for them; ``answered``: ids of calls that have a result."""
    place, external = msg.item.entry.place, msg.item.external
    kept = replayed(msg.native) if msg.native is not None and form.native else []
    made = kept or [item for item in (_made(b) for b in msg.content) if item]
    if msg.native is not None and form.native and not kept:
        made = [i for i in made if i.get("type") == "function_call" or _says(i)]
    found: list[tuple[str, Wire]] = []
    for item in made:
        is_call = isinstance(item, Mapping) and item.get("type") in _CALLS
        said = isinstance(item, Mapping) and item.get("type") == "message" and item.get("role") == "assistant"
        kind = _CALL if is_call else _MESSAGE if said else _OTHER
        found.append((kind, Wire("assistant", (logged(dumped(item), place, external=external),))))
        if is_call and item.get("call_id") not in answered:
            found.append((_OUTPUT, _unanswered(item)))
    return found


def forms(native: Sequence[Any], content: Sequence[Mapping[str, Any]]) -> tuple[bytes, bytes]:
    """An answer's first item as it is sent when items are replayed as they came, and as it is made anew; empty for none."""
    came = next(iter(replayed(native)), None)
    made = next((item for item in map(_made, content) if item), None)
    return b"" if came is None else dumped(came), b"" if made is None else dumped(made)


def _unanswered(call: Mapping[str, Any]) -> Wire:
    """What stands for the output of a call that has none."""
    kind = "custom_tool_call_output" if call.get("type") == "custom_tool_call" else "function_call_output"
    return Wire("tool", (Piece(dumped({"type": kind, "call_id": call.get("call_id"), "output": NO_OUTPUT})),))


def replayed(native: Sequence[Any]) -> list[Any]:
    """Items as they may be sent again; none where the answer held nothing but reasoning and blank messages."""
    items = [i for i in map(_stripped, native) if i is not None]
    if not any(i.get("type") != "reasoning" and _says(i) for i in items):
        return []
    return items if all(map(_says, items)) else _without_blank(items)


def _without_blank(items: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Items without blank messages and the reasoning that introduced them."""
    found: list[Any] = []
    thoughts: list[Any] = []
    dropped = False
    for item in items:
        if item.get("type") == "reasoning":
            thoughts = [item] if dropped else [*thoughts, item]
        elif _says(item):
            found += [*thoughts, item]
            thoughts = []
        dropped = not _says(item)
    return found


def _stripped(item: Any) -> Mapping[str, Any] | None:
    """An item without what only an output has; ``None`` for one that is not replayed."""
    if not isinstance(item, Mapping) or item.get("type") == "item_reference":
        return None
    if item.get("type") == "reasoning":
        lists = {k: item[k] for k in ("summary", "content") if isinstance(item.get(k), list)}
        opaque = item.get("encrypted_content", 0)
        return {"type": "reasoning", **lists, **({} if opaque == 0 else {"encrypted_content": opaque})}
    if item.get("type") == "function_call" and parsed(string(item.get("arguments"))) is _NOTHING:
        return None
    return {k: v for k, v in item.items() if k != "id" and not (k == "status" and item.get("type") in _STATELESS)}


def _says(item: Mapping[str, Any]) -> bool:
    """Whether an item is more than a blank message."""
    if item.get("type") != "message" or item.get("role") != "assistant":
        return True
    content = item.get("content")
    texts = [content] if isinstance(content, str) else [p.get("text", p.get("refusal")) for p in blocks(content)]
    return any(string(t).strip() for t in texts)


def _made(block: Mapping[str, Any]) -> dict[str, Any]:
    kind = block.get("type")
    if kind == "text":
        text = whole(string(block.get("text")))
        content = [{"type": "output_text", "text": text, "annotations": []}]
        signature = parsed(string(block.get("textSignature")))
        phase = signature.get("phase") if isinstance(signature, Mapping) else None
        said = {"type": "message", "role": "assistant", "content": content, "status": "completed"}
        return {**said, "phase": phase} if phase else said
    if kind != "toolCall":
        return {}
    call = string(block.get("id")).partition("|")[0]
    arguments = json_text.js(block.get("arguments") or {})
    return {"type": "function_call", "call_id": call, "name": block.get("name"), "arguments": arguments}


def _result(msg: Msg, held: Store) -> Wire:
    """A tool result: text, or with images a list in the order of its blocks."""
    external = msg.item.external
    output = quoted(joined_text(msg.content))
    if images(msg.content):
        shown = []
        for block in blocks(msg.content):
            if block.get("type") == "image":
                picture, restored = held.image(string(block.get("data")))
                external = external or restored
                shown.append(_picture({**block, "data": picture}))
            else:
                shown.append(b'{"type":"input_text","text":%s}' % quoted(string(block.get("text"))))
        output = b"[" + b",".join(shown) + b"]"
    call = msg.tool_id.partition("|")[0]
    data = b'{"type":"function_call_output","call_id":%s,"output":%s}' % (dumped(call), output)
    return Wire("tool", (logged(data, msg.item.entry.place, external=external),))


def _picture(block: Mapping[str, Any]) -> bytes:
    detail = block.get("detail")
    value = {"type": "input_image", "detail": detail or "auto", "image_url": data_url(block)}
    return dumped(value)


_NOTHING: Any = object()


def parsed(text: str) -> Any:
    """JSON in a signature or arguments; a value of its own for anything else."""
    try:
        return json_text.loads(text)
    except ValueError:
        return _NOTHING
