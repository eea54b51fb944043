"""What joined calls taught, in their order: of each kind the first one that can be read and shows a thing holds it.

Kinds are calls to one model, by HTTP or by a WebSocket, of one purpose (``main``, ``local`` and ``short`` compaction).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.codex import base
from ctxscope.agents.codex.fold import folded
from ctxscope.agents.codex.history import Form
from ctxscope.agents.codex.items import METADATA, PASSTHROUGH
from ctxscope.agents.codex.points import call_of
from ctxscope.agents.codex.served import Facts, facts, last_item, marked_items
from ctxscope.model import Body, Point
from ctxscope.wire import json_text
from ctxscope.wire.blocks import listed, mapped, string
from ctxscope.wire.raw_object import member_texts

TRIGGER = b'"compaction_trigger"'
"""Type of the item that asks the server for a compaction (codex.md §5)."""
Key = tuple[str, bool, str]
"""Purpose, whether it goes by a WebSocket, model."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A thing and the call that showed it first."""

    at: int
    """Place of the call among the joined ones."""
    point: Point
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """An option as a call showed it."""

    shown: Held
    value: bytes | None
    """Spelled; ``None`` for no such key."""
    words: str = ""
    """What about it is another than before, where it is."""


@dataclass(eq=False, slots=True)
class Kind:
    """What the calls of one kind taught."""

    first: Held
    """``Facts`` of the first that can be read."""
    turns: dict[int, Held] = field(default_factory=dict)
    """The same of the first in each turn, by its number."""
    known: dict[int, Mapping[str, Option]] = field(default_factory=dict)
    """What ``options`` made of them, by turn."""
    reasoning: dict[str, Held] = field(default_factory=dict)
    """By member of ``reasoning``, where the log does not say it: its bytes, ``None`` for no such member."""
    prompt: Held | None = None
    """Text of the message that asks for a summary, as spelled."""
    metadata: dict[str, Held] = field(default_factory=dict)
    """By kind of the point, ``client_metadata`` of the first as spelled; ``None`` for no such key."""


@dataclass(eq=False, slots=True)
class Taught:
    """What a row of calls taught. Of a shorter row that it begins with all that was held by then."""

    calls: list[tuple[Point, str]] = field(default_factory=list)
    same_as: Sequence[tuple[Point, str]] = ()
    """The list of calls it was last asked about, which only grows, so that each call is compared once."""
    same: int = 0
    """How many of its first calls are known to be these."""
    kinds: dict[Key, Kind] = field(default_factory=dict)
    base: Held | None = None
    """Members of the item, or the instructions, that hold the base instructions: spelled values, and lines kept."""
    forms: dict[str, Held] = field(default_factory=dict)
    """By wire-only member (``name`` or ``name/inner``) whether it is sent."""

    def take(self, log: Log, point: Point, digest: str, load: Callable[[], Body]) -> None:
        """Add the next call."""
        at = len(self.calls)
        self.calls.append((point, digest))
        own = facts(log, digest, load)
        if not own.readable or own.api not in (None, "openai-responses"):
            return
        key = key_of(point, own)
        kind = self.kinds.setdefault(key, Kind(Held(at, point, own)))
        if point.turn not in kind.turns:
            kind.turns[point.turn] = Held(at, point, own)
        kind.metadata.setdefault(point.kind, Held(at, point, own.values.get("client_metadata")))
        for name, value in unlogged_reasoning(point, own).items():
            kind.reasoning.setdefault(name, Held(at, point, value))
        if self.base is None and (shown := base_shown(log, point, own)) is not None:
            self.base = Held(at, point, shown)
        if kind.prompt is None and key[0] == "local":
            kind.prompt = Held(at, point, prompt_of(last_item(load())))
        for name, sent in self._forms_shown(point, own, load).items():
            self.forms[name] = Held(at, point, sent)

    def parting(self, told: Sequence[tuple[Point, str]], upto: int) -> int | None:
        """The first of ``upto`` calls, in a list that only grows, that is another than here; ``None`` for none."""
        upto = min(upto, len(self.calls))
        if self.same_as is not told:
            self.same_as, self.same = told, 0
        for at in range(self.same, upto):
            if self.calls[at] != told[at]:
                self.same = at
                return at
        self.same = max(self.same, upto)
        return None

    def _forms_shown(self, point: Point, own: Facts, load: Callable[[], Body]) -> dict[str, bool]:
        """Of the wire-only members that the log has by now and no call showed, whether this one sends them."""
        call = call_of(point)
        if call is None:
            return {}
        logged = call.history.extras(call.length)
        if "previous_response_id" in own.values:
            # it carries the last items alone; counted with the one a compaction ends with, which the log lacks
            start = max(0, call.length - own.count)
            logged = frozenset(chain.from_iterable(i.extras for i in call.history.items[start : call.length]))
        new = logged - self.forms.keys()
        if not new:
            return {}
        sent: set[str] = set()
        for item in marked_items(load()):
            for name in (PASSTHROUGH, METADATA):
                if name in item:
                    sent |= {name, *(f"{name}/{inner}" for inner in mapped(item[name]))}
        return {name: name in sent for name in new}

    def forget(self, start: int) -> None:
        """Take the calls from ``start`` on out again."""
        del self.calls[start:]
        self.same = min(self.same, start)
        self.kinds = {k: kind for k, kind in self.kinds.items() if kind.first.at < start}
        self.forms = {k: held for k, held in self.forms.items() if held.at < start}
        self.base = self.base if self.base is not None and self.base.at < start else None
        for kind in self.kinds.values():
            kind.turns = {turn: held for turn, held in kind.turns.items() if held.at < start}
            kind.known.clear()
            kind.reasoning = {k: held for k, held in kind.reasoning.items() if held.at < start}
            kind.prompt = kind.prompt if kind.prompt is not None and kind.prompt.at < start else None
            kind.metadata = {k: held for k, held in kind.metadata.items() if held.at < start}

    def form(self, upto: int) -> Form:
        """The wire-only members that items carry, as far as calls up to one tell."""
        return frozenset(name for name, held in self.forms.items() if held.value and held.at <= upto)


