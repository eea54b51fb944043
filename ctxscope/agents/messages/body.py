"""A whole request body out of a point of the log: the conversation as logged, the head as logged or learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ctxscope.agents import Log
from ctxscope.agents.messages import head
from ctxscope.agents.messages.by_value import ByValue
from ctxscope.agents.messages.conversation import Follow, Served
from ctxscope.agents.messages.fields import Field
from ctxscope.agents.messages.head import SYSTEM_KEYS, Told
from ctxscope.agents.messages.merge import Rules
from ctxscope.agents.messages.served import Facts
from ctxscope.agents.messages.shapes import API_OF, BULK, FITS, common_form
from ctxscope.agents.messages.taught import behind_last_answer, leading
from ctxscope.agents.messages.trail import Trail
from ctxscope.agents.messages.tree import parse
from ctxscope.model import ApiName, Config, Learned, Piece, Point, Rebuilt
from ctxscope.wire import json_text

NO_BODY = "model, tools and parameters are not known without a recording"

Pieces = tuple[Piece, ...]


@dataclass(eq=False, slots=True)
class Draft:
    """A body being put together."""

    point: Point
    learned: Learned
    api: ApiName
    facts: Facts
    data: bytes
    """The served body; empty where there is none."""
    fields: dict[str, Pieces] = field(default_factory=dict)

    @property
    def trail(self) -> Trail:
        """The conversation."""
        found: Trail = self.point.data["trail"]
        return found

    @property
    def length(self) -> int:
        """Messages of the request."""
        return int(self.point.data["length"])

    @property
    def rules(self) -> Rules:
        """How the log is compared."""
        found: Rules = self.learned.choice.get("rules", Rules())
        return found

    @property
    def fits(self) -> bool:
        """Whether the log keeps all messages in the form of the body's API."""
        seen: list[int] = self.trail.rendered.setdefault(("unfit", self.api), [0, 1 << 60])
        for at in range(seen[0], self.length):
            if self.trail.messages[at].about.form not in FITS[self.api]:
                seen[1] = min(seen[1], at)
            seen[0] = at + 1
        return seen[1] >= self.length

    @property
    def system_apart(self) -> bool:
        """Whether the system text stands beside the messages."""
        keys = SYSTEM_KEYS[self.api]
        if self.api != "openai-responses":
            return bool(keys)
        return any(k in self.learned.choice.get("first", ()) for k in keys)


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:  # noqa: ARG001 - the face's signature
    """The request the log implies; ``None`` for a served body of no API."""
    trail, length = point.data["trail"], point.data["length"]
    api = learned.choice.get("api")
    if api is None and learned.choice:
        return None
    api = api or usual_api(point, trail, length)
    draft = Draft(point, learned, api, learned.choice.get("facts") or Facts(), learned.choice.get("body", b""))
    told = _told(draft)
    bulk = BULK[api]
    draft.fields[bulk] = _conversation(draft, told, f"/{bulk}")
    for key, pieces in head.implied(told, draft.facts.values, draft.learned.keys, api, draft.rules):
        draft.fields[key] = pieces
    for path, value in learned.values.items():
        if path[1:] not in draft.fields and value.data is not None:
            draft.fields[path[1:]] = (Piece(value.data, value.provenance, path=path),)
    rules = draft.rules
    exact = draft.fits and not rules.by_value and rules.ordered
    return Rebuilt(_joined(draft), "body" if exact else "semantic", () if draft.data else (NO_BODY,))


def usual_api(point: Point, trail: Trail, length: int) -> ApiName:
    """The API a log's form suggests, for a request that nothing is known of."""
    form = common_form(m.text for m in trail.messages[: length + 1])
    return API_OF.get(form, "anthropic-messages" if "system" in point.data["top"] else "openai-chat")


def _told(draft: Draft) -> Told:
    point = draft.point
    system: list[bytes] = []
    if draft.system_apart:
        for message in draft.trail.messages[: leading(draft.trail, draft.length)]:
            node = parse(message.text)
            content = node.fields.get("content") or node.fields.get("parts") if node is not None else None
            system.append(content.raw if content is not None else b'""')
    return Told(point.data["top"], point.data["span"], point.data["place"], tuple(system))


