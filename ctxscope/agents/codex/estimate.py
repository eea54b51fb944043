"""Codex's own token estimate, from which it counts anew after a compaction (codex.md §6).

``ceil(bytes / 4)`` of the base instructions, and of each item that a request carries:

- 0.98: of the item as JSON, ids, roles and the base64 of images with it.
- 0.171: of a message its texts alone. How it counts other items no log shows; here likewise by their texts, an image by
  7,373 bytes and an encrypted output by 9/16 of its length (source only).

An item that is an envelope counts in both what that may hold decoded, ``bytes * 3 / 4 - 650``, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.codex.items import spelled
from ctxscope.agents.reading.charges import Charge, added, rounded
from ctxscope.agents.reading.drift import is_newer
from ctxscope.wire.blocks import listed, mapped, string

BYTES_A_TOKEN = 4
REASONING_OVERHEAD = 650
"""Bytes of a decoded envelope that are no reasoning."""
IMAGE_BYTES = 7373
_ENVELOPES = frozenset({"reasoning", "compaction", "context_compaction"})
_DATA_URL = "data:image/"


@dataclass(frozen=True, slots=True)
class Rule:
    """The estimator of one version."""

    version: str
    item: Callable[[Mapping[str, Any]], Charge]
    """What one item is charged."""
    held: frozenset[str]
    """The kinds that figures logged after compactions hold (``Estimate.verified``)."""


def tokens(count: int) -> int:
    """Bytes as tokens."""
    return -(-count // BYTES_A_TOKEN)


def text_tokens(text: str) -> int:
    """A text."""
    return tokens(_bytes(text))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _as_json(item: Mapping[str, Any]) -> Charge:
    envelope = _envelope(item)
    if envelope is not None:
        return envelope
    units = added({kind: len(spelled(said)) - 2 * isinstance(said, str)} for kind, said in _said(item))
    return rounded({**units, "bookkeeping": len(spelled(item)) - sum(units.values())}, BYTES_A_TOKEN)


def _as_texts(item: Mapping[str, Any]) -> Charge:
    envelope = _envelope(item)
    if envelope is not None:
        return envelope
    return rounded(added({kind: _shown(kind, said)} for kind, said in _said(item)), BYTES_A_TOKEN)


def _shown(kind: str, said: Any) -> int:
    if not isinstance(said, str):
        return len(spelled(said))
    if kind == "images" and said[: len(_DATA_URL)].lower() == _DATA_URL:
        return IMAGE_BYTES
    return -(-len(said) * 9 // 16) if kind == "envelope" else _bytes(said)


def _envelope(item: Mapping[str, Any]) -> Charge | None:
    """An item that counts as its envelope; ``None`` for any other."""
    found = string(item.get("encrypted_content"))
    if not found or item.get("type") not in _ENVELOPES:
        return None
    return {"envelope": tokens(max(0, len(found) * 3 // 4 - REASONING_OVERHEAD))}


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


def _parts(content: Any, kind: str) -> Iterator[tuple[str, Any]]:
    if isinstance(content, str):
        yield kind, content
    for part in map(mapped, listed(content)):
        of_keys = ((kind, "text"), (kind, "refusal"), ("images", "image_url"), ("envelope", "encrypted_content"))
        yield from ((of, part[key]) for of, key in of_keys if isinstance(part.get(key), str))


RULES = (
    Rule("0.98", _as_json, frozenset({"system", "text", "bookkeeping", "envelope"})),
    Rule("0.171", _as_texts, frozenset({"system", "text"})),
)
"""Oldest first."""


def rule_of(version: str) -> Rule | None:
    """The rule by which a version counts: 0.98's up to it, 0.171's from there; which of them between is not known."""
    if not is_newer(version, ("0.98.99",)):
        return RULES[0]
    return None if is_newer("0.171.0", (version,)) else RULES[1]
