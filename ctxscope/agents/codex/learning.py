"""What Codex's log does not hold, taken from served bodies: values at learnable paths, and forms (codex.md §4, §8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from ctxscope.agents import Before, Log
from ctxscope.agents.codex import base, options
from ctxscope.agents.codex.history import RETOLD, Form
from ctxscope.agents.codex.items import METADATA, PASSTHROUGH, spelled
from ctxscope.agents.codex.points import call_of
from ctxscope.agents.codex.served import Facts, facts, last_item
from ctxscope.agents.codex.shell_outputs import is_free_form
from ctxscope.agents.codex.taught import (
    TRIGGER,
    Held,
    Kind,
    Option,
    Shown,
    Taught,
    base_shown,
    base_text,
    key_of,
    parsed,
    prompt_of,
    purpose_of,
    taught,
    unlogged_reasoning,
)
from ctxscope.model import Body, Learnable, Learned, Point, Value
from ctxscope.wire.blocks import mapped, string
from ctxscope.wire.raw_object import member_texts
from ctxscope.wire.raw_object import spelled as joined

_OPTION = "follows from the model, its provider and the settings, which are not logged"
OPTIONS = ("parallel_tool_calls", "store", "include", "stream_options", "service_tier", "text", "access_programs")
LEARNABLE = (
    Learnable("/tools", "tools are not in a rollout"),
    Learnable(
        "/client_metadata", "made for each request, its keys in random order; ids it shares with the log are logged"
    ),
    *(Learnable(f"/{name}", _OPTION) for name in OPTIONS),
    Learnable(
        "/reasoning", "whether a model reasons, and how where the settings leave it open, follows from the model"
    ),
    Learnable("/model", "a rollout without a turn context does not name the model"),
    Learnable("/tool_choice", "a request to compact has none; which kind a call was is not logged"),
    Learnable("/instructions", "older rollouts hold no base instructions"),
    Learnable("/prompt_cache_key", "named in the log, but for requests that carry none"),
    Learnable("/input/0/id", "the id of the item that holds the base instructions is not logged"),
    Learnable("/input/0/content/0/text", "a rollout without base instructions does not hold that item's text"),
    Learnable("/input/*/content/0/text", "the prompt of a local compaction is not logged; it ends the input"),
    Learnable("/input/*/id", "nor is the id of that prompt"),
    Learnable(f"/input/*/{PASSTHROUGH}", "a request's copy of what items belong to, on items that the log lacks"),
    Learnable(f"/input/*/{METADATA}", "the same of items' metadata"),
    Learnable("/previous_response_id", "a WebSocket is warmed by a request that is not logged, and may be continued"),
)
"""All that a rollout does not hold of a request."""
TEXT = "/input/0/content/0/text"
INSTALLATION = "x-codex-installation-id"
"""The one name in ``client_metadata`` whose value is neither in the log nor another in each request."""
HELD = ("tools", *OPTIONS, "model", "instructions", "prompt_cache_key")
"""Top-level keys whose values are learned as they are."""


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Values and forms for one call: what the first one that can be read and showed a thing showed, holds."""
    if body.api not in (None, "openai-responses"):
        return Learned(choice={"api": body.api})
    known = taught(log, point, body, before)
    own = facts(log, body.sha256, lambda: body)
    kind = known.kinds.get(key_of(point, own))
    if kind is None or kind.first.at > len(before):
        kind = Kind(Held(len(before), point, own), {point.turn: Held(len(before), point, own)})
        kind.reasoning = {n: Held(len(before), point, v) for n, v in unlogged_reasoning(point, own).items()}
    lesson = Lesson(log, point, body, own, len(before), known, kind)
    lesson.options()
    lesson.reasoning()
    lesson.base()
    lesson.continued()
    if point.kind == "compaction":
        lesson.prompt()
    lesson.metadata()
    form = known.form(len(before)) | lesson.retelling()
    choice = {"purpose": purpose_of(point, own), "form": form, "taught": lesson.taught}
    return Learned(lesson.values, lesson.keys(), tuple(lesson.words), {**choice, **lesson.choice})


