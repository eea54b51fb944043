"""Codex's own token estimate, from which it counts anew after a compaction (codex.md §6).

``ceil(bytes / 4)`` of the base instructions, and of each item of the history:

- 0.80: of the item as JSON, ids, roles and the base64 of images with it.
- 0.105: an image given as base64 is 7,373 bytes; from 0.122 on one of ``detail: "original"`` is as many tokens as it has
  patches of 32 pixels, which is not read here.
- 0.156: what is said alone: texts, names, arguments, the ids of outputs; thinking that is no envelope is nothing.

An item that is an envelope counts what that may hold decoded, ``bytes * 3 / 4 - 650``, and nothing else; in 0.80 that many
tokens, not bytes. From 0.163 on the envelope of a compaction is a twelfth of its length.

Source: figures that the released programs wrote of made-up histories, each version named in ``MEASURED`` and both sides of
each change; versions between two that count alike are taken to count like them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.codex.items import METADATA, spelled
from ctxscope.agents.reading.charges import Charge, added, rounded
from ctxscope.wire.blocks import listed, mapped, string

BYTES_A_TOKEN = 4
REASONING_OVERHEAD = 650
"""Bytes of a decoded envelope that are no reasoning."""
IMAGE_BYTES = 7373
UNSIZED = "unsized"
"""In a charge: images of which it is not known what they count."""
_ENVELOPES = frozenset({"reasoning", "compaction", "context_compaction"})
_NAMESPACE = "functions"
"""What a call without a namespace counts for one (0.156)."""
_DATA_URL = re.compile(r"data:image/[^,;]*(?:;[^,;]*)*?;base64(?:;[^,]*)?,", re.IGNORECASE)
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.|$)")
_FLAT_IMAGES, _ORIGINALS, _AGENTS, _TEXTS, _TWELFTHS = (0, 105), (0, 122), (0, 147), (0, 156), (0, 163)
"""Versions that were the first to count so."""
_KINDS = ("system", "text", "thinking", "tool_calls", "tool_results", "images", "bookkeeping", "envelope")


@dataclass(frozen=True, slots=True)
class Rule:
    """The estimator of some versions."""

    number: tuple[int, int]
    """The first of them."""

    @property
    def version(self) -> str:
        """The first of them, as Codex names it."""
        return ".".join(map(str, self.number))

    @property
    def title(self) -> str:
        """The newest of them that was measured, by which an estimate is named; where none was, the first of them."""
        return next((v for v in reversed(MEASURED) if rule_of(v) is self), self.version)

    @property
    def held(self) -> frozenset[str]:
        """The kinds that measured figures hold (``Estimate.verified``)."""
        return frozenset(_KINDS) if self.number > _OLDEST else frozenset()

    def item(self, item: Mapping[str, Any]) -> Charge:
        """What one item is charged."""
        envelope = self._envelope(item)
        if envelope is not None:
            return envelope
        if self.number >= _TEXTS:
            said = [(kind, _shown(kind, value)) for kind, value in _told(item)]
            units = added({kind: size} for kind, size in said)
        else:
            said = [(kind, self._spelled(item, kind, value)) for kind, value in _said(item)]
            bare = sum(_spelled(value) for _, value in _said(item))
            logged = {k: v for k, v in item.items() if k != METADATA}
            units = added([*({kind: size} for kind, size in said), {"bookkeeping": len(spelled(logged)) - bare}])
        unsized = sum(self._is_unsized(part) for part in _images(item))
        return {**rounded(units, BYTES_A_TOKEN), **({UNSIZED: unsized} if unsized else {})}

    def _envelope(self, item: Mapping[str, Any]) -> Charge | None:
        """An item that counts as its envelope; ``None`` for any other."""
        found = string(item.get("encrypted_content"))
        if not found or item.get("type") not in _ENVELOPES:
            return None
        decoded = max(0, len(found) * 3 // 4 - REASONING_OVERHEAD)
        if self.number >= _TWELFTHS and item.get("type") != "reasoning":
            decoded = -(-len(found) // 3)
        return {"envelope": decoded if self.number == _OLDEST else tokens(decoded)}

    def _spelled(self, item: Mapping[str, Any], kind: str, value: Any) -> int:
        """Bytes of what an item says where the rest of its JSON counts too."""
        if kind == "images" and self.number >= _FLAT_IMAGES and (prefix := _DATA_URL.match(value)):
            return prefix.end() + IMAGE_BYTES
        if kind == "envelope" and (self.number >= _AGENTS or item.get("type") != "agent_message"):
            return _decoded(value)
        return _spelled(value)

    def _is_unsized(self, part: Mapping[str, Any]) -> bool:
        plain = _DATA_URL.match(string(part.get("image_url"))) is not None
        original = part.get("detail") == "original" and self.number >= _ORIGINALS
        return original if plain else self.number >= _TEXTS


def tokens(count: int) -> int:
    """Bytes as tokens."""
    return -(-count // BYTES_A_TOKEN)


def text_tokens(text: str) -> int:
    """A text."""
    return tokens(_bytes(text))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _spelled(value: Any) -> int:
    return len(spelled(value)) - 2 * isinstance(value, str)


def _shown(kind: str, value: Any) -> int:
    """Bytes of what an item says where nothing else counts."""
    if kind == "images":
        return IMAGE_BYTES
    if kind == "envelope":
        return _decoded(value)
    return _bytes(value) if isinstance(value, str) else len(spelled(value))


def _decoded(encrypted: str) -> int:
    """Bytes of an encrypted part."""
    return -(-len(encrypted) * 9 // 16)


def _said(item: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What an item says, each part with what it is: text, or a value that is spelled as JSON."""
    kind = string(item.get("type"))
    if kind.endswith("_call"):
        yield from (("tool_calls", item[k]) for k in ("name", "arguments", "input", "action") if item.get(k))
    elif kind.endswith("_output"):
        yield from _parts(item.get("output"), "tool_results")
    elif kind == "reasoning":
        yield from _parts(item.get("summary"), "thinking")
        yield from _parts(item.get("content"), "thinking")
    else:
        yield from _parts(item.get("content"), "text")


