"""Codex's own token estimate, from which it counts anew after a compaction (codex.md §6).

Bytes over four, rounded up, item by item, and the base instructions. Checked with 0.98 against the totals it logged
after compactions; what 0.171 logs there follows another rule, which is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents.codex.items import spelled
from ctxscope.wire.blocks import string

BYTES_A_TOKEN = 4
REASONING_OVERHEAD = 650
"""Bytes of a decoded envelope that are no reasoning."""


def tokens(count: int) -> int:
    """Bytes as tokens."""
    return -(-count // BYTES_A_TOKEN)


def item_tokens(item: Mapping[str, Any]) -> int:
    """One item: of an envelope what it may hold decoded, else the item as it is sent."""
    envelope = string(item.get("encrypted_content"))
    if envelope and item.get("type") in ("reasoning", "compaction", "context_compaction"):
        return tokens(max(0, len(envelope) * 3 // 4 - REASONING_OVERHEAD))
    return tokens(len(spelled(item)))


def text_tokens(text: str) -> int:
    """A text."""
    return tokens(len(text.encode("utf-8", "surrogatepass")))
