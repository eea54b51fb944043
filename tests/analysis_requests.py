"""A conversation of every kind of block, and what a client may make of it in the next request."""

from __future__ import annotations

import copy
from typing import Any

MARK = {"cache_control": {"type": "ephemeral"}}
LONG = "What does the file say, and why does it say so? " * 6
READ = {"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {"p": {}, "q": {}}}}
KEYS = {"name": "read", "description": "Reads.", "input_schema": {"properties": {"p": {}, "q": {}}, "type": "object"}}
WRITE = {"name": "write", "description": "Writes.", "input_schema": {"type": "object"}}
PIC = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
PIC2 = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJE"}}


def result(text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "c1", "content": text}


MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": LONG}, PIC]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "c1", "name": "read", "input": {"p": "x"}},
        ],
    },
    {"role": "user", "content": [result("a long result " * 20)]},
    {"role": "assistant", "content": "It says a long result, over and over."},
    {"role": "user", "content": [{"type": "text", "text": "And why is that so?"} | MARK]},
]
PARENT: dict[str, Any] = {
    "model": "claude-opus-4-5",
    "max_tokens": 100,
    "tools": [READ, WRITE],
    "system": [{"type": "text", "text": "You are terse. It is 2026-11-28 10:15."} | MARK],
    "messages": MESSAGES,
}
MORE = [
    {"role": "assistant", "content": "Because."},
    {"role": "user", "content": [{"type": "text", "text": "Ok."} | MARK]},
]


def request(**changes: Any) -> dict[str, Any]:
    """The parent's request, appended to; its last breakpoint moved on."""
    value = copy.deepcopy(PARENT)
    value["messages"][4]["content"] = [{"type": "text", "text": "And why is that so?"}]
    value["messages"] += copy.deepcopy(MORE)
    return value | changes


def messages(at: int, **changes: Any) -> dict[str, Any]:
    value = request()
    value["messages"][at] |= changes
    return value


def blocks(at: int, *items: Any) -> dict[str, Any]:
    return messages(at, content=list(items))


def without(*places: int) -> dict[str, Any]:
    value = request()
    value["messages"] = [m for n, m in enumerate(value["messages"]) if n not in places]
    return value


def inserted(at: int, *new: Any) -> dict[str, Any]:
    value = request()
    value["messages"][at:at] = new
    return value


NOTE = {"role": "user", "content": "A note in between."}
TOLD = MESSAGES[1]["content"]
