"""How many bytes two bodies share at their beginning and at their end."""

from __future__ import annotations

_BLOCK = 128 * 1024
"""Fastest of 4 KB to 1 MB (engineering §5)."""
_FIRST_BLOCK = 512
"""Small, for the many comparisons that end at once."""


def lcp(a: bytes, b: bytes, a_start: int = 0, b_start: int = 0) -> int:
    """Length of the longest common prefix of ``a`` from ``a_start`` and ``b`` from ``b_start``, in bytes."""
    shorter = min(len(a) - a_start, len(b) - b_start)
    done, size = 0, _FIRST_BLOCK
    while done < shorter:
        end = min(done + size, shorter)
        x, y = a[a_start + done : a_start + end], b[b_start + done : b_start + end]
        if x != y:
            return done + _narrow(x, y, 0, end - done)
        done, size = end, min(_BLOCK, size * 4)
    return max(0, shorter)


def common_suffix(a: bytes, b: bytes, limit: int | None = None) -> int:
    """Length of the longest common suffix in bytes, at most ``limit`` (so that it need not overlap a prefix)."""
    shorter = min(len(a), len(b))
    most = shorter if limit is None else max(0, min(limit, shorter))
    for done in range(0, most, _BLOCK):
        size = min(_BLOCK, most - done)
        x, y = a[len(a) - done - size : len(a) - done], b[len(b) - done - size : len(b) - done]
        if x != y:
            return done + _narrow(x[::-1], y[::-1], 0, size)
    return most


def _narrow(a: bytes, b: bytes, low: int, high: int) -> int:
    """First index in ``[low, high)`` where ``a`` and ``b`` differ; they do somewhere."""
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low
