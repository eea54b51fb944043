"""Whether a file's beginning is messages, nearly that, or something else; and what to say where it is only nearly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from ctxscope.agents.messages import spans, state
from ctxscope.agents.messages.shapes import ROLES, is_message
from ctxscope.agents.messages.tree import documents
from ctxscope.wire import json_text
from ctxscope.wire.blocks import mapped
from ctxscope.wire.raw_object import readable_members
from ctxscope.wire.spans import blank_end, value_end

EXPECTED = (
    "expected OpenAI, Anthropic, Responses or Gemini messages as JSON (one array) or JSON lines (a message, an array or "
    'a request {"messages":[…]} a line), or OpenTelemetry GenAI spans'
)
_SOME, DEEPEST = 8, 4
"""Values looked at, and how deep in lists."""
_SPEAKERS = ("role", "sender", "author", "from", "speaker")
_SAYINGS = ("content", "text", "message", "value", "body")
_OWN_ROLE = re.compile(r"_\w+")
_TORN_MESSAGE = re.compile(rb'\s*\{\s*"role"\s*:\s*"(?:system|developer|user|assistant|model|tool)"')
_PYTHON = re.compile(rb"""\s*\[?\s*\{\s*'(?:role|messages|model|content)'\s*:""")
_FOREIGN = frozenset({"_db_persisted", "parentUuid", "origin", "message_count", "parentId", "payload"})
"""Members of files that are agents' own, or a recorder's."""


class Kind(Enum):
    """What a beginning is."""

    OURS = 1
    NEARLY = 2
    OTHER = 3


def is_json(line: bytes) -> bool:
    """Whether a line is one JSON object or array."""
    try:
        return isinstance(json_text.loads_leniently(line), dict | list)
    except ValueError:
        return False


def look(head: bytes) -> Kind:
    """What the first 64 KB of a file are."""
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] not in (b"[", b"{", b'"'):
        return Kind.OTHER
    if _PYTHON.match(head):
        return Kind.NEARLY
    found = [_kind(value) for value in _values(head)]
    if Kind.OTHER in found or not found:
        if Kind.OURS in found and found[0] is Kind.OURS and not any(map(_is_foreign, _values(head))):
            return Kind.OURS
        return Kind.OTHER
    return Kind.OURS if Kind.OURS in found else Kind.NEARLY


def told(head: bytes) -> str:
    """What was found and what was expected, for a file that is none."""
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _PYTHON.match(head):
        return f"found a Python literal with single quotes; {EXPECTED}: json.dumps writes it"
    for value in _values(head):
        item = next((v for v in _flat(value) if isinstance(v, dict)), None)
        if item is None:
            continue
        roles = item.get("role")
        if isinstance(roles, str) and roles not in ROLES:
            return (
                f"found a message whose role is {roles[:40]!r}, expected one of {', '.join(sorted(ROLES))}; {EXPECTED}"
            )
        if isinstance(roles, str):
            return f"found messages without content, members {_names(item)}; {EXPECTED}"
        return f"found objects with the members {_names(item)}, expected role and content; {EXPECTED}"
    return f"found no messages in it; {EXPECTED}"


def _names(item: Mapping[str, Any]) -> str:
    names = ", ".join(name[:40] for name in list(item)[:6])
    return names + (" …" if len(item) > 6 else "")  # noqa: PLR2004 - as many as are told


def _values(head: bytes) -> Iterator[Any]:
    """The first values: documents, or of one array its items, as far as they can be read."""
    if head[:1] == b"[" or (head[:1] == b'"' and head[:2] == b'"['):
        whole = head if head[:1] == b"[" else _unquoted(head)
        yield from _items(whole)
        return
    found, rest = documents(head[: _cut(head)])
    for _, text in found[:_SOME]:
        try:
            value = json_text.loads_leniently(text)
        except ValueError:
            continue
        yield value if not isinstance(value, str) else _inner(value)
    if not found and rest is not None:
        yield {key: _torn(raw) for key, raw in readable_members(head).items()}


def _cut(head: bytes) -> int:
    """Whole lines, where there is one."""
    end = head.rfind(b"\n")
    return end + 1 if end > 0 and head.count(b"\n") and is_json(head[: head.find(b"\n")]) else len(head)


def _unquoted(head: bytes) -> bytes:
    """The JSON in a JSON string, as far as it goes."""
    text = head.decode("utf-8", "replace").rstrip()
    for end in (len(text), len(text) - 1):
        try:
            inner = json_text.loads(text[:end].rstrip("\\") + ('"' if end < len(text) or text[-1] != '"' else ""))
        except ValueError:
            continue
        return inner.encode() if isinstance(inner, str) else b""
    return b""


def _inner(text: str) -> Any:
    try:
        return json_text.loads(text)
    except ValueError:
        return text


def _items(head: bytes, depth: int = DEEPEST) -> Iterator[Any]:
    text = head.decode("latin-1")
    at = blank_end(text, 1)
    for _ in range(_SOME):
        try:
            end = value_end(text, at)
            yield json_text.loads_leniently(head[at:end])
        except ValueError:
            if _TORN_MESSAGE.match(head, at):
                yield {"role": "user", "content": ""}
            elif head[at : at + 1] == b"{":
                yield {key: _torn(raw) for key, raw in readable_members(head[at:]).items()}
            elif head[at : at + 1] == b"[" and depth:
                yield from _items(head[at:], depth - 1)
            return
        at = blank_end(text, end)
        if text[at : at + 1] != ",":
            return
        at = blank_end(text, at + 1)


def _torn(raw: bytes) -> Any:
    """A member of an object that breaks off: its value, or what can be read of it where the text ends in it."""
    try:
        return json_text.loads_leniently(raw)
    except ValueError:
        return [{"role": "user", "content": ""}]


def _flat(value: Any, depth: int = DEEPEST) -> Iterator[Any]:
    """A value and, of lists and of what holds a conversation, its items."""
    if isinstance(value, list) and depth:
        for item in value:
            yield from _flat(item, depth - 1)
    elif isinstance(value, dict):
        inner = next((value[k] for k in (*state.CONVERSATION, "conversations") if isinstance(value.get(k), list)), None)
        if inner:
            yield from _flat(inner, depth - 1)
        yield value


def _is_foreign(value: Any) -> bool:
    item = value[0] if isinstance(value, list) and value else value
    if isinstance(item, dict):
        role = item.get("role")
        if isinstance(role, str) and _OWN_ROLE.fullmatch(role):
            return True
    return isinstance(item, dict) and bool(_FOREIGN & item.keys())


def _kind(value: Any, depth: int = DEEPEST) -> Kind:
    if _is_foreign(value):
        return Kind.OTHER
    if isinstance(value, list):
        kinds = [_kind(v, depth - 1) for v in value[:_SOME]] if depth else []
        return Kind.OURS if Kind.OURS in kinds else Kind.NEARLY if Kind.NEARLY in kinds else Kind.OTHER
    if not isinstance(value, dict):
        return Kind.OTHER
    if is_message(value):
        return Kind.OURS
    if spans.is_batch(value):
        return Kind.OURS if any(_has_genai(span) for span in spans.of_batch(value)) else Kind.OTHER
    if spans.is_span(value):
        return Kind.OURS if _has_genai(value) else Kind.OTHER
    sources = (value, *(mapped(value.get(k)) for k in (*state.WRAPPERS, "additional_args")))
    if any(map(_is_request, sources)):
        return Kind.OURS
    return Kind.NEARLY if _is_nearly(value) else Kind.OTHER


def _is_request(value: Mapping[str, Any]) -> bool:
    """Whether an object holds a conversation, a list or, from a column, its text."""
    for given in map(value.get, state.CONVERSATION):
        if (isinstance(given, list) and any(map(is_message, given))) or _holds_messages(given):
            return True
    return isinstance(inner := value.get("complete_input_dict"), dict) and _is_request(inner)


def _holds_messages(text: Any) -> bool:
    inner = _inner(text) if isinstance(text, str) and text.lstrip()[:1] == "[" else None
    return isinstance(inner, list) and any(map(is_message, inner))


def _has_genai(span: Mapping[str, Any]) -> bool:
    return any(name.startswith("gen_ai.") for name in spans.attributes(span))


def _is_nearly(value: Mapping[str, Any]) -> bool:
    """Whether an object tells who said something, in other words than the APIs."""
    if isinstance(value.get("conversations"), list):
        return any(_speaks(mapped(v)) for v in value["conversations"][:_SOME])
    return _speaks(value)


def _speaks(value: Mapping[str, Any]) -> bool:
    speaks = any(isinstance(value.get(key), str) for key in _SPEAKERS)
    return speaks and (any(key in value for key in _SAYINGS) or isinstance(value.get("role"), str))