def _conversation(draft: Draft, told: Told, path: str) -> Pieces:
    facts, count = draft.facts, leading(draft.trail, draft.length)
    served = Served.of(draft.data, facts.start) if facts.bulk else Served(b"", None)
    first = count if draft.system_apart else 0
    lead: list[Pieces] = []
    if draft.api in ("openai-chat", "openai-responses") and not draft.system_apart and (not count or not draft.fits):
        lead = _lead(draft, told, count, path)
    if "/previous_response_id" in draft.learned.values:
        first, lead = max(first, behind_last_answer(draft.trail, draft.length)), []
    if not draft.fits:
        thinking = bool(draft.learned.choice.get("thinking", True))
        writer = ByValue(draft.trail, draft.length, draft.api, draft.rules.spelling, served, path, thinking)
        return writer.write(lead)
    text = _bare_text(draft, first)
    if text is not None:
        return (text,)
    sent: Mapping[Field, bool] = draft.learned.choice.get("sent", {})
    return Follow(draft.trail, first, draft.length, draft.rules, dict(sent), served, path).write(lead)


def _lead(draft: Draft, told: Told, count: int, path: str) -> list[Pieces]:
    """System messages before the others: as the log has them beside its messages, else as the first call showed them."""
    items = draft.facts.lead
    if count and not draft.fits:
        own = Told(told.top, told.span, told.place, tuple(_contents(draft, count)))
        return list(head.lead(own, items, draft.rules, path[1:]))
    if told.system_values():
        return list(head.lead(told, items, draft.rules, path[1:]))
    kept = draft.learned.choice.get("lead", ())
    return [(Piece(item, provenance, path=f"{path}/{i}"),) for i, (item, provenance) in enumerate(kept)]


def _contents(draft: Draft, count: int) -> list[bytes]:
    nodes = [parse(m.text) for m in draft.trail.messages[:count]]
    found = [n.fields.get("content") or n.fields.get("parts") for n in nodes if n is not None]
    return [n.raw for n in found if n is not None]


def _bare_text(draft: Draft, first: int) -> Piece | None:
    """A prompt that is a text instead of a list, as Responses take it."""
    start, end = draft.facts.start, draft.facts.end
    if draft.data[start : start + 1] != b'"' or draft.length - first != 1:
        return None
    message = draft.trail.messages[first]
    node = parse(message.text)
    content = node.fields.get("content") if node is not None else None
    if content is None or not content.is_string:
        return None
    same = json_text.loads(draft.data[start:end]) == content.value
    data = draft.data[start:end] if same and draft.rules.by_value else draft.rules.spelling.text(content.raw)
    return Piece(data, "logged", message.place)


def _joined(draft: Draft) -> Pieces:
    """Keys in the order of the first call of the kind, then those it had not."""
    order = [k for k in draft.learned.keys if k in draft.fields]
    order += [k for k in draft.fields if k not in order]
    spelling = draft.rules.spelling
    opening = _gaps(draft, order)
    pieces: list[Piece] = []
    for number, key in enumerate(order):
        plain = (spelling.comma if number else b"{") + spelling.string(key).encode() + spelling.colon
        pieces += [Piece(opening[number] if opening else plain), *draft.fields[key]]
    return (*pieces, Piece(opening[-1] if opening else b"}"))


def _gaps(draft: Draft, order: list[str]) -> list[bytes] | None:
    """What stands around the values of a body that is compared by value; ``None`` where a client's form fits."""
    if not draft.rules.by_value or list(draft.facts.keys) != order:
        return None
    data, facts = draft.data, draft.facts
    found: list[bytes] = []
    at = 0
    for key in order:
        value = data[facts.start : facts.end] if key == facts.bulk else facts.values[key]
        quoted = data.find(b'"%s"' % key.encode(), at)
        start = data.find(value, quoted + len(key) + 2)
        if quoted < 0 or start < 0:
            return None
        found.append(data[at:start])
        at = start + len(value)
    return [*found, data[at:]]
