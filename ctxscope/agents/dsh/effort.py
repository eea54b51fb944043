"""How much a request asks the model to think: what the log says of it, and what a served body shows.

A conversation is asked with the effort of its header. A title is asked without thinking, whatever the header says, and a
compaction with the effort the adapter has by default, which only a header that took it over tells (read in
dsh-compaction-basic and dsh-llm-deepseek 0.1.0-rc.8, and recorded).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ctxscope.agents.dsh.ask import Request
from ctxscope.agents.dsh.points import config_of, route
from ctxscope.agents.dsh.story import Story
from ctxscope.agents.dsh.texts import mapped, string
from ctxscope.model import Body, Entry, Place
from ctxscope.wire.blocks import param

OFF, USUAL = "off", "high"
"""No thinking; what the adapter asks for where a deployment sets nothing."""
THINKING = "/thinking"
IN_CHAT, IN_MESSAGES = "/reasoning_effort", "/output_config/effort"


@dataclass(frozen=True, slots=True)
class Effort:
    """An effort and the record that says so."""

    word: str | None
    """``None``: nothing is asked for."""
    place: Place | None = None
    """``None``: no record says so, it is a rule."""
    told: bool = True
    """Whether the log, or a rule without exception, tells it."""


def of(told: Story, request: Request, through: int | None = None) -> Effort:
    """The effort a request is made with."""
    if request.kind == "side":
        data = mapped(request.begun.data.get("data"))
        return Effort(data["reasoningEffort"], request.begun.place) if _said(data) else Effort(OFF)
    head = told.head_of(request, through)
    if head is None:
        return Effort(None)
    return _default(told, request, head) if request.kind == "compaction" else _own(head)


def of_conversation(told: Story, request: Request) -> Effort:
    """The effort of the header that holds, whatever the request is for."""
    head = told.head_of(request)
    return _own(head) if head is not None else Effort(None)


def _own(head: Entry) -> Effort:
    config = config_of(head)
    return Effort(config["reasoningEffort"] if _said(config) else None, head.place)


def _said(config: Any) -> bool:
    return isinstance(config.get("reasoningEffort"), str)


def _default(told: Story, request: Request, head: Entry) -> Effort:
    """What the adapter asks for by itself: of headers that took it over the newest, those of the same model first."""
    if not _said(config_of(head)):
        return Effort(None, head.place)
    model = route(told, request)[1]
    taken = [entry for _, entry in told.heads[: request.stage.heads] if _taken_over(entry)]
    same = [entry for entry in taken if config_of(entry).get("model") == model]
    found = next(reversed(same or taken), None)
    return _own(found) if found is not None else Effort(USUAL, told=False)


def _taken_over(head: Entry) -> bool:
    defaults = mapped(mapped(mapped(head.data.get("data")).get("header")).get("adapterDefaults"))
    return defaults.get("reasoningEffort") is True


def shown(body: Body) -> str | None:
    """The effort a served body asks for; ``None`` where it asks for nothing."""
    if string(mapped(param(body, "thinking")).get("type")) == "disabled":
        return OFF
    word = string(param(body, "reasoning_effort")) or string(mapped(param(body, "output_config")).get("effort"))
    return word or None
