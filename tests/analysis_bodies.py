"""Request bodies with their segments, cut by hand so that the judgements are tested apart from the wire modules."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ctxscope.analysis.spelling import without_breakpoints
from ctxscope.model import ApiName, BlockKind, Body, Segment

_BLOCKS: dict[str, BlockKind] = {
    "text": "text",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "tool_use": "tool_call",
    "tool_result": "tool_result",
    "image": "image",
}


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Writer:
    def __init__(self) -> None:
        self.data = b""
        self.segments: list[Segment] = []

    def text(self, text: str) -> None:
        self.data += text.encode()

    def segment(self, path: str, value: Any, spelled: str | None = None, **about: Any) -> None:
        form = [{"type": "text", "text": value}] if isinstance(value, str) else value
        prompt = (about.get("role", "") + compact(without_breakpoints(form))).encode()
        start = len(self.data)
        self.text(compact(value) if spelled is None else spelled)
        about.setdefault("order", (9, len(self.segments)))
        if about.get("kind", "param") != "param":
            about |= {"digest": hashlib.blake2b(prompt, digest_size=16).digest(), "prompt_bytes": len(prompt)}
            about["breakpoint"] = without_breakpoints(value) != value
        self.segments.append(Segment(path, start, len(self.data), **{"kind": "param", **about}))


def body(value: dict[str, Any], api: ApiName = "anthropic-messages") -> Body:
    """An Anthropic-shaped request as a body: tools, system (text or blocks), messages, anything else a parameter."""
    out = _Writer()
    out.text("{")
    for n, (key, item) in enumerate(value.items()):
        out.text(("," if n else "") + compact(key) + ":")
        if key in ("tools", "system") and isinstance(item, list):
            _list(out, key, item)
        elif key == "messages":
            _messages(out, item)
        elif key == "system":
            out.segment("/system", item, kind="system", block="text", order=(1, 0))
        else:
            out.segment(f"/{key}", item)
    out.text("}")
    digest = hashlib.sha256(out.data).hexdigest()
    return Body(out.data, api, tuple(out.segments), model=value.get("model"), sha256=digest)


def _list(out: _Writer, key: str, items: list[Any]) -> None:
    out.text("[")
    for n, item in enumerate(items):
        out.text("," if n else "")
        if key == "tools":
            out.segment(f"/tools/{n}", item, kind="tool", order=(0, n))
        else:
            out.segment(f"/system/{n}", item, kind="system", block="text", order=(1, n))
    out.text("]")


def _messages(out: _Writer, messages: list[dict[str, Any]]) -> None:
    out.text("[")
    count = 0
    for n, message in enumerate(messages):
        out.text(("," if n else "") + "{")
        for k, (key, item) in enumerate(message.items()):
            out.text(("," if k else "") + compact(key) + ":")
            if key != "content":
                out.text(compact(item))
                continue
            blocks = item if isinstance(item, list) else [item]
            out.text("[" if isinstance(item, list) else "")
            for b, block in enumerate(blocks):
                out.text("," if b else "")
                path = f"/messages/{n}/content" + (f"/{b}" if isinstance(item, list) else "")
                kind = _BLOCKS.get(block.get("type", ""), "other") if isinstance(block, dict) else "text"
                out.segment(path, block, kind="message", role=message["role"], block=kind, order=(2, count))
                count += 1
            out.text("]" if isinstance(item, list) else "")
        out.text("}")
    out.text("]")
