"""Ledgers and a compaction for the tests of the tokens screen."""

from __future__ import annotations

from ctxscope.model import (
    CHARGED,
    Compacted,
    Compaction,
    Estimate,
    Marker,
    Place,
    TailCut,
    TokenLedger,
    TokenParts,
    Usage,
)

PARTS = TokenParts(
    system=48, tools=80, text=20, tool_calls=28, tool_results=607, thinking=16, envelope=122, images=None
)


def estimate(name: str, *, verified: bool, **charged: int) -> Estimate:
    return Estimate(name, sum(charged.values()), {part: charged.get(part, 0) for part in CHARGED}, verified)


OLD = estimate("Hermes 0.19", verified=False, system=51, text=400, bookkeeping=303, envelope=900)
NEW = estimate("Hermes 0.20", verified=True, system=51, text=400, bookkeeping=255)
LEDGER = TokenLedger(
    reported=950,
    visible=799,
    rebuilt=799,
    naive=672,
    agent=NEW.tokens,
    parts=PARTS,
    estimates=(NEW, OLD),
    gap=("reasoning envelope 72 % of the stored reasoning", "bookkeeping"),
)


ROWS = tuple(Place(0, f"row {i}") for i in range(1, 11))
MARKER = Marker("compaction", "p8", True, "replaced 9 messages by a summary", ROWS[0], call=8, session="s1")
RULES = (TailCut("0.20", 8, own=True), TailCut("0.20", 5, envelope=False, own=True), TailCut("0.19", 6))
PHANTOM = Compaction(
    Compacted(MARKER, ROWS, 2, 8, RULES, 20_000),
    before=6,
    tokens_before=162_000,
    tokens_after=32_000,
    requests=(7,),
    usage=Usage(input=160_000, output=900),
    seconds=12.25,
    seconds_by="agent",
    rebilled=30_000,
    rebilled_estimated=True,
    break_even=14,
    phantom=True,
    words=("It was due by the agent's count alone.",),
)
