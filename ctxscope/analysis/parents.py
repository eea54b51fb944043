"""The parent of a call: the earlier call that shares the longest prompt prefix in cache order, of equals the latest.

Chain hashes over segment digests, one dictionary from hash to call (DESIGN §4). Only segments that the last few calls
do not share are hashed.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence

from ctxscope.model import Body, Segment

_REMEMBERED = 8
"""Calls whose chain is kept to continue from: subagents and side calls interleave."""


def prompt(body: Body) -> tuple[Segment, ...]:
    """The segments a model is given, in cache order."""
    return tuple(sorted((s for s in body.segments if s.kind not in ("param", "opaque")), key=lambda s: s.order))


def shared(first: Sequence[bytes], second: Sequence[bytes]) -> int:
    """How many leading digests two prompts have in common; compares slices, not items one by one."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class ParentIndex:
    """Earlier calls by the prefixes of their prompts."""

    def __init__(self) -> None:
        self._latest: dict[bytes, int] = {}
        """Chain hash of a prefix -> the latest call that begins with it."""
        self._recent: deque[tuple[tuple[bytes, ...], tuple[bytes, ...]]] = deque(maxlen=_REMEMBERED)
        """``(digests, chain hashes)`` of the last few prompts."""

    def add(self, call: int, segments: Sequence[Segment]) -> None:
        """Take in a call's prompt, its segments in cache order (see ``prompt``)."""
        digests = tuple(s.digest for s in segments)
        chain = self._chain(digests)
        self._latest.update(dict.fromkeys(chain, call))
        self._recent.append((digests, chain))

    def find(self, segments: Sequence[Segment]) -> tuple[int | None, int]:
        """The parent's number and how many segments it shares; ``(None, 0)`` when no call shares the first segment.

        A call whose very first segment changed (a clock in a system prompt without tools) shares nothing: its parent
        is the call before it in its lineage, which only the caller knows.
        """
        chain = self._chain(tuple(s.digest for s in segments))
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high + 1) // 2
            if chain[middle - 1] in self._latest:
                low = middle
            else:
                high = middle - 1
        return (self._latest[chain[low - 1]], low) if low else (None, 0)

    def _chain(self, digests: tuple[bytes, ...]) -> tuple[bytes, ...]:
        kept = 0
        known: tuple[bytes, ...] = ()
        for other, chain in reversed(self._recent):
            if other == digests:
                return chain
            common = shared(digests, other)
            if common > kept:
                kept, known = common, chain[:common]
        hashes: list[bytes] = list(known)
        last = hashes[-1] if hashes else b""
        for digest in digests[kept:]:
            last = hashlib.blake2b(last + digest, digest_size=16).digest()
            hashes.append(last)
        return tuple(hashes)
