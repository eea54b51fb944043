"""What pi's log does not hold, taken from served bodies: values at learnable paths, and forms (pi.md §4.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ctxscope.agents import Before, Log
from ctxscope.agents.pi import forms, limits, settings, texts
from ctxscope.agents.pi.points import API_NAMES, node_of
from ctxscope.agents.pi.served import Facts, facts
from ctxscope.agents.pi.thread import continued_id, thread_before, thread_from
from ctxscope.agents.pi.transform import Target
from ctxscope.model import ApiName, Body, Learnable, Learned, Point, Value

API_OF: Mapping[ApiName, str] = {ours: theirs for theirs, ours in API_NAMES.items()}
"""pi's name of each API, by ours."""
CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
OPTIONS = ("temperature", "metadata", "tool_choice", "output_config", "service_tier", "prompt_cache_retention")
"""Request options that come from flags, environment or extensions."""

_LIMIT = "the model's output limit and window stand in models.json or in pi's own table, not in the log"
_HEAD = "version 0.73 logs neither the system prompt nor the tools"
LEARNABLE = (
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
    Learnable(
        "/thread", "whether a follow-up continues the server's thread or starts it anew is decided in the process"
    ),
    *(Learnable(f"/{name}", "a request option; options are not logged") for name in OPTIONS),
)


@dataclass(frozen=True, slots=True, eq=False)
class Earlier:
    """An earlier joined call to the same provider and API."""

    point: Point
    body: Body
    facts: Facts


