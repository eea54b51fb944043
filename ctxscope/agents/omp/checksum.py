"""The checksum omp puts into the billing text of requests that pass as Claude Code's (``cch=``; omp.md §4.5).

Measured in 18.2.3 over every recorded request: the low 20 bits of the XXH64 of the whole body, its own five digits being
zeros, with a seed of Claude Code's. What many requests begin with is hashed once.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ctxscope.model import Piece

SEED = 0x4D659218E32A3268
PLACEHOLDER = b"00000"
MARK = re.compile(rb'"text":"x-anthropic-billing-header: [^"]*\bcch=([0-9a-f]{5});')
_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_STRIPE = 32
_START = ((SEED + _P1 + _P2) & _MASK, (SEED + _P2) & _MASK, SEED, (SEED - _P1) & _MASK)

Lanes = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class State:
    """A hash on its way: four lanes, bytes not yet in them, and how many bytes there were."""

    lanes: Lanes = _START
    rest: bytes = b""
    length: int = 0

    def after(self, data: bytes) -> State:
        """The state once ``data`` has been taken in."""
        whole = self.rest + data
        stripes = len(whole) // _STRIPE
        end = stripes * _STRIPE
        lanes = _fed(self.lanes, whole[:end], stripes) if stripes else self.lanes
        return State(lanes, whole[end:], self.length + len(data))

    def digest(self) -> int:
        """The 64-bit hash."""
        if self.length < _STRIPE:
            found = (SEED + _P5) & _MASK
        else:
            found = sum(_left(lane, by) for lane, by in zip(self.lanes, (1, 7, 12, 18), strict=True)) & _MASK
            for lane in self.lanes:
                found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
        return _finished((found + self.length) & _MASK, self.rest)


@dataclass(eq=False, slots=True)
class Prefixes:
    """States behind the pieces of a row that only grows, each piece hashed once."""

    _states: list[tuple[int, State]] = field(default_factory=list)
    """Number of pieces taken in, rising, and the state behind them."""

    def after(self, opening: bytes, pieces: Sequence[Piece], count: int) -> State:
        """The state behind the first ``count`` pieces (1 or more).

        ``opening`` is what begins the body, the first piece included, and the same at every call.
        """
        states = self._states
        if not states:
            states.append((1, State().after(opening)))
        at = len(states) - 1
        while states[at][0] > count:
            at -= 1
        done, state = states[at]
        if done < count:
            state = state.after(b"".join(p.data for p in pieces[done:count]))
            if at == len(states) - 1:
                states.append((count, state))
        return state


def checksum(state: State) -> bytes:
    """The five digits that stand for a hash."""
    return b"%05x" % (state.digest() & 0xFFFFF)


def verifies(data: bytes) -> bool | None:
    """Whether a body's own digits are its checksum; ``None`` when it has none."""
    found = MARK.search(data)
    if found is None:
        return None
    blank = State().after(data[: found.start(1)] + PLACEHOLDER + data[found.end(1) :])
    return checksum(blank) == found[1]


def hashed(state: State, pieces: Iterable[Piece]) -> State:
    """The state behind some more pieces."""
    return state.after(b"".join(p.data for p in pieces))


def _fed(lanes: Lanes, data: bytes, stripes: int) -> Lanes:
    words = struct.unpack(f"<{4 * stripes}Q", data)
    return (
        _lane(lanes[0], words[0::4]),
        _lane(lanes[1], words[1::4]),
        _lane(lanes[2], words[2::4]),
        _lane(lanes[3], words[3::4]),
    )


def _lane(lane: int, words: Iterable[int]) -> int:
    for word in words:
        lane = (lane + word * _P2) & _MASK
        lane = ((lane << 31 | lane >> 33) & _MASK) * _P1 & _MASK
    return lane


def _round(lane: int, word: int) -> int:
    return _left((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _left(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _finished(found: int, rest: bytes) -> int:
    at = 0
    while at + 8 <= len(rest):
        found = _left(found ^ _round(0, int.from_bytes(rest[at : at + 8], "little")), 27) * _P1 + _P4 & _MASK
        at += 8
    if at + 4 <= len(rest):
        found = _left(found ^ int.from_bytes(rest[at : at + 4], "little") * _P1 & _MASK, 23) * _P2 + _P3 & _MASK
        at += 4
    for byte in rest[at:]:
        found = _left(found ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    found = (found ^ found >> 33) * _P2 & _MASK
    found = (found ^ found >> 29) * _P3 & _MASK
    return found ^ found >> 32
