"""The agent's own rough token estimators, a pure function of a message per version (hermes.md §6).

What each counts of a message is the Python spelling of the dictionary held in memory, less some keys:

- 0.19: characters of all of it, the clean content and its sidecar both, reasoning envelopes whole; of the whole list at
  once ``ceil(characters / 4)``.
- 0.20: without ``reasoning_details`` and ``timestamp``; a sidecar that is sent stands in place of the content, any other is
  dropped; message by message, CJK characters one token each and the rest ``ceil(characters / 4)``.
- 0.21 (source only): as 0.20 without what only the database keeps, without ``reasoning`` beside a ``reasoning_content``, and
  with ``encrypted_content`` of codex items blanked; the rest by UTF-8 bytes instead of characters. On routes that drop it
  the thinking of all but the newest answer is left out (``STALE``). An image costs what its provider's bills taught the
  agent, which no log keeps for a point: 1,500 tokens before that.

In all of them an image of the content is a placeholder, and in 0.19 and 0.20 1,500 tokens.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.hermes.canonical import SIDECAR, sidecar_of
from ctxscope.agents.reading.charges import Charge, added, rounded
from ctxscope.wire.json_text import py

_CJK = re.compile("[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_PER_TOKEN = 4
_IMAGE = 1500
_IMAGES = frozenset({"image", "image_url", "input_image"})
_BLOCKS = "_anthropic_content_blocks"
_DATABASE = frozenset(
    [
        *("timestamp", "display_kind", "display_metadata", "message_uid", "_row_id", "_merged_turn_prefix"),
        *("_absorbed_message_uids", "_tool_call_uids", "_tool_call_uid", "_db_row_snapshot", "_canonical_row"),
    ]
)
"""Keys that 0.21 does not count: only the database keeps them."""
_OPAQUE = frozenset({"signature", "data", "encrypted_content", "thought_signature", "thoughtSignature"})
_THINKING = frozenset({"text", "thinking", "summary", "content"})
_KINDS: Mapping[str, tuple[str, frozenset[str]]] = {
    "reasoning": ("thinking", frozenset()),
    "reasoning_content": ("thinking", frozenset()),
    "reasoning_details": ("thinking", _THINKING),
    "codex_reasoning_items": ("thinking", _THINKING),
    "codex_message_items": ("sidecar", frozenset({"text"})),
    "tool_calls": ("tool_calls", frozenset({"name", "arguments"})),
}
"""What the texts of a key are charged as, and under which keys inside it they stand."""

Split = Callable[[str], tuple[int, int]]
"""A text as tokens counted one by one, and units of which four make a token."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The estimator of one version."""

    name: str
    split: Split
    counted: Callable[[Mapping[str, Any]], dict[str, Any]]
    """What of a message it spells."""
    at_once: bool = False
    """Units of the whole list are divided together, not message by message."""
    held: frozenset[str] = frozenset()
    """The kinds that the agent's own figures hold (``Estimate.verified``)."""

    def tokens(self, text: str) -> int:
        """Tokens of one text."""
        single, units = self.split(text)
        return single + math.ceil(units / _PER_TOKEN)

    def message(self, memory: Mapping[str, Any]) -> Charge:
        """What one message is charged; with ``at_once`` in units, but for images."""
        shadow = self.counted(memory)
        single, units = self._sizes(shadow)
        images = {"images": _IMAGE * _images(memory)}
        return added((units, images) if self.at_once else (single, rounded(units, _PER_TOKEN), images))

    def whole(self, charges: Charge) -> Charge:
        """Tokens of a list whose messages were charged so much in all."""
        if not self.at_once:
            return charges
        units = {name: count for name, count in charges.items() if name != "images"}
        return {**rounded(units, _PER_TOKEN), "images": charges.get("images", 0)}

    def _sizes(self, shadow: Mapping[str, Any]) -> tuple[Charge, Charge]:
        """By kind the parts of ``split`` of a spelled message; what is no text is bookkeeping."""
        kinds: tuple[dict[str, int], dict[str, int]] = ({}, {})
        for kind, text in _texts(shadow):
            for sizes, size in zip(kinds, self.split(repr(text)[1:-1]), strict=True):
                sizes[kind] = sizes.get(kind, 0) + size
        for sizes, size in zip(kinds, self.split(str(shadow)), strict=True):
            sizes["bookkeeping"] = size - sum(sizes.values())
        return kinds


def tool_tokens(tools: Any) -> int:
    """Tokens of a tool list, in every version: names, descriptions and parameters as JSON, ``ceil(characters / 4)``."""
    characters = 0
    for tool in tools if isinstance(tools, list | tuple) else ():
        if isinstance(tool, Mapping):
            said = tool["function"] if isinstance(tool.get("function"), Mapping) else tool
            texts = (said.get("name"), said.get("description"))
            characters += sum(len(t) for t in texts if isinstance(t, str)) + len(py(said.get("parameters") or {}))
    return math.ceil(characters / _PER_TOKEN)


def _characters(text: str) -> tuple[int, int]:
    return 0, len(text)


def _wide_apart(text: str) -> tuple[int, int]:
    wide = 0 if text.isascii() else len(_CJK.findall(text))
    return wide, len(text) - wide


