"""The JSON report holds every key of schema 1, whatever is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ctxscope import report
from ctxscope.model import CHARGED, CtxscopeError, Snapshot, quoted
from ctxscope.report import Options
from tests.conftest import ROOT
from tests.report_samples import AT, difference, known_call, snapshot, unknown_call, view

RENDER = report.load("json").render

DIFFERENCE = {"effective", "raw_offset", "prefix_offset", "path", "class", "cause", "served", "rebuilt"}
KEYS = {
    "": {"schema", "ctxscope", "sessions", "calls", "markers", "findings", "notices", "totals", "costs", "uses"}
    | {"compactions", "break_rates", "sidecars"},
    "sessions": {
        "id",
        "agent",
        "agent_version",
        "directory",
        "log",
        "recordings",
        "scope",
        "hypotheses",
        "config",
        "borrowed",
    },
    "calls": {
        *("n", "session", "turn", "lineage", "parent", "kind", "exchange", "entry", "joined_by", "api", "provider"),
        *("model", "time", "request", "rebuilt", "reply", "cache", "tokens", "usage", "stop", "window"),
    },
    "calls.window": {"size", "size_by", "threshold", "threshold_by", "occupancy"},
    "sessions.config": {
        *("window", "threshold", "protect_head", "protect_tail", "values", "window_by", "threshold_by"),
    },
    "compactions": {
        *("kind", "session", "call", "place", "automatic", "setting", "messages", "tokens", "before_call", "requests"),
        *(
            "usage",
            "seconds",
            "seconds_by",
            "rebilled",
            "rebilled_estimated",
            "rebilled_at_most",
            "broke",
            "cost",
            "saving",
            "break_even",
            "phantom",
        ),
        "words",
    },
    "compactions.messages": {"found", "head", "cut", "summarised", "budget", "rules", "lost_to_envelope"},
    "compactions.messages.rules": {"version", "at", "envelope", "own"},
    "compactions.tokens": {"agent", "reproduced", "calls"},
    "break_rates": {
        "session",
        "kind",
        "setting",
        "events",
        "breaks",
        "calls",
        "rebilled",
        "estimated",
        "at_most",
        "unknown",
    },
    "calls.exchange": {"recording", "n", "fidelity", "ended"},
    "calls.entry": {"log", "place"},
    "calls.request": {"bytes", "sha256"},
    "calls.rebuilt": {"state", "scope", "first_difference", "coverage", "external", "remarks"},
    "calls.rebuilt.first_difference": DIFFERENCE,
    "calls.rebuilt.coverage": {"logged", "derived", "learned", "echoed", "unknown"},
    "calls.reply": {"state", "first_difference", "echo"},
    "calls.reply.first_difference": DIFFERENCE,
    "calls.cache": {
        *("verdict", "cause", "candidates", "confidence", "at", "expected_read", "reported_read", "lost_tokens"),
        *("reprefill", "provider_says", "lost_estimated", "why", "facts", "extra", "money", "currency"),
    },
    "calls.cache.at": {"path", "prefix_offset"},
    "calls.cache.reprefill": {"tokens", "seconds", "seconds_from"},
    "calls.tokens": {
        "reported",
        "visible",
        "rebuilt",
        "naive",
        "agent",
        "parts",
        "estimated",
        "agent_estimates",
        "gap",
        "factor",
        "calibrated",
        "sidecars",
        "envelope_bytes",
        "overhead_for",
        "overhead_from",
    },
    "calls.tokens.sidecars": {"equal", "shorter", "longer", "as_long", "ignored", "clean_tokens", "sent_tokens"},
    "calls.tokens.agent_estimates": {"estimator", "tokens", "verified", "charged"},
    "calls.tokens.agent_estimates.charged": set(CHARGED),
    "calls.tokens.parts": {
        "system",
        "tools",
        "text",
        "tool_calls",
        "tool_results",
        "thinking",
        "envelope",
        "sidecar",
        "images",
        "documents",
        "overhead",
    },
    "calls.usage": {"input", "cache_read", "cache_write", "output", "reasoning"},
    "calls.stop": {"reason", "state", "requested_max", "at_cap"},
    "markers": {"kind", "call", "logged", "before_tokens", "after_tokens", "dropped", "where"},
    "sidecars": {
        *("session", "call", "entry", "role", "sent", "ignored", "relation", "clean", "sidecar", "difference"),
        *("differs_at", "estimated"),
    },
    "sidecars.clean": {"characters", "bytes", "tokens", "images"},
    "sidecars.sidecar": {"characters", "bytes", "tokens", "images"},
    "sidecars.difference": {"characters", "bytes", "tokens"},
    "findings": {"code", "severity", "calls", "path", "message", "evidence"},
    "totals": {"calls", "joined", "equal", "breaks", "misses", "lost_tokens", "coverage", "reuse"},
    "costs": {
        *(
            "session",
            "verdict",
            "cause",
            "calls",
            "lost_tokens",
            "lost_estimated",
            "extra",
            "money",
            "currency",
            "remedy",
        ),
    },
    "uses": {
        *("session", "calls", "sent", "read", "new", "read_bound", "new_bound", "reuse", "reuse_bound", "unbroken"),
        *("after_seam", "seams"),
    },
}
"""What schema 1 began with, and the additions that the README lists."""
NULLABLE = {
    "calls.exchange",
    "calls.entry",
    "calls.rebuilt.first_difference",
    "calls.reply.first_difference",
    "calls.cache.at",
}


def rendered(shown: Snapshot, options: Options | None = None) -> dict:
    calls = {call.n: call for call in shown.calls}
    return json.loads(RENDER(shown, lambda n: view(calls[n]), options or Options()))


def objects(document: dict, path: str) -> list:
    found = [document]
    for name in filter(None, path.split(".")):
        inner = [value[name] for value in found if value is not None]
        found = [item for value in inner for item in (value if isinstance(value, list) else [value])]
    return found


@pytest.mark.parametrize("path", KEYS)
def test_every_key_is_there_when_all_is_known_and_when_nothing_is(path):
    found = objects(rendered(snapshot()), path)
    assert found
    for value in found:
        assert value is None or set(value) == KEYS[path]
        assert value is not None or path in NULLABLE


def test_what_is_unknown_is_null_and_never_zero():
    call = rendered(snapshot(unknown_call()))["calls"][0]
    assert call["request"] == {"bytes": None, "sha256": None}
    assert (
        set(call["usage"].values())
        == set(call["tokens"]["parts"].values())
        == set(call["rebuilt"]["coverage"].values())
        == {None}
    )
    assert call["cache"]["verdict"] == "unknown"
    assert (call["cache"]["why"], call["cache"]["lost_estimated"], call["cache"]["facts"]) == (None, None, [])
    assert call["stop"] == {"reason": None, "state": "unknown", "requested_max": None, "at_cap": None}


def test_what_is_known_stands_in_its_place():
    document = rendered(snapshot())
    call = document["calls"][1]
    assert call["time"] == "2023-11-14T22:13:20.250Z"
    assert call["exchange"] == {"recording": 0, "n": 2, "fidelity": "bytes", "ended": None}
    assert call["entry"] == {"log": 0, "place": "line 4"}
    assert call["rebuilt"]["first_difference"]["served"] == "count the plums"
    assert call["cache"]["expected_read"] == [100, 200]
    assert call["cache"]["why"] == "a summary replaced 4 messages"
    assert call["cache"]["facts"] == ["a breakpoint moved"]
    assert call["cache"]["lost_estimated"] is True
    assert call["usage"] == {"input": 100, "cache_read": 0, "cache_write": 200, "output": 12, "reasoning": None}
    assert document["markers"][0]["dropped"] == ["line 1", "line 2"]
    assert document["totals"]["coverage"] == 0.85


def test_the_same_snapshot_gives_the_same_text():
    first = RENDER(snapshot(), lambda n: view(known_call(n)), Options())
    assert first == RENDER(snapshot(), lambda n: view(known_call(n)), Options())
    assert first.endswith("}\n")


def test_one_turn_keeps_only_its_calls_and_what_concerns_them():
    shown = snapshot(unknown_call(), known_call(2, turn=1), known_call(3, turn=2))
    document = rendered(shown, Options(turn=2))
    assert [call["n"] for call in document["calls"]] == [3]
    assert document["markers"] == document["findings"] == []
    assert [call["n"] for call in rendered(shown, Options(call=2))["calls"]] == [2]


def test_a_call_that_is_not_there_is_said_with_those_that_are():
    with pytest.raises(CtxscopeError, match="no call 9: there are calls 1 to 2, turns 1"):
        rendered(snapshot(), Options(call=9))


def test_without_content_no_excerpt_remains():
    shown = snapshot(notices=(f"line 8: the call failed: {quoted('no plums')}",))
    text = RENDER(shown, lambda n: view(known_call(n)), Options(content="none"))
    assert "plums" not in text
    document = json.loads(text)
    assert document["findings"][0]["evidence"] is None
    assert document["notices"] == ["line 8: the call failed: «…»"]
    assert document["calls"][1]["cache"]["provider_says"] is None
    first = document["calls"][1]["rebuilt"]["first_difference"]
    assert (first["served"], first["rebuilt"], first["raw_offset"]) == (None, None, AT)


@pytest.mark.parametrize("time", [1_700_000_000_250.0, 1e300, float("nan"), float("inf"), -1e18])
def test_a_number_that_is_no_date_is_unknown(time):
    call = rendered(snapshot(replace(known_call(1), time=time)))["calls"][0]
    assert call["time"] is None


def test_the_readme_names_the_schema_and_every_addition_to_it():
    readme = (ROOT / "README.md").read_text()
    assert "schema 1" in readme
    for name in (
        "tokens.agent_estimates",
        "tokens.estimated",
        "tokens.factor",
        "tokens.calibrated",
        "first_difference.effective",
        "cache.lost_estimated",
        "cache.why",
        "cache.facts",
    ):
        assert f"`{name}`" in readme


def test_hostile_text_survives_as_data_and_reaches_no_terminal():
    text = "\x1b[2J \x9b2J \u202e \ud800 \u2028 \U0001f600"
    shown = snapshot(known_call(1, first=difference(text)))
    raw = RENDER(shown, lambda n: view(known_call(n)), Options())
    assert not set("\x1b\x9b\u202e\u2028\ud800") & set(raw)
    served = json.loads(raw)["calls"][0]["rebuilt"]["first_difference"]["served"]
    assert served == text.replace("\ud800", r"\ud800")


def test_a_configuration_may_hold_any_value():
    session = snapshot().sessions[0]
    values = {
        "path": Path("/srv/x"),
        "set": {"b", "a"},
        "raw": b"\xff",
        "big": 1 << 70,
        3: (1, None),
        "api_key": "plain-words",
        "web.bot_token": 123456,
        "smtp": {"pass": ["one", "two"], "port": 25},
        "max_tokens": 4096,
    }
    shown = snapshot(sessions=(replace(session, config=replace(session.config, values=values)),))
    assert rendered(shown)["sessions"][0]["config"]["values"] == {
        "path": "/srv/x",
        "set": ["a", "b"],
        "raw": r"\xff",
        "big": str(1 << 70),
        "3": [1, None],
        "api_key": "‹secret·11›",
        "web.bot_token": "‹secret·6›",
        "smtp": {"pass": "‹secret·14›", "port": 25},
        "max_tokens": 4096,
    }