@dataclass(slots=True, eq=False)
class Lesson:
    """What holds for one call."""

    log: Log
    point: Point
    body: Body
    own: Facts
    at: int
    known: Taught
    kind: Kind
    values: dict[str, Value] = field(default_factory=dict)
    taught: dict[str, str] = field(default_factory=dict)
    """By path, the place of the earlier call's answer that a value or its absence was learned from."""
    words: list[str] = field(default_factory=list)
    choice: dict[str, Any] = field(default_factory=dict)

    def keys(self) -> tuple[str, ...]:
        """Top-level keys in order, as the first call of the kind has them; whether it goes on is the call's own."""
        if not self.kind.first.value.readable:
            return ()
        known = options.keys(self.kind, self.point.turn)
        keys = [k for k in known if k != "previous_response_id"]
        if "previous_response_id" in self.own.values and "input" in keys:
            keys.insert(keys.index("input"), "previous_response_id")
        return tuple(keys)

    def options(self) -> None:
        """Tools and options, each as the kind's first call had it, or had it not; some as the first of the turn."""
        known = options.held(self.kind, self.point.turn)
        for name in HELD:
            if name in known or name in self.own.values:
                option = known.get(name, Option(self.kind.first, None))
                self._hold(f"/{name}", option.shown, option.value)
        self.words += options.told(self.kind, self.point.turn)

    def retelling(self) -> Form:
        """What the tools have to do with the form of their outputs (codex.md §4; source)."""
        tools = self.values.get("/tools")
        free = tools is not None and tools.data is not None and offers_free_form(tools.data)
        return frozenset({RETOLD} if free else ())

    def reasoning(self) -> None:
        """What the log leaves open of the reasoning, as the first call that had to leave it open had it."""
        for name, held in self.kind.reasoning.items():
            if held.at <= self.at:
                path = f"/reasoning/{name}" if name else "/reasoning"
                self._hold(path, held, held.value)

    def base(self) -> None:
        """The base instructions as the first call carried them: where they stand, and how much of them."""
        held = self.known.base
        if held is None or held.at > self.at:
            shown = base_shown(self.log, self.point, self.own)
            if shown is None:
                return
            held = Held(self.at, self.point, shown)
        shown = held.value
        assert isinstance(shown, Shown)
        self.choice["kept"] = shown.kept
        if shown.kept is not None and (words := base.told(shown.kept, base_text(self.log) or "")):
            self.words.append(words)
        if shown.members is None:
            self._hold("/instructions", held, shown.text)
            return
        self.choice["members"] = base_members(shown.members)
        for name, value in shown.members.items():
            if name in (PASSTHROUGH, METADATA):
                own = mapped(parsed(self.own.first))
                if name in own:
                    self.values[f"/input/0/{name}"] = Value(spelled(own[name]), "echoed")
            elif name == "id":
                self._hold(f"/input/0/{name}", held, value)
        if shown.kept is None:
            self._hold(TEXT, held, shown.text)

    def metadata(self) -> None:
        """Names as the first call of the kind had them, values the call's own, but for the installation's."""
        own, held = self.own.values.get("client_metadata"), self.kind.metadata.get(self.point.kind)
        first = held.value if held is not None and held.at <= self.at else own
        if own is None or first is None:
            return
        given, names = metadata_of(own), metadata_of(first)
        said = {**{n: v for n, v in given.items() if n in names}, **{n: v for n, v in names.items() if n not in given}}
        self.values["/client_metadata"] = Value(joined(said) if names else first, "echoed")
        if held is not None and INSTALLATION in names:
            self._hold(f"/client_metadata/{INSTALLATION}", held, names[INSTALLATION])

    def continued(self) -> None:
        """Whether a message of a WebSocket carries only what is new, and since when."""
        raw = self.own.values.get("previous_response_id")
        if raw is None:
            return
        name = string(parsed(raw))
        self.choice["continues"] = name
        self.choice["count"] = self.own.count
        self.values["/previous_response_id"] = Value(raw, "echoed")
        self.words.append("sent over a WebSocket as what is new since an earlier response")

    def prompt(self) -> None:
        """The item a compaction ends its request with, which is not logged."""
        if self.own.is_short:
            return
        item, at = last_item(self.body), f"/input/{self.own.count - 1}"
        call = call_of(self.point)
        if item.get("type") == TRIGGER:
            self.choice["tail"] = tuple(item)
        elif call is not None and prompt_of(item) is not None and item.get("role") == b'"user"':
            self.choice["tail"] = tuple(item)
            held = self.kind.prompt
            text = held.value if held is not None and held.at <= self.at else None
            where = held if held is not None and text is not None else Held(self.at, self.point, None)
            self._hold(f"{at}/content/0/text", where, text or prompt_of(item))
        for name in ("id", PASSTHROUGH, METADATA):
            if name in item:
                self.values[f"{at}/{name}"] = Value(item[name], "echoed")
        self.choice["tail at"] = at

    def _hold(self, path: str, held: Held, value: bytes | None) -> None:
        """What a call showed at a path holds here; that it has no such key is held too."""
        if held.at < self.at:
            self.taught[path] = held.point.place.at
        if value is not None:
            provenance: Literal["learned", "echoed"] = "learned" if held.at < self.at else "echoed"
            self.values[path] = Value(value, provenance)


@lru_cache(maxsize=32)
def offers_free_form(tools: bytes) -> bool:
    """Whether tools as spelled offer patches as a free-form tool."""
    return is_free_form(parsed(tools))


def base_members(shown: Mapping[str, bytes]) -> tuple[str, ...]:
    """Members of the item with the base instructions in order: what makes a message, and what may stand beside that."""
    needed = ("type", "role", "content")
    names = [n for n in shown if n in (*needed, "id", PASSTHROUGH, METADATA)]
    if tuple(n for n in names if n in needed) == needed:
        return tuple(names)
    return ("type", *(n for n in names if n not in needed), "role", "content")


def metadata_of(value: bytes) -> Mapping[str, bytes]:
    """The members of ``client_metadata`` in the order sent; nothing where it is no object."""
    try:
        return member_texts(value)
    except ValueError:
        return {}
