"""What a call's own body and the earlier ones tell beyond the log: values at learnable paths, and the client's forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ctxscope.agents import Before, Log
from ctxscope.agents.messages.fields import Field, usual
from ctxscope.agents.messages.learnable import may_learn
from ctxscope.agents.messages.merge import Rules
from ctxscope.agents.messages.served import Facts, facts
from ctxscope.agents.messages.spelling import Spelling
from ctxscope.agents.messages.taught import Held, Taught, taught
from ctxscope.model import Body, Learned, Point, Value

BY_VALUE = "JSON is spelled in no form known here; what is equal in value is taken as it was sent"
UNORDERED = "the log's keys are sorted by what stores them; their order is compared by value"


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """See ``Agent.learn``."""
    known = taught(log, point, body, before)
    lesson = Lesson(point, body, facts(log, body.sha256, lambda: body), len(before), known)
    lesson.parameters()
    return Learned(
        lesson.values,
        lesson.keys,
        tuple(lesson.words()),
        {
            "api": lesson.own.api,
            "rules": lesson.rules,
            "sent": lesson.sent,
            "thinking": lesson.thinking,
            "lead": lesson.lead,
            "first": lesson.first.keys,
            "facts": lesson.own,
            "body": body.data,
            "taught": lesson.taught,
        },
    )


@dataclass(eq=False, slots=True)
class Lesson:
    """What holds for one call."""

    point: Point
    body: Body
    own: Facts
    at: int
    known: Taught
    values: dict[str, Value] = field(default_factory=dict)
    taught: dict[str, str] = field(default_factory=dict)
    """By path, the place of the call that a value, or its absence, was learned from."""

    @property
    def held(self) -> Held:
        """The first call of this one's kind."""
        found = self.known.kinds.get((self.own.api, self.own.model))
        return found if found is not None and found.at <= self.at else Held(self.at, self.point, self.own)

    @property
    def first(self) -> Facts:
        """Its facts."""
        found: Facts = self.held.value
        return found

    @property
    def keys(self) -> tuple[str, ...]:
        """Top-level keys in order."""
        return self.first.keys

    @property
    def rules(self) -> Rules:
        """How the session's log is compared."""
        return Rules(self.spelling, self._form("by value") is not None, self._form("unordered") is None)

    @property
    def spelling(self) -> Spelling:
        """The client's way to write JSON."""
        return self.known.spelling(self.at)

    @property
    def thinking(self) -> bool:
        """Whether reasoning is sent back, where the log has it in another form than the body."""
        found = self._form("thinking")
        return True if found is None else bool(found)

    @property
    def sent(self) -> dict[Field, bool]:
        """Fields of messages that a body decided on."""
        return {name: h.value for name, h in self.known.sent.items() if h.at <= self.at}

    @property
    def lead(self) -> tuple[tuple[bytes, Literal["learned", "echoed"]], ...]:
        """System messages that the first call began with."""
        provenance = self._provenance(self.held)
        return tuple((item, provenance) for item in self.first.lead)

    def parameters(self) -> None:
        """Each top-level value, as the first call of the kind had it, or had it not."""
        held = self.held
        for key in dict.fromkeys((*self.first.keys, *self.own.keys)):
            path = f"/{key}"
            if not may_learn(key):
                continue
            if held.at < self.at and key != "previous_response_id":
                self.taught[path] = held.point.place.at
            source, provenance = self.first, self._provenance(held)
            if key == "previous_response_id":  # names the answer before: another one in each call
                source, provenance = self.own, "echoed"
            if key in source.values:
                self.values[path] = Value(source.values[key], provenance)

    def words(self) -> Iterator[str]:
        """The choices that hold for the session, told."""
        rules = self.rules
        if rules.by_value:
            yield BY_VALUE
        elif "spaced" in self.known.forms:
            yield rules.spelling.words
        if not rules.ordered:
            yield UNORDERED
        yield from fields_told(self.sent, items=self.own.api == "openai-responses")
        if not self.thinking:
            yield "reasoning that the log holds is not sent back"

    def _form(self, name: str) -> Any:
        held = self.known.forms.get(name)
        return held.value if held is not None and held.at <= self.at else None

    def _provenance(self, held: Held) -> Literal["learned", "echoed"]:
        return "learned" if held.at < self.at else "echoed"


def fields_told(sent: Mapping[Field, bool], *, items: bool) -> Iterator[str]:
    """Fields for which a body decided otherwise than their name would; ``items``: of Responses input."""
    dropped = _names(name for name, kept in sent.items() if not kept and usual(name, items=items))
    added = _names(name for name, kept in sent.items() if kept and not usual(name, items=items))
    if dropped:
        yield f"not sent of the logged messages: {dropped}"
    if added:
        yield f"sent of the logged messages too: {added}"


def _names(fields: Iterator[Field] | Sequence[Field]) -> str:
    return ", ".join(sorted(f"{name} (null)" if null else name for name, null in fields))
