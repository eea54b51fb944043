"""Where pi's compactions cut: both versions' rules against what was recorded, and what moves a cut and what must not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.agents import Log, pi
from ctxscope.agents.pi.tail import NEW, OLD, cut_of, steps_of
from ctxscope.agents.pi.tree import tree
from ctxscope.model import Compacted, Compaction, Place, Record
from tests.conftest import needs_captures
from tests.pi_sessions import CASES, Script, call, capture, log_of, text

COMPACTED = [name for name in CASES if "compact" in name]
ONLY_NEW = {"rawStopReason", "durationMs", "thinkingLevel"}
WORDS = st.integers(0, 300).map(lambda n: "ab é"[: n % 5] * (n // 4))


def thought(words: str, signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "thinkingSignature": signature}


def cut(script: Script, keep: int, version: str = NEW) -> int:
    last = tree(script.log()).last
    assert last is not None
    return cut_of(steps_of(last, version), keep, version)


def compacted(script: Script, first: str, settings: dict[str, Any] | None = None, **more: Any) -> Compacted:
    script.add("compaction", summary="so far", firstKeptEntryId=first, tokensBefore=1, **more)
    side = {} if settings is None else {"settings": json.dumps({"compaction": settings}).encode()}
    return pi.compactions(log_of(script.bytes(), side=side))[-1]


def recorded(name: str) -> Log:
    """Its log with the settings of the run."""
    found = capture(name)
    settings = json.loads((found.folder / "config.json").read_text())["settings"]
    return log_of(found.logs[-1], side={"settings": json.dumps(settings).encode()})


@needs_captures
@pytest.mark.parametrize("name", COMPACTED)
def test_the_rule_of_the_log_s_version_cuts_where_pi_cut(name):
    found = pi.compactions(recorded(name))
    assert len(found) == 2
    for told in found:
        own = OLD if name.startswith("pi073") else NEW
        assert {(rule.version, rule.envelope) for rule in told.rules if rule.own} == {(own, True), (own, False)}
        assert {rule.at for rule in told.rules if rule.own} == {told.cut}
        assert (told.budget, told.setting) == (200, "reserveTokens 4096, keepRecentTokens 200")
        assert Compaction(told).lost == ()


@st.composite
def scripts(draw: st.DrawFn, signature: st.SearchStrategy[str] = WORDS) -> Script:
    script = Script().begin()
    script.system(preamble=draw(WORDS))
    for _ in range(draw(st.integers(1, 6))):
        script.user(draw(WORDS))
        said = [thought(draw(WORDS), draw(signature)), text(draw(WORDS))]
        calls = [f"c{len(script.rows)}{i}" for i in range(draw(st.integers(0, 2)))]
        script.assistant(*said, *(call(name, path=draw(WORDS)) for name in calls))
        for name in calls:
            script.result(name, draw(WORDS))
        if draw(st.booleans()):
            script.add("custom_message", customType="note", content=draw(WORDS), display=True)
    return script


@given(scripts(), st.integers(1, 1000), st.sampled_from([OLD, NEW]))
def test_a_cut_lies_in_the_history_before_what_may_begin_a_tail(script, keep, version):
    last = tree(script.log()).last
    shown = [step for step in steps_of(last, version) if step.shown]
    at = cut(script, keep, version)
    assert 0 <= at < len(shown)
    assert shown[at].entry.kind != "toolResult"
    assert version == OLD or cut(script, keep + 50, version) <= at


@given(scripts(), st.sampled_from([OLD, NEW]))
def test_a_budget_larger_than_all_keeps_everything(script, version):
    last = tree(script.log()).last
    assert cut(script, sum(step.tokens for step in steps_of(last, version)) + 1, version) == 0


@given(st.data(), st.integers(1, 1000), st.sampled_from([OLD, NEW]))
def test_no_signature_moves_a_cut(data, keep, version):
    script = data.draw(scripts())
    signed = Script(rows=json.loads(json.dumps(script.rows)), last=script.last, seconds=script.seconds)
    for row in signed.rows:
        for block in row.get("message", {}).get("content") or ():
            if "thinkingSignature" in block:
                block["thinkingSignature"] = data.draw(WORDS) * 40
    assert cut(signed, keep, version) == cut(script, keep, version)


def talk(*results: int) -> Script:
    """A question, a call with results of so many characters."""
    script = Script().begin()
    script.user("go")
    script.assistant(*(call(f"c{i}", path="p") for i in range(len(results))))
    for i, length in enumerate(results):
        script.result(f"c{i}", "x" * length)
    return script


def test_results_too_large_alone_are_kept_with_their_call_or_with_all():
    assert cut(talk(4000), 100) == 1
    assert cut(talk(4000), 100, OLD) == 0
    assert cut(talk(40, 4000), 100) == 1


def test_the_sum_that_reaches_the_budget_ends_the_walk():
    script = Script().begin()
    for _ in range(4):
        script.user("x" * 40)
    assert [cut(script, keep) for keep in (1, 10, 11, 20, 21, 40, 41)] == [3, 3, 2, 2, 1, 0, 0]


def test_the_old_rule_counts_no_extension_and_no_image_of_a_user_s():
    script = Script().begin()
    for _ in range(3):
        script.say("user", content=[text("x" * 40), {"type": "image", "data": "", "mimeType": "image/png"}])
    assert (cut(script, 20), cut(script, 20, OLD)) == (2, 1)
    script.add("custom_message", customType="note", content="x" * 4000, display=True)
    assert (cut(script, 20), cut(script, 20, OLD)) == (3, 1)
    script.user("x" * 80)
    assert (cut(script, 20), cut(script, 20, OLD)) == (4, 3)  # what an extension said before the tail stays with it


def test_a_command_counts_bare_and_one_kept_from_the_model_too():
    script = Script().begin()
    ran = {"command": "x" * 20, "output": "y" * 20, "exitCode": 0, "cancelled": False, "truncated": False}
    script.user("x" * 40)
    script.say("bashExecution", **ran)
    assert [cut(script, keep) for keep in (10, 11)] == [1, 0]
    script.say("bashExecution", **ran, excludeFromContext=True)
    assert [cut(script, keep) for keep in (10, 11, 20, 21)] == [2, 1, 1, 0]


def test_nothing_is_kept_where_only_a_failed_answer_that_was_left_out_follows():
    script = talk()
    script.user("x" * 400)
    failed = script.assistant(stop="error")
    assert cut(script, 100) == 2
    script.add("context_edit", targetId=failed, replacement=None)
    assert cut(script, 100) == 3
    assert cut(script, 1000) == 0
    with_input = Script(rows=[*script.rows], last=script.last)
    with_input.user("now")
    assert cut(with_input, 100) == 2
    script.add("context_edit", targetId=script.rows[3]["id"], replacement={"content": "shorter"})
    assert cut(script, 100) == 2


def test_the_next_compaction_walks_what_the_one_before_kept_and_never_its_summary():
    script = Script().begin()
    names = [script.user("x" * 40) for _ in range(4)]
    first = compacted(script, names[2], {"keepRecentTokens": 20})
    assert {(rule.at, first.cut) for rule in first.rules} == {(2, 2)}
    script.user("x" * 40)
    then = compacted(script, names[3], {"keepRecentTokens": 20})
    assert len(then.messages) == 4
    assert {(rule.at, then.cut) for rule in then.rules} == {(2, 2)}
    assert {rule.at for rule in compacted(script, names[3], {"keepRecentTokens": 9999}).rules} == {1}


def test_what_an_extension_said_before_a_compaction_stays_with_no_later_tail():
    script = Script().begin()
    script.user("x" * 40)
    said = script.add("custom_message", customType="note", content="x", display=True)
    script.add("compaction", summary="so far", firstKeptEntryId=said, tokensBefore=1)
    script.user("x" * 40)
    assert cut(script, 10, OLD) == 1


def test_settings_of_a_model_go_before_those_of_all():
    own = {"acme/sonnet-x": {"keepRecentTokens": 0}}
    script = talk(40)
    told = compacted(script, script.last or "", {"keepRecentTokens": 30, "modelOverrides": own})
    assert (told.budget, told.setting) == (0, "reserveTokens 16384, keepRecentTokens 0")


def followed(*told: tuple[str, bytes]) -> Log:
    """A log whose lines, and settings that changed between them, were observed in this order."""
    log = log_of(b"")
    for number, (source, value) in enumerate(told, 1):
        version = sum(key == source == "settings" for key, _ in told[: number - 1])
        for entry in pi.entries(Record(source, str(number), Place(0, f"line {number}"), value, version)):
            log.add(replace(entry, seq=len(log.versions)))
    return log


def test_a_compaction_ran_under_the_settings_of_its_time():
    script = Script().begin()
    names = [script.user("x" * 40) for _ in range(4)]
    first = script.add("compaction", summary="so far", firstKeptEntryId=names[2], tokensBefore=1)
    script.user("x" * 40)
    script.add("compaction", summary="so far", firstKeptEntryId=names[3], tokensBefore=1)
    lines = [("session", line) for line in script.bytes().split(b"\n")]
    at = 1 + next(i for i, row in enumerate(script.rows) if row.get("id") == first)
    kept = [("settings", json.dumps({"compaction": {"keepRecentTokens": keep}}).encode()) for keep in (20, 21)]
    log = followed(kept[0], *lines[:at], kept[1], *lines[at:])
    assert [told.budget for told in pi.compactions(log)] == [20, 21]
    assert [told.setting.rpartition(" ")[2] for told in pi.compactions(log)] == ["20", "21"]
    assert [told.budget for told in pi.compactions(followed(*lines, kept[1]))] == [21, 21]  # all that is known


def test_a_rule_is_its_own_where_it_cuts_where_the_log_does_and_of_the_version_of_its_time():
    script = Script().begin()
    script.user("x" * 40)
    old = script.assistant(text("x" * 40))
    script.rows[-1]["message"] = {k: v for k, v in script.rows[-1]["message"].items() if k not in ONLY_NEW}
    assert own(compacted(script, old, {"keepRecentTokens": 1})) == {OLD}
    names = [script.user("x" * 40) for _ in range(2)]
    assert own(compacted(script, names[0], {"keepRecentTokens": 1})) == set()  # made under other settings
    script.assistant(text("x" * 40), thinkingLevel="off")
    last = script.user("x" * 40)
    found = compacted(script, last, {"keepRecentTokens": 1})
    assert own(found) == {NEW}
    log = log_of(script.bytes(), side={"settings": b'{"compaction":{"keepRecentTokens":1}}'})
    assert [own(told) for told in pi.compactions(log)] == [{OLD}, set(), {NEW}]


def own(told: Compacted) -> set[str]:
    return {rule.version for rule in told.rules if rule.own}


def test_no_rule_is_told_where_no_settings_are_at_hand_or_an_extension_cut():
    script = talk(40)
    assert compacted(script, script.last or "").rules == ()
    told = compacted(talk(40), "", {}, fromHook=True)
    assert (told.rules, told.budget) == ((), None)
