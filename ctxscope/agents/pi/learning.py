"""What pi's log does not hold, taken from served bodies: values at learnable paths, and forms (pi.md §4.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ctxscope.agents import Before, Log
from ctxscope.agents.pi import forms, limits, settings
from ctxscope.agents.pi.points import level_of, node_of
from ctxscope.agents.pi.taught import API_OF, Cap, Held, Kind, Taught, cap_name, taught, torn
from ctxscope.agents.pi.texts import spelled
from ctxscope.agents.pi.thread import continued_id, thread_before, thread_from
from ctxscope.agents.pi.transform import Target
from ctxscope.agents.reading.served import Facts, facts
from ctxscope.model import Body, Learnable, Learned, Point, Value

CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
OPTIONS = ("temperature", "metadata", "tool_choice", "output_config", "service_tier", "prompt_cache_retention")
"""Request options that come from flags, environment or extensions."""
EFFORTS = {"openai-completions": "/reasoning_effort", "openai-responses": "/reasoning/effort"}
"""Where an API's body holds the effort."""

_LIMIT = "the model's output limit and window stand in models.json or in pi's own table, not in the log"
_HEAD = "version 0.73 logs neither the system prompt nor the tools"
_EFFORT = "pi's own table gives some models another word for a thinking level; the log holds the level alone"
LEARNABLE = (
    *(
        Learnable(f"/{name}", "sent as far as the provider is said to support it")
        for name in ("store", "stream_options")
    ),
    Learnable("/prompt_cache_key", "not sent where the retention of caches is turned off"),
    *(Learnable(f"/{name}", _LIMIT) for name in CAPS),
    Learnable(
        "/generationConfig", "limits and thinking set-up of Google models stand in pi's own table, not in the log"
    ),
    Learnable("/system", _HEAD),
    Learnable("/messages/0", f"{_HEAD}; Chat Completions carry the prompt as the first message"),
    Learnable("/input/0", f"{_HEAD}; Responses carry the prompt as the first item"),
    Learnable("/systemInstruction", _HEAD),
    Learnable("/tools", f"{_HEAD}; 1.x: only the spelling of the constant placeholder tool that ends native tools"),
    Learnable("/thinking", "whether a model thinks adaptively stands in pi's own table, not in the log"),
    *(Learnable(path, _EFFORT) for path in EFFORTS.values()),
    Learnable(
        "/thread", "whether a follow-up continues the server's thread or starts it anew is decided in the process"
    ),
    *(Learnable(f"/{name}", "a request option; options are not logged") for name in OPTIONS),
)
_BY_LEVEL = ("thinking", "generationConfig", "output_config")
"""Values that change with the thinking level."""