def target_of(point: Point, choice: Mapping[str, Any] | None = None) -> Target:
    """The model a point's request goes to; its API as learned where the log cannot say yet."""
    notes = point.data
    api = notes.get("api") or (choice or {}).get("api")
    return Target(str(api or ""), str(notes["provider"]), str(notes["model"]), notes["version"] == "0.73")


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Values and forms for one call; where an earlier call showed one, the earlier one holds."""
    api = API_OF.get(body.api, "") if body.api else ""
    own = facts(log, body)
    if not own.bulk:
        return Learned(choice={"api": api})
    lesson = Lesson(log, Earlier(point, body, own), before, target_of(point, {"api": api}))
    choice = lesson.forms()
    lesson.head()
    lesson.cap()
    lesson.options()
    lesson.thinking()
    lesson.placeholder(choice.get("placeholder"))
    if choice.get("threads"):
        lesson.thread()
    words = (*forms.told(lesson.target, choice), *lesson.words)
    return Learned(lesson.values, own.keys, words, {**choice, "api": api})


@dataclass(slots=True, eq=False)
class Lesson:
    """What one call teaches, beside what earlier calls taught."""

    log: Log
    own: Earlier
    before: Before
    target: Target
    values: dict[str, Value] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)

    @property
    def level(self) -> str:
        """The call's thinking level."""
        return level_of(self.own.point)

    def same_provider(self) -> Iterator[Earlier]:
        """Earlier calls to the same provider by the same API."""
        for point, body in self.before:
            if point.data.get("provider") == self.target.provider and body.api and API_OF.get(body.api) == self.target.api:
                yield Earlier(point, body, facts(self.log, body))

    def same_model(self) -> Iterator[Earlier]:
        """Those of them that went to the same model."""
        return (e for e in self.same_provider() if e.point.data.get("model") == self.target.model)

    def forms(self) -> dict[str, Any]:
        """Each form as the first call shows it that shows it at all."""
        own = self._shown(self.own)
        held: dict[str, Any] = {}
        for earlier in self.same_model():
            if own.keys() <= held.keys():
                break
            held = {**self._shown(earlier), **held}
        return {**forms.defaults(self.target), **own, **held}

    def _shown(self, call: Earlier) -> dict[str, Any]:
        shown = forms.shown(self.target, call.facts, call.body.data, level_of(call.point))
        node = node_of(self.log, call.point)
        if node is not None and node.trail.pictures[node.length]:
            shown["images"] = texts.IMAGE_OMITTED.encode() not in call.body.data
        return shown

    def head(self) -> None:
        """System prompt and tools of a version that does not log them: those of the provider's first call."""
        if not self.target.old:
            return
        first = next(self.same_provider(), None)
        source = first or self.own
        provenance: Literal["learned", "echoed"] = "learned" if first else "echoed"
        for name in ("system", "systemInstruction", "tools"):
            if name in source.facts.values or name in self.own.facts.values:
                self.values[f"/{name}"] = Value(source.facts.values.get(name), provenance)
        bulk = self.own.facts.bulk
        if self.target.api in {"openai-completions", "openai-responses"}:
            message = source.facts.first_message(source.body)
            if message.startswith((b'{"role":"developer"', b'{"role":"system"')):
                self.values[f"/{bulk}/0"] = Value(message, provenance)

    def options(self) -> None:
        """Request options, each as the model's first call that had it."""
        for name in OPTIONS:
            if name in self.own.facts.values:
                self._hold(name, self.same_model())

    def thinking(self) -> None:
        """Thinking set-up that stands in pi's model table, held by thinking level."""
        name = "generationConfig" if self.target.api == "google-generative-ai" else "thinking"
        raw = self.own.facts.values.get(name, b"")
        if raw and (name != "thinking" or b'"type":"adaptive"' in raw):
            self._hold(name, (e for e in self.same_model() if level_of(e.point) == self.level))

    def _hold(self, name: str, earlier: Iterator[Earlier]) -> None:
        held = next((e.facts.values[name] for e in earlier if name in e.facts.values), None)
        own = self.own.facts.values[name]
        self.values[f"/{name}"] = Value(own, "echoed") if held is None else Value(held, "learned")

    def placeholder(self, spelled: bytes | None) -> None:
        """The constant tool that ends native tools: what it says is known, its spelling is not."""
        if spelled is not None:
            known = any(spelled in e.facts.values.get("tools", b"") for e in self.same_model())
            self.values["/tools"] = Value(spelled, "learned" if known else "echoed")

    def thread(self) -> None:
        """A thread started anew where the log suggests that it continues, or continued from another answer."""
        node, raw = node_of(self.log, self.own.point), self.own.facts.values.get("thread", b"")
        if node is None:
            return
        expected, named = thread_before(node), continued_id(raw)
        if expected is not None and raw == b'{"type":"create"}':
            self.values["/thread"] = Value(raw, "echoed")
            self.words.append("the process started its thread anew at this call")
        elif named and (expected is None or expected.message_id != named) and thread_from(node, named) is not None:
            self.values["/thread"] = Value(raw, "echoed")
            self.words.append(f"the process continued its thread from the answer {named}")

    def cap(self) -> None:
        """The output cap: from the model's limits as far as earlier calls tell them, or as this one alone explains it."""
        name = next((n for n in CAPS if n in self.own.facts.values), None)
        mine = self._sent(self.own)
        known = settings.config(self.log).values["limits"]
        if name is None or mine is None or (self.target.provider, self.target.model) in known:
            return
        earlier = list(self._caps(until=mine))
        told = limits.inferred(earlier, old=self.target.old)
        own = self.own.facts.values[name]
        if not earlier:
            self.values[f"/{name}"] = Value(own, "echoed")
        elif (earlier[-1].cap, earlier[-1].budget) == (mine.cap, mine.budget) or (
            told is not None and not told.at_least and limits.explains(told, mine, old=self.target.old)
        ):
            self.values[f"/{name}"] = Value(own, "learned")
        else:
            self.values[f"/{name}"] = self._new_cap(own, [*earlier, mine], told)

    def _new_cap(self, own: bytes, sent: Sequence[limits.Sent], told: limits.Limits | None) -> Value:
        """A cap that earlier calls do not give: their own, unless one pair of limits, or a clamp, explains all."""
        mine, base = sent[-1], max(s.cap for s in sent[:-1])
        together = limits.inferred(sent, old=self.target.old)
        if together is not None:
            window = f" and a window of {together.window}" if together.window else ""
            self.words.append(f"caps follow from an output limit of {together.output}{window} tokens")
            return Value(own, "echoed")
        if mine.cap < base and not self.target.old:
            self.words.append(f"the cap {mine.cap} is {base} cut to a window that is not known")
            return Value(own, "echoed")
        kept = limits.cap(told, mine.input, mine.budget, old=self.target.old) if told else sent[0].cap
        return Value(str(kept).encode(), "learned")

    def _caps(self, *, until: limits.Sent) -> Iterator[limits.Sent]:
        """Caps of earlier calls to the model; ends where one is the same, nearly always the first."""
        for earlier in self.same_model():
            sent = self._sent(earlier)
            if sent is not None:
                yield sent
                if (sent.cap, sent.budget) == (until.cap, until.budget):
                    return

    def _sent(self, call: Earlier) -> limits.Sent | None:
        raw = next((call.facts.values[n] for n in CAPS if n in call.facts.values), b"")
        node = node_of(self.log, call.point)
        if not raw.isdigit() or node is None:
            return None
        budget = 0
        # Only the old cap grows with the budget: the new one is the model's limit, or what the window leaves.
        if self.target.old and b'"budget_tokens"' in call.facts.values.get("thinking", b""):
            budget = limits.budget_for(level_of(call.point), settings.config(self.log).values["budgets"])
        return limits.Sent(int(raw), node.trail.estimates[node.length].request, budget)


def level_of(point: Point) -> str:
    """The thinking level a request was made with."""
    return str(point.data.get("thinkingLevel"))
