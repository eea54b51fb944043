"""Verdicts on calls that nobody recorded: by what a log keeps of usage, with no more confidence than that deserves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ctxscope import wire
from ctxscope.analysis.breaks import NOTHING
from ctxscope.analysis.evidence import Around
from ctxscope.analysis.log_breaks import judge_logged
from ctxscope.analysis.providers import Providers
from ctxscope.model import Body, CacheVerdict, Scope, Usage
from ctxscope.wire.body import make_body
from tests.conftest import SAMPLES
from tests.log_only import agrees, alone, told_by

ANTHROPIC = Providers().rules("anthropic", "claude-sonnet-4-6", "anthropic-messages")
WRITES_UNTOLD = Providers().rules("openai", "gpt-5.1", "anthropic-messages")
UNTOLD = Providers().rules("unknown", "plum-1", "openai-chat")
LONG = "a row of plum trees in the rain " * 60


def body(*texts: str) -> Body:
    turns = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    told = {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": turns}
    return make_body(json.dumps(told).encode(), wire.by_name("anthropic-messages"))


FIRST, SECOND = body(LONG), body(LONG, "yes", "and now?")
REWRITTEN = body(LONG.replace("rain", "sun"), "yes", "and now?")
WROTE = Usage(3, 0, 900, 5)


def verdict(
    call: Body,
    usage: Usage | None,
    *,
    parent: Body | None = FIRST,
    before: Usage | None = WROTE,
    scope: Scope = "body",
    around: Around = NOTHING,
) -> CacheVerdict:
    return judge_logged(call, parent, ANTHROPIC, around, scope, usage, before)


def test_a_read_of_all_that_was_written_proves_an_unbroken_prefix():
    told = verdict(SECOND, Usage(3, 900, 40, 5))
    assert (told.verdict, told.confidence, told.expected_read) == ("warm", "confirmed", (900, 900))


def test_a_read_beside_a_bound_is_no_proof():
    told = judge_logged(SECOND, FIRST, UNTOLD, NOTHING, "body", Usage(600, 300, None, 5), Usage(900, 0, None, 5))
    assert (told.verdict, told.confidence) == ("warm", "consistent")


def test_a_history_the_log_shows_rewritten_is_a_break_that_the_bytes_sent_do_not_confirm():
    told = verdict(REWRITTEN, Usage(903, 0, 940, 5))
    assert (told.verdict, told.confidence, told.path, told.lost_tokens) == (
        "break",
        "consistent",
        "/messages/0/content",
        900,
    )


def thinking(model: str, more: bool) -> Body:
    thought = {"type": "thinking", "thinking": "plums " * 40, "signature": "c2ln"}
    call, text = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}, {"type": "text", "text": "It rains."}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": LONG}
    turns = [("user", LONG), ("assistant", [thought, call]), ("user", [result])]
    turns += [("assistant", [text]), ("user", "And tomorrow?")] if more else []
    told = {"model": model, "max_tokens": 9, "messages": [{"role": role, "content": said} for role, said in turns]}
    return make_body(json.dumps(told).encode(), wire.by_name("anthropic-messages"))


@pytest.mark.parametrize(("read", "state"), [(1200, "warm"), (1197, "warm"), (560, "break")])
def test_reasoning_that_a_model_is_not_shown_any_more_is_no_loss_where_all_was_read(read: int, state: str):
    rules = Providers().rules("anthropic", "claude-sonnet-4-5", "anthropic-messages")
    before, usage = Usage(3, 0, 1200, 5), Usage(3, read, 1300 - read, 5)
    parent, call = (thinking("claude-sonnet-4-5", more) for more in (False, True))
    told = judge_logged(call, parent, rules, NOTHING, "body", usage, before)
    assert told.verdict == state
    assert (told.lost_tokens == 0) is (state == "warm")
    assert (told.cause == "reasoning_stripped_server") is (state == "break")
    assert any("nothing was lost" in fact for fact in told.facts) is (state == "warm")


def test_without_a_reported_read_a_break_is_one_reading_of_the_log_and_costs_nobody_knows_what():
    told = verdict(REWRITTEN, None)
    assert (told.verdict, told.confidence, told.lost_tokens, told.expected_read) == ("break", "ambiguous", None, None)


def test_less_read_than_written_may_be_what_the_log_does_not_hold():
    told = verdict(SECOND, Usage(903, 0, 940, 5))
    assert (told.verdict, told.cause, told.confidence) == ("miss", None, "ambiguous")
    assert "may have changed" in told.why
    assert told.lost_tokens == 900


def test_a_gap_longer_than_the_life_of_an_entry_is_a_candidate_not_a_proof():
    told = verdict(SECOND, Usage(903, 0, 940, 5), around=Around(gap=900.0))
    assert (told.verdict, told.cause, told.candidates, told.confidence) == (
        "miss", "ttl_expired", ("ttl_expired",), "ambiguous",
    )  # fmt: skip


def test_an_unchanged_log_without_usage_tells_nothing():
    told = verdict(SECOND, None, before=None)
    assert (told.verdict, told.confidence, told.lost_tokens) == ("unknown", "not_measurable", None)


def test_a_first_call_that_read_something_goes_on_from_what_is_not_here():
    assert verdict(FIRST, Usage(3, 800, 40, 5), parent=None).verdict == "unknown"
    assert verdict(FIRST, Usage(3, 0, 940, 5), parent=None).verdict == "cold"


def test_a_share_of_a_prompt_whose_head_is_not_in_the_log_is_no_number():
    usage, before = Usage(899, 1, None, 5), Usage(900, 0, None, 5)
    tail = body(LONG, LONG, "and now?"), body(LONG, LONG.replace("rain", "sun"), "and now?", "yes")
    for scope, known in (("body", True), ("messages", False)):
        told = judge_logged(tail[1], tail[0], UNTOLD, NOTHING, scope, usage, before)
        assert told.verdict == "break"
        assert (told.lost_tokens is not None) is known
        assert (told.expected_read is not None) is known


def test_writes_of_nothing_that_no_provider_reports_are_no_arithmetic():
    usage, before = Usage(7100, 3000, 0, 5), Usage(7000, 3000, 0, 5)
    told = judge_logged(SECOND, FIRST, WRITES_UNTOLD, NOTHING, "body", usage, before)
    assert (told.verdict, told.confidence) == ("miss", "ambiguous"), "all of the parent may have been kept"


def test_an_expected_read_that_was_exceeded_was_no_bound():
    usage, before = Usage(400, 500, None, 5), Usage(900, 0, None, 5)
    earlier, later = body("plum", LONG, "and now?"), body("pear", LONG, "and now?", "yes")
    told = judge_logged(later, earlier, UNTOLD, NOTHING, "body", usage, before)
    assert told.verdict == "break"
    assert told.expected_read is None, "the head, which the log does not hold, was read too"


def test_a_compaction_in_the_log_is_what_broke_the_prefix(tmp_path: Path):
    calls = alone(SAMPLES / "omp" / "shaken_then_archived", tmp_path).values()
    broken = next(c for c in calls if "compaction" in c.markers)
    assert (broken.cache.verdict, broken.cache.cause) == ("break", "compaction")


@pytest.mark.parametrize(
    "case", sorted(p.parent for p in SAMPLES.glob("*/*/expected.json")), ids=lambda case: case.name
)
def test_a_log_alone_never_breaks_what_its_recording_shows_warm(case: Path, tmp_path: Path):
    agrees(alone(case, tmp_path), told_by(case).values())


def test_claude_code_keeps_the_apis_word(tmp_path: Path):
    case = next(p for p in SAMPLES.glob("claude_code/hooks_around_compaction"))
    log = tmp_path / "log"
    shutil.copytree(case / "log", log)
    (file,) = (p for p in log.rglob("*.jsonl") if "subagents" not in p.parts)
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    answers = [line for line in lines if line["type"] == "assistant"]
    told = {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 700}}
    answers[-1]["message"]["diagnostics"] = told
    file.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    says = [call.cache.provider_says for call in told_by(log).values()]
    assert says.count("tools_changed (700 tokens)") == 1
    assert set(says) == {None, "tools_changed (700 tokens)"}
