"""Tokens in a Markdown report: each call's counts beside each other, and why they part."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from ctxscope.model import COLUMNS, Call, ContentSize, Snapshot, Substitution, TokenLedger, TokenParts
from ctxscope.report.text import number, prose

_UNSEEN = ("envelope", "images", "documents", "overhead")
"""Parts that are no text a model sees, hence no part of the visible sum."""
_OF_A_REQUEST = frozenset(field.name for field in dataclasses.fields(TokenParts))
_PARTS = tuple(sorted(COLUMNS, key=lambda name: name not in _OF_A_REQUEST))
"""Columns of a ledger: the parts a model sees, then what only an estimator charges for."""


def token_section(snapshot: Snapshot) -> list[str]:
    """Every call of which two counts are known, and of the furthest apart the reasons; empty without any.

    Of a call that was not served, what the log rebuilds stands in its place, and where nothing is billed, estimates are
    measured by that. The columns say so, and where some were served, each row of another kind.
    """
    known = [call for call in snapshot.calls if _seen(call.tokens) and call.tokens.agent is not None]
    if not known:
        return []
    texts = [name for name in ("visible", "rebuilt") if any(_text(call.tokens)[0] == name for call in known)]
    text = " or ".join(texts) if texts else "visible"
    billed = "reported" if any(call.tokens.reported for call in known) else text
    columns = ("call", "reported", text, "the agent's estimate", f"estimate ÷ {billed}", f"{text} ÷ reported")
    rows = [_row(call.n, call.tokens, billed, mixed=len(texts) > 1) for call in known]
    parts = ["## Tokens", table(columns, rows)]
    over, under = max(known, key=_ratio), min(known, key=_ratio)
    told = [over] if over is under or _ratio(over) > 1 else []
    told += [under] if _ratio(under) < 1 and under is not over else []
    return [*parts, *(f"Call {call.n}:\n\n{reasons(call.tokens)}" for call in told if call.tokens.gap)]


_SIDECARS = ("entry", "role", "sent", "relation", "first in call", "clean", "sidecar", "more", "characters", "part at")


def sidecar_section(snapshot: Snapshot) -> list[str]:
    """Sidecars that are not what they stand for, in tokens of both, and how many are; empty where there are none."""
    found = snapshot.sidecars
    if not found:
        return []
    other = [each for each in found if each.relation != "equal"]
    told = f"Equal to the message they stand beside: {len(found) - len(other):,} of {len(found):,}."
    newest = next((call for call in reversed(snapshot.calls) if call.tokens.sidecars is not None), None)
    if newest is not None and newest.tokens.sidecars is not None:
        in_all, about = newest.tokens.sidecars, newest.tokens.estimated
        sizes = (number(n, estimated=about) for n in (in_all.sent_tokens, in_all.clean_tokens))
        told += f" Those that the agent's rule sends with call {newest.n} are {' tokens in place of '.join(sizes)}."
    told += " In parentheses: not sent, so the message counts." if any(each.ignored for each in other) else ""
    return ["## Sidecars", *([table(_SIDECARS, map(_sidecar, other), words=4)] if other else []), told]


def _sidecar(found: Substitution) -> tuple[str, ...]:
    sizes = (_size(size, estimated=found.estimated) for size in (found.clean, found.sidecar))
    more = f"{'≈' if found.estimated else ''}{found.more:+,}"
    return (
        prose(found.place.at),
        prose(found.role),
        f"no: {found.why_ignored}" if found.ignored else "yes",
        found.relation.replace("_", " "),
        number(found.call),
        *sizes,
        f"({more})" if found.ignored else more,
        f"{found.sidecar.characters - found.clean.characters:+,}",
        number(found.differs_at),
    )


def _size(size: ContentSize, *, estimated: bool) -> str:
    images = f" and {number(size.images, estimated=True)} of images" if size.images != 0 else ""
    return number(size.tokens, estimated=estimated and size.tokens > 0) + images


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
    lines = table(("tokens", "in all", *(name.replace("_", " ") for name in columns)), rows)
    return "\n\n".join([lines, *_notes(tokens)])


def reasons(tokens: TokenLedger) -> str:
    """Why its counts part, a line each."""
    return "\n".join(f"- {prose(words)}" for words in tokens.gap)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """A table of numbers: all but its first columns, of words, to the right."""
    rule = "|".join([*["---"] * words, *["--:"] * (len(columns) - words)])
    return "\n".join([f"| {' | '.join(columns)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)])


def _visible(tokens: TokenLedger) -> dict[str, str]:
    parts = dataclasses.asdict(tokens.parts) if tokens.parts else {}
    shown = {
        name: number(n, estimated=tokens.estimated or name in ("documents", "overhead"))
        for name, n in parts.items()
        if n or _is_open(name, n)
    }
    return {name: f"({count})" if name in _UNSEEN else count for name, count in shown.items()}


def _notes(tokens: TokenLedger) -> Iterator[str]:
    if tokens.parts is not None and any(getattr(tokens.parts, name) for name in _UNSEEN):
        yield "In parentheses: no text that the model sees, so no part of what is visible."
    if tokens.envelope_bytes:
        yield f"Envelopes: {number(tokens.envelope_bytes)} bytes of opaque reasoning; the tokens are those it would be mistaken for."
    if tokens.overhead_for:
        yield f"Overhead: what the provider says it adds for {tokens.overhead_for}; more is not told ({prose(tokens.overhead_from)})."


def _is_open(name: str, count: int | None) -> bool:
    """Whether something is there of which nobody knows how much; of overhead mostly nothing is said at all."""
    return count is None and name != "overhead"


def _seen(tokens: TokenLedger) -> int | None:
    """What the estimate is measured by: the bill, else what was visible, else what the log rebuilds."""
    return next((n for n in (tokens.reported, tokens.visible, tokens.rebuilt) if n is not None), None)


def _text(tokens: TokenLedger) -> tuple[str, int | None]:
    """The count of a request's text and its name: what was served, else what the log rebuilds."""
    if tokens.visible is not None:
        return "visible", tokens.visible
    return ("rebuilt", tokens.rebuilt) if tokens.rebuilt is not None else ("", None)


def _ratio(call: Call) -> float:
    seen, agent = _seen(call.tokens), call.tokens.agent
    return agent / seen if seen and agent is not None else 1.0


def _row(n: int, tokens: TokenLedger, billed: str, *, mixed: bool) -> tuple[str, ...]:
    """``mixed``: served and rebuilt texts stand in one column, the latter with their name."""
    name, size = _text(tokens)
    shown = number(size, estimated=tokens.estimated) + (" rebuilt" if mixed and name == "rebuilt" else "")
    counts = (number(tokens.reported), shown, number(tokens.agent))
    of = tokens.reported if billed == "reported" else size
    return str(n), *counts, _share(tokens.agent, of), _share(size, tokens.reported)


def _share(one: int | None, of: int | None) -> str:
    return f"{one / of:.2f}" if one is not None and of else "–"
