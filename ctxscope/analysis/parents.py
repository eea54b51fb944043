"""The parent of a call: the earlier call that shares the longest prompt prefix in cache order, of equals the latest.

First whole segments, then bytes inside the next one (DESIGN §4), where less than a timestamp makes no difference. Prompts lie in a tree whose branches are the places
where calls part, so that a call which goes on where the last one ended costs only what is new in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from ctxscope.analysis.prefixes import common_prefix
from ctxscope.analysis.prompts import Prompt, prompt, shared

__all__ = ["Found", "ParentIndex", "prompt", "shared"]

TELLING = 200
"""Prompt bytes from which a shared text proves that two calls have to do with each other; less repeats by chance."""
TICK = 24
"""Bytes of a text that are no longer prefix worth the name: as many as a timestamp has, whose digits agree by chance."""
_COMPARED = 32
"""Branches at one place whose bytes are compared, the latest: a clock in a prompt starts a new one with each call."""
_TEXT = 64 * 1024
"""Bytes of a segment that are compared; what agrees so far counts as equal."""


@dataclass(frozen=True, slots=True)
class Found:
    """The parent of a call."""

    call: int | None
    """``None``: no earlier call shares a segment, or enough of the first one to be no accident."""
    depth: int
    """Segments shared."""
    ended: int | None = field(default=None, compare=False)
    """The latest call whose whole prompt they are, where that is another one."""


class _Edge:
    """A stretch of segments between two places where prompts part or end."""

    __slots__ = ("children", "digests", "ends", "latest", "parent", "start", "text")

    def __init__(self, start: int, digests: tuple[bytes, ...], parent: _Edge | None) -> None:
        self.start = start
        self.digests = digests
        self.parent = parent
        self.children: dict[bytes, _Edge] = {}
        """By first digest, the one with the latest call last."""
        self.ends: list[tuple[int, int]] = []
        """Calls whose prompt ends on this edge, and where, in order of arrival."""
        self.latest = 0
        """The latest call whose prompt ends here or behind."""
        self.text: bytes | None = None
        """The first segment as sent, once it was compared."""

    @property
    def end(self) -> int:
        return self.start + len(self.digests)


class ParentIndex:
    """Earlier calls by their prompts. Calls are numbered upwards from 1; the last ones can be taken out again."""

    def __init__(self, prompt_at: Callable[[int], Prompt]) -> None:
        """``prompt_at`` gives the prompt of a call taken before; asked only where bytes must decide."""
        self._prompt_at = prompt_at
        self._root = _Edge(0, (), None)
        self._where: dict[int, _Edge] = {}
        """By call, the edge its prompt ends on."""

    def take(self, call: int, mine: Prompt, near: tuple[int, int] | None = None) -> Found:
        """The parent of a call, which is then known itself.

        ``near``: a call taken before and a number of leading segments both are known to share.
        """
        edge, depth = self._place(mine.digests, near)
        found = self._parent(edge, depth, mine)
        self._add(call, mine.digests, edge, depth)
        return found

    def drop(self, call: int) -> None:
        """Forget the latest call."""
        edge = self._where.pop(call)
        edge.ends = [end for end in edge.ends if end[0] != call]
        while edge.parent is not None and not edge.ends and not edge.children:
            del edge.parent.children[edge.digests[0]]
            edge = edge.parent
        if edge.parent is not None and not edge.children:
            edge.digests = edge.digests[: max(at for _, at in edge.ends) - edge.start]
        above: _Edge | None = edge
        while above is not None:
            latest = [n for n, _ in above.ends] + [c.latest for c in above.children.values()]
            above.latest = max(latest, default=0)
            above.children = dict(sorted(above.children.items(), key=lambda item: item[1].latest))
            above = above.parent

    # --- where a prompt leaves what is known -------------------------------------------------------------------------

    def _place(self, digests: tuple[bytes, ...], near: tuple[int, int] | None) -> tuple[_Edge, int]:
        """The edge on which a prompt leaves the tree, and how many segments it shares until there."""
        edge, depth = (self._where[near[0]], near[1]) if near else (self._root, 0)
        while edge.parent is not None and edge.start >= depth:
            edge = edge.parent
        while True:
            rest = edge.digests[depth - edge.start :]
            mine = digests[depth : depth + len(rest)]
            depth += len(rest) if rest == mine else shared(rest, mine)
            if depth < edge.end or depth == len(digests):
                return edge, depth
            child = edge.children.get(digests[depth])
            if child is None:
                return edge, depth
            edge = child

    def _add(self, call: int, digests: tuple[bytes, ...], edge: _Edge, depth: int) -> None:
        if depth < len(digests):
            if depth < edge.end:
                self._split(edge, depth)
            if edge.children or edge.parent is None:
                child = _Edge(depth, digests[depth:], edge)
                edge.children[digests[depth]] = child
                edge = child
            else:
                edge.digests += digests[depth:]
        edge.ends.append((call, len(digests)))
        self._where[call] = edge
        below, above = edge, edge.parent
        edge.latest = call
        while above is not None:
            above.latest = call
            if len(above.children) > 1 and next(reversed(above.children.values())) is not below:
                above.children[below.digests[0]] = above.children.pop(below.digests[0])
            below, above = above, above.parent

    def _split(self, edge: _Edge, depth: int) -> None:
        """Part an edge in two at a depth inside it."""
        lower = _Edge(depth, edge.digests[depth - edge.start :], edge)
        lower.children = edge.children
        for child in lower.children.values():
            child.parent = lower
        lower.ends = [end for end in edge.ends if end[1] > depth]
        for call, _ in lower.ends:
            self._where[call] = lower
        lower.latest = _latest_behind(edge, depth)
        edge.ends = [end for end in edge.ends if end[1] <= depth]
        edge.digests = edge.digests[: depth - edge.start]
        edge.children = {lower.digests[0]: lower}

    # --- which of the calls that share as many segments --------------------------------------------------------------

    def _parent(self, edge: _Edge, depth: int, mine: Prompt) -> Found:
        """Of the calls that share ``depth`` segments the one that shares most bytes of the next, of equals the latest."""
        ended = next((n for n, at in reversed(edge.ends) if at == depth), 0)
        if depth < edge.end:
            branches: list[tuple[int, _Edge | None]] = [(_latest_behind(edge, depth), None)]
        else:
            branches = [(c.latest, c) for c in islice(reversed(edge.children.values()), _COMPARED)]
            for outside in islice(reversed(edge.children.values()), _COMPARED, _COMPARED + 1):
                outside.text = None
        latest = max((n for n, _ in branches), default=0)
        if depth == len(mine.segments) or (depth and (not branches or (len(branches) == 1 and latest > ended))):
            return _found(max(ended, latest) if depth else 0, depth, ended)
        common, call = self._longest(branches, depth, mine)
        # a prompt that ends here is shared whole: only a text that is no accident speaks for one that goes on
        if ended > call and common < TELLING:
            call = ended
        return _found(call if depth or common >= TELLING else 0, depth, ended)

    def _longest(self, branches: Iterable[tuple[int, _Edge | None]], depth: int, mine: Prompt) -> tuple[int, int]:
        """Bytes of the next segment that a branch shares, and its latest call: the longest, of equals the latest."""
        own = mine.sent(depth)[:_TEXT]
        found: list[tuple[int, int]] = []
        for call, edge in branches:
            text = edge.text if edge is not None else None
            if text is None:
                text = self._prompt_at(call).sent(depth)[:_TEXT]
                if edge is not None:
                    edge.text = text
            found.append((call, common_prefix(own, text)))
        longest = max((common for _, common in found), default=0)
        call, common = max((item for item in found if item[1] > longest - TICK), default=(0, 0))
        return common, call


def _found(call: int, depth: int, ended: int) -> Found:
    return Found(call or None, depth, ended if ended and ended != call else None)


def _latest_behind(edge: _Edge, depth: int) -> int:
    """The latest call that goes on behind a depth inside an edge."""
    ended = next((n for n, at in reversed(edge.ends) if at > depth), 0)
    return max(ended, max((c.latest for c in edge.children.values()), default=0))
