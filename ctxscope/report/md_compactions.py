"""What compactions did, in a Markdown report: a table, what each did in words, and how often they broke the cache."""

from __future__ import annotations

from collections.abc import Iterator

from ctxscope.model import BreakRate, Compaction, Snapshot, Usage
from ctxscope.report.text import code, number, prose

_COLUMNS = ("event", "before call", "messages", "summarised", "prompt before", "after", "own request")
_COSTS = ("seconds", "billed again", "pays after")
_RULE = "---|--:|--:|--:|--:|--:|--:|--:|--:|--:"


def compaction_section(snapshot: Snapshot) -> list[str]:
    """Title, table, a list of what each did, and lines on how often they broke; nothing where there was none.

    An event of which no figure is known stands in the list alone.
    """
    if not snapshot.compactions:
        return []
    columns = (*_COLUMNS, *_COSTS)
    rows = [f"| {' | '.join(_row(found))} |" for found in snapshot.compactions if not found.is_bare]
    told = [line for found in snapshot.compactions for line in _told(found)]
    parts = ["## Compactions"]
    parts += ["\n".join([f"| {' | '.join(columns)} |", f"|{_RULE}|", *rows])] if rows else []
    parts += ["\n".join(told)] if told else []
    parts += ["\n".join(_rate(rate, snapshot) for rate in snapshot.break_rates)] if snapshot.break_rates else []
    return parts


def _row(found: Compaction) -> Iterator[str]:
    told = found.told
    yield told.marker.kind + (" **on phantom bytes**" if found.phantom else "")
    yield number(told.marker.call)
    yield number(len(told.messages) or None)
    known = told.head is not None and told.cut is not None
    yield number((told.cut or 0) - (told.head or 0) if known else len(told.marker.dropped) or None)
    yield number(found.tokens_before, estimated=found.counted)
    yield number(found.tokens_after, estimated=found.counted)
    yield _usage(found.usage)
    yield "–" if found.seconds is None else f"{found.seconds:,.1f}"
    yield found.billed_again
    yield found.pays_after


def _usage(usage: Usage | None) -> str:
    if usage is None or usage.reported is None:
        return "–"
    return f"{number(usage.reported)} + {number(usage.output)}"


def _told(found: Compaction) -> Iterator[str]:
    call = found.told.marker.call
    where = "at the end" if call is None else f"before call {call}"
    if found.words:
        yield f"- {found.told.marker.kind} {where}:"
        yield from (f"  - {prose(sentence)}" for sentence in found.words)
    elif found.is_bare:
        yield f"- {found.told.marker.kind} {where}: how much it left out is not known."


def _rate(rate: BreakRate, snapshot: Snapshot) -> str:
    several = len({r.session for r in snapshot.break_rates}) > 1
    whose = f" of session {code(rate.session)}" if several and rate.session else ""
    under = f" ({prose(rate.setting)})" if rate.setting else ""
    return f"- {rate.kind}{whose}{under}: {rate.words}."
