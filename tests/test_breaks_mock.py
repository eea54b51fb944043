"""Every recorded case by the rules of the scripted server that answered it: cold, broken and warm where the bytes say so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope.model import Call
from tests.agent_cases import CASES
from tests.conftest import needs_captures
from tests.log_only import MOCK, agrees, alone

MESSAGES = ("messages", "input", "contents")


def plain(value: Any) -> Any:
    """A value without cache marks."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k != "cache_control"}
    return [plain(v) for v in value] if isinstance(value, list) else value


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def items(body: dict[str, Any], *, ordered: bool) -> Iterator[tuple[str, str]]:
    """Place and text of what a model is given, piece by piece, in cache order; ``ordered``: key order of messages counts."""
    for n, tool in enumerate(listed(body.get("tools"))):
        yield f"tools[{n}]", json.dumps(plain(tool))
    for name in ("system", "instructions", "systemInstruction"):
        for n, block in enumerate(listed(body.get(name))):
            yield f"{name}[{n}]", json.dumps(plain(block))
    for name in MESSAGES:
        for n, message in enumerate(listed(body.get(name))):
            told = plain(message)
            if isinstance(told, dict) and isinstance(told.get("content"), str):
                told["content"] = [{"type": "text", "text": told["content"]}]
            yield f"{name}[{n}]", json.dumps(told, sort_keys=not ordered)


def parted(case: Path, parent: int, call: int, *, ordered: bool = False) -> str | None:
    """Where a call's prompt parts from that of another inside it; ``None``: it goes on from it."""
    before, now = (dict(items(request(case, n), ordered=ordered)) for n in (parent, call))
    return next((place for place, text in before.items() if now.get(place) != text), None)


def request(case: Path, n: int) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((case / "wire" / f"{n:04d}.req").read_bytes())
    return body


def carries_on(body: dict[str, Any]) -> bool:
    """Whether a body holds only what is new."""
    thread = body.get("thread")
    return bool(body.get("previous_response_id")) or (isinstance(thread, dict) and thread.get("type") == "continue")


def joined(case: Path) -> tuple[dict[str, Any], dict[int, Call], dict[int, int]]:
    """``case.json``, calls by exchange, and exchange by call number."""
    with_rules = ctxscope.open(case, provider=MOCK)
    try:
        calls = [c for c in with_rules.snapshot.calls if c.exchange is not None]
    finally:
        with_rules.close()
    told = json.loads((case / "case.json").read_bytes())
    return told, {c.exchange.n: c for c in calls if c.exchange}, {c.n: c.exchange.n for c in calls if c.exchange}


@needs_captures
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_main_calls_are_cold_broken_or_warm_as_their_bytes_say(case, tmp_path):
    told, calls, exchanges = joined(case)
    main = sorted(told["wire"]["main"])
    events = {e["n"]: e["at"] for e in told["events"] if e["type"] == "prefix_break"}
    for before, n in zip([None, *main], main, strict=False):
        call, cache = calls[n], calls[n].cache
        assert call.provider == "mock"
        if call.parent is None:
            assert cache.verdict == "cold", (n, cache)
            continue
        parent = exchanges[call.parent]
        if carries_on(request(case, n)) or carries_on(request(case, parent)):
            assert cache.verdict == ("break" if n in events else "warm")
            continue
        at = parted(case, parent, n)
        if at is None:
            assert cache.verdict == "warm", (n, cache)
            assert n not in events or parent != before
        else:
            assert cache.verdict == "break", (n, at, cache)
            if n in events and parent == before and cache.cause != "volatile_content":
                assert events[n] in (at, parted(case, parent, n, ordered=True))
        if cache.expected_read is not None and cache.reported_read is not None:
            short = cache.expected_read[0] - cache.reported_read
            print(f"{case.name} {n}: expected {cache.expected_read}, read {cache.reported_read}, short {short}")  # noqa: T201

    every_recorded_break_is_found_unless_an_earlier_call_goes_on_unbroken(case, told, calls, exchanges)
    agrees(alone(case, tmp_path), calls.values())


def every_recorded_break_is_found_unless_an_earlier_call_goes_on_unbroken(
    case: Path, told: dict[str, Any], calls: dict[int, Call], exchanges: dict[int, int]
) -> None:
    main = sorted(told["wire"]["main"])
    for event in (e for e in told["events"] if e["type"] == "prefix_break" and e["n"] in main):
        call = calls[event["n"]]
        before = main[main.index(event["n"]) - 1]
        if call.cache.verdict != "break":
            assert call.parent is not None
            assert exchanges[call.parent] != before
            assert parted(case, exchanges[call.parent], event["n"]) is None


@needs_captures
def test_a_fresh_checksum_in_the_head_is_volatile():
    seen = 0
    for case in CASES:
        if not case.name.startswith("omp_a"):
            continue
        _, calls, _ = joined(case)
        for call in calls.values():
            if call.cache.verdict == "break" and call.cache.path == "/system/0":
                seen += 1
                assert call.cache.cause == "volatile_content"
    assert seen
