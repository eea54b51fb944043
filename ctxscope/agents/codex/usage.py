"""Tokens of each call out of counters that repeat, restart, and go on in a fork (codex.md §6, §9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxscope.model import Usage
from ctxscope.wire.blocks import mapped, number, prompt_parts

_NAMES = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens", "reasoning_output_tokens")


def usage_of(stored: Any) -> Usage | None:
    """Usage as a record stores it; cached and written tokens are part of its input. ``None`` where nothing is stored."""
    values = mapped(stored)
    rest, read, written, _ = prompt_parts(
        number(values, "input_tokens"),
        number(values, "cached_input_tokens"),
        number(values, "cache_write_input_tokens"),
    )
    found = Usage(rest, read, written, number(values, "output_tokens"), number(values, "reasoning_output_tokens"))
    return None if found == Usage() else found


def total_of(stored: Any) -> int | None:
    """All tokens of a record."""
    return number(mapped(stored), "total_tokens")


@dataclass(slots=True)
class Counter:
    """The running total of a session, as its token counts say it."""

    total: Mapping[str, int] = field(default_factory=dict)
    window: int | None = None
    last: int | None = None
    """Tokens of the last call, or Codex's own estimate after a compaction."""
    estimate: int | None = None
    """Codex's own estimate, where the newest count is one: no call of the model."""

    def take(self, info: Any) -> Mapping[str, int] | None:
        """What one more call cost, in the record's own names; ``None`` for a count that tells of no call.

        A count repeats at the start of a turn and when rate limits are asked for: only a total that changed tells of a
        call. The call's own numbers are taken where they can be (no more than the total grew by); a total that is less
        than before began anew.
        """
        said = mapped(info)
        total, last = _numbers(said.get("total_token_usage")), _numbers(said.get("last_token_usage"))
        self.window = number(said, "model_context_window") or self.window
        self.last = last.get("total_tokens", self.last)
        own = any(last.get(name) for name in _NAMES)
        self.estimate = last.get("total_tokens") or None if not own else None
        if not total or total == self.total:
            return None
        before, self.total = self.total, total
        restarted = any(total.get(name, 0) < value for name, value in before.items())
        grown = total if restarted else {name: value - before.get(name, 0) for name, value in total.items()}
        fits = own and all(last.get(name, 0) <= grown.get(name, 0) for name in _NAMES)
        return last if fits else grown


def _numbers(stored: Any) -> dict[str, int]:
    values = mapped(stored)
    return {name: found for name in (*_NAMES, "total_tokens") if (found := number(values, name)) is not None}
