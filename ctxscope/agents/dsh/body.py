"""A whole request body out of a point of the log, key by key in the harness's order (dsh.md §4.2-§4.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.dsh import anthropic, chat, delivery
from ctxscope.agents.dsh import effort as efforts
from ctxscope.agents.dsh.answers import message_of
from ctxscope.agents.dsh.ask import Request
from ctxscope.agents.dsh.folds import messages_of, of_nodes
from ctxscope.agents.dsh.learning import CAP, INSTRUCTION, INSTRUCTION_IN_CHAT, PACKAGES
from ctxscope.agents.dsh.points import OFFICIAL, api_of, config_of, header_of, request_of, route
from ctxscope.agents.dsh.story import Story, story
from ctxscope.agents.dsh.surface import Surface
from ctxscope.agents.dsh.texts import blocks, derived, listed, logged, mapped, members, spelled, string, text_of, whole
from ctxscope.model import Config, Entry, Learned, Piece, Place, Point, Rebuilt

NO_PACKAGES = "the packages the process loaded are not known without a recording"
NO_INSTRUCTION = "the instruction that closes a compaction's request is not known without a recording of one"
ODD = "a block of a kind that is not known (an image?) is left out"
COMPACTION_TOKENS = 2000
"""Output cap of compactions as observed; holds where neither a summary nor a recording tells it."""
_PLAIN = frozenset({"text", "reasoning", "tool-call", "tool-result"})
"""Blocks that are known how to send."""

Pieces = tuple[Piece, ...]
Fields = list[tuple[str, bytes | Piece | Sequence[Piece]]]


@dataclass(eq=False, slots=True)
class Draft:
    """A body being put together."""

    told: Story
    request: Request
    learned: Learned
    through: int
    """Where the log stood."""
    config: Mapping[str, Any]
    """Model, output cap, effort."""
    place: Place | None
    """Where these stand."""
    fields: Fields = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def surface(self) -> Surface:
        """What the model saw then."""
        return self.told.surface_of(self.request, self.through)

    @property
    def head(self) -> Entry | None:
        """The request header that held then."""
        return self.told.head_of(self.request, self.through)

    @property
    def own_summary(self) -> Entry | None:
        """What came of a compaction, where it names a model."""
        found = self.told.summaries.get(self.request.begun.key)
        return found if found is not None and string(mapped(found.data.get("data")).get("model")) else None

    def put(self, key: str, value: bytes | Piece | Sequence[Piece]) -> None:
        """The next member."""
        self.fields.append((key, value))

    def cap(self) -> None:
        """The output cap: the config's own, of a compaction that of its summary."""
        if self.request.kind == "compaction":
            said, value = self.told.summary_of(self.request), self.learned.values.get(CAP)
            if said is not None:
                self.put(CAP[1:], logged(mapped(said.data.get("data")).get("maxTokens"), said.place))
            elif value is not None and value.data is not None:
                self.put(CAP[1:], Piece(value.data, value.provenance, path=CAP))
            else:
                self.put(CAP[1:], spelled(COMPACTION_TOKENS))
        elif "maxTokens" in self.config:
            self.put(CAP[1:], logged(self.config["maxTokens"], self.place))


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:
    """The request the log implies; ``None`` where a record that is not known voids what it says, or for another API.

    Without a config nothing is claimed of a request, it is only looked for among what was served: a voided log is still
    good enough for that.
    """
    told, request = story(log), request_of(point)
    provider, model = route(told, request)
    api = api_of(told)
    if model is None or provider not in (None, OFFICIAL) or (request.void is not None and config != Config()):
        return None
    if learned.choice.get("api", api) != api:
        return None
    through = learned.choice.get("through", request.through)
    draft = Draft(told, request, learned, through, *_config(told, request, through))
    summary = draft.own_summary
    draft.put("model", logged(model, draft.place if summary is None else summary.place))
    (_anthropic if api == "anthropic-messages" else _chat)(draft)
    packages = learned.values.get(PACKAGES)
    if packages is not None and packages.data is not None:
        draft.put(PACKAGES[1:], Piece(packages.data, packages.provenance, path=PACKAGES))
    elif "api" not in learned.choice and told.format:
        draft.notices.append(NO_PACKAGES)
    surface = draft.surface
    if surface.trail.total("odd", _odd, surface.length):
        draft.notices.append(ODD)
    return Rebuilt(members(draft.fields), "body", tuple(draft.notices))


def _odd(entry: Entry) -> int:
    return sum(string(b.get("type")) not in _PLAIN for b in blocks(message_of(entry).get("content")))


def _config(told: Story, request: Request, through: int) -> tuple[Mapping[str, Any], Place | None]:
    """What a request is configured with, and the record that says so."""
    if request.kind == "side":
        return mapped(request.begun.data.get("data")), request.begun.place
    head = told.head_of(request, through)
    return (config_of(head), head.place) if head else ({}, None)


def _anthropic(draft: Draft) -> None:
    draft.put("stream", b"true")
    draft.put("messages", _messages(draft))
    draft.cap()
    effort = _thinking(draft, efforts.IN_MESSAGES)
    if effort is not None:
        draft.put("output_config", members([("effort", effort)]))
    system = _system(draft)
    if system is not None:
        draft.put("system", system)
    _tools(draft)
    if draft.learned.choice.get("carries", True):
        draft.put(delivery.KEY, _carried(draft))


