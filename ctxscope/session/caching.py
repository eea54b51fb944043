"""Each served call with its parent, and what became of the parent's cached prefix."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ctxscope.analysis.breaks import judge_cache
from ctxscope.analysis.costs import timed, unbilled
from ctxscope.analysis.echoes import echoes
from ctxscope.analysis.evidence import Around, kept_by
from ctxscope.analysis.parents import Found, ParentIndex
from ctxscope.analysis.prompts import Prompt, is_kin, made, prompt_of
from ctxscope.analysis.providers import Providers
from ctxscope.analysis.providers.rules import Rules
from ctxscope.analysis.respelling import depth_of
from ctxscope.model import Body, CacheVerdict
from ctxscope.session.between import are_foreign, engine_of, hosts_of, is_apart, is_ready, one_store
from ctxscope.session.calls import Slot
from ctxscope.session.fold import SessionLog
from ctxscope.session.snapshot import says_of, usage_of
from ctxscope.session.traffic import Heard, Traffic, provider_of

_AT_HAND = 8
"""Prompts kept to make the next ones from: subagents and side calls interleave."""
_LOOKED_BACK = 256
"""Calls that are gone back for what was kept of a prompt."""
_UNKNOWN = CacheVerdict("unknown", why="the call it continues is not in the recording")


@dataclass(frozen=True, slots=True)
class _Judged:
    """A verdict and all it was made from."""

    slot: Slot
    markers: tuple[str, ...]
    parent: int | None
    """Place of the parent among the served calls."""
    made_from: tuple[Any, ...]
    verdict: CacheVerdict
    kept: tuple[int, int] | None = None
    """Leading segments of its prompt that its provider says it keeps, and as how many tokens."""
    depth: int = 0
    """Leading segments it shares with its parent."""
    chain: int = 0
    """Stands for what it and those it goes on from are kept as."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """Where a call's prompt stands among those before it; the log has no say in this."""

    request: tuple[Any, ...]
    """What tells the effective request from another."""
    known: bool
    """False when it continues a call that is not here."""
    near: int | None
    """Place of the call that shares the longest prefix."""
    refused: bool = False
    """The provider refused it: it read and kept nothing, and no call goes on from it."""
    decided: tuple[tuple[int, int | None, float | None], ...] = ()
    """Calls whose replies had a say in that: place, length of the reply, and when it began."""