def target_of(point: Point, choice: Mapping[str, Any] | None = None) -> Target:
    """The model a point's request goes to; its API as learned where the log cannot say yet."""
    notes = point.data
    api = notes.get("api") or (choice or {}).get("api")
    return Target(str(api or ""), str(notes["provider"]), str(notes["model"]), notes["version"] == "0.73")


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Values and forms for one call: what the first one that can be read and showed a thing showed, holds."""
    api = API_OF.get(body.api, "") if body.api else ""
    known = taught(log, point, body, before)
    target = target_of(point, {"api": api})
    own = facts(log, body.sha256, lambda: body)
    kind = known.kinds.get((target.provider, target.api, target.model))
    if kind is None or kind.first.at > len(before):
        kind = torn(point, own, target.api, len(before))
    foretold = point.answer is None and len(before) > 0 and before.told[-1][1] == body.sha256
    lesson = Lesson(log, point, body, own, len(before), target, known, kind, not foretold)
    choice = lesson.forms()
    lesson.head()
    lesson.cap(cap_name(target.api, choice.get("cap")))
    lesson.options()
    lesson.efforts()
    lesson.placeholder()
    if choice.get("threads") and own.bulk:
        lesson.thread()
    words = (*forms.told(target, choice), *lesson.words)
    return Learned(lesson.values, lesson.keys(), words, {**choice, "api": api, "taught": lesson.taught})


@dataclass(slots=True, eq=False)
class Lesson:
    """What holds for one call."""

    log: Log
    point: Point
    body: Body
    own: Facts
    at: int
    target: Target
    known: Taught
    kind: Kind
    own_body: bool
    """Whether the body can be this call's own: for one foretold it is the last call's, whose cap it may not share."""
    values: dict[str, Value] = field(default_factory=dict)
    taught: dict[str, str] = field(default_factory=dict)
    """By path, the place of the earlier call's answer that a value or its absence was learned from."""
    words: list[str] = field(default_factory=list)

    def forms(self) -> dict[str, Any]:
        """Each form as the first call shows it that shows it at all."""
        held = {name: h for name, h in self.kind.forms.items() if h.at <= self.at}
        for name, one in held.items():
            path = forms.path_of(name, self.target.api)
            if path:
                self._told(path, one)
        return {**forms.defaults(self.target), **{name: one.value for name, one in held.items()}}

    def keys(self) -> tuple[str, ...]:
        """Top-level keys in order, as the first call of the kind has them, those of its level among them."""
        first, level = self._facts(self.kind.first), self._level()
        keys = list(first.keys)
        for name in level.keys if level else ():
            if name in _BY_LEVEL and name not in keys and level is not None:
                before = level.keys[level.keys.index(name) - 1]
                keys.insert(keys.index(before) + 1 if before in keys else len(keys), name)
        return tuple(keys)

    def head(self) -> None:
        """System prompt and tools of a version that does not log them: those of the provider's first call."""
        held = self.known.heads.get((self.target.provider, self.target.api))
        if not self.target.old:
            return
        if held is None or held.at > self.at:
            held = Held(self.at, self.point, (self.own, b""))
        source, message = held.value
        for name in ("system", "systemInstruction", "tools"):
            if name in source.values or name in self.own.values:
                self._hold(f"/{name}", held, source.values.get(name))
        if message.startswith((b'{"role":"developer"', b'{"role":"system"')):
            self._hold(f"/{source.bulk}/0", held, message)

    def options(self) -> None:
        """Request options, each as the model's first call had it, or had it not."""
        for name in OPTIONS:
            if name not in _BY_LEVEL:
                self._hold(f"/{name}", self.kind.first, self._facts(self.kind.first).values.get(name))
        held, level = self.kind.levels.get(level_of(self.point)), self._level()
        if held is None or level is None:
            return
        for name in _BY_LEVEL:
            raw = level.values.get(name)
            if name != "thinking" or (raw and b'"type":"adaptive"' in raw):
                self._hold(f"/{name}", held, raw)

    def efforts(self) -> None:
        """The word for the thinking level, where pi's own table may have another and no file tells."""
        path, level = EFFORTS.get(self.target.api), level_of(self.point)
        held = self.kind.forms.get(f"effort {level}")
        table = settings.config(self.log).values["efforts"]
        if path is None or held is None or held.at > self.at or (self.target.provider, self.target.model) in table:
            return
        if held.value is not None and held.value != forms.usual_effort(self.target.api, level):
            self._hold(path, held, spelled(held.value))

    def placeholder(self) -> None:
        """The constant tool that ends native tools: what it says is known, its spelling is not."""
        held = self.kind.forms.get("placeholder")
        if held is not None and held.at <= self.at and held.value is not None:
            self._hold("/tools", held, held.value)

    def thread(self) -> None:
        """A thread started anew where the log suggests that it continues, or continued from another answer."""
        node, raw = node_of(self.log, self.point), self.own.values.get("thread", b"")
        if node is None:
            return
        expected, named = thread_before(node), continued_id(raw)
        if expected is not None and raw == b'{"type":"create"}':
            self.values["/thread"] = Value(raw, "echoed")
            self.words.append("the process started its thread anew at this call")
        elif named and (expected is None or expected.message_id != named) and thread_from(node, named) is not None:
            self.values["/thread"] = Value(raw, "echoed")
            self.words.append(f"the process continued its thread from the answer {named}")

    def cap(self, name: str) -> None:
        """The output cap: from the model's limits as far as earlier calls tell them, or as this one alone explains it."""
        known = settings.config(self.log).values["limits"]
        if not name or (self.target.provider, self.target.model) in known:
            return
        path, first = f"/{name}", self.kind.first
        if first.at < self.at and name not in self._facts(first).values:
            self._told(path, first)
            return
        mine = next((h for h in self.kind.caps if h.at == self.at), None) if self.own_body else None
        earlier = list(self._caps(until=mine))
        if not earlier:
            if mine is not None:
                self._hold(path, mine, self.own.values[name])
            return
        sent = [self._sent(h.value) for h in earlier]
        limit = limits.inferred(sent, old=self.target.old)
        own = self._sent(mine.value) if mine is not None else None
        if own is None:
            self._hold(path, earlier[0], self._kept_cap(limit, sent[0].cap))
        elif (sent[-1].cap, sent[-1].budget) == (own.cap, own.budget) or (
            limit is not None and not limit.at_least and limits.explains(limit, own, old=self.target.old)
        ):
            self._hold(path, earlier[-1], self.own.values[name])
        else:
            self._new_cap(path, [*sent, own], limit, earlier[0])

    def _new_cap(self, path: str, sent: Sequence[limits.Sent], told: limits.Limits | None, first: Held) -> None:
        """A cap that earlier calls do not give: their own, unless one pair of limits, or a clamp, explains all."""
        mine, base = sent[-1], max(s.cap for s in sent[:-1])
        together = limits.inferred(sent, old=self.target.old)
        if together is not None:
            window = f" and a window of {together.window}" if together.window else ""
            self.words.append(f"caps follow from an output limit of {together.output}{window} tokens")
        elif mine.cap < base and not self.target.old:
            self.words.append(f"the cap {mine.cap} is {base} cut to a window that is not known")
        else:
            self._hold(path, first, self._kept_cap(told, sent[0].cap))
            return
        self.values[path] = Value(str(mine.cap).encode(), "echoed")

    def _kept_cap(self, told: limits.Limits | None, fallback: int) -> bytes:
        """The cap that earlier calls make one expect here."""
        node = node_of(self.log, self.point)
        if told is None or node is None:
            return str(fallback).encode()
        budget = self._budget(level_of(self.point)) if self.target.old else 0
        estimate = node.trail.estimates[node.length].request
        return str(limits.cap(told, estimate, budget, old=self.target.old)).encode()

    def _caps(self, *, until: Held | None) -> Iterator[Held]:
        """Caps of earlier calls to the model; ends where one is the same, nearly always the first."""
        for held in self.kind.caps:
            if held.at >= self.at:
                return
            yield held
            cap: Cap = held.value
            if until is not None and (cap.tokens, cap.level) == (until.value.tokens, until.value.level):
                return

    def _sent(self, cap: Cap) -> limits.Sent:
        return limits.Sent(cap.tokens, cap.estimate, self._budget(cap.level))

    def _budget(self, level: str) -> int:
        return limits.budget_for(level, settings.config(self.log).values["budgets"])

    def _level(self) -> Facts | None:
        """Facts of the first call at this one's thinking level."""
        held = self.kind.levels.get(level_of(self.point))
        return self._facts(held) if held is not None and held.at <= self.at else None

    @staticmethod
    def _facts(held: Held) -> Facts:
        found: Facts = held.value
        return found

    def _hold(self, path: str, held: Held, value: bytes | None) -> None:
        """What a call showed at a path holds here; that it has no such key is held too."""
        self._told(path, held)
        if value is not None:
            provenance: Literal["learned", "echoed"] = "learned" if held.at < self.at else "echoed"
            self.values[path] = Value(value, provenance)

    def _told(self, path: str, held: Held) -> None:
        if held.at < self.at:
            self.taught[path] = held.point.place.at
