"""What the screen says in words: why two sides differ, how each number is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from ctxscope.model import CacheVerdict, Call, Coverage, Difference, Finding, Snapshot
from ctxscope.tui.bar_cells import PARTS
from ctxscope.tui.call_rows import STATE_WORDS
from ctxscope.tui.comparison import ComparisonKind
from ctxscope.tui.paint import UNKNOWN, number, plural
from ctxscope.tui.visible import visible

_REPLY_WORDS = {
    "equal": "stored = delivered",
    "differs": "stored ≠ delivered",
    "empty": "delivered text, stored none",
    "prefix": "stored is only the beginning of what was delivered",
    "missing": "delivered, but not in the log",
    "not_recorded": "no reply recorded",
    "not_logged": "no log to hold it",
}
_CACHE_WORDS = {
    "cold": "cold: nothing could be read from the cache",
    "warm": "warm: the previous prompt is intact",
    "break": "cache break",
    "miss": "cache miss: intact, but less was read than expected",
    "unknown": "cache: cannot tell",
}


def why(call: Call, kind: ComparisonKind, findings: Sequence[Finding] = ()) -> str:
    """One line, printable: the verdict that belongs to what is shown, with its evidence, then this call's findings."""
    about = {"rebuilt": _rebuilt, "previous": _cache}.get(kind, _reply)
    told = [
        f.code if _KIND_OF_FINDING.get(f.code) is about else f"{f.code} {f.severity}: {f.message}"
        for f in findings
        if call.n in f.calls
    ]
    return visible(" · ".join([about(call), *told]))


def ledger(call: Call, width: int) -> list[tuple[str, str]]:
    """The token numbers of a call and how each is known, as (number, name): those that fit in ``width`` cells.

    The bar's own number comes first; where there is little room, what nobody knows is left out.
    """
    tokens, usage = call.tokens, call.usage
    about = "≈" if tokens.estimated else ""

    def counted(value: int | None) -> str:
        return UNKNOWN if value is None else f"{about}{number(value)}"

    parts = [
        (number(reported(call)), "reported"),
        (number(usage.cache_read if usage else None), "cached"),
        (counted(tokens.visible), "visible"),
        (counted(tokens.rebuilt), "rebuilt"),
        (UNKNOWN if tokens.naive is None else f"≈{number(tokens.naive)}", "naive"),
        (number(usage.output if usage else None), "output"),
        (UNKNOWN if tokens.agent is None else f"≈{number(tokens.agent)}", "agent"),
        (UNKNOWN if tokens.calibrated is None else f"≈{number(tokens.calibrated)}", "calibrated"),
    ]
    if _cells(parts) > width:
        parts = [part for part in parts if part[0] != UNKNOWN]
    while _cells(parts) > width:
        parts.pop()
    return parts


def by_part(call: Call) -> list[tuple[str, str, str]]:
    """What the model saw by part, as (letter, name and count, style): parts there are none of left out.

    A part that is no visible text stands in brackets; it has no letter where the bar cannot tell it from another.
    """
    parts = call.tokens.parts
    if parts is None:
        return []
    about = "≈" if call.tokens.estimated else ""
    letters = {name: (letter, style) for letter, style, name in PARTS}
    found = []
    for field in fields(parts):
        name, value = field.name.replace("_", " "), getattr(parts, field.name)
        if value == 0 or (value is None and name == "overhead"):
            continue
        letter, style = letters.get(name, ("", "text"))
        told = UNKNOWN if value is None else f"{'≈' if name == 'overhead' else about}{number(value)}"
        found.append((letter, f"{name} ({told})" if field.name in ASIDE else f"{name} {told}", style))
    return found


ASIDE = frozenset({"envelope", "images", "documents", "overhead"})
"""Parts that are measured but no visible text, and so in no sum."""
LEDGER_GAP = "  "


def _cells(parts: Sequence[tuple[str, str]]) -> int:
    return sum(len(f"{LEDGER_GAP}{value} {name}") for value, name in parts)


