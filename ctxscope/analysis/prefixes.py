"""How far two byte strings agree, from the front and from the back, at the speed of memcmp."""

from __future__ import annotations

_BLOCK = 128 * 1024
"""Measured optimum for 5 MB bodies (engineering §5); always ``bytes``, a ``memoryview`` compares item by item."""


def common_prefix(a: bytes, b: bytes, a_from: int = 0, b_from: int = 0, limit: int | None = None) -> int:
    """Number of equal bytes from ``a[a_from:]`` and ``b[b_from:]`` on, at most ``limit``."""
    top = min(len(a) - a_from, len(b) - b_from)
    if limit is not None:
        top = min(top, limit)
    done = 0
    while done < top:
        size = min(_BLOCK, top - done)
        i, j = a_from + done, b_from + done
        if a[i : i + size] == b[j : j + size]:
            done += size
            continue
        while size > 1:
            half = size // 2
            if a[i : i + half] == b[j : j + half]:
                i, j, done, size = i + half, j + half, done + half, size - half
            else:
                size = half
        return done
    return max(done, 0)


def common_suffix(a: bytes, b: bytes, a_end: int, b_end: int, limit: int) -> int:
    """Number of equal bytes that end at ``a_end`` and ``b_end``, at most ``limit``."""
    done = 0
    while done < limit:
        size = min(_BLOCK, limit - done)
        i, j = a_end - done, b_end - done
        if a[i - size : i] == b[j - size : j]:
            done += size
            continue
        while size > 1:
            half = size // 2
            if a[i - half : i] == b[j - half : j]:
                i, j, done, size = i - half, j - half, done + half, size - half
            else:
                size = half
        return done
    return done
