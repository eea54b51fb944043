"""Where the prompts of two requests part, at a segment that their cache verdict names."""

from __future__ import annotations

from ctxscope.analysis.divergence import excerpt, prefix_offset
from ctxscope.analysis.likeness import classes, kinds_apart
from ctxscope.analysis.prefixes import common_prefix
from ctxscope.model import Body, Difference, Segment


def parting(earlier: Body, later: Body, path: str) -> Difference | None:
    """The first byte of a segment (or parameter) of ``earlier`` that ``later`` has otherwise, or not at all.

    ``served`` is the earlier request's side, ``rebuilt`` the later one's. ``None`` where the earlier one has no such
    segment, or both have the same there: what parts them then is no text of theirs.
    """
    was = next((s for s in earlier.segments if s.path == path), None)
    now = next((s for s in later.segments if s.path == path), None)
    if was is None:
        return None
    old = earlier.data[was.start : was.end]
    new = later.data[now.start : now.end] if now is not None else b""
    if old == new:
        return None
    same = common_prefix(old, new)
    raw, other = was.start + same, now.start + same if now is not None else len(later.data)
    return Difference(
        raw_offset=raw,
        other_offset=other,
        prefix_offset=prefix_offset(earlier, raw, path),
        path=path,
        cls="missing" if now is None else _class(old, new, was),
        cause="the next request has other bytes here" if now is not None else "the next request does not have it",
        served=excerpt(earlier.data, raw),
        rebuilt=excerpt(later.data, other) if now is not None else "",
    )


def _class(old: bytes, new: bytes, segment: Segment) -> str:
    kinds = kinds_apart(new, old, segment)
    return classes(sorted(kinds))[0] if kinds else "content"
