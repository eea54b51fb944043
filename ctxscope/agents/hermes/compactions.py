"""What each rewriting of history did: which rows it found, kept and put a summary in place of (hermes.md §3.3, §5, §6)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes.budget import PROTECT_LAST, Message, TailRule, without_envelope
from ctxscope.agents.hermes.estimate import estimates, list_tokens, message_tokens
from ctxscope.agents.hermes.generations import Generation
from ctxscope.agents.hermes.markers import Rewriting, kept_ends, rewritings
from ctxscope.agents.hermes.memory import memory_of
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.prompts import tools_of
from ctxscope.agents.hermes.rows import is_summary
from ctxscope.agents.hermes.runs import is_loaded, origins_of, runs_of
from ctxscope.agents.hermes.settings import threshold_at
from ctxscope.agents.hermes.tail import PROTECT_FIRST, RATIO, cut_of
from ctxscope.model import Compacted, Point, TailCut

_OLD, _NEW = "0.19", "0.20"
_MERGED = 4
"""Messages beyond the protected ones among which 0.20 looks for a summary of before a restart."""
_SETTINGS = {
    "compaction": ("threshold", "target_ratio", "protect_first_n", "protect_last_n", "in_place"),
    "micro": ("micro_compact_every_n_turns",),
    "defrag": ("micro_compact_every_n_turns",),
    "prune": ("proactive_prune_tokens",),
}


def compactions(log: Log) -> Sequence[Compacted]:
    """What each compaction, micro pass, defrag and prune did; by rows, and by agent.log where it is there."""
    calls = _Calls(log)
    memo: dict[int, tuple[Any, Compacted]] = shared_memo(log, "hermes.compactions")
    out: list[Compacted] = []
    for rewriting in rewritings(log):
        look = _Look(log, rewriting, calls)
        number = rewriting.after.rows[0].id
        if number not in memo or memo[number][0] != look.made_from:
            memo[number] = (look.made_from, look.told())
        out.append(memo[number][1])
    return out


class _Calls:
    """The calls of a log, to find the one before a row, and what the process that made it had loaded."""

    def __init__(self, log: Log) -> None:
        reading = reading_of(log)
        fresh = runs_of(log).fresh
        self._points = [p for p in reading.points if not p.data["dead"]]
        self._orders = [p.order[0] for p in self._points]
        self._starts = [row.id for row in reading.turns if fresh.get(row.id)]

    def before(self, row: int) -> Point | None:
        """The last call answered, or waiting, before a row."""
        at = bisect_left(self._orders, row)
        return self._points[at - 1] if at else None

    def boundary(self, row: int) -> int:
        """As ``loaded_before`` says, by agent.log alone, of the process that had a row as its last."""
        at = bisect_right(self._starts, row)
        return self._starts[at - 1] if at else 0


@dataclass(frozen=True, slots=True)
class _Limits:
    """Settings that decide where a batch compaction cuts."""

    budget: int | None
    first: int
    last: int
    asked: int
    """Inputs of the user's that the tail must hold: ``compression.min_tail_user_messages``."""


