"""The part of a snapshot that a report covers."""

from __future__ import annotations

from dataclasses import replace

from ctxscope.model import Call, CtxscopeError, Snapshot
from ctxscope.report import Options


def select(snapshot: Snapshot, options: Options) -> Snapshot:
    """The snapshot with only the chosen calls and what concerns them; totals stay those of everything.

    Raises ``CtxscopeError`` when no call is chosen although one was asked for.
    """
    if options.call is None and options.turn is None:
        return snapshot
    calls = tuple(c for c in snapshot.calls if options.call in (None, c.n) and options.turn in (None, c.turn))
    if not calls:
        raise CtxscopeError(_nothing(snapshot, options))
    chosen = {c.n for c in calls}
    return replace(
        snapshot,
        calls=calls,
        markers=tuple(m for m in snapshot.markers if m.call in chosen),
        findings=tuple(f for f in snapshot.findings if not f.calls or chosen & set(f.calls)),
        compactions=tuple(c for c in snapshot.compactions if c.told.marker.call in chosen),
        break_rates=(),
        sidecars=tuple(s for s in snapshot.sidecars if s.call in chosen),
        costs=tuple(c for c in snapshot.costs if chosen & set(c.calls)),
    )


def _nothing(snapshot: Snapshot, options: Options) -> str:
    wanted = [f"call {options.call}"] if options.call is not None else []
    wanted += [f"turn {options.turn}"] if options.turn is not None else []
    turns = sorted({c.turn for c in snapshot.calls if c.turn is not None})
    there = f"calls {_span([c.n for c in snapshot.calls])}, turns {_span(turns)}"
    return f"no {' in '.join(wanted)}: there are {there}"


def _span(numbers: list[int]) -> str:
    return "none" if not numbers else str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def reply_in_question(call: Call) -> bool:
    """Whether the reply was not kept as delivered, or not repeated as kept, so that its sides are worth showing."""
    return call.reply.state not in ("equal", "not_recorded", "not_logged") or call.reply.echo == "differs"


def differs(call: Call) -> bool:
    """Whether a person has something to look at in the call: its request, its reply or its cached prefix."""
    return (
        call.rebuilt.state == "differs"
        or call.reply.state in ("differs", "empty", "prefix", "missing")
        or call.reply.echo == "differs"
        or call.cache.verdict in ("break", "miss")
    )
