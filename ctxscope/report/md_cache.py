"""What became of the prompt cache, in a Markdown report: losses by cause, and each session beside its own bound."""

from __future__ import annotations

from collections.abc import Iterator

from ctxscope.model import CacheCost, CacheUse, Snapshot
from ctxscope.report.text import code, code_cell, number, prose

_COLUMNS = ("cause", "verdict", "calls", "lost tokens", "input tokens extra", "what to do")
_RULE = "---|---|---|--:|--:|---"
_MOST_CALLS = 12


def cache_section(snapshot: Snapshot) -> list[str]:
    """Title, table and lines; nothing where no provider reported a read and nothing was lost."""
    if not snapshot.costs and not snapshot.uses:
        return []
    parts = ["## Cache"]
    if snapshot.costs:
        several = len(snapshot.sessions) > 1
        columns = (*_COLUMNS, "session") if several else _COLUMNS
        rows = [f"| {' | '.join(columns)} |", f"|{_RULE}{'|---' if several else ''}|"]
        rows += [f"| {' | '.join(_row(cost, several=several))} |" for cost in snapshot.costs]
        parts.append("\n".join(rows))
    parts += ["\n".join(_use(use, snapshot)) for use in snapshot.uses]
    return parts


def _row(cost: CacheCost, *, several: bool) -> Iterator[str]:
    yield code_cell(cost.cause) if cost.cause else "–"
    yield cost.verdict
    listed = ", ".join(map(str, cost.calls[:_MOST_CALLS]))
    yield listed + (f" and {len(cost.calls) - _MOST_CALLS} more" if len(cost.calls) > _MOST_CALLS else "")
    yield number(cost.lost_tokens, estimated=cost.estimated)
    extra = number(None if cost.extra is None else round(cost.extra), estimated=cost.estimated)
    yield extra + (f" ({cost.money:,.4f} {prose(cost.currency)})" if cost.money is not None else "")
    yield prose(cost.remedy) or "–"
    if several:
        yield code_cell(cost.session) if cost.session else "–"


def _use(use: CacheUse, snapshot: Snapshot) -> Iterator[str]:
    whose = "Calls of no session" if use.session is None else f"Session {code(use.session)}"
    whose = whose if len(snapshot.uses) > 1 else "Reported"
    yield (
        f"{whose}: {number(use.sent)} prompt tokens in {use.calls} calls, {number(use.read)} read, {number(use.new)} new. "
        f"Had each call kept its parent's prompt: {number(use.read_bound)} read, {number(use.new_bound)} new. "
        f"Reuse (sent ÷ new) {_ratio(use.reuse)} of {_ratio(use.reuse_bound)}."
    )
    shares = [
        ("inside unbroken stretches", use.unbroken),
        (f"right after {use.seams} seam{'s'[: use.seams != 1]}", use.after_seam),
    ]
    told = [
        f"{100 * read / sent:.1f} % {where} ({number(read)} of {number(sent)})"
        for where, (read, sent) in shares
        if sent
    ]
    if told:
        yield f"Read: {', '.join(told)}; a correlation, no cause."


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
