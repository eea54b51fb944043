"""What joined calls taught, in their order: of each kind the first one that can be read and shows a thing holds it.

Kinds are calls to one model by one API. A body that cannot be read teaches nothing. What the first readable one of a
kind was sent without, the others are taught to lack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.pi import forms, texts
from ctxscope.agents.pi.points import API_NAMES, level_of, node_of, session_of
from ctxscope.agents.reading.served import Facts, facts
from ctxscope.model import ApiName, Body, Point

API_OF: Mapping[ApiName, str] = {ours: theirs for theirs, ours in API_NAMES.items()}
"""pi's name of each API, by ours."""
Key = tuple[str, str, str]
"""Provider, pi's name of the API, model."""
_NUMBER = re.compile(rb"[1-9][0-9]{0,15}")


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A thing and the call that showed it first."""

    at: int
    """Place of the call among the joined ones."""
    point: Point
    value: Any


@dataclass(frozen=True, slots=True)
class Cap:
    """An output cap as sent, and what it was made from."""

    tokens: int
    estimate: int
    """pi's own estimate of the prompt."""
    level: str
    """Thinking level whose budget the cap holds; ``off`` where it holds none."""


@dataclass(eq=False, slots=True)
class Kind:
    """What the calls of one kind taught."""

    first: Held
    """``Facts`` of the first that can be read."""
    forms: dict[str, Held] = field(default_factory=dict)
    levels: dict[str, Held] = field(default_factory=dict)
    """``Facts`` of the first at each thinking level."""
    caps: list[Held] = field(default_factory=list)
    """``Cap`` of each that had one."""


@dataclass(eq=False, slots=True)
class Taught:
    """What a row of calls taught. Of a shorter row that it begins with all that was held by then."""

    calls: list[tuple[Point, str]] = field(default_factory=list)
    kinds: dict[Key, Kind] = field(default_factory=dict)
    heads: dict[tuple[str, str], Held] = field(default_factory=dict)
    """``Facts`` and first message of the first call to a provider by an API, in versions that do not log the head."""

    def take(self, log: Log, point: Point, digest: str, load: Callable[[], Body]) -> None:
        """Add the next call."""
        at = len(self.calls)
        self.calls.append((point, digest))
        own = facts(log, digest, load)
        api = API_OF.get(own.api, "") if own.api else ""
        if not own.bulk or not api:
            return
        provider, model = str(point.data["provider"]), str(point.data["model"])
        if point.data["version"] == "0.73" and (provider, api) not in self.heads:
            self.heads[provider, api] = Held(at, point, (own, own.first_message(load())))
        first = Held(at, point, own)
        kind = self.kinds.setdefault((provider, api, model), Kind(first))
        level = level_of(point)
        kind.levels.setdefault(level, first)
        shown = forms.shown(api, own, level, session_of(log, point)[0])
        for name, value in shown.items():
            kind.forms.setdefault(name, Held(at, point, value))
        node = node_of(log, point)
        if node is None:
            return
        if "images" not in kind.forms and node.trail.pictures[node.length]:
            kind.forms["images"] = Held(at, point, texts.IMAGE_OMITTED.encode() not in load().data)
        cap = kind.forms.get("cap")
        sent = _cap_of(own, cap_name(api, cap.value if cap else None))
        if sent is not None:
            # Only the old cap grows with the budget: the new one is the model's limit, or what the window leaves.
            thinks = point.data["version"] == "0.73" and b'"budget_tokens"' in own.values.get("thinking", b"")
            estimate = node.trail.estimates[node.length].request
            kind.caps.append(Held(at, point, Cap(sent, estimate, level if thinks else "off")))

    def forget(self, start: int) -> None:
        """Take the calls from ``start`` on out again."""
        del self.calls[start:]
        self.kinds = {k: kind for k, kind in self.kinds.items() if kind.first.at < start}
        self.heads = _until(self.heads, start)
        for kind in self.kinds.values():
            kind.forms, kind.levels = _until(kind.forms, start), _until(kind.levels, start)
            kind.caps = [held for held in kind.caps if held.at < start]


def _until(held: Mapping[Any, Held], start: int) -> dict[Any, Held]:
    return {k: h for k, h in held.items() if h.at < start}


def taught(log: Log, point: Point, body: Body, before: Before) -> Taught:
    """What the joined calls up to this one taught, this one included; continued from what was asked before."""
    calls = [*before.told, (point, body.sha256)]
    memo = shared_memo(log, "pi.taught")
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


def torn(point: Point, own: Facts, api: str, at: int) -> Kind:
    """What a body that cannot be read shows of itself alone, before what is wrong with it."""
    first = Held(at, point, own)
    sent = _cap_of(own, cap_name(api, None))
    caps = [Held(at, point, Cap(sent, 0, "off"))] if sent is not None else []
    return Kind(first, levels={level_of(point): first}, caps=caps)


def _load(before: Before, at: int) -> Body:
    return before[at][1]


def cap_name(api: str, shown: str | None) -> str:
    """Key of the output cap, as shown where the API has two."""
    if api == "openai-completions":
        return shown or "max_completion_tokens"
    return {"anthropic-messages": "max_tokens", "openai-responses": "max_output_tokens"}.get(api, "")


def _cap_of(own: Facts, name: str) -> int | None:
    """The output cap a body carries, where it is a number as pi writes it."""
    raw = own.values.get(name, b"")
    return int(raw) if _NUMBER.fullmatch(raw) else None
