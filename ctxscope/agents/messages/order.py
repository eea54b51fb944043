"""Whether a log tells the order in which its client writes keys, or has them sorted by its store.

PostgreSQL's jsonb and MySQL's JSON keep the keys of an object by length, then by bytes; ``json.dumps(sort_keys=True)``
by alphabet. Where every object of a log stands in one such order, the log cannot tell.
"""

from __future__ import annotations

from functools import lru_cache

from ctxscope.agents.messages.trail import Trail
from ctxscope.agents.messages.tree import Node, parse

NEVER = (1 << 60, 1 << 60)


@lru_cache(maxsize=1 << 14)
def sorted_as(text: bytes) -> tuple[bool, bool]:
    """Whether all keys of a message stand by length and bytes, and whether by alphabet."""
    node = parse(text)
    return (False, False) if node is None else (_all(node, by_length=True), _all(node, by_length=False))


def may_be_sorted(trail: Trail, length: int) -> bool:
    """Whether the first messages of a trail leave open in which order their client writes keys."""
    seen: list[int] = trail.rendered.setdefault("sorted", [0, *NEVER])
    """Messages looked at, and the first that stands in neither order."""
    for at in range(seen[0], length):
        for order, fits in enumerate(sorted_as(trail.messages[at].text), 1):
            if not fits:
                seen[order] = min(seen[order], at)
        seen[0] = at + 1
    return any(first >= length for first in seen[1:])


def reordered(logged: bytes, served: bytes) -> bool:
    """Whether an object of a logged value has the same keys in the served one, in another order."""
    one, two = parse(logged), parse(served)
    return one is not None and two is not None and _reordered(one, two)


def _reordered(one: Node, two: Node) -> bool:
    if one.kind != two.kind:
        return False
    mine, theirs = [k for k, _ in one.members], [k for k, _ in two.members]
    if mine != theirs and sorted(mine) == sorted(theirs):
        return True
    shared = two.fields
    pairs = [(n, shared[k]) for k, n in one.members if k in shared] + list(zip(one.items, two.items, strict=False))
    return any(_reordered(a, b) for a, b in pairs)


def _all(node: Node, *, by_length: bool) -> bool:
    keys = [k for k, _ in node.members]
    wanted = sorted(keys, key=lambda k: (len(k.encode("utf-8", "surrogatepass")), k)) if by_length else sorted(keys)
    return keys == wanted and all(_all(n, by_length=by_length) for n in (*(n for _, n in node.members), *node.items))
