"""A point whose stored answer is read from its lines when someone looks at it: in the index it would stand twice."""

from __future__ import annotations

from functools import lru_cache

from ctxscope.agents.claude_code import stored
from ctxscope.agents.claude_code.tree import Group, Node
from ctxscope.model import Block, Point

_KEPT = 512


class AnsweredPoint(Point):
    """A point whose ``blocks`` are not kept."""

    __slots__ = ()

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The answer as stored."""
        group = self.data["group"]
        return _blocks(group, tuple(group.lines))

    @blocks.setter
    def blocks(self, value: object) -> None:
        """What the constructor is given says nothing."""


@lru_cache(_KEPT)
def _blocks(group: Group, nodes: tuple[Node, ...]) -> tuple[Block, ...]:  # noqa: ARG001 - nodes: more lines, another answer
    return stored.blocks(group)