def reported(call: Call) -> int | None:
    """Prompt tokens in the provider's word."""
    if call.tokens.reported is not None:
        return call.tokens.reported
    return call.usage.reported if call.usage else None


def summary(snapshot: Snapshot, diverged: int) -> list[tuple[str, str]]:
    """Counts for the title line, as (text, style); the most telling first, what is none left out."""
    parts = [(plural(len(snapshot.calls), "call"), "text")]
    if diverged:
        parts.append((f"{diverged:,} diverged", "diverge"))
    if snapshot.totals.breaks:
        parts.append((plural(snapshot.totals.breaks, "break"), "break"))
    compactions = sum(m.kind == "compaction" for m in snapshot.markers)
    if compactions:
        parts.append((plural(compactions, "compaction"), "compact"))
    told = [plural(len(x), word) for x, word in ((snapshot.findings, "finding"), (snapshot.notices, "notice")) if x]
    if told:
        parts.append((f"i {', '.join(told)}", "text"))
    return parts


def _rebuilt(call: Call) -> str:
    verdict = call.rebuilt
    words = STATE_WORDS[verdict.state]
    if verdict.scope in ("messages", "semantic"):
        words += f" ({'the messages alone' if verdict.scope == 'messages' else 'by meaning'} compared)"
    if verdict.first_difference:
        words += f" · {_difference(verdict.first_difference)}"
    elif verdict.coverage:
        words += f" · {_coverage(verdict.coverage)}"
    beside = call.exchange.words if call.exchange else ()
    return " · ".join([words, *beside, *call.remarks])


def _difference(difference: Difference) -> str:
    return f"{difference.cls}: {difference.cause} · at {difference.path or '/'}, byte {number(difference.raw_offset)}"


def _coverage(coverage: Coverage) -> str:
    names = ("logged", "derived", "learned", "echoed", "unknown")
    told = [f"{number(getattr(coverage, name))} {name}" for name in names if getattr(coverage, name)]
    return "bytes " + ", ".join(told) + (f" ({number(coverage.external)} external)" if coverage.external else "")


def _cache(call: Call) -> str:
    return cache_words(call.cache)


def cache_words(cache: CacheVerdict) -> str:
    """A verdict with its evidence in a line; what it quotes is not printable yet."""
    parts = [_CACHE_WORDS[cache.verdict]]
    if cache.cause:
        parts[0] += f" ({cache.cause}, {cache.confidence.replace('_', ' ')})"
    if len(cache.candidates) > 1:
        parts.append(f"candidates {', '.join(cache.candidates)}")
    if cache.why:
        parts.append(cache.why)
    if cache.path:
        parts.append(f"at {cache.path}")
    if cache.lost_tokens is not None and cache.verdict in ("break", "miss"):
        parts.append(f"{'≈' if cache.lost_estimated else ''}{number(cache.lost_tokens)} tokens lost")
    if cache.expected_read is not None and cache.reported_read is not None:
        low, high = cache.expected_read
        parts.append(f"read {number(cache.reported_read)}, expected {number(low)} to {number(high)}")
    if cache.provider_says:
        parts.append(f"provider says: {cache.provider_says}")
    return " · ".join([*parts, *cache.facts])


def _reply(call: Call) -> str:
    parts = [_REPLY_WORDS[call.reply.state]]
    if call.reply.first_difference:
        difference = call.reply.first_difference
        parts.append(f"{difference.cls}: {difference.cause}")
    if call.reply.echo:
        parts.append("echoed as stored" if call.reply.echo == "equal" else "the next request echoes something else")
    if call.stop is not None and call.stop.state != "complete":
        cap = f" at its cap of {number(call.requested_max)}" if call.at_cap else ""
        parts.append(f"stop: {call.stop.reason or 'no reason given'} ({call.stop.state}{cap})")
    return " · ".join(parts)


_KIND_OF_FINDING = {
    "CTX101": _rebuilt,
    "CTX102": _reply,
    "CTX103": _reply,
    "CTX201": _cache,
    "CTX301": _reply,
}
"""Findings that say what one of the verdicts says: beside it their code is enough."""
