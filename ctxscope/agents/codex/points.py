"""Where Codex must have called a model: one point per answer, one per compaction, one for an input still waiting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.codex.calls import Call
from ctxscope.agents.codex.fold import Fold, folded
from ctxscope.agents.codex.items import blocks
from ctxscope.agents.codex.usage import usage_of
from ctxscope.model import CallKind, Point, Stop, StopState
from ctxscope.wire.blocks import integer, mapped, string


def requests(log: Log) -> Sequence[Point]:
    """Points in the order of the calls; the last may wait for its answer."""
    found: Sequence[Point] | None = log.memo.get("points")
    if found is None:
        fold, memo = folded(log), shared_memo(log, "codex.points")
        found = [_point(fold, call, memo) for call in fold.calls]
        if fold.asks is not None:
            call = fold.call(fold.asks, f"after:{fold.asks.key}")
            call.branched_from = fold.branch
            found.append(_point(fold, call, memo))
        log.memo["points"] = found
    return found


def call_of(point: Point) -> Call | None:
    """The call a point stands for."""
    call = point.data.get("call")
    return call if isinstance(call, Call) else None


def lineage_of(header: Mapping[str, Any]) -> tuple[CallKind, str]:
    """Kind and lineage of a file's calls: a subagent writes a file of its own, and says who started it."""
    source = mapped(header.get("source")).get("subagent")
    if source is None:
        return "main", "main"
    spawned = mapped(mapped(source).get("thread_spawn"))
    own, outer = string(header.get("id")), string(spawned.get("parent_thread_id"))
    nested = (integer(spawned.get("depth")) or 1) > 1 and outer
    return "subagent", f"sub:{outer}/{own}" if nested else f"sub:{own}"


def _point(fold: Fold, call: Call, memo: dict[Any, Any]) -> Point:
    """The point of a call; the same one as long as nothing about the call changed."""
    state = (call.changes, call.kind, call.copied, call.dead, call.length, call.settings, call.branched_from)
    known = memo.get(call.key)
    if known is not None and known[0] == state and known[1].data["call"].history is call.history:
        return known[1]  # type: ignore[no-any-return]
    memo[call.key] = state, _made(fold, call)
    return memo[call.key][1]  # type: ignore[no-any-return]


def _made(fold: Fold, call: Call) -> Point:
    kind, lineage = lineage_of(fold.header)
    answer = call.answers[0] if call.answers else None
    said = tuple(chain.from_iterable(map(blocks, call.items))) if answer is not None else None
    ids = {b.id for b in said or () if b.kind == "tool_call" and b.id} | ({call.response_id} - {None})
    if not ids and call.fingerprint:
        # Older versions log no id of an answer without calls; a copy of it in a fork must be known all the same.
        ids = {f"copy:{call.fingerprint}"}
    return Point(
        key=call.key,
        place=call.place,
        context=call.history.context(call.length),
        answer=answer,
        ids=frozenset(i for i in ids if i),
        turn=call.turn,
        order=(float(call.number), 0 if answer is not None else 1),
        time=call.time,
        kind="compaction" if call.kind == "compaction" else kind,
        lineage=lineage,
        branched_from=call.branched_from,
        blocks=said,
        stop=_stop(call),
        data={"call": call, "copied": call.copied, **({"dead": True} if call.dead else {})},
        stored_usage=usage_of(call.usage) if call.usage else None,
    )


def _stop(call: Call) -> Stop | None:
    if call.stop is None:
        return None
    reason, state = call.stop
    states: Mapping[str, StopState] = {
        "truncated": "truncated",
        "blocked": "blocked",
        "incomplete": "incomplete",
        "error": "error",
    }
    return Stop(reason, states.get(state, "unknown"))


def error_line(point: Point) -> str | None:
    """What Codex wrote of why a turn ended without an answer, or with a broken one."""
    call = call_of(point)
    return call.error if call is not None else None
