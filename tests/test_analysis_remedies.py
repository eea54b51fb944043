"""Advice by cause: none is without, and none promises more than the cause says."""

from __future__ import annotations

import re

import pytest

from ctxscope.analysis.remedies import PARAM, REMEDIES, UNKNOWN, remedy
from tests.conftest import ROOT

TAXONOMY = (
    *("first_call_cold", "model_changed", "system_changed", "volatile_content", "tool_added", "tool_removed"),
    *("tool_reordered", "tool_schema_changed", "tool_key_order", "json_serialisation_drift", "history_rewritten"),
    *("message_inserted", "message_removed", "history_truncated", "compaction", "tool_result_pruned"),
    *("image_stripped", "media_changed", "reasoning_stripped_client", "reasoning_stripped_server"),
    *("assistant_echo_mismatch", "log_mismatch", "breakpoint_missing", "breakpoint_moved", "lookback_exceeded"),
    *("routing_changed", "below_minimum", "ttl_expired", "concurrency_not_ready", "server_context_edit"),
    *("boundary_not_preserved", "isolation_changed", "engine_limit", "unexplained_miss", "router_or_gateway_rewrite"),
    "redecided",
)
NAMED = re.compile(r'\b(?:Cause|MissCause)\(\s*"([a-z_]+)"|^\s*\("([a-z_]+)", "|return "([a-z_]+)", f?"', re.MULTILINE)

FIELDS = {"citations", "images"}
"""What is named beside causes and goes by ``param_changed:``."""


def causes_in_the_code() -> set[str]:
    names = ("break_causes", "miss_causes", "rewrites", "server_causes")
    texts = [(ROOT / "ctxscope" / "analysis" / f"{name}.py").read_text("utf-8") for name in names]
    return {next(filter(None, found)) for text in texts for found in NAMED.findall(text)} - FIELDS


def test_every_cause_has_a_remedy():
    assert set(TAXONOMY) == set(REMEDIES)
    assert len({remedy(cause) for cause in TAXONOMY}) == len(TAXONOMY)


def test_every_cause_that_a_verdict_can_name_has_one():
    named = causes_in_the_code()
    assert {"model_changed", "ttl_expired", "tool_added", "media_changed", "server_context_edit"} <= named
    assert [name for name in sorted(named) if remedy(name) == UNKNOWN] == []


@pytest.mark.parametrize("cause", [*TAXONOMY, "param_changed:effort", "param_changed:verbosity", None])
def test_a_remedy_is_one_plain_line(cause):
    told = remedy(cause)
    assert told.isascii()
    assert told.isprintable()
    assert 20 < len(told) <= 110
    assert not told.endswith(".")
    assert told[:1].islower()


def test_a_parameter_is_named_and_some_have_advice_of_their_own():
    assert remedy("param_changed:verbosity") == "send the same verbosity in all calls of a session"
    assert "message" in remedy("param_changed:effort")
    assert remedy("param_changed:images") != "send the same images in all calls of a session"
    assert remedy(PARAM) == UNKNOWN


@pytest.mark.parametrize("cause", [None, "", "no_such_cause"])
def test_what_has_no_name_is_not_guessed(cause):
    assert remedy(cause) == UNKNOWN
