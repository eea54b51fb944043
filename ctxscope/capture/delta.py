"""A body as a list of what it copies from an earlier one and what is new in it.

Shared beginning and end are found at the speed of memory. What lies between is looked through for runs that both hold: a
clock in a system prompt would else store all the messages behind it with each call (DESIGN §6). Only what the two
bodies do not share costs a Python step a byte, and that is capped: a hopeless pair is given up after some milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ctxscope.wire.overlap import common_suffix, lcp

Piece = tuple[int, int] | int
"""Offset in the parent and length of a copy, or the length of a literal; in order of the body."""
_SEARCHED = 512
"""A middle with fewer bytes is stored as it is."""
_APPENDED = 16_384
"""Likewise what follows the parent's last bytes: mostly it is new, seldom something moved there."""
_WINDOW = 32
"""Bytes that stand for a place; equal ones are where a run may lie."""
_LEAST_RUN = 64
"""A shorter copy is hardly shorter than its bytes."""
_STRIDE, _MOST_PLACES = 128, 16_384
"""Every so many bytes of the parent are a place; farther apart where there would be too many."""
_NUDGES = tuple(1 << n for n in range(11))
"""Bytes that may have changed in place: tried before anything else."""
_STEPS = ((16_384, 1), (32_768, 3), (65_536, 17))
"""Up to so many probes without a run, the step between them: odd, so that they meet the places sooner or later."""
_MOST_PIECES = 4_000
_MOST_LEFT = 65_536


@dataclass(slots=True)
class _List:
    """A copy list as it is made."""

    pieces: list[Piece] = field(default_factory=list)

    def copy(self, at: int, length: int) -> None:
        last = self.pieces[-1] if self.pieces else 0
        if isinstance(last, tuple) and last[0] + last[1] == at:
            self.pieces[-1] = (last[0], last[1] + length)
        elif length:
            self.pieces.append((at, length))

    def literal(self, length: int) -> None:
        if length:
            self.pieces.append(length)


@dataclass(slots=True)
class _Middle:
    """The parts of parent and body between what they share at both ends."""

    parent: bytes
    start: int
    stop: int
    body: bytes
    end: int
    """Of the body's part."""
    places: dict[bytes, int] | None = None
    probes: int = 0
    """That found nothing; what was copied makes up for them."""

    def run(self, at: int, done: int) -> tuple[int, int, int] | None:
        """The next run both hold: where in the parent, where in the body, how long.

        ``at``: where in the parent the one before ended; ``done``: bytes of the body that are accounted for.
        """
        for nudge in _NUDGES:
            window = self.body[done + nudge : done + nudge + _WINDOW]
            if len(window) == _WINDOW and self.parent[at + nudge : at + nudge + _WINDOW] == window:
                found = self._extended(at + nudge, done + nudge, done)
                if found is not None:
                    return found
        least = _SEARCHED if self.stop - at >= _SEARCHED else _APPENDED
        if self.stop - self.start < _SEARCHED or self.end - done < least:
            return None
        return self._searched(done)

    def _searched(self, done: int) -> tuple[int, int, int] | None:
        if self.places is None:
            self.places = self._all_places()
        places, body, last = self.places, self.body, self.end - _WINDOW
        at = done
        for most, step in _STEPS:
            while at <= last and self.probes < most:
                place = places.get(body[at : at + _WINDOW])
                if place is not None and (found := self._extended(place, at, done)) is not None:
                    return found
                self.probes += 1
                at += step
        return None

    def _all_places(self) -> dict[bytes, int]:
        stride = max(_STRIDE, (self.stop - self.start) // _MOST_PLACES)
        found: dict[bytes, int] = {}
        for at in range(self.start, self.stop - _WINDOW + 1, stride):
            found.setdefault(self.parent[at : at + _WINDOW], at)
        return found

    def _extended(self, at: int, place: int, done: int) -> tuple[int, int, int] | None:
        """The whole run around a place; ``None`` when it is too short to be worth a piece."""
        right = min(lcp(self.parent, self.body, at, place), self.stop - at, self.end - place)
        most = min(_MOST_LEFT, at - self.start, place - done)
        left = common_suffix(self.parent[at - most : at], self.body[place - most : place]) if most > 0 else 0
        return (at - left, place - left, left + right) if left + right >= _LEAST_RUN else None


def pieces_of(parent: bytes, body: bytes) -> list[Piece]:
    """How ``body`` is made of ``parent``; ``applied`` gives it back, whatever the two are."""
    before = lcp(parent, body)
    after = common_suffix(parent, body, min(len(parent), len(body)) - before)
    found = _List()
    found.copy(0, before)
    done, end = before, len(body) - after
    middle = _Middle(parent, before, len(parent) - after, body, end)
    at = before
    while done < end and len(found.pieces) < _MOST_PIECES:
        run = middle.run(at, done)
        if run is None:
            break
        found.literal(run[1] - done)
        found.copy(run[0], run[2])
        at, done = run[0] + run[2], run[1] + run[2]
        middle.probes = max(0, middle.probes - run[2])
    found.literal(end - done)
    found.copy(len(parent) - after, after)
    return found.pieces


def copied(pieces: Iterable[Piece]) -> int:
    """Bytes that are not new."""
    return sum(piece[1] for piece in pieces if isinstance(piece, tuple))


def literal_of(body: bytes, pieces: Sequence[Piece]) -> bytes:
    """What is new in a body, in order."""
    view, found, done = memoryview(body), [], 0
    for piece in pieces:
        length = piece[1] if isinstance(piece, tuple) else piece
        if not isinstance(piece, tuple):
            found.append(view[done : done + length])
        done += length
    return b"".join(found)


def applied(parent: bytes, pieces: Iterable[Piece], literal: bytes) -> bytes:
    """The body."""
    old, new, found, done = memoryview(parent), memoryview(literal), [], 0
    for piece in pieces:
        if isinstance(piece, tuple):
            found.append(old[piece[0] : piece[0] + piece[1]])
        else:
            found.append(new[done : done + piece])
            done += piece
    return b"".join(found)
