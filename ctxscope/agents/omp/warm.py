"""Whether Responses are sent the provider's own items or ones made anew (omp.md §4.7).

omp replays items as they came only once a call to their provider succeeded since it began to talk to it (read in 18.2.3,
measured): in a new process, after ``/clear`` and after a model switch from or to that provider the next request is made
of the messages alone, without reasoning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.omp import responses
from ctxscope.agents.omp.items import FAILED
from ctxscope.agents.omp.points import context_of, node_of
from ctxscope.agents.omp.tree import Node, Tree, tree
from ctxscope.agents.omp.turns import native_items
from ctxscope.agents.pi.texts import blocks
from ctxscope.agents.pi.transform import Target
from ctxscope.model import Body, Point

RESPONSES = "openai-responses"
_SUMMARIES = ("soft", "handoff")


@dataclass(eq=False, slots=True)
class _Talk:
    """Providers that answered, as far as the log was followed."""

    warm: set[str] = field(default_factory=set)
    by_node: list[frozenset[str]] = field(default_factory=list)
    """Of each node in the order observed: the providers that had answered before it."""
    run: int = 0
    model: tuple[str, str] | None = None

    def follow(self, node: Node) -> None:
        if node.run > self.run:
            self.run = node.run
            self.warm.clear()
        self.by_node.append(frozenset(self.warm))
        kind, data = node.entry.kind, node.entry.data
        if kind == "reset_boundary":
            self.warm.clear()
        elif kind == "model_change" and node.model is not None and node.model != self.model:
            self.warm -= {node.model[0], *((self.model[0],) if self.model else ())}
            self.model = node.model
        elif kind == "compaction" and data.get("method") in _SUMMARIES and self.model and not data.get("fromExtension"):
            self.warm.add(self.model[0])
        elif kind == "assistant":
            self._answered(data.get("message"))

    def _answered(self, message: Any) -> None:
        if not isinstance(message, Mapping) or message.get("stopReason") in FAILED:
            return
        provider = message.get("provider")
        if message.get("api") == RESPONSES and isinstance(provider, str) and message.get("content"):
            self.warm.add(provider)


def native(log: Log, point: Point) -> bool:
    """Whether a request of Responses replays the provider's items as they came, as far as the log tells."""
    grown, node = tree(log), node_of(log, point)
    if node is None:
        return True
    talk = _talk(grown)
    before = talk.by_node[node.number] if point.answer is not None else talk.warm
    return str(point.data.get("provider")) in before


def served_native(log: Log, point: Point, body: Body) -> bool | None:
    """The same as a served body shows it, by the first answer that both ways are told apart at; ``None``: at none."""
    memo, context = shared_memo(log, "omp.replayed"), context_of(log, point)
    key = (point.key, body.sha256)
    if context is None or key in memo:
        return memo.get(key)
    trail, length = context
    target = Target(RESPONSES, str(point.data.get("provider")), str(point.data.get("model")))
    shown = None
    for item in trail.items[:length]:
        items = native_items(item.message, target) if item.role == "assistant" and not item.absent else None
        came, made = responses.forms(items, list(blocks(item.message.get("content")))) if items else (b"", b"")
        if came and made and came != made:
            shown = True if came in body.data else False if made in body.data else None
            break
    memo[key] = shown
    return shown


def _talk(grown: Tree) -> _Talk:
    talk: _Talk = grown.memo.setdefault("talk", _Talk())
    for node in grown.order[len(talk.by_node) :]:
        talk.follow(node)
    return talk