class _Look:
    """One rewriting of history."""

    def __init__(self, log: Log, rewriting: Rewriting, calls: _Calls) -> None:
        self._log, self._told = log, rewriting
        self._kind = rewriting.marker.kind
        self._before: Generation = rewriting.before
        self._rows = [row for row in rewriting.before.rows if not row.taken_back]
        self._carried = rewriting.after.rows[: rewriting.after.carried]
        entry = log.as_of("config:file", self._carried[0].entry.seq if self._carried else None)
        self._settings: Mapping[str, Any] = entry.data if entry is not None else {}
        self._last = calls.before(self._carried[0].id) if self._carried else None
        self._boundary = calls.boundary(self._rows[-1].id) if self._rows else 0
        self._limited = self._limits()
        self._compacted_before = rewriting.index > 0 and self._before.rows[0].id > self._boundary
        tools = tools_of(log, self._last) if self._last is not None else None
        self.made_from = (
            *(rewriting.marker, rewriting.seconds, self._rows, self._carried, entry, self._last, self._boundary),
            *(self._limited, self._compacted_before, tools),
        )
        """All that ``told`` looks at."""

    def told(self) -> Compacted:
        """All that is told of it."""
        head, cut = kept_ends(self._rows, self._carried)
        limits = self._limited
        before, after, unseen = self._reckoned()
        return Compacted(
            marker=self._told.marker,
            messages=tuple(row.entry.place for row in self._rows),
            head=head,
            cut=cut,
            rules=self._rules(limits) if self._kind == "compaction" else (),
            budget=limits.budget if self._kind == "compaction" else None,
            reckoned_before=before,
            reckoned_after=after,
            unseen=unseen,
            automatic=True if self._kind in {"micro", "defrag", "prune"} else None,
            seconds=self._told.seconds,
            setting=self._setting(),
        )

    def _setting(self) -> str:
        names = _SETTINGS.get(self._kind, ())
        found = [(name, self._settings.get(f"compression.{name}")) for name in names]
        return ", ".join(f"{name} {str(value).lower()}" for name, value in found if value is not None)

    def _limits(self) -> _Limits:
        ratio = self._settings.get("compression.target_ratio", RATIO)
        share = max(0.1, min(float(ratio), 0.8)) if isinstance(ratio, int | float) else RATIO
        threshold = threshold_at(self._log, self._settings)
        return _Limits(
            None if threshold is None else int(threshold * share),
            _whole(self._settings.get("compression.protect_first_n"), PROTECT_FIRST),
            _whole(self._settings.get("compression.protect_last_n"), PROTECT_LAST),
            _whole(self._settings.get("compression.min_tail_user_messages"), 1),
        )

    def _rules(self, limits: _Limits) -> tuple[TailCut, ...]:
        """Where both versions' rules cut, with the envelope and without.

        Nothing where the budget is not known, or the settings ask for a tail of another kind.
        """
        other = self._settings.get("compression.tail_mode") == "lean" or limits.asked > 1
        if limits.budget is None or not self._rows or other:
            return ()
        old = reading_of(self._log).old
        messages = self._messages()
        head = min(self._protected(limits.first, old=old), len(messages))
        return tuple(
            TailCut(
                _OLD if version else _NEW,
                cut_of(list(map(without_envelope, messages)) if bare else messages, head, _rule(limits, version)),
                envelope=not bare,
                own=version == old,
            )
            for version in (old, not old)
            for bare in (False, True)
        )

    def _messages(self) -> list[Message]:
        origins = origins_of(self._log)
        return [memory_of(r.entry, loaded=is_loaded(origins, r.entry, self._boundary)) for r in self._rows]

    def _protected(self, first: int, *, old: bool) -> int:
        """Messages protected at the start: none once the process has compacted, or finds that one before it has (0.20)."""
        if self._compacted_before:
            return 0
        probed = self._rows[: first + _MERGED] if first and not old else ()
        return 0 if any(is_summary(r.entry.data.get("content")) for r in probed) else first

    def _reckoned(self) -> tuple[int | None, int | None, int | None]:
        """The list it found, what it left, and what came after the last answer; of a batch compaction the whole requests."""
        log, left = self._log, [r.entry for r in self._carried]
        found = [r.entry for r in self._rows]
        before, after = (list_tokens(log, entries, self._boundary) for entries in (found, left))
        asked = [r.role for r in self._rows[::-1]]
        since = asked.index("assistant") if "assistant" in asked else len(asked)
        unseen = list_tokens(log, found[len(found) - since :], self._boundary)
        if self._kind != "compaction":
            return before, after, unseen
        whole = estimates(log, self._last) if self._last is not None else ()
        if not whole or self._last is None:
            return None, None, unseen
        around = whole[0].tokens - message_tokens(log, self._last)  # prompt and tools
        return before + around, after + around, unseen


def _rule(limits: _Limits, old: bool) -> TailRule:
    return TailRule(old, limits.budget or 0, limits.last)


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default
