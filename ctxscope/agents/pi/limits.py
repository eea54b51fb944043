"""Output caps and thinking budgets: what pi sends, and what sent caps say of the model's limits (pi.md §4.5, §6)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

BUDGETS: Mapping[str, int] = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384}
OLD_CAP = 32000
"""Largest cap 0.73 asks for by itself."""
LEAST_BUDGET, KEPT_FOR_ANSWER = 1024, 1024
ROOM_FLOOR, ROOM_MARGIN, MARGIN_SHARE = 32768, 4096, 0.15
_ROUND = (1000, 1024)
"""Context windows are whole multiples of one of these; a window inferred that is not explains nothing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """A model's own limits, in tokens."""

    output: int
    window: int | None = None
    at_least: bool = False
    """``output`` is only a lower bound."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A cap seen in a request: the tokens pi estimated for it, and its thinking budget (0 when off)."""

    cap: int
    input: int
    budget: int


def budget_for(level: str, budgets: Mapping[str, int]) -> int:
    """Thinking tokens a level asks for; 0 when off."""
    return 0 if level == "off" else budgets.get(level, budgets["high"])


def clamp(output: int, window: int | None, estimate: int) -> int:
    """The cap 1.x asks for so that the answer fits the window."""
    if window is None:
        return output
    room = window - estimate - max(ROOM_MARGIN, math.ceil(MARGIN_SHARE * estimate))
    if room < ROOM_FLOOR:
        room = min(ROOM_FLOOR, window - estimate - ROOM_MARGIN)
    return min(output, max(1, room))


def cap(limits: Limits, estimate: int, budget: int, *, old: bool) -> int:
    """The cap of a request. ``budget`` is 0 where the API's cap leaves thinking out."""
    base = min(limits.output, OLD_CAP) if old else clamp(limits.output, limits.window, estimate)
    if not budget:
        return base
    both = min(base + budget, limits.output)
    return both if old else clamp(both, limits.window, estimate)


def budget_within(cap_tokens: int, budget: int, *, old: bool) -> int:
    """The thinking budget that goes with a cap; at least 1024 is sent."""
    if old and cap_tokens > budget:
        return budget
    return min(budget, max(0, cap_tokens - KEPT_FOR_ANSWER)) or LEAST_BUDGET


def inferred(sent: Sequence[Sent], *, old: bool) -> Limits | None:
    """The limits that give every cap in ``sent``; ``None`` when there are no such limits."""
    if not sent:
        return None
    found = _old(sent) if old else _new(sent)
    fits = found is not None and all(explains(found, s, old=old) for s in sent)
    return found if fits else None


def explains(limits: Limits, sent: Sent, *, old: bool) -> bool:
    """Whether the limits give this cap; a lower bound explains what any limit above it would."""
    if old and limits.at_least:
        return (
            sent.cap == min(limits.output, OLD_CAP + sent.budget) or limits.output <= sent.cap <= OLD_CAP + sent.budget
        )
    return cap(limits, sent.input, sent.budget, old=old) == sent.cap


def _old(sent: Sequence[Sent]) -> Limits:
    below = [s.cap for s in sent if s.cap != OLD_CAP + s.budget]
    return Limits(below[0]) if below else Limits(max(s.cap for s in sent), at_least=True)


def _new(sent: Sequence[Sent]) -> Limits | None:
    output = max(s.cap for s in sent)
    smaller = [s for s in sent if s.cap < output]
    if not smaller:
        return Limits(output)
    windows = (w for s in smaller for w in _windows(s))
    return next((Limits(output, w) for w in windows if any(w % r == 0 for r in _ROUND)), None)


def _windows(sent: Sent) -> Iterable[int]:
    """Windows that leave exactly the room this cap shows."""
    if sent.cap >= ROOM_FLOOR:
        yield sent.cap + sent.input + max(ROOM_MARGIN, math.ceil(MARGIN_SHARE * sent.input))
    if sent.cap <= ROOM_FLOOR:
        yield sent.cap + sent.input + ROOM_MARGIN
