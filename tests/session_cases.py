"""Recorded Hermes and pi cases through the whole path, opened once, with what a test asks of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import ctxscope
from ctxscope import wire
from ctxscope.model import Body, Call, CallView
from ctxscope.wire.body import make_body
from ctxscope.wire.spans import items, members, value_end
from tests.conftest import CAPTURES

CASES = sorted([*CAPTURES.glob("pi/*/case.json"), *CAPTURES.glob("hermes/*/case.json")])
MESSAGES = frozenset({"messages", "input", "contents"})
HEADS = {"instructions": "system", "systemInstruction": "system"}
Covered = Counter[tuple[str, str]]
"""Served bytes by (part, provenance); see ``covered``."""


def look(log: Path, recording: Path) -> dict[int, Call]:
    """What a fresh opening of a log beside a recording says, by number of the exchange."""
    inspection = ctxscope.open(log, recording=str(recording))
    try:
        return {c.exchange.n: c for c in inspection.snapshot.calls if c.exchange}
    finally:
        inspection.close()


@cache
def unchanged(folder: Path) -> Mapping[int, Call]:
    """The same of a recorded case as it is."""
    return look(folder / "log", folder / "wire")


@cache
def served(folder: Path, n: int) -> Body:
    """The request of an exchange, cut."""
    data = (folder / "wire" / f"{n:04d}.req").read_bytes()
    lines = (folder / "wire" / "index.jsonl").read_text(encoding="utf-8").splitlines()
    (exchange,) = (e for e in map(json.loads, lines) if e["n"] == n)
    return make_body(data, wire.detect(exchange["path"], exchange["headers"], data))


@cache
def given(folder: Path, n: int) -> Body:
    """What the model was given by an exchange: with what went before, where its body carries only what is new."""
    inspection = ctxscope.open(folder / "log", recording=str(folder / "wire"))
    try:
        call = next(c for c in inspection.snapshot.calls if c.exchange and c.exchange.n == n)
        effective = inspection.view(call.n).effective
    finally:
        inspection.close()
    assert effective is not None
    return effective


@cache
def rebuild_of(folder: Path) -> dict[str, Any]:
    """What the case says can be rebuilt."""
    about: dict[str, Any] = json.loads((folder / "case.json").read_text(encoding="utf-8"))["rebuild"]
    return about


def covered(view: CallView) -> Covered:
    """Bytes of an equal call by part and provenance: ``messages``, ``system``, ``tools``, the other keys by name.

    Every byte of a top-level value counts, those between its segments too; a system prompt is its own part, also where
    it is the first message. Keys and punctuation between the values are ``-``.
    """
    assert view.served is not None
    parts = parts_of(view.served)
    ends = list(accumulate(len(p.data) for p in view.pieces))
    found: Covered = Counter()
    for (start, part), (end, _) in pairwise([*parts, (len(view.served.data), "")]):
        begun = 0
        for piece, until in zip(view.pieces, ends, strict=True):
            found[part, piece.provenance] += max(0, min(until, end) - max(begun, start))
            begun = until
    return +found


def parts_of(body: Body) -> list[tuple[int, str]]:
    """Where each part begins, in order; parts tile the body."""
    text = body.data.decode("latin-1")
    systems = [s.start for s in body.segments if s.kind == "system"]
    out = [(0, "-")]

    def message(_: int, start: int) -> int:
        end = value_end(text, start)
        if any(start <= s < end for s in systems):
            out.extend([(start, "system"), (end, "messages")])
        return end

    def value(key: str, start: int) -> int:
        out.append((start, "messages" if key in MESSAGES else HEADS.get(key, key)))
        end = items(text, start, message) if key in MESSAGES and text[start] == "[" else value_end(text, start)
        out.append((end, "-"))
        return end

    members(text, text.index("{"), value)
    return out


def summed(name: str, counts: Covered) -> str:
    """A case's coverage in a line."""
    rows: dict[str, Covered] = {"messages": Counter(), "system": Counter(), "tools": Counter(), "other": Counter()}
    for (part, provenance), count in counts.items():
        rows[part if part in rows else "other"][part, provenance] += count
    told = []
    for part, row in rows.items():
        by: Counter[str] = Counter()
        for (_, provenance), count in row.items():
            by[provenance] += count
        told.append(f"{part} " + (", ".join(f"{count:,} {p}" for p, count in by.most_common()) or "none"))
    return f"{name}: " + " · ".join(told)
