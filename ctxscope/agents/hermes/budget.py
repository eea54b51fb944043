"""What a message counts against the tail budget of a batch compaction, per version (hermes.md §6)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.hermes.estimators import RULES

PROTECT_LAST = 20
"""``compression.protect_last_n`` where the settings do not say it."""
_IMAGE = 6400
"""Characters an image counts for."""
_OVERHEAD = 10
_OPAQUE = frozenset({"signature", "data", "encrypted_content"})
_ITEMS = ("codex_reasoning_items", "codex_message_items")
_THINKING = ("reasoning", "reasoning_content")
_DETAILS = "reasoning_details"

Message = Mapping[str, Any]
_tokens = RULES["0.20"].tokens


@dataclass(frozen=True, slots=True)
class TailRule:
    """How one version walks, under some settings."""

    old: bool
    """0.19."""
    budget: int
    """Tokens of the tail: the compaction threshold x ``compression.target_ratio``."""
    last: int = PROTECT_LAST
    """``compression.protect_last_n``."""

    def tokens(self, message: Message, *, newest: bool) -> int:
        """Tokens of a message; ``newest``: of the last answer, whose thinking alone 0.20 charges."""
        content = message.get("content") or ""
        if isinstance(content, str):
            total = _OVERHEAD + (len(content) // 4 if self.old else _tokens(content))
        else:
            total = _OVERHEAD + _length(content) // 4
        for call in message.get("tool_calls") or ():
            total += len(str(call)) // 4 if self.old else _tokens(str(call))
        total += sum(_serialised(message.get(name)) // 4 for name in _ITEMS)
        if self.old:
            return total + sum(_serialised(message.get(name)) // 4 for name in (*_THINKING, _DETAILS))
        if newest:
            total += sum(_serialised(message.get(name)) // 4 for name in _THINKING)
            if not any(message.get(name) for name in _THINKING):
                total += _thought(message.get(_DETAILS)) // 4
        return total

    def sizes(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of each, the last answer's thinking among them."""
        newest = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=-1)
        return [self.tokens(m, newest=i == newest) for i, m in enumerate(messages)]


def walk(sizes: Sequence[int], start: int, most: int, floor: int) -> tuple[int, int, bool]:
    """From the end back to ``start``: where it stops, what it holds then, and whether a message was too much.

    At most ``most`` tokens, but ``floor`` messages whatever they count.
    """
    held, cut = 0, len(sizes)
    for i in range(len(sizes) - 1, start - 1, -1):
        if held + sizes[i] > most and len(sizes) - i >= floor:
            return cut, held, True
        held += sizes[i]
        cut = i
    return cut, held, False


def without_envelope(message: Message) -> Message:
    """The message with its opaque reasoning bytes left out: signatures, encrypted and redacted content."""
    held = {name: message[name] for name in (_DETAILS, *_ITEMS) if message.get(name)}
    return {**message, **{name: _readable(value) for name, value in held.items()}} if held else message


def _length(content: Any) -> int:
    """Characters of a content that is no text: an image counts flat."""
    if not isinstance(content, list):
        return len(str(content or ""))
    total = 0
    for part in content:
        if not isinstance(part, dict):
            total += len(str(part))
        elif part.get("type") in {"image", "image_url", "input_image"}:
            total += _IMAGE
        else:
            total += len(str(part.get("text") or ""))
    return total


def _serialised(value: Any) -> int:
    """Characters of a field: of a text its own, else of its JSON with blanks behind commas and colons."""
    if value is None or isinstance(value, str):
        return len(value or "")
    return len(json.dumps(value, ensure_ascii=False, default=str))


def _thought(value: Any) -> int:
    """Characters of the thinking texts in ``reasoning_details``."""
    if isinstance(value, str):
        return len(value)
    parts = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    texts = (
        [part] if isinstance(part, str) else [part.get(k) for k in ("thinking", "text", "summary")]
        for part in parts
        if isinstance(part, str | dict)
    )
    return sum(len(t) for some in texts for t in some if isinstance(t, str))


def _readable(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _readable(v) for k, v in value.items() if k not in _OPAQUE}
    return [_readable(v) for v in value] if isinstance(value, list) else value