def _wide_and_bytes(text: str) -> tuple[int, int]:
    if text.isascii():
        return 0, len(text)
    rest = _CJK.sub("", text)
    return len(text) - len(rest), len(rest.encode("utf-8", "replace"))


def _in_0_19(memory: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _shown(v) if k == "content" else v for k, v in memory.items() if k != _BLOCKS}


def _in_0_20(memory: Mapping[str, Any]) -> dict[str, Any]:
    left_out = {_BLOCKS, "reasoning_details", "timestamp"}
    return _with_sidecar(memory, {k: v for k, v in memory.items() if k not in left_out})


def _in_0_21(memory: Mapping[str, Any]) -> dict[str, Any]:
    said = memory.get("reasoning_content")
    twice = {"reasoning"} if isinstance(said, str) and said.strip() else set()
    left_out = {_BLOCKS, "reasoning_details", *_DATABASE, *twice}
    kept = {k: v for k, v in memory.items() if k not in left_out}
    if isinstance(kept.get("codex_reasoning_items"), list):
        kept["codex_reasoning_items"] = [_blanked(item) for item in kept["codex_reasoning_items"]]
    return _with_sidecar(memory, _blanked(kept))


def _in_0_21_stale(memory: Mapping[str, Any]) -> dict[str, Any]:
    if memory.get("role") != "assistant":
        return _in_0_21(memory)
    return _in_0_21(
        {k: v for k, v in memory.items() if k not in ("reasoning", "reasoning_content") or not _thinks(memory)}
    )


def _thinks(memory: Mapping[str, Any]) -> bool:
    return bool(memory.get("reasoning") or memory.get("reasoning_content"))


def _with_sidecar(memory: Mapping[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    """The sidecar in place of the content where it is what is sent, else the content; ``api_content`` marks the former."""
    sent = sidecar_of(memory)
    if sent is not None:
        return {k: v for k, v in {**kept, "content": _Sidecar(sent)}.items() if k != SIDECAR}
    return {k: _shown(v) if k == "content" else v for k, v in kept.items() if k != SIDECAR}


class _Sidecar(str):
    """A content that came from a sidecar; spelled as any text."""

    __slots__ = ()


def _blanked(item: Any) -> Any:
    return {k: "" if k == "encrypted_content" else v for k, v in item.items()} if isinstance(item, dict) else item


def _shown(content: Any) -> Any:
    """A content with placeholders for its images; of a tool's pictures their summary in words."""
    if isinstance(content, list):
        return [{"type": p["type"], "image": "[stripped]"} if is_image(p) else p for p in content]
    if isinstance(content, dict) and content.get("_multimodal"):
        return content.get("text_summary", "")
    return content


def is_image(part: Any, kinds: frozenset[str] = _IMAGES) -> bool:
    """Whether a part of a content is an image."""
    return isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in kinds


def _images(memory: Mapping[str, Any]) -> int:
    content = memory.get("content")
    tool = content.get("content") if isinstance(content, dict) and content.get("_multimodal") else None
    places = ((content, _IMAGES), (tool, _IMAGES - {"input_image"}), (memory.get(_BLOCKS), frozenset({"image"})))
    return sum(is_image(p, kinds) for parts, kinds in places if isinstance(parts, list) for p in parts)


def _texts(shadow: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The texts of a message, each with what it is charged as."""
    said = "tool_results" if shadow.get("role") == "tool" else "text"
    for key, value in shadow.items():
        if key == SIDECAR or isinstance(value, _Sidecar):
            yield from _leaves(value, "sidecar", None)
        elif key == "content":
            yield from _leaves(value, said, frozenset({"text", "content"}), opaque=False)
        elif key in _KINDS:
            yield from _leaves(value, *_KINDS[key])


def _leaves(value: Any, kind: str, keys: frozenset[str] | None, *, opaque: bool = True) -> Iterator[tuple[str, str]]:
    """Texts in a value under certain keys (``None``: under all), and its envelopes."""
    waiting: list[tuple[Any, bool]] = [(value, True)]  # a column may nest deeper than Python recurses
    while waiting:
        found, counted = waiting.pop()
        if isinstance(found, str) and counted:
            yield kind, found
        elif isinstance(found, list):
            waiting.extend((item, counted) for item in found)
        elif isinstance(found, dict):
            for key, item in found.items():
                if opaque and key in _OPAQUE and isinstance(item, str):
                    yield "envelope", item
                else:
                    waiting.append((item, keys is None or key in keys))


_HELD = frozenset({"system", "tools", "text", "tool_calls", "tool_results", "bookkeeping"})
RULES: Mapping[str, Rule] = {
    "0.20": Rule("Hermes 0.20", _wide_apart, _in_0_20, held=_HELD),
    "0.19": Rule("Hermes 0.19", _characters, _in_0_19, at_once=True),
    "0.21": Rule("Hermes 0.21", _wide_and_bytes, _in_0_21),
}
"""By version."""
STALE = Rule("Hermes 0.21 without stale thinking", _wide_and_bytes, _in_0_21_stale)
"""0.21 on a route that drops it: of any answer but the newest."""
