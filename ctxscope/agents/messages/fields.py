"""Which fields of a logged message its client sends.

A team's rows carry more than goes out (ids, times, usage), and SDK dumps carry nulls that SDKs leave out. What the APIs
need is always sent; for anything else the first served message that could carry a field decides, for the whole session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from ctxscope.agents.messages.shapes import about
from ctxscope.agents.messages.state import SESSIONS, TIMES
from ctxscope.agents.messages.tree import Node, parse
from ctxscope.wire import json_text

Field = tuple[str, bool]
"""Where it stands in a message (``id``, ``tool_calls/*/index``, ``content/*/citations``), and whether it is null."""
Sent = Mapping[Field, bool]

CORE = frozenset({"role", "content", "tool_calls", "tool_call_id", "parts", "type", "call_id", "arguments", "output"})
"""Always sent, unless null."""
_OPTIONAL = frozenset(
    {
        *("name", "function_call", "reasoning_content", "reasoning", "reasoning_details", "refusal", "audio"),
        *("annotations", "prefix", "partial", "cache_control", "thinking_blocks", "extra_content", "phase"),
    }
)
"""Sent as logged until a body shows otherwise."""
_OWN = frozenset(
    {
        *(*TIMES, *SESSIONS, "usage", "tokens", "cost", "metadata", "model", "response_id", "message_id"),
        *("finish_reason", "stop_reason", "latency", "latency_ms", "user_id", "_id", "uuid", "seq", "turn"),
    }
)
"""Names that teams use for their own ends."""
_ITEM = frozenset(
    {
        *(
            "id",
            "status",
            "name",
            "input",
            "summary",
            "encrypted_content",
            "action",
            "actions",
            "queries",
            "results",
            "code",
        ),
        *("outputs", "container_id", "result", "revised_prompt", "server_label", "tools", "error", "approve", "reason"),
        *(
            "approval_request_id",
            "pending_safety_checks",
            "acknowledged_safety_checks",
            "operation",
            "namespace",
            "phase",
        ),
    }
)
"""Further fields of the Responses API's items."""
_CALL = frozenset({"id", "type", "function", "custom"})


@lru_cache(maxsize=1 << 14)
def open_fields(text: bytes) -> tuple[Field, ...]:
    """The fields of a message of which only a served body tells whether they are sent."""
    if _is_simple(text) or (node := parse(text)) is None:
        return ()
    found: list[Field] = []
    for key, value in node.members:
        null = _null(value)
        if key not in CORE or (null and key != "content"):
            found.append((key, null))
        for item in value.items if key in ("tool_calls", "content") else ():
            for name, inner in item.members:
                if _null(inner) or (key == "tool_calls" and name not in _CALL):
                    found.append((f"{key}/*/{name}", _null(inner)))
    return tuple(dict.fromkeys(found))


def _is_simple(text: bytes) -> bool:
    """Whether a message is nothing but texts that are always sent, as most are."""
    try:
        value = json_text.loads_leniently(text)
    except ValueError:
        return False
    return isinstance(value, dict) and all(k in CORE and isinstance(v, str) for k, v in value.items())


def unknown_fields(text: bytes) -> tuple[str, ...]:
    """Top-level fields of a message that no API has, as far as is known here."""
    items = about(text).form == "responses"
    return tuple(
        key
        for key, _ in open_fields(text)
        if "/" not in key and (key in _OWN or key not in (_ITEM if items else _OPTIONAL) | CORE)
    )


def is_present(field: Field, served: Node) -> bool:
    """Whether a served message has a field."""
    outer, _, inner = field[0].partition("/*/")
    value = served.fields.get(outer)
    if value is None or not inner:
        return value is not None
    return any(inner in item.fields for item in value.items)


def usual(field: Field, *, items: bool) -> bool:
    """Whether a field is sent, as far as its name tells; ``items``: of Responses input."""
    name, null = field
    outer, _, inner = name.partition("/*/")
    if inner:
        return outer == "content" or (not null and inner in (*_CALL, "extra_content"))
    return name in _ITEM if items else name in _OPTIONAL and not null


def trimmed(text: bytes, sent: Sent) -> bytes:
    """A message without what is not sent, otherwise spelled as logged."""
    if not open_fields(text):
        return text
    items = about(text).form == "responses"

    def is_kept(field: Field) -> bool:
        return sent[field] if field in sent else usual(field, items=items)

    node = parse(text)
    if node is None or all(map(is_kept, open_fields(text))):
        return text
    return _written(node, "", is_kept)


def _written(node: Node, path: str, is_kept: Callable[[Field], bool]) -> bytes:
    if node.kind == "array" and path in ("tool_calls", "content"):
        return b"[" + b",".join(_written(item, f"{path}/*", is_kept) for item in node.items) + b"]"
    if node.kind != "object" or path not in ("", "tool_calls/*", "content/*"):
        return node.raw
    open_ = set(_open_at(node, path))
    kept = [
        (key, value)
        for key, value in node.members
        if (field := (f"{path}/{key}".lstrip("/"), _null(value))) not in open_ or is_kept(field)
    ]
    return (
        b"{"
        + b",".join(_key(key) + _written(value, f"{path}/{key}".lstrip("/"), is_kept) for key, value in kept)
        + b"}"
    )


def _open_at(node: Node, path: str) -> Iterable[Field]:
    for key, value in node.members:
        null = _null(value)
        if not path and (key not in CORE or (null and key != "content")):
            yield key, null
        elif path and (null or (path == "tool_calls/*" and key not in _CALL)):
            yield f"{path}/{key}", null


def _key(key: str) -> bytes:
    return json_text.js_string(key).encode() + b":"


def _null(value: Node) -> bool:
    return value.raw == b"null"
