"""A point of an answer that is logged: what its lines tell is read from them, and would else stand in the index twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ctxscope.agents.claude_code import stored
from ctxscope.agents.claude_code.tree import MAIN, Group, Node
from ctxscope.model import Block, Entry, Point

_KEPT = 512


class Notes(Mapping[str, Any]):
    """What this package notes of an answered call, read from its lines when asked for."""

    __slots__ = ("asked", "group", "line")

    def __init__(self, asked: Node | None, group: Group) -> None:
        self.asked = asked
        """The line the request ended with."""
        self.group = group
        self.line = next((n for n in group.nodes if n.head.model not in ("", "<synthetic>")), group.nodes[0])
        """The first that names a model."""

    def __getitem__(self, name: str) -> Any:
        return _READ[name](self)

    def get(self, name: str, default: Any = None) -> Any:
        """As of any mapping."""
        read = _READ.get(name)
        return default if read is None else read(self)

    def __iter__(self) -> Iterator[str]:
        return iter(_READ)

    def __len__(self) -> int:
        return len(_READ)


def _model(notes: Notes) -> str:
    model = notes.line.head.model
    return model if model != "<synthetic>" else ""


_READ: Mapping[str, Callable[[Notes], Any]] = {
    "model": _model,
    "node": lambda notes: notes.asked,
    "group": lambda notes: notes.group,
    "ref": lambda notes: notes.line.head.ref,
    "version": lambda notes: notes.line.head.version,
    "agent": lambda notes: notes.line.thread,
}


class AnsweredPoint(Point):
    """A point whose context, ids and answer are those of its lines."""

    __slots__ = ()
    data: Notes

    def __init__(
        self, notes: Notes, *, turn: int, order: tuple[float, int], lineage: str, branched_from: str | None
    ) -> None:
        group, first = notes.group, notes.group.nodes[0]
        values = {
            "key": first.entry.key,
            "place": first.entry.place,
            "answer": first.entry,
            "turn": turn,
            "order": order,
            "time": first.entry.time,
            "kind": "main" if group.thread == MAIN else "subagent",
            "lineage": lineage,
            "branched_from": branched_from,
            "stop": stored.stop(group),
            "api": "anthropic-messages",
            "messages": None,
            "what": stored.what(group),
            "data": notes,
            "stored_usage": stored.usage(group),
            "provider_says": next((n.head.cached for n in group.nodes if n.head.cached), None),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def context(self) -> Sequence[Entry]:
        """The entries the request was made of."""
        asked = self.data.asked
        return asked.trail.context(asked.length) if asked is not None else ()

    @property
    def ids(self) -> frozenset[str]:
        """Of the message, its tool calls and the requests its lines name."""
        group = self.data.group
        return frozenset({group.name, *group.uses, *(n.head.request for n in group.nodes)} - {""})

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The answer as stored."""
        group = self.data.group
        return _blocks(group, tuple(group.lines))


@lru_cache(_KEPT)
def _blocks(group: Group, nodes: tuple[Node, ...]) -> tuple[Block, ...]:  # noqa: ARG001 - nodes: more lines, another answer
    return stored.blocks(group)
