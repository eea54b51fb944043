"""What joined calls taught, in their order: of each kind the first one that can be read holds it (omp.md §4.10).

A kind is calls to one model by one API; what follows from the thinking level is held by level.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.omp import checksum, wording
from ctxscope.agents.omp.google import SENTINEL
from ctxscope.agents.omp.items import Item
from ctxscope.agents.omp.points import context_of, requests
from ctxscope.agents.omp.reminder import Zone, moment_of, reminders, served_date
from ctxscope.agents.pi.points import API_NAMES
from ctxscope.agents.pi.texts import blocks, string
from ctxscope.agents.reading.served import Facts, facts
from ctxscope.model import ApiName, Body, Point
from ctxscope.wire.spans import items as walk
from ctxscope.wire.spans import value_end

API_OF: Mapping[ApiName, str] = {ours: theirs for theirs, ours in API_NAMES.items()}
"""omp's name of each API, by ours."""
Key = tuple[str, str, str]
"""Provider, omp's name of the API, model."""
BILLING = b'[{"type":"text","text":"x-anthropic-billing-header: '
_SYSTEM_STARTS = (b'{"role":"system","content":"', b'{"role":"developer","content":"')
MOST_LEADING = 8
"""System messages that Chat Completions may begin with."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A thing and the call that showed it first."""

    at: int
    """Place of the call among the joined ones."""
    point: Point
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One body outside its conversation."""

    facts: Facts
    leading: tuple[bytes, ...] = ()
    """System messages that Chat Completions begin with, as spelled."""
    date: bytes | None = None
    """Of the reminder on the first message behind them."""


@dataclass(eq=False, slots=True)
class Kind:
    """What the calls of one kind taught."""

    first: Held
    """``Seen`` of the first that can be read."""
    levels: dict[str, Held] = field(default_factory=dict)
    """``Seen`` of the first at each thinking level."""
    forms: dict[str, Held] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Taught:
    """What a row of calls taught. Of a shorter row that it begins with all that was held by then."""

    calls: list[tuple[Point, str]] = field(default_factory=list)
    kinds: dict[Key, Kind] = field(default_factory=dict)
    zones: list[tuple[int, Zone]] = field(default_factory=lambda: [(-1, Zone())])
    """By place of the call that told it: the time zone as far as it was known then."""

    def take(self, log: Log, point: Point, digest: str, load: Callable[[], Body]) -> None:
        """Add the next call."""
        at = len(self.calls)
        self.calls.append((point, digest))
        seen = look(log, digest, load)
        api = API_OF.get(seen.facts.api, "") if seen.facts.api else ""
        if not seen.facts.bulk or not api:
            return
        first = Held(at, point, seen)
        kind = self.kinds.setdefault((str(point.data.get("provider")), api, str(point.data.get("model"))), Kind(first))
        kind.levels.setdefault(str(point.data.get("thinkingLevel")), first)
        for name, value in _shown(log, point, api, seen, load, kind).items():
            kind.forms.setdefault(name, Held(at, point, value))
        self._dated(log, point, seen, at)

    def zone(self, at: int) -> Zone:
        """The time zone as the calls up to the one at ``at`` tell it."""
        return next(zone for told, zone in reversed(self.zones) if told <= at)

    def forget(self, start: int) -> None:
        """Take the calls from ``start`` on out again."""
        del self.calls[start:]
        self.kinds = {k: kind for k, kind in self.kinds.items() if kind.first.at < start}
        self.zones = [z for z in self.zones if z[0] < start]
        for kind in self.kinds.values():
            kind.levels = {k: h for k, h in kind.levels.items() if h.at < start}
            kind.forms = {k: h for k, h in kind.forms.items() if h.at < start}

    def _dated(self, log: Log, point: Point, seen: Seen, at: int) -> None:
        """Learn of the zone from a call that attached the reminder to its first user message itself."""
        if seen.date is None:
            return
        zone = self.zones[-1][1]
        attached = reminders(log, point, requests(log), zone)
        if attached and attached[0].point == point.key and (told := zone.told(moment_of(point), seen.date)) != zone:
            self.zones.append((at, told))


def look(log: Log, digest: str, load: Callable[[], Body]) -> Seen:
    """A body outside its conversation, looked at the first time."""
    memo = shared_memo(log, "omp.seen")
    found: Seen | None = memo.get(digest) if digest else None
    if found is None:
        known = facts(log, digest, load)
        found = _look(known, load()) if known.bulk else Seen(known)
        memo[digest] = found
    return found


def _look(known: Facts, body: Body) -> Seen:
    """Leading system messages and the reminder behind them; nothing of the conversation is walked through."""
    leading: list[bytes] = []
    start = known.start
    if known.bulk == "messages" and known.head.startswith(_SYSTEM_STARTS):
        text = body.data[start - 1 :].decode("latin-1")
        first = next(r for r in _SYSTEM_STARTS if known.head.startswith(r))

        def visit(_: int, at: int) -> int:
            end = value_end(text, at)
            raw = body.data[start - 1 + at : start - 1 + end]
            if len(leading) >= MOST_LEADING or not raw.startswith(first):
                raise _Enough
            leading.append(raw)
            return end

        with contextlib.suppress(_Enough, ValueError):
            walk(text, 0, visit)
        start += sum(map(len, leading)) + len(leading)
    return Seen(known, tuple(leading), served_date(body.data, start))


class _Enough(Exception):  # noqa: N818 - ends a walk, no error
    pass


def taught(log: Log, point: Point, body: Body, before: Before) -> Taught:
    """What the joined calls up to this one taught, this one included; continued from what was asked before."""
    calls = [*before.told, (point, body.sha256)]
    memo = shared_memo(log, "omp.taught")
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


def _shown(log: Log, point: Point, api: str, seen: Seen, load: Callable[[], Body], kind: Kind) -> Mapping[str, Any]:
    """Choices among forms that one body shows, those alone that are not known yet."""
    context = context_of(log, point)
    if context is None:
        return {}
    trail, length = context
    items = trail.items[:length]
    found: dict[str, Any] = {}
    if api == "anthropic-messages" and "checksum" not in kind.forms:
        found |= _anthropic(seen, load)
    if api == "openai-completions" and "developer" not in kind.forms and seen.leading:
        found["developer"] = seen.leading[0].startswith(b'{"role":"developer"')
    if api == "openai-completions" and "reasoning" not in kind.forms:
        silent = any(i.role == "assistant" and not i.absent and not _thinks(i) for i in items)
        found |= {"reasoning": b'"reasoning_content":""' in load().data} if silent else {}
    if "vision" not in kind.forms and any(_pictured(i) for i in items):
        data = load().data
        found["vision"] = "replaced" if _REPLACED in data else "omitted" if _OMITTED in data else "images"
    return {**found, **(_google(items, load, kind) if api == "google-generative-ai" else {})}


_REPLACED, _OMITTED = wording.NO_VISION.encode(), wording.OMITTED.encode()


def _pictured(item: Item) -> bool:
    return item.role != "assistant" and any(b.get("type") == "image" for b in blocks(item.message.get("content")))


def _google(items: Sequence[Item], load: Callable[[], Body], kind: Kind) -> Mapping[str, Any]:
    """How a model of Google's is given calls and the images of their results."""
    found: dict[str, Any] = {}
    if "nested" not in kind.forms and any(i.role == "toolResult" and _pictured(i) for i in items):
        found["nested"] = b'},"parts":[{"inlineData":' in load().data
    calls = any(
        b.get("type") == "toolCall" for i in items if i.role == "assistant" for b in blocks(i.message["content"])
    )
    if "part_ids" not in kind.forms and calls:
        found["part_ids"] = _PART_ID.search(load().data) is not None
        found["sentinel"] = SENTINEL.encode() in load().data
    return found


_PART_ID = re.compile(rb'\{"functionResponse":\{"name":"[^"]*","response":\{(?:[^"\\{}]|"(?:[^"\\]|\\.)*")*\},"id":"')


def _thinks(item: Item) -> bool:
    found = blocks(item.message.get("content"))
    return any(b.get("type") == "thinking" and string(b.get("thinking")).strip() for b in found)


def _anthropic(seen: Seen, load: Callable[[], Body]) -> Mapping[str, Any]:
    system = seen.facts.values.get("system", b"")
    marked = seen.facts.values.get("tools", b"") + system + seen.facts.tail
    cache = "none" if b'"cache_control"' not in marked else "long" if b'"ttl":"1h"' in marked else "short"
    prefix = system.startswith(BILLING)
    return {"cache": cache, "prefix": prefix, "checksum": prefix and checksum.verifies(load().data) is True}