@dataclass(eq=False)
class Caching:
    """Judges calls in order of arrival, each again only when something it was judged by has changed.

    Calls are named by their place among the served model calls, which new calls at the end leave as it is.
    """

    traffic: Traffic
    providers: Providers = field(default_factory=Providers)
    _judged: list[_Judged] = field(default_factory=list)
    _placed: list[_Placed] = field(default_factory=list)
    _index: ParentIndex = field(init=False)
    _recent: deque[tuple[int, Prompt]] = field(default_factory=lambda: deque(maxlen=_AT_HAND))
    _calls: Sequence[Slot] = ()

    def __post_init__(self) -> None:
        self._index = ParentIndex(lambda call: self._prompt(call - 1))

    def judge(
        self, slots: Sequence[Slot], markers: Mapping[int, Sequence[str]]
    ) -> dict[int, tuple[int | None, CacheVerdict]]:
        """Parent's number and verdict by call number, for every call with a served side that is a model call."""
        self._calls = calls = [slot for slot in slots if slot.heard is not None and slot.heard.api is not None]
        marks = [tuple(markers.get(slot.n, ())) for slot in calls] if markers else [()] * len(calls)
        pairs = zip(self._judged, calls, marks, strict=False)
        same = next(
            (i for i, (was, slot, now) in enumerate(pairs) if was.slot is not slot or was.markers != now),
            min(len(self._judged), len(calls)),
        )
        self._forget(self._still_placed(same))
        before, self._judged = self._judged[same:], self._judged[:same]
        for place in range(same, len(calls)):
            if place == len(self._placed):
                self._placed.append(self._find(place))
            known = before[place - same] if place - same < len(before) else None
            self._judged.append(self._judge(place, marks[place], known))
        return {
            slot.n: (calls[found.parent].n if found.parent is not None else None, found.verdict)
            for slot, found in zip(calls, self._judged, strict=True)
        }

    # --- prompts among prompts ---------------------------------------------------------------------------------------

    def _still_placed(self, start: int) -> int:
        """Number of leading calls whose requests are what they were; those before ``start`` are."""
        kept = start
        while kept < min(len(self._placed), len(self._calls)):
            placed, heard = self._placed[kept], self._heard(kept)
            if placed.refused != heard.refused:
                break
            if not placed.known and self.traffic.effective(heard.key) is not None:
                break
            if placed.request != self.traffic.request_of(heard):
                break
            if placed.decided != tuple(self._answer_of(place) for place, _, _ in placed.decided):
                break
            kept += 1
        return kept

    def _forget(self, start: int) -> None:
        """Take the calls from ``start`` on out again, the last one first."""
        for place in range(len(self._placed) - 1, start - 1, -1):
            if self._placed[place].known and not self._placed[place].refused:
                self._index.drop(place + 1)
        del self._placed[start:]
        self._recent = deque((item for item in self._recent if item[0] < start), maxlen=_AT_HAND)

    def _find(self, place: int) -> _Placed:
        heard = self._heard(place)
        if heard.is_continuation and self.traffic.effective(heard.key) is None:
            return _Placed(self.traffic.request_of(heard), known=False, near=None)
        base = self._kin(heard)
        mine = self._make(heard, base[1] if base else None)
        near = (base[0] + 1, mine.common) if base else None
        found = self._index.take(place + 1, mine, near)
        refused = heard.refused
        if refused:
            self._index.drop(place + 1)
        else:
            self._recent.append((place, mine))
        decided = tuple(self._answer_of(call - 1) for call in (found.ended, found.call) if call is not None)
        parent = found.ended if found.ended is not None and self._goes_on(mine, found) else found.call
        begun = self._begun(heard, found.depth, parent - 1) if parent else None
        return _Placed(self.traffic.request_of(heard), known=True, near=begun, refused=refused, decided=decided)

    def _begun(self, heard: Heard, depth: int, near: int) -> int | None:
        """The call that one can have parted from: nobody rewrites a history before the reply to it has begun."""
        at: int | None = near
        while at is not None:
            first = self._heard(at).exchange.first_byte
            if first is None or first <= heard.exchange.time or depth >= len(self._prompt(at).segments):
                return at
            at = self._placed[at].near
        return near

    def _answer_of(self, place: int) -> tuple[int, int | None, float | None]:
        exchange = self._heard(place).exchange
        return place, exchange.response_bytes, exchange.first_byte

    def _goes_on(self, mine: Prompt, found: Found) -> bool:
        """Whether a call answers an earlier one that another, sent at the same time, only shares its beginning with."""
        assert found.ended is not None
        reply = self._heard(found.ended - 1).reply
        if not echoes(mine, found.depth, reply):
            return False
        return found.call is None or not echoes(self._prompt(found.call - 1), found.depth, reply)

    def _kin(self, heard: Heard) -> tuple[int, Prompt] | None:
        """A prompt at hand that the request was cut with."""
        if heard.is_continuation:
            return self._recent[-1] if self._recent else None
        return next((item for item in reversed(self._recent) if is_kin(heard.segments, item[1])), None)

    def _prompt(self, place: int) -> Prompt:
        for known, found in reversed(self._recent):
            if known == place:
                return found
        return self._make(self._heard(place), None)

    def _make(self, heard: Heard, before: Prompt | None) -> Prompt:
        if heard.is_continuation:
            return prompt_of(self._body(heard), before)
        api = heard.api.name if heard.api else None
        return made(api, heard.segments, heard.settings, partial(self._body, heard), before)

    def _body(self, heard: Heard) -> Body:
        body = self.traffic.effective(heard.key)
        assert body is not None  # only calls whose request is known have a prompt
        return body

    def _heard(self, place: int) -> Heard:
        heard = self._calls[place].heard
        assert heard is not None
        return heard

    # --- verdicts ----------------------------------------------------------------------------------------------------

    def _judge(self, place: int, markers: tuple[str, ...], before: _Judged | None) -> _Judged:
        slot, heard, placed = self._calls[place], self._heard(place), self._placed[place]
        if not placed.known:
            return _Judged(slot, markers, None, (), _UNKNOWN)
        branched, origin = self._branch(place)
        parent = origin if origin is not None else self._kept_where(place)
        parent = self._before_in_lineage(place) if parent is None else parent
        other = self._calls[parent] if parent is not None else None
        evicted_by = self._evicted_by(parent, place)
        made_from = (
            *(
                heard,
                usage_of(slot),
                says_of(slot),
                placed.request,
                markers,
                branched,
                are_foreign(slot, other, self._calls),
                evicted_by,
            ),
            *((other.heard, usage_of(other), self._placed[parent].request) if other and parent is not None else ()),
            *(self.traffic.inbound.of(h.exchange) for h in (heard, other.heard if other else None) if h is not None),
            (self._judged[parent].chain, self._nothing_read(parent)) if parent is not None else (),
        )
        if before is not None and before.made_from == made_from:
            return replace(before, slot=slot, markers=markers, parent=parent)
        rules = self._rules(heard, place if parent is None else parent)
        around = Around(markers, edits=heard.reply.edits if heard.reply else ())
        if parent is not None:
            around = self._around(around, place, parent, rules)
            around = replace(around, branched=branched, evicted_by=evicted_by if rules.mode == "slots" else None)
        verdict = judge_cache(
            self._prompt(place),
            self._prompt(parent) if parent is not None else None,
            rules,
            around,
            usage=usage_of(slot),
            parent_usage=usage_of(other) if other else None,
            provider_says=says_of(slot),
            doubts=heard.reply.doubts if heard.reply else (),
        )
        spent, first = heard.reply.prompt_seconds if heard.reply else None, heard.exchange.first_byte
        waited = first - heard.exchange.time if first is not None else None
        if placed.refused:
            verdict = unbilled(verdict)
        verdict = timed(verdict, rules, usage_of(slot), spent, waited)
        mine = self._prompt(place)
        depth = depth_of(mine, self._prompt(parent), rules) if parent is not None else 0
        kept = kept_by(mine, usage_of(slot), rules)
        chain = hash((self._judged[parent].chain if parent is not None else 0, depth, kept))
        return _Judged(slot, markers, parent, made_from, verdict, kept, depth, chain)

    def _kept_where(self, place: int) -> int | None:
        """The call that shares the longest prefix, of those whose prompts are kept where this one is looked for.

        A prompt that was kept by one host is nothing to another: who comes back to the first reads what that had kept.
        Where none was sent there before, it is the one of the other host. Reads show whether two keys share a store.
        """
        near, mine = self._placed[place].near, self._heard(place)
        if near is None:
            return None
        at, rules = self._placed[place].near, self._rules(mine, place)
        for _ in range(_LOOKED_BACK):
            if at is None:
                break
            if one_store(mine, self._heard(at), rules) or self._read_across(mine, at, rules):
                return at
            at = self._placed[at].near
        return near

    def _read_across(self, mine: Heard, place: int, rules: Rules) -> bool:
        """Whether an earlier call, sent with another key, read what was kept where ``mine`` looks."""
        usage, parent = usage_of(self._calls[place]), self._judged[place].parent
        if parent is None or usage is None or (usage.cache_read or 0) <= rules.tolerance:
            return False
        return not is_apart(mine, self._heard(place), rules) and one_store(mine, self._heard(parent), rules)

    def _nothing_read(self, place: int) -> bool:
        """Whether a call read nothing of what it shares with its parent."""
        usage = usage_of(self._calls[place])
        return self._judged[place].parent is not None and usage is not None and usage.cache_read == 0

    def _kept_within(self, place: int, limit: int) -> tuple[int, int] | None:
        """The last entry known to be kept in the first ``limit`` segments of a call's prompt, and its tokens.

        ``(0, 0)`` when nothing in there was ever kept; ``None`` when a call did not report what it kept, or that is too
        long ago to be looked up.
        """
        at: int | None = place
        for _ in range(_LOOKED_BACK):
            if at is None or limit <= 0:
                return 0, 0
            judged = self._judged[at]
            if judged.kept is None or judged.kept[0] <= limit:
                return judged.kept
            at, limit = judged.parent, min(limit, judged.depth)
        return None

    def _around(self, around: Around, place: int, parent: int, rules: Rules) -> Around:
        """What is known beside the prompts of a call and its parent."""
        slot, heard, other = self._calls[place], self._heard(place), self._heard(parent)
        return replace(
            around,
            headers=(heard.exchange.headers, other.exchange.headers),
            gap=gap if (gap := heard.exchange.time - other.exchange.time) >= 0 else None,
            ready=is_ready(other, heard, rules),
            served_by=(
                heard.reply.served_by if heard.reply else None,
                other.reply.served_by if other.reply else None,
            ),
            continues=self._answers(place, parent, rules),
            foreign=are_foreign(slot, self._calls[parent], self._calls),
            upstreams=hosts_of(heard, other),
            given_intact=partial(self.traffic.inbound.goes_on, heard.exchange, other.exchange, rules),
            nothing_before=self._nothing_read(parent),
            kept_within=partial(self._kept_within, parent),
        )

    def _rules(self, heard: Heard, kept: int) -> Rules:
        """How the provider that was asked keeps prompts of the model that was asked for, marked as that of ``kept`` is."""
        return self._rules_for(heard, self._prompt(kept))

    def rules_of(self, heard: Heard) -> Rules:
        """How the provider that was asked keeps the prompt of a call."""
        return self._rules_for(heard, self._make(heard, None))

    def _rules_for(self, heard: Heard, kept: Prompt) -> Rules:
        api, marked = heard.api.name if heard.api else None, bool(kept.marks or kept.marked_whole)
        return self.providers.rules(provider_of(heard, self.providers), heard.model, api, marked=marked)

    def _evicted_by(self, parent: int | None, place: int) -> int | None:
        """The last call an engine served between two, unless it went on from the first of them itself."""
        if parent is None or place - parent < 2:  # noqa: PLR2004 - nothing in between
            return None
        engine = engine_of(self._heard(place))
        for i in range(place - 1, parent, -1):
            if engine_of(self._heard(i)) == engine and self._placed[i].near != parent:
                return self._calls[i].n
        return None

    def _answers(self, place: int, parent: int, rules: Rules) -> bool:
        """Whether a call repeats its parent's reply somewhere behind what both share."""
        mine, theirs = self._prompt(place), self._prompt(parent)
        depth = depth_of(mine, theirs, rules)
        if depth == len(theirs.segments):
            return True  # nothing to be told apart
        return echoes(mine, depth, self._heard(parent).reply)

    def _before_in_lineage(self, place: int) -> int | None:
        """The call before, for one that shares nothing with any: a clock in a prompt that begins with the system text."""
        mine = self._calls[place]
        return next(
            (
                i
                for i in range(place - 1, -1, -1)
                if self._placed[i].known
                and self._calls[i].session is mine.session
                and self._calls[i].lineage == mine.lineage
            ),
            None,
        )

    def _branch(self, place: int) -> tuple[bool, int | None]:
        """Whether the log shows a branch left on purpose, and the place of the call it branched from.

        That call may be one of a session which this one continues (a fork). Only the first attempt at a point leaves a
        branch; another one repeats the first.
        """
        slot = self._calls[place]
        key = slot.point.branched_from if slot.point else None
        if key is None or slot.session is None or slot.point is None:
            return False, None
        if self._last(place, slot.session, slot.point.key) is not None:
            return False, None
        session: SessionLog | None = slot.session
        for _ in range(len(self._calls)):  # sessions that name each other as parents must not hang
            if session is None:
                break
            found = self._last(place, session, key)
            if found is not None:
                return True, found
            session = self._continued(session)
        return True, None

    def _last(self, place: int, session: SessionLog, key: str) -> int | None:
        """The last call before ``place`` at a point of a session."""
        for i in range(place - 1, -1, -1):
            slot = self._calls[i]
            if slot.session is session and slot.point is not None and slot.point.key == key and self._placed[i].known:
                return i
        return None

    def _continued(self, session: SessionLog) -> SessionLog | None:
        """The session that a session continues, when calls of it are here."""
        name = session.ref.parent
        return next((s.session for s in self._calls if name and s.session and s.session.ref.id == name), None)
