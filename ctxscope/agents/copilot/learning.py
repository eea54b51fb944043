"""What the Copilot CLI's log does not hold, taken from served bodies: parameters, forms, what live answers carry.

A form is that of a run of the program (a *process*: from ``session.start`` or ``session.resume`` on): the first body of
the run that shows it holds it until the run ends. What a live answer carries beyond the log is held by answer, and the
parameters by kind of request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.copilot.messages import REASONING, USUAL, Form, Rendered, Taken
from ctxscope.agents.copilot.shown import Shows, last_words, shown_by
from ctxscope.agents.copilot.spelling import raw
from ctxscope.agents.copilot.story import call_of
from ctxscope.agents.copilot.trail import Call, Item, Trail
from ctxscope.model import Body, Learnable, Learned, Point, Value
from ctxscope.wire.raw_object import readable_members

PARAMS = (
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stream",
    "stream_options",
)
CAPS = ("max_tokens", "max_completion_tokens")
EFFORT = "reasoning_effort"
_PARAM = "parameters are not logged; those of the model's first call hold"
LEARNABLE = (
    *(Learnable(f"/{name}", _PARAM) for name in PARAMS if name != "tools"),
    Learnable("/tools", "definitions of tools are not logged; those of the model's first call hold"),
    Learnable(
        "/messages/*/reasoning_details",
        "the provider's opaque reasoning is not logged; within the run that received it, it is sent back as it came",
    ),
    Learnable(
        "/messages/*/tool_calls/*/function/arguments",
        "the log holds arguments as an object; within the run that received them the model's own spelling is sent back",
    ),
    Learnable(
        "/messages/*/content",
        "not logged: an answer cut at its limit, the words that ask for a summary, how the message of some failed tools "
        "goes on in the run that called them",
    ),
    *(
        Learnable(f"/messages/*/{name}", "the reasoning of an answer cut at its limit is not logged")
        for name in REASONING
    ),
)
KEYS = ("model", "messages", *PARAMS)


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A thing and the joined call that showed it first."""

    at: int
    point: Point
    value: object


Kind = tuple[str, str, bool, bool]
"""Conversation, model, whether for a compaction, whether with an effort: what requests have their parameters by."""


def kind_of(call: Call, point: Point) -> Kind:
    """The kind of a call's request."""
    return call.trail.lineage, str(point.data["model"]), call.is_compaction, point.data["effort"] is not None


@dataclass(eq=False, slots=True, repr=False)
class Run:
    """What the calls of one run of the program showed of one conversation."""

    forms: dict[str, Held] = field(default_factory=dict)
    looked: list[tuple[int, Trail, int]] = field(default_factory=list)
    """Joined calls, and how many messages of their trail were looked at by then."""


@dataclass(eq=False, slots=True, repr=False)
class Taught:
    """What a row of joined calls taught; of a shorter row, with which it begins, what was held by then."""

    calls: list[tuple[Point, str]] = field(default_factory=list)
    kinds: dict[Kind, Held] = field(default_factory=dict)
    """Top-level members of the first body of a kind that can be read."""
    words: Held | None = None
    """What asks for a summary, as the first compaction said it."""
    runs: dict[tuple[str, int], Run] = field(default_factory=dict)
    taken: dict[str, Taken] = field(default_factory=dict)
    """By key of an answer."""
    rendered: dict[tuple[object, ...], Rendered] = field(default_factory=dict)

    def take(self, log: Log, point: Point, load: Callable[[], Body]) -> None:
        """Add the next call."""
        at, call = len(self.calls) - 1, call_of(log, point.key)
        if call is None:
            return
        run = self.runs.setdefault((call.trail.lineage, call.process), Run())
        _, trail, seen = run.looked[-1] if run.looked else (0, None, 0)
        seen = seen if trail is call.trail else 0
        kind = kind_of(call, point)
        if seen >= call.length and kind in self.kinds:
            return
        body = load()
        if body.api != "openai-chat":
            return
        if kind not in self.kinds and (members := _members(body)).get("messages"):
            self.kinds[kind] = Held(at, point, members)
        if call.is_compaction and self.words is None and (words := last_words(body, call)):
            self.words = Held(at, point, words)
        for shows in shown_by(body, call, seen):
            self._hold(run, at, point, shows)
        run.looked.append((at, call.trail, max(seen, call.length)))

    def _hold(self, run: Run, at: int, point: Point, shows: Shows) -> None:
        for name, value in shows.forms.items():
            run.forms.setdefault(name, Held(at, point, value))
        if shows.has_more:
            more = Taken(at, shows.details, shows.arguments, shows.members, shows.content)
            self.taken.setdefault(shows.item.entry.key, more)

    def forget(self, start: int) -> None:
        """Take the calls from ``start`` on out again."""
        del self.calls[start:]
        self.kinds = {k: held for k, held in self.kinds.items() if held.at < start}
        self.words = self.words if self.words is not None and self.words.at < start else None
        self.taken = {k: taken for k, taken in self.taken.items() if taken.at < start}
        for run in self.runs.values():
            run.forms = {k: held for k, held in run.forms.items() if held.at < start}
            run.looked = [look for look in run.looked if look[0] < start]
        self.rendered.clear()

    def form(self, call: Call, now: int, *, live: bool) -> Form:
        """How messages are sent at a call, as shown by then."""
        run = self.runs.get((call.trail.lineage, call.process), Run())
        held = {k: h.value for k, h in run.forms.items() if h.at <= now}
        side = "live" if live else "found"
        keys = tuple((calls, order) for calls in (True, False) if isinstance(order := held.get(f"keys {calls}"), tuple))
        reasoning = held.get("reasoning", USUAL) if live else None
        return Form(
            live=live,
            source=bool(held.get(f"source {side}", not live)),
            refusal=bool(held.get("refusal", True)),
            reasoning=str(reasoning) if reasoning else None,
            keys=keys if live else (),
        )

    def messages(self, call: Call, now: int) -> Rendered:
        """The messages of the trail as the run of a call sends them."""
        forms = (self.form(call, now, live=True), self.form(call, now, live=False))
        key = (call.trail, call.process, forms, call.base)
        if key not in self.rendered:
            self.rendered[key] = Rendered(call.trail.items, call.process, forms, call.base, self.of)
        return self.rendered[key]

    def of(self, item: Item) -> Taken | None:
        """What was taken of an answer."""
        return self.taken.get(item.entry.key)


