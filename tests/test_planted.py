"""The planted transitions, opened as any recording is: named right, and nothing called broken that is not."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

import ctxscope
from ctxscope.model import Call
from tests.planted import APPENDS, SPELLINGS, TRANSITIONS, Expected, Transition, write


def judged(folder: Path, planted: Transition) -> dict[int, Call]:
    """Calls by exchange."""
    write(folder, planted)
    inspection = ctxscope.open(folder, provider=planted.provider)
    try:
        return {c.exchange.n: c for c in inspection.snapshot.calls if c.exchange}
    finally:
        inspection.close()


def spellings(cause: str | None) -> frozenset[str | None]:
    """All names the taxonomy leaves open for one cause."""
    return frozenset({cause}).union(*(names for key, names in SPELLINGS.items() if cause in (key, *names)))


def among(cause: str | None, allowed: Iterable[str | None]) -> bool:
    return any(spellings(cause) & spellings(name) for name in allowed)


def wrong(call: Call, expected: Expected, calls: dict[int, Call]) -> str:
    """What a verdict has otherwise than expected; empty when it is right."""
    cache = call.cache
    numbers = {c.n: n for n, c in calls.items()}
    if cache.verdict != expected.verdict and cache.verdict in expected.also:
        return ""
    allowed = (expected.cause, *expected.candidates)
    lowest, highest = cache.expected_read or (None, None)
    least, most = expected.expected_read if isinstance(expected.expected_read, tuple) else (expected.expected_read,) * 2
    looked_at = expected.cause is not None or bool(expected.candidates) or expected.verdict == "warm"
    disputed = "the provider says otherwise" in cache.why
    told = [
        ("verdict", cache.verdict, cache.verdict == expected.verdict),
        ("cause", cache.cause, not looked_at or among(cache.cause, allowed)),
        ("candidates", cache.candidates, not looked_at or disputed or all(among(c, allowed) for c in cache.candidates)),
        ("confidence", cache.confidence, cache.confidence in expected.confidence),
        ("path", cache.path, expected.path is None or (cache.path or "").startswith(expected.path)),
        ("parent", numbers.get(call.parent or 0), expected.parent in (None, numbers.get(call.parent or 0))),
        ("read", (lowest, highest), None in (least, lowest) or (lowest <= most and highest >= least)),
        ("lost", cache.lost_tokens, cache.lost_estimated or None in (expected.lost, cache.lost_tokens)
         or cache.lost_tokens == expected.lost),
    ]  # fmt: skip
    return "; ".join(f"{name} {value!r}" for name, value, right in told if not right)


@pytest.mark.parametrize("planted", TRANSITIONS, ids=lambda p: p.name)
def test_a_planted_transition_is_named(tmp_path, planted):
    calls = judged(tmp_path, planted)
    faults = {e.n: found for e in planted.expect if (found := wrong(calls[e.n], e, calls))}
    assert not faults, [(e, calls[e.n].cache) for e in planted.expect if e.n in faults]


@pytest.mark.parametrize("planted", APPENDS, ids=lambda p: p.name)
def test_an_ordinary_append_is_no_break(tmp_path, planted):
    calls = judged(tmp_path, planted)
    faults = {e.n: found for e in planted.expect if (found := wrong(calls[e.n], e, calls))}
    assert not faults, [(e, calls[e.n].cache) for e in planted.expect if e.n in faults]