def _told(item: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What of an item counts where nothing else does (0.156)."""
    kind = string(item.get("type"))
    if kind in ("function_call", "custom_tool_call"):
        yield "bookkeeping", item.get("namespace") or _NAMESPACE
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield from (("bookkeeping", item[k]) for k in ("call_id", "name", "namespace") if item.get(k))
    elif kind == "agent_message":
        yield from (("bookkeeping", item[k]) for k in ("author", "recipient") if item.get(k))
    elif kind == "image_generation_call":
        yield "images", ""
        yield "tool_calls", string(item.get("revised_prompt"))
    elif kind == "tool_search_output":
        yield "tool_results", item.get("tools") or []
    if kind != "reasoning":
        yield from _said(item)


def _parts(content: Any, kind: str) -> Iterator[tuple[str, Any]]:
    if isinstance(content, str):
        yield kind, content
    for part in map(mapped, listed(content)):
        of_keys = ((kind, "text"), (kind, "refusal"), ("images", "image_url"), ("envelope", "encrypted_content"))
        yield from ((of, part[key]) for of, key in of_keys if isinstance(part.get(key), str))


def _images(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    parts = (*listed(item.get("content")), *listed(item.get("output")))
    yield from (part for part in map(mapped, parts) if isinstance(part.get("image_url"), str))


_OLDEST, _PLAIN = (0, 80), (0, 87)
_UNKNOWN = ((0, 81), (0, 86))
"""Versions, first and last, of which it is not known which rule they have."""
RULES = tuple(map(Rule, (_OLDEST, _PLAIN, _FLAT_IMAGES, _ORIGINALS, _AGENTS, _TEXTS, _TWELFTHS)))
"""Oldest first."""
MEASURED = tuple(f"0.{minor}" for minor in (98, 110, 120, 130, 140, 150, 155, 160, 171))
"""Versions of which a figure was measured for every kind of item, oldest first."""


def release_of(version: str) -> str:
    """A version without what does not matter here: ``0.171`` of ``0.171.0``; empty for what is none."""
    found = _VERSION.match(version)
    return f"{found[1]}.{found[2]}" if found else ""


def rule_of(version: str) -> Rule | None:
    """The rule by which a version counts; ``None`` where it is not known. What is newer is taken to count like the newest."""
    found = _VERSION.match(version)
    number = (int(found[1]), int(found[2])) if found else (0, 0)
    if number < _OLDEST or _UNKNOWN[0] <= number <= _UNKNOWN[1]:
        return None
    return next(rule for rule in reversed(RULES) if rule.number <= number)