@dataclass(frozen=True, slots=True)
class Shown:
    """How a body carries the base instructions."""

    members: Mapping[str, bytes] | None
    """The item's members as spelled; ``None`` where they stand under ``instructions``."""
    text: bytes
    """The text as spelled."""
    kept: base.Kept | None
    """The lines of the logged text that it has to be made of; ``None`` where none is logged."""


def key_of(point: Point, own: Facts) -> Key:
    """Kind of a call by what it is for and what it was sent with."""
    call = call_of(point)
    model = string(parsed(own.values.get("model", b"")))
    model = (call.settings.model if call else None) or model
    return purpose_of(point, own), own.is_socket, model


def call_run(point: Point) -> int:
    """How often a new process had gone on with the session."""
    call = call_of(point)
    return call.run if call is not None else 0


def purpose_of(point: Point, own: Facts) -> str:
    """``main``; ``local`` for a summary asked for by a prompt, ``short`` for ``/responses/compact``."""
    if point.kind != "compaction":
        return "main"
    if own.is_short:
        return "short"
    return "local" if listed(parsed(own.values.get("tools", b""))) == [] else "main"


def parsed(value: bytes) -> Any:
    """A spelled value; ``None`` where it is none."""
    try:
        return json_text.loads_leniently(value) if value else None
    except ValueError:
        return None


def unlogged_reasoning(point: Point, own: Facts) -> dict[str, bytes | None]:
    """Members of ``reasoning`` that the log does not tell at a call, as sent; ``""`` for one that is no object."""
    raw = own.values.get("reasoning")
    if raw is None:
        return {}
    call = call_of(point)
    settings = call.settings if call is not None else None
    try:
        shown = member_texts(raw)
    except ValueError:
        return {"": raw}
    logged = {"effort": settings.effort, "summary": settings.summary} if settings is not None else {}
    names = {*shown, *logged}
    return {n: shown.get(n) for n in names if logged.get(n) is None}


def base_shown(log: Log, point: Point, own: Facts) -> Shown | None:
    """How a body carries the base instructions; ``None`` where it does not."""
    logged = base_text(log)
    if "instructions" in own.values:
        text = own.values["instructions"]
        return Shown(None, text, _kept(logged, text))
    call = call_of(point)
    if "previous_response_id" in own.values or (call and call.length and call.history.begins(own.first)):
        return None
    try:
        members = member_texts(own.first)
        text = member_texts(_only(members["content"]))["text"]
    except (ValueError, KeyError):
        return None
    return Shown(members, text, _kept(logged, text)) if members.get("role") == b'"developer"' else None


def _only(content: bytes) -> bytes:
    """The one part of a content."""
    return content[1:-1] if content[:1] == b"[" else content


def _kept(logged: str | None, spelled: bytes) -> base.Kept | None:
    text = parsed(spelled)
    return base.kept_lines(logged, text) if logged is not None and isinstance(text, str) else None


def base_text(log: Log) -> str | None:
    """The base instructions as logged."""
    text = mapped(folded(log).header.get("base_instructions")).get("text")
    return text if isinstance(text, str) else None


def prompt_of(item: Mapping[str, bytes]) -> bytes | None:
    """The text of a message of one text, as spelled."""
    try:
        return member_texts(_only(item["content"]))["text"]
    except (ValueError, KeyError):
        return None


def taught(log: Log, point: Point, body: Body, before: Before) -> Taught:
    """What the joined calls up to this one taught, this one included; continued from what was asked before."""
    memo = shared_memo(log, "codex.taught")
    kept: Taught | None = memo.get("kept")
    found = kept if kept is not None else Taught()
    own, upto = (point, body.sha256), len(before)
    other = found.parting(before.calls, upto)
    if other is None and found.calls[upto : upto + 1] not in ([], [own]):
        other = upto
    if other is not None and not upto:
        found = Taught()  # a question about one call alone must not cost what is known of them all
    elif other is not None:
        found.forget(other)
    if found is kept or upto or kept is None:
        memo["kept"] = found
    for at in range(len(found.calls), upto):
        found.take(log, *before.calls[at], partial(_load, before, at))
    if len(found.calls) == upto:
        found.take(log, *own, lambda: body)
    return found


def _load(before: Before, at: int) -> Body:
    return before[at][1]
