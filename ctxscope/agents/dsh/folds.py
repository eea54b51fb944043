"""The rendered form of a surface, kept with its trail, so that each request costs what it adds."""

from __future__ import annotations

from ctxscope.agents.dsh import anthropic, chat
from ctxscope.agents.dsh.points import api_of
from ctxscope.agents.dsh.story import Story
from ctxscope.agents.dsh.surface import Surface
from ctxscope.model import Entry

Fold = anthropic.Fold | chat.Fold


def messages_of(surface: Surface, told: Story) -> Fold:
    """The surface's events in the form of the log's API, rendered at least as far as the surface goes."""
    api, trail = api_of(told), surface.trail
    fold: Fold | None = trail.folds.get(api)
    if fold is None:
        trail.folds[api] = fold = anthropic.Fold() if api == "anthropic-messages" else chat.Fold()
    for at in range(len(fold.marks) - 1, surface.length):
        entry = trail.nodes[at]
        if isinstance(fold, anthropic.Fold):
            fold.add(_node(told, entry, first=at == 0))
        else:
            fold.add(_messages(told, entry))
    return fold


def count_of(fold: Fold, length: int) -> int:
    """Blocks (Messages) or messages (Chat) of the first events, the prompt left out."""
    return fold.marks[length][-1]


def of_nodes(nodes: list[Entry], told: Story) -> Fold:
    """Some events in the form of the log's API that are not the beginning of a surface."""
    if api_of(told) == "anthropic-messages":
        fold = anthropic.Fold()
        for entry in nodes:
            fold.add(_node(told, entry, first=False))
        return fold
    plain = chat.Fold()
    for entry in nodes:
        plain.add(_messages(told, entry))
    return plain


def _node(told: Story, entry: Entry, *, first: bool) -> list[anthropic.Message]:
    """Rendered once for the session: a replacement leaves most events as they were."""
    key = entry, first
    found: list[anthropic.Message] | None = told.rendered.get(key)
    if found is None:
        told.rendered[key] = found = anthropic.node(entry, first=first)
    return found


def _messages(told: Story, entry: Entry) -> list[chat.Pieces]:
    found: list[chat.Pieces] | None = told.rendered.get(entry)
    if found is None:
        told.rendered[entry] = found = chat.node(entry)
    return found
