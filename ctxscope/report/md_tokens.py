"""Tokens in a Markdown report: each call's counts beside each other, and why they part."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from ctxscope.model import CHARGED, Call, Snapshot, TokenLedger
from ctxscope.report.text import number, prose

_UNSEEN = ("envelope", "images")
"""Parts that are no text a model sees, hence no part of the visible sum."""
_PARTS = (*CHARGED[:8], "envelope", *(name for name in CHARGED[8:] if name != "envelope"))
"""Columns of a ledger: the parts a model sees, then what only an estimator charges for."""


def token_section(snapshot: Snapshot) -> list[str]:
    """Every call of which two counts are known, and of the furthest apart the reasons; empty without any.

    Where nothing served is there, what the log rebuilds stands in its place, and where nothing is billed, estimates are
    measured by that. The columns say so.
    """
    known = [call for call in snapshot.calls if _seen(call.tokens) and call.tokens.agent is not None]
    if not known:
        return []
    text = _text_column(known)
    billed = "reported" if any(call.tokens.reported for call in known) else text
    columns = ("call", "reported", text, "the agent's estimate", f"estimate ÷ {billed}", f"{text} ÷ reported")
    rows = [_row(call.n, call.tokens, text, billed) for call in known]
    parts = ["## Tokens", table(columns, rows)]
    over, under = max(known, key=_ratio), min(known, key=_ratio)
    told = [over] if over is under or _ratio(over) > 1 else []
    told += [under] if _ratio(under) < 1 and under is not over else []
    return [*parts, *(f"Call {call.n}:\n\n{reasons(call.tokens)}" for call in told if call.tokens.gap)]


def ledger_lines(tokens: TokenLedger) -> str:
    """The ledger of one call: a row for each count, a column for each part that any of them has."""
    shown = [
        ("reported", number(tokens.reported), {}),
        ("visible", number(tokens.visible, estimated=tokens.estimated), _visible(tokens)),
        ("rebuilt", number(tokens.rebuilt, estimated=tokens.estimated), {}),
        ("naive", number(tokens.naive, estimated=True), {}),
    ]
    if tokens.calibrated is not None:
        shown.insert(2, ("calibrated", number(tokens.calibrated, estimated=True), {}))
    for estimate in tokens.estimates:
        known = "" if estimate.verified else " (from the formula, not verified)"
        charged = {name: number(n) for name, n in estimate.charged.items() if n}
        shown.append((f"{prose(estimate.estimator)}{known}", number(estimate.tokens, estimated=True), charged))
    columns = [name for name in _PARTS if any(name in told for _, _, told in shown)]
    rows = [(name, count, *(told.get(c, "–") for c in columns)) for name, count, told in shown]
    note = "\n\nIn parentheses: no text that the model sees, so no part of what is visible." if _unseen(tokens) else ""
    return table(("tokens", "in all", *(name.replace("_", " ") for name in columns)), rows) + note


def reasons(tokens: TokenLedger) -> str:
    """Why its counts part, a line each."""
    return "\n".join(f"- {prose(words)}" for words in tokens.gap)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of numbers: all but its first column to the right."""
    rule = "|".join(["---", *["--:"] * (len(columns) - 1)])
    return "\n".join([f"| {' | '.join(columns)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)])


def _visible(tokens: TokenLedger) -> dict[str, str]:
    parts = dataclasses.asdict(tokens.parts) if tokens.parts else {}
    shown = {name: number(n, estimated=tokens.estimated) for name, n in parts.items() if n}
    return {name: f"({count})" if name in _UNSEEN else count for name, count in shown.items()}


def _unseen(tokens: TokenLedger) -> bool:
    return tokens.parts is not None and any(getattr(tokens.parts, name) for name in _UNSEEN)


def _seen(tokens: TokenLedger) -> int | None:
    """What the estimate is measured by: the bill, else what was visible, else what the log rebuilds."""
    return next((n for n in (tokens.reported, tokens.visible, tokens.rebuilt) if n is not None), None)


def _text_column(known: Sequence[Call]) -> str:
    """Which count of a request's text the calls are shown with: one for all, so that a column is of one kind."""
    served = any(call.tokens.visible is not None for call in known)
    return "visible" if served or all(call.tokens.rebuilt is None for call in known) else "rebuilt"


def _ratio(call: Call) -> float:
    seen, agent = _seen(call.tokens), call.tokens.agent
    return agent / seen if seen and agent is not None else 1.0


def _row(n: int, tokens: TokenLedger, text: str, billed: str) -> tuple[str, ...]:
    sizes = {"reported": tokens.reported, "visible": tokens.visible, "rebuilt": tokens.rebuilt}
    size = sizes[text]
    counts = (number(tokens.reported), number(size, estimated=tokens.estimated), number(tokens.agent))
    return str(n), *counts, _share(tokens.agent, sizes[billed]), _share(size, tokens.reported)


def _share(one: int | None, of: int | None) -> str:
    return f"{one / of:.2f}" if one is not None and of else "–"
