"""What omp's log does not hold, taken from served bodies: values at learnable paths, and forms (omp.md §4.10)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ctxscope.agents import Before, Log
from ctxscope.agents.omp import checksum
from ctxscope.agents.omp.points import requests
from ctxscope.agents.omp.reminder import Zone, reminders, zone_words
from ctxscope.agents.omp.taught import API_OF, MOST_LEADING, Held, Kind, Seen, Taught, look, taught
from ctxscope.agents.omp.warm import RESPONSES, native, served_native
from ctxscope.agents.pi.transform import Target
from ctxscope.model import Body, Learnable, Learned, Point, Value

_HEAD = "system prompt and tools are not logged"
_SETTING = "follows from the model's entry in omp's catalogue or models.yml, which the log does not hold"
_OPTION = "a request option; options are not logged"
CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
BY_LEVEL = (
    *CAPS,
    *("thinking", "context_management", "output_config", "reasoning", "reasoning_effort", "include"),
    *("generationConfig", "enable_thinking", "chat_template_kwargs"),
)
"""Values that may change with the thinking level."""
OPTIONS = (
    *("temperature", "top_p", "top_k", "stop_sequences", "tool_choice", "service_tier", "speed", "betas"),
    *("prompt_cache_retention", "parallel_tool_calls", "toolConfig", "safetySettings", "text", "provider"),
)
LEADING = tuple(f"/messages/{n}" for n in range(MOST_LEADING))
CHECKSUM = "/system/0/text"
LEARNABLE = (
    *(
        Learnable(f"/{name}", "sent as far as the provider is said to support it")
        for name in ("store", "stream_options")
    ),
    Learnable("/prompt_cache_key", "not sent where the retention of caches is turned off"),
    *(Learnable(f"/{name}", _HEAD) for name in ("system", "instructions", "systemInstruction", "tools")),
    *(Learnable(path, f"{_HEAD}; Chat Completions carry the prompt as their first messages") for path in LEADING),
    *(Learnable(f"/{name}", _SETTING) for name in BY_LEVEL),
    *(Learnable(f"/{name}", _OPTION) for name in OPTIONS),
    Learnable("/metadata", "an installation's and an account's id beside the session's are not logged"),
    Learnable(CHECKSUM, "a checksum of the body (cch) by a rule that is not the known one"),
)
"""Learned values keep to these; the time zone of the reminders' dates is a hypothesis, told in words."""
_ANEW = (
    "omp began to talk to the provider anew at the call of {}, without reasoning and items of before: a new process?"
)
_REPLAYS = "omp went on talking to the provider where the log shows a new process or a model switch"
_TOP = {path.path[1:]: path.path for path in LEARNABLE if path.path.count("/") == 1}


def target_of(point: Point, api: str = "") -> Target:
    """The model a point's request goes to; its API as served where the log cannot say yet."""
    notes = point.data
    return Target(str(notes.get("api") or api), str(notes.get("provider")), str(notes.get("model")))


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Values and forms for one call: what the first one of its kind that can be read showed, holds."""
    api = API_OF.get(body.api, "") if body.api else ""
    known = taught(log, point, body, before)
    target = target_of(point, api)
    own = look(log, body.sha256, lambda: body)
    at = len(before)
    kind = known.kinds.get((target.provider, target.api, target.model))
    if kind is None or kind.first.at > at:
        kind = Kind(Held(at, point, own))
    lesson = Lesson(point, own, at, kind, known)
    lesson.head()
    lesson.others()
    choice = lesson.forms()
    if choice.get("prefix") and not choice.get("checksum"):
        lesson.checksum()
    words = lesson.words(log)
    replay = served_native(log, point, body) if api == RESPONSES else None
    if replay is not None and replay != native(log, point):
        choice["native"] = replay
        words = (*words, _REPLAYS if replay else _ANEW.format(point.place))
    return Learned(
        lesson.values, lesson.keys(), words, {**choice, "api": api, "zone": known.zone(at), "taught": lesson.taught}
    )


@dataclass(slots=True, eq=False)
class Lesson:
    """What holds for one call."""

    point: Point
    own: Seen
    at: int
    kind: Kind
    known: Taught
    values: dict[str, Value] = field(default_factory=dict)
    taught: dict[str, str] = field(default_factory=dict)
    """By path, the place of the earlier call's answer that a value or its absence was learned from."""

    def forms(self) -> dict[str, Any]:
        """Each form as the first call shows it that shows it at all."""
        return {name: h.value for name, h in self.kind.forms.items() if h.at <= self.at}

    def keys(self) -> tuple[str, ...]:
        """Top-level keys in order, as the first call of the kind has them, those of its level among them."""
        first: Seen = self.kind.first.value
        level: Seen = self._level().value
        keys = [k for k in first.facts.keys if k not in BY_LEVEL or k in level.facts.keys]
        for name in level.facts.keys:
            if name in BY_LEVEL and name not in keys:
                before = level.facts.keys[level.facts.keys.index(name) - 1]
                keys.insert(keys.index(before) + 1 if before in keys else len(keys), name)
        return tuple(keys)

    def head(self) -> None:
        """System prompt and tools."""
        first = self.kind.first
        for name in ("system", "instructions", "systemInstruction", "tools"):
            if name in first.value.facts.values or name in self.own.facts.values:
                self._hold(f"/{name}", first, first.value.facts.values.get(name))
        for path, raw in zip(LEADING, first.value.leading, strict=False):
            self._hold(path, first, raw)

    def others(self) -> None:
        """Settings, by thinking level where they follow from it, and options."""
        first, level = self.kind.first, self._level()
        for name in (*BY_LEVEL, *OPTIONS, "metadata"):
            held = level if name in BY_LEVEL else first
            value = held.value.facts.values.get(name)
            if value is not None or name in self.own.facts.values:
                self._hold(_TOP[name], held, value)

    def checksum(self) -> None:
        """Digits that no known rule gives: those of this very request."""
        system = self.own.facts.values.get("system", b"")
        found = checksum.MARK.search(system[:400])
        if found is not None:
            self.values[CHECKSUM] = Value(found[1], "echoed")

    def words(self, log: Log) -> tuple[str, ...]:
        """Choices that depart from what omp does by default, in words."""
        zone, forms = self.known.zone(self.at), self.forms()
        said = [f"the machine's time zone is {zone_words(zone)}"] if zone.minutes and self._dated(log, zone) else []
        if forms.get("cache") == "long":
            said.append("cache retention is long: marks carry a one-hour TTL")
        if forms.get("cache") == "none":
            said.append("cache retention is none: no cache marks")
        if forms.get("prefix") is False:
            said.append("the provider is set up with an API key: requests do not pass as Claude Code's")
        if forms.get("prefix") and not forms.get("checksum"):
            said.append("the body's checksum (cch) follows a rule that is not known")
        return tuple(said)

    def _dated(self, log: Log, zone: Zone) -> bool:
        return bool(reminders(log, self.point, requests(log), zone))

    def _level(self) -> Held:
        """``Seen`` of the first call at this one's thinking level."""
        held = self.kind.levels.get(str(self.point.data.get("thinkingLevel")))
        return held if held is not None and held.at <= self.at else Held(self.at, self.point, self.own)

    def _hold(self, path: str, held: Held, value: bytes | None) -> None:
        """What a call showed at a path holds here; that it has no such key is held too."""
        if held.at < self.at:
            self.taught[path] = held.point.place.at
        if value is not None:
            provenance: Literal["learned", "echoed"] = "learned" if held.at < self.at else "echoed"
            self.values[path] = Value(value, provenance)
