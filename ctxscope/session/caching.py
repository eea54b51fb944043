"""Each served call with its parent, and what became of the parent's cached prefix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ctxscope.analysis.breaks import judge_cache
from ctxscope.analysis.parents import ParentIndex, prompt
from ctxscope.model import CacheVerdict
from ctxscope.session.calls import Slot
from ctxscope.session.traffic import Key, Traffic


@dataclass(eq=False)
class Caching:
    """Judges calls in order of arrival, remembering each verdict by the exchanges it was made from."""

    traffic: Traffic
    _memo: dict[tuple[object, ...], CacheVerdict] = field(default_factory=dict)

    def judge(
        self, slots: Sequence[Slot], markers: Mapping[int, Sequence[str]]
    ) -> dict[int, tuple[int | None, CacheVerdict]]:
        """Parent's number and verdict by call number, for every call with a served side that is a model call."""
        index = ParentIndex()
        found: dict[int, tuple[int | None, CacheVerdict]] = {}
        by_n = {slot.n: slot for slot in slots}
        last: dict[tuple[int, str], int] = {}
        for slot in slots:
            heard = slot.heard
            body = self.traffic.effective(heard.key) if heard and heard.api else None
            if heard is None or heard.api is None:
                continue
            if body is None:
                found[slot.n] = (None, CacheVerdict("unknown", why="the call it continues is not in the recording"))
                continue
            segments = prompt(body)
            lineage = (id(slot.session), slot.lineage)
            parent = index.find(segments)[0] or last.get(lineage)
            index.add(slot.n, segments)
            last[lineage] = slot.n
            found[slot.n] = (
                parent,
                self._verdict(slot, by_n[parent] if parent else None, tuple(markers.get(slot.n, ()))),
            )
        return found

    def _verdict(self, slot: Slot, parent: Slot | None, markers: tuple[str, ...]) -> CacheVerdict:
        assert slot.heard is not None
        other: Key | None = parent.heard.key if parent and parent.heard else None
        branched = bool(slot.point and slot.point.branched_from)
        before = parent.heard if parent else None
        answers = (slot.heard.exchange.response_bytes, before.exchange.response_bytes if before else None)
        key = (slot.heard.key, other, answers, markers, branched)
        if key not in self._memo:
            reply = slot.heard.reply
            self._memo[key] = judge_cache(
                self.traffic.effective(slot.heard.key),
                self.traffic.effective(other) if other else None,
                usage=reply.usage if reply else None,
                parent_usage=before.reply.usage if before and before.reply else None,
                branched=branched,
                markers=markers,
                gap_seconds=slot.heard.exchange.time - before.exchange.time if before else None,
                provider_says=reply.diagnostics if reply else None,
            )
        return self._memo[key]