def taught(log: Log, point: Point, body: Body, before: Before) -> Taught:
    """What the joined calls up to this one taught, this one included; continued from what was asked before."""
    calls = [*before.told, (point, body.sha256)]
    memo = shared_memo(log, "copilot.taught")
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
        found.calls.append(calls[at])
        if at < len(before) or not _is_foretold(log, point, body, before):
            found.take(log, calls[at][0], partial(_load, before, at) if at < len(before) else lambda: body)
    return found


def _is_foretold(log: Log, point: Point, body: Body, before: Before) -> bool:
    """Whether a call is only foretold: its run has sent nothing, the body is that of the last call of the run before."""
    if point.answer is not None or not before or before.told[-1][1] != body.sha256:
        return False
    own, last = call_of(log, point.key), call_of(log, before.told[-1][0].key)
    return own is not None and last is not None and own.process != last.process


def known_of(log: Log, before: Before) -> Taught | None:
    """What all joined calls taught; ``None`` where there is none."""
    if not before:
        return None
    point, body = before[-1]
    return taught(log, point, body, replace(before, upto=before.upto - 1))


def _load(before: Before, at: int) -> Body:
    return before[at][1]


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Parameters as the first call of the kind had them, and the forms and answers of this run as they were first shown."""
    known, now = taught(log, point, body, before), len(before)
    call = call_of(log, point.key)
    if call is None:
        return Learned()
    held = known.kinds.get(kind_of(call, point))
    if held is None or held.at > now:
        held = Held(now, point, _members(body))
    members: Mapping[str, bytes] = held.value  # type: ignore[assignment]  # what ``take`` put there
    source: Literal["learned", "echoed"] = "learned" if held.at < now else "echoed"
    values = {f"/{k}": Value(v, source) for k, v in members.items() if k in PARAMS}
    capped = next((k for k in CAPS if members.get(k) == str(held.point.data["cap"]).encode()), None)
    effort = members.get(EFFORT) == raw(held.point.data["effort"])
    told = {capped: point.data["cap"], EFFORT if effort else None: point.data["effort"]}
    for name, value in told.items():
        if name is not None and value is not None:
            del values[f"/{name}"]
    mine, logged = len(body.data), point.data["bytes"]
    choice = {
        "taught": known,
        "now": now,
        "cap": capped,
        "effort": EFFORT if effort else None,
        "sizes": (mine, logged) if logged is not None and mine != logged else None,
        "told": held.point.place.at if held.at < now else None,
    }
    return Learned(values, tuple(k for k in members if k in KEYS), tuple(_words(known.runs, call, now)), choice)


def _members(body: Body) -> dict[str, bytes]:
    """Top-level members of a body in order, with only a sign of where the messages stand."""
    return {k: v[:1] if k == "messages" else v for k, v in readable_members(body.data).items()}


_TOLD: Mapping[tuple[str, object], str] = {
    ("source live", True): "results of this run's tools are sent with their source before any resume",
    ("source found", False): "results of an earlier run's tools are sent without their source after the resume",
    ("refusal", False): "answers are sent back without the key refusal",
    ("reasoning", None): "reasoning is not sent back",
}


def _words(runs: Mapping[tuple[str, int], Run], call: Call, now: int) -> Iterator[str]:
    """The forms of a run that depart from the known ones."""
    run = runs.get((call.trail.lineage, call.process), Run())
    for name, held in run.forms.items():
        if held.at > now:
            continue
        if name == "reasoning" and held.value not in (None, USUAL):
            yield f"run {call.process}: reasoning is sent back as {held.value}"
        elif isinstance(held.value, tuple):
            yield f"run {call.process}: answers are sent back with their keys in the order {', '.join(held.value)}"
        elif (name, held.value) in _TOLD:
            yield f"run {call.process}: {_TOLD[name, held.value]}"
