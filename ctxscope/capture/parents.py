"""Which earlier body a new one is stored as a change of."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ctxscope.capture.delta import Piece, copied, pieces_of
from ctxscope.wire.overlap import common_suffix, lcp

REMEMBERED = 8
"""Bodies on one path; side calls and subagents come between those of a conversation."""
MOST_BYTES, MOST_BODIES = 64 * 1024 * 1024, 256
"""Remembered in all."""
KEYFRAME = 1_000
"""Bodies in a row that build on one another before one is stored whole again: so much damage can take along."""
_NEAR_BYTES, _NEAR_SHARE = 1024, 512
"""New bytes, or their part of the body, at which no better parent is looked for."""
_GOOD_SHARE, _FURTHER = 16, 2
"""Part of the body that makes a parent good, though another may be better: so many more are tried."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a body is stored."""

    parent: int | None
    """Number of the one it copies from; ``None``: it stands whole."""
    pieces: list[Piece]
    depth: int = 0
    """How many bodies it builds on."""


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    n: int
    path: str
    body: bytes
    depth: int


@dataclass(slots=True)
class Parents:
    """The last bodies of each path, bounded in number and bytes."""

    _last: deque[_Kept] = field(default_factory=deque)
    """Oldest first."""
    _bytes: int = 0

    def choose(self, path: str, body: bytes) -> Choice:
        """The parent of which least has to be stored; none when that is more than half of the body."""
        whole = Choice(None, [len(body)] if body else [])
        best, least = whole, len(body) // 2
        further = REMEMBERED
        for kept in self._nearest(path, body) if body else ():
            if further < 0:
                break
            pieces = pieces_of(kept.body, body)
            new = len(body) - copied(pieces)
            if new <= least:
                best, least = Choice(kept.n, pieces, kept.depth + 1), new - 1
            if new <= _near(body):
                break
            further = min(further, _FURTHER if new <= len(body) // _GOOD_SHARE else REMEMBERED) - 1
        return best if best.depth < KEYFRAME else whole

    def keep(self, path: str, n: int, body: bytes, depth: int) -> None:
        """Remember a body that was stored."""
        alike = [kept for kept in self._last if kept.path == path]
        if len(alike) >= REMEMBERED:
            self._forget(alike[0])
        self._last.append(_Kept(n, path, body, depth))
        self._bytes += len(body)
        while len(self._last) > 1 and (self._bytes > MOST_BYTES or len(self._last) > MOST_BODIES):
            self._forget(self._last[0])

    def _forget(self, kept: _Kept) -> None:
        self._last.remove(kept)
        self._bytes -= len(kept.body)

    def _nearest(self, path: str, body: bytes) -> list[_Kept]:
        """Candidates, those first that share most at both ends; of those that differ by little in that, the latest.

        One alone that shares nearly all.
        """
        found: list[tuple[int, _Kept]] = []
        near = _near(body)
        for kept in reversed(self._last):
            if kept.path != path:
                continue
            front = lcp(kept.body, body)
            back = common_suffix(kept.body, body, min(len(kept.body), len(body)) - front)
            found.append((front + back, kept))
            if len(body) - front - back <= near:
                return [kept]
        most = max((shared for shared, _ in found), default=0)
        # a digit more of a clock or a length says nothing: the latest has more of the conversation
        return [kept for _, kept in sorted(found, key=lambda one: max(0, most - near - one[0]))]


def _near(body: bytes) -> int:
    return max(_NEAR_BYTES, len(body) // _NEAR_SHARE)