def _chat(draft: Draft) -> None:
    draft.put("messages", _messages(draft))
    draft.put("stream", b"true")
    draft.put("stream_options", b'{"include_usage":true}')
    effort = _thinking(draft, efforts.IN_CHAT)
    if effort is not None:
        draft.put("reasoning_effort", effort)
    _tools(draft)
    main = draft.request.kind == "main"
    if main and "temperature" in draft.config:
        draft.put("temperature", logged(draft.config["temperature"], draft.place))
    draft.cap()
    if main and "stop" in draft.config:
        draft.put("stop", logged(draft.config["stop"], draft.place))


def _thinking(draft: Draft, path: str) -> Piece | None:
    """Puts the member ``thinking``; gives the effort, where thinking is asked for."""
    learned = draft.learned
    said = learned.choice.get("effort") or efforts.of(draft.told, draft.request, draft.through)
    borrowed = learned.values.get(efforts.THINKING)
    if borrowed is not None and said.word is not None:
        kind = b"disabled" if said.word == efforts.OFF else b"enabled"
        draft.put("thinking", Piece(b'{"type":"%s"}' % kind, borrowed.provenance, path=efforts.THINKING))
        return Piece(spelled(said.word), borrowed.provenance, path=path) if said.word != efforts.OFF else None
    if said.word == efforts.OFF:
        if learned.choice.get("says_off", True):
            draft.put("thinking", b'{"type":"disabled"}')
        return None
    if said.word is None:
        return None
    draft.put("thinking", b'{"type":"enabled"}')
    return logged(said.word, said.place) if said.place is not None else derived(spelled(said.word))


def _system(draft: Draft) -> Piece | None:
    """The prompt: the first event of the surface, a title's own, or in v0 the header's."""
    if draft.request.kind == "side":
        text = string(draft.config.get("system"))
        return logged(text, draft.place) if text else None
    first = next(iter(draft.surface.nodes), None)
    if first is not None and first.kind == "system/message":
        return logged(text_of(message_of(first).get("content")), first.place)
    head = draft.head
    text = string(header_of(head).get("system")) if head else ""
    return logged(text, head.place) if head and text else None


def _tools(draft: Draft) -> None:
    head = draft.head
    given = header_of(head).get("tools") if head else None
    if draft.request.kind == "side" or head is None or not listed(given):
        return
    form = anthropic if api_of(draft.told) == "anthropic-messages" else chat
    key = head, form.__name__
    if key not in draft.told.rendered:
        draft.told.rendered[key] = form.tools(given, head.place)
    draft.put("tools", draft.told.rendered[key])


def _messages(draft: Draft) -> Pieces:
    if draft.request.kind == "side":
        return _title(draft)
    surface, region = draft.surface, draft.request.region
    tail: list[Piece] = []
    length, fold = surface.length, None
    if draft.request.kind == "compaction":
        if region is None:
            length = min(draft.learned.choice.get("region", surface.length), surface.length)
        else:
            length, fold = _region(draft, region)
        value = draft.learned.values.get(INSTRUCTION)
        if value is not None and value.data is not None:
            path = INSTRUCTION if api_of(draft.told) == "anthropic-messages" else INSTRUCTION_IN_CHAT
            tail.append(Piece(value.data, value.provenance, path=path))
        else:
            draft.notices.append(NO_INSTRUCTION)
    fold = fold or messages_of(surface, draft.told)
    if isinstance(fold, anthropic.Fold):
        return fold.request(length, [("user", [anthropic.text_block(p)]) for p in tail])
    lead = _system(draft) if surface.length == 0 or surface.nodes[0].kind != "system/message" else None
    return fold.request(length, [chat.text("user", p) for p in tail], [chat.text("system", lead)] if lead else [])


def _region(draft: Draft, region: Sequence[int]) -> tuple[int, anthropic.Fold | chat.Fold | None]:
    """How many events of the surface a compaction went over, or a fold of its own where these are no beginning of it."""
    nodes = list(draft.surface.nodes)
    first = 1 if nodes and nodes[0].kind == "system/message" else 0
    numbers = [n.data.get("seq") for n in nodes[first : first + len(region)]]
    if numbers == list(region):
        return first + len(region), None
    wanted = set(region)
    chosen = [*nodes[:first], *(n for n in nodes[first:] if whole(n.data.get("seq")) in wanted)]
    return len(chosen), of_nodes(chosen, draft.told)


def _title(draft: Draft) -> Pieces:
    given = [mapped(m) for m in listed(draft.config.get("messages"))]
    if api_of(draft.told) == "anthropic-messages":
        return anthropic.Fold().request(0, [anthropic.user(m.get("content"), draft.place) for m in given])
    lead = _system(draft)
    said = [chat.text("user", logged(text_of(m.get("content")), draft.place)) for m in given]
    return chat.Fold().request(0, said, [chat.text("system", lead)] if lead else [])


def _carried(draft: Draft) -> Pieces:
    told, values, through = draft.told, draft.learned.values, draft.through
    known = told.accepted_before(draft.request, through)
    after = draft.learned.choice.get("after", known.through if known else -1)
    said = next((d.entry for d in draft.request.stated if d.through == through), None)
    keys = draft.learned.choice.get("session", delivery.usual_keys(told, draft.request.run))
    return delivery.carried(
        told,
        delivery.number(after, known.entry if known else None, values.get(delivery.AFTER), delivery.AFTER),
        delivery.number(through, said, values.get(delivery.THROUGH), delivery.THROUGH),
        (after, through),
        keys,
        told.rendered,
    )
