"""What joined calls taught, in their order: of each thing the first call that shows it holds it for the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.messages.fields import Field, is_present, open_fields, trimmed
from ctxscope.agents.messages.order import may_be_sorted, reordered
from ctxscope.agents.messages.served import Facts, Items, facts
from ctxscope.agents.messages.shapes import FITS, about, blocks
from ctxscope.agents.messages.spelling import Spelling, escapes_shown
from ctxscope.agents.messages.trail import Trail
from ctxscope.agents.messages.tree import parse
from ctxscope.model import ApiName, Body, Point

_AGAIN = 4096
Kind = tuple[ApiName | None, str | None]
"""API and model, as served."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A thing and the call that showed it first."""

    at: int
    """Place of the call among the joined ones."""
    point: Point
    value: Any


@dataclass(eq=False, slots=True)
class Taught:
    """What a row of calls taught. Of a shorter row that it begins with, all that was held by then."""

    calls: list[tuple[Point, str]] = field(default_factory=list)
    kinds: dict[Kind, Held] = field(default_factory=dict)
    """``Facts`` of the first call of each kind."""
    forms: dict[str, Held] = field(default_factory=dict)
    """``spaced``, ``escapes``, ``by value``, ``thinking``."""
    sent: dict[Field, Held] = field(default_factory=dict)
    shown: int = 0
    """Length of the body last searched for escapes."""
    items: Items = field(default_factory=Items)
    looked_at: dict[Trail, int] = field(default_factory=dict)
    """Messages of each trail whose fields are all decided."""

    def take(self, log: Log, point: Point, digest: str, load: Callable[[], Body]) -> None:
        """Add the next call."""
        at = len(self.calls)
        self.calls.append((point, digest))
        own = facts(log, digest, load)
        if not own.bulk:
            return
        self.kinds.setdefault((own.api, own.model), Held(at, point, own))
        self._spelling(Held(at, point, own), load)
        self._fields(at, point, own, load)

    def _spelling(self, call: Held, load: Callable[[], Body]) -> None:
        own: Facts = call.value
        new: dict[str, Any] = {}
        if own.spaced is not None and "spaced" not in self.forms:
            new["spaced"] = own.spaced
        if "escapes" not in self.forms:
            data = load().data
            # What was looked through in the call before need not be again: requests repeat their history.
            shown = escapes_shown(data[max(0, self.shown - _AGAIN) :])
            self.shown = len(data)
            if shown is not None:
                new["escapes"] = shown
        if not new and self.forms:
            return
        for name, value in new.items():
            self.forms[name] = Held(call.at, call.point, value)
        data = load().data
        if "by value" not in self.forms and (own.spaced is None or self.spelling(call.at).text(data) != data):
            self.forms["by value"] = Held(call.at, call.point, True)

    def spelling(self, at: int) -> Spelling:
        """The form held as of a call."""
        held = {name: h.value for name, h in self.forms.items() if h.at <= at}
        return Spelling(held.get("spaced", False), held.get("escapes", "raw"))

    def _fields(self, at: int, point: Point, own: Facts, load: Callable[[], Body]) -> None:
        """Decide on the fields of messages that no call showed yet."""
        trail, length = point.data["trail"], point.data["length"]
        begun = self.looked_at.get(trail, 0)
        texts = [m.text for m in trail.messages[begun:length]]
        fits = FITS.get(own.api, frozenset()) if own.api else frozenset()
        sorted_ = "unordered" not in self.forms and may_be_sorted(trail, length)
        wanted = [i for i, t in enumerate(texts, begun) if sorted_ or self._asks(t, fits)]
        if not wanted:
            self.looked_at[trail] = max(begun, length)
            return
        data = load().data
        if data[own.start : own.start + 1] != b"[":
            return
        spans = self.items.of(data, own.start)
        shift = len(own.lead) - leading(trail, length)
        if "previous_response_id" in own.values:
            shift = -behind_last_answer(trail, length)
        for i in wanted:
            if not 0 <= i + shift < len(spans):
                continue
            start, end = spans[i + shift]
            self._compare(at, point, trail.messages[i].text, data[start:end])
            if sorted_:
                sent = {name: held.value for name, held in self.sent.items()}
                self._order(at, point, trimmed(trail.messages[i].text, sent), data[start:end])
        self.looked_at[trail] = max(begun, length)
        if sorted_:
            for name, value in point.data["top"].items():
                self._order(at, point, value, own.values.get(name, value))

    def _asks(self, text: bytes, fits: frozenset[str]) -> bool:
        """Whether something about a message is still to be decided."""
        told = about(text)
        if told.form not in fits:
            return "thinking" not in self.forms and told.sort == "output" and _thinks(text)
        return any(name not in self.sent for name in open_fields(text))

    def _compare(self, at: int, point: Point, logged: bytes, served: bytes) -> None:
        told, other = about(logged), about(served)
        node = parse(served)
        if node is None or told.sort != other.sort:
            return
        if told.form != other.form and told.sort == "output" and _thinks(logged):
            self.forms.setdefault("thinking", Held(at, point, _thinks(served)))
        for name in open_fields(logged):
            self.sent.setdefault(name, Held(at, point, is_present(name, node)))

    def _order(self, at: int, point: Point, logged: bytes, served: bytes) -> None:
        """A log whose keys are all sorted does not tell their order: seen where the same keys are served in another one."""
        if "unordered" not in self.forms and reordered(logged, served):
            self.forms["unordered"] = Held(at, point, True)

    def forget(self, start: int) -> None:
        """Take the calls from ``start`` on out again."""
        del self.calls[start:]
        self.kinds, self.forms, self.sent = (_until(held, start) for held in (self.kinds, self.forms, self.sent))
        self.looked_at, self.shown = {}, 0


def leading(trail: Trail, length: int) -> int:
    """How many system messages a conversation begins with."""
    count = 0
    while count < length and trail.messages[count].about.sort == "system":
        count += 1
    return count


def behind_last_answer(trail: Trail, length: int) -> int:
    """Number of the first message behind the last answer."""
    at = length
    while at and trail.messages[at - 1].about.sort != "output":
        at -= 1
    return at


def taught(log: Log, point: Point, body: Body, before: Before) -> Taught:
    """What the joined calls up to this one taught, this one included; continued from what was asked before."""
    calls = [*before.told, (point, body.sha256)]
    memo = shared_memo(log, "messages.taught")
    kept: Taught | None = memo.get("kept")
    found = kept if kept is not None else Taught()
    same = min(len(found.calls), len(calls))
    if found.calls[:same] != calls[:same]:
        if len(calls) == 1:
            found = Taught()  # a question about one call alone must not cost what is known of them all
        else:
            found.forget(next(i for i in range(same) if found.calls[i] != calls[i]))
    if found is kept or len(calls) > 1 or kept is None:
        memo["kept"] = found
    for at in range(len(found.calls), len(calls)):
        load = partial(_load, before, at) if at < len(before) else lambda: body
        found.take(log, *calls[at], load)
    return found


def _load(before: Before, at: int) -> Body:
    return before[at][1]


def _until(held: Mapping[Any, Held], start: int) -> dict[Any, Held]:
    return {k: h for k, h in held.items() if h.at < start}


def _thinks(text: bytes) -> bool:
    return any(b.kind == "thinking" and b.text for b in blocks(about(text).form, (text,)))
