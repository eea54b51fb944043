"""What messages say, part by part, each with the JSON value that holds its words: the same for a log and for a body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ctxscope import wire
from ctxscope.agents.messages.parts import RESPONSES, THINKING
from ctxscope.agents.messages.shapes import API_OF, BULK, Sort, about
from ctxscope.agents.messages.spelling import RAW
from ctxscope.agents.messages.tree import Node, parse
from ctxscope.model import ApiName, BlockKind, Body, Place
from ctxscope.wire.blocks import joined_text, string

_LEAVES = {
    "text": (("text",), ("refusal",), ("content",)),
    "thinking": (("thinking",), ("text",), ("summary",), ("content",)),
    "tool_call": (
        *(("function", "arguments"), ("custom", "input"), ("functionCall", "args")),
        *(("input",), ("arguments",), ("action",)),
    ),
    "tool_result": (("functionResponse", "response"), ("content",), ("output",), *((k,) for k in RESPONSES)),
}
"""Where the words of each kind of block stand in it, by API."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One thing said."""

    kind: BlockKind
    words: str
    """Text as it is; arguments and results that are JSON in compact form, keys as they stand."""
    id: str
    name: str
    sort: Sort
    """Of its message."""
    leaf: Node | None
    place: Place | None = None
    message: int = 0
    """Number of its message in the log."""


@lru_cache(maxsize=1 << 13)
def parts_of(text: bytes, api: ApiName | None) -> tuple[Part, ...]:
    """The parts of one message, in the form of an API, else (``None``) in its own."""
    told, node = about(text), parse(text)
    if node is None:
        return ()
    if api is None and told.form == "parts":
        return tuple(p for item in _items(node, "parts") if (p := _otel(item, told.sort)) is not None)
    api = api or API_OF.get(told.form, "openai-chat")
    if told.sort == "system":
        leaf = node.fields.get("content") or node.fields.get("parts")
        return () if leaf is None else (Part("text", joined_text(leaf.value), "", "", "system", leaf),)
    body = Body(b'{"%s":[%s]}' % (BULK[api].encode(), text), api, ())
    found: list[Part] = []
    for message in wire.by_name(api).messages(body):
        for block in message.blocks:
            at = node_at(node, block.path.split("/")[3:])
            leaf = leaf_of(at, block.kind)
            if block.kind in ("text", "thinking") and not block.text and not block.envelope:
                continue
            words = block.text if leaf is None else words_of(block.kind, leaf)
            found.append(Part(block.kind, words, block.id, block.name, told.sort, leaf))
    return tuple(found)


def words_of(kind: BlockKind, leaf: Node) -> str:
    """What a leaf says: text, or JSON in compact form."""
    value = leaf.value
    if kind in ("text", "thinking"):
        return value if isinstance(value, str) else joined_text(value)
    if kind == "tool_result" and leaf.kind == "array" and all("text" in n.fields for n in leaf.items):
        return joined_text(value)
    if isinstance(value, str):
        return compact(value) if kind == "tool_call" else value
    return RAW.text(leaf.raw).decode("utf-8", "replace")


def compact(text: str) -> str:
    """JSON in a text, spelled compact; another text as it is."""
    if text.lstrip()[:1] not in ("{", "["):
        return text
    data = text.encode("utf-8", "surrogatepass")
    return text if parse(data) is None else RAW.text(data).decode("utf-8", "replace")


def alike(one: Part, other: Part) -> bool:
    """Whether two parts say the same: results that are JSON may be spelled otherwise inside a text."""
    if one.words == other.words:
        return True
    return one.kind == "tool_result" and compact(one.words) == compact(other.words)


def node_at(node: Node, path: Sequence[str]) -> Node | None:
    """The value at a pointer below another one."""
    for step in path:
        if node.kind == "array" and step.isdigit() and int(step) < len(node.items):
            node = node.items[int(step)]
        elif step in node.fields:
            node = node.fields[step]
        else:
            return None
    return node


def leaf_of(node: Node | None, kind: BlockKind) -> Node | None:
    """The value that holds the words of a block."""
    if node is None or node.kind != "object":
        return node
    for path in _LEAVES.get(kind, ()):
        found = node_at(node, path)
        if found is not None:
            return found
    return None


def _items(node: Node, key: str) -> tuple[Node, ...]:
    found = node.fields.get(key)
    return found.items if found is not None else ()


def _otel(item: Node, sort: Sort) -> Part | None:
    fields = item.fields
    kind = string(fields["type"].value) if "type" in fields else ""
    named, called = (string(fields[k].value) if k in fields else "" for k in ("name", "id"))
    if kind in ("text", *THINKING):
        leaf = fields.get("content")
        known: BlockKind = "text" if kind == "text" else "thinking"
        return Part(known, words_of(known, leaf), "", "", sort, leaf) if leaf is not None and leaf.value else None
    if kind == "tool_call":
        leaf = fields.get("arguments")
        return Part("tool_call", "" if leaf is None else words_of("tool_call", leaf), called, named, sort, leaf)
    if kind == "tool_call_response":
        leaf = next((fields[k] for k in RESPONSES if k in fields), None)
        return Part("tool_result", "" if leaf is None else words_of("tool_result", leaf), called, named, "result", leaf)
    return Part("other", item.raw.decode("utf-8", "replace"), called, named, sort, item)
