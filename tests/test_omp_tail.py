"""Where omp's compactions cut: its rule against what was recorded, and what an envelope does to it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ctxscope
from ctxscope.agents import Log, omp
from ctxscope.agents.omp.tail import Step, budget_of, cut_of
from ctxscope.model import Compacted, Compaction, Place, Record
from tests.conftest import needs_captures
from tests.omp_cases import CASES, RESPONSES, Told, capture, log_of, messages, rewrite
from tests.pi_sessions import text

RECORDED = [name for name in CASES if "compact" in name or "snapframes" in name]
steps = st.builds(
    lambda tokens, envelope, cuttable: Step(tokens + envelope, envelope, cuttable),
    st.integers(0, 500),
    st.integers(0, 500),
    st.booleans(),
)
histories = st.lists(steps, min_size=1, max_size=12)
prompts = st.none() | st.integers(0, 20_000)


def recorded(name: str) -> list[Compacted]:
    """Its compactions, with the settings of the run."""
    found = capture(name)
    settings = json.loads((found.folder / "config.json").read_text())["settings"]
    return list(omp.compactions(log_of(found.data, {**found.side, "settings": json.dumps(settings).encode()})))


@needs_captures
def test_the_rule_cuts_where_omp_cut():
    found = recorded("omp_d_compact_resp")
    assert [(len(c.messages), c.head, c.cut, c.budget) for c in found] == [(11, 0, 10, 9), (6, 0, 5, 38)]
    for told in found:
        assert {(rule.at, rule.own) for rule in told.rules} == {(told.cut, True)}
        assert (told.setting, Compaction(told).lost) == ("reserveTokens 4096, keepRecentTokens 200", ())
        assert told.reckoned_after == told.marker.after_tokens


@needs_captures
@pytest.mark.parametrize("name", RECORDED)
def test_tokens_before_are_those_of_the_last_answer_and_a_family_s_own_tokenizer_is_not_guessed(name):
    found = recorded(name)
    assert [c.reckoned_before for c in found] == [c.marker.before_tokens for c in found] != []
    if name != "omp_d_compact_resp":  # models that omp counts with a tokenizer of their own
        assert {(c.rules, c.budget, c.reckoned_after, c.unseen) for c in found} == {((), None, None, None)}


@given(histories, st.integers(1, 2000), prompts, st.booleans())
def test_a_cut_lies_in_the_history_before_what_may_begin_a_tail(history, keep, prompt, bare):
    budget = budget_of(history, keep, prompt, bare=bare)
    assert 1 <= budget <= keep
    at = cut_of(history, budget, bare=bare)
    assert 0 <= at < len(history)
    assert history[at].cuttable or at == 0
    assert cut_of(history, budget + 100, bare=bare) <= at


@given(histories, st.booleans())
def test_a_budget_larger_than_all_keeps_everything_that_may_be_kept(history, bare):
    first = next((i for i, step in enumerate(history) if step.cuttable), 0)
    assert cut_of(history, sum(step.tokens for step in history), bare=bare) == first


@given(histories, st.lists(st.integers(0, 5000), min_size=12, max_size=12), st.integers(1, 2000), prompts)
def test_no_envelope_moves_the_cut_without_it(history, lengths, keep, prompt):
    other = [Step(s.tokens - s.envelope + n, n, s.cuttable) for s, n in zip(history, lengths, strict=False)]
    cuts = {(b := budget_of(some, keep, prompt, bare=True), cut_of(some, b, bare=True)) for some in (history, other)}
    assert len(cuts) == 1


def test_groups_are_kept_whole_and_the_newest_always():
    history = [Step(10), Step(10), Step(30, cuttable=False), Step(5), Step(5, cuttable=False)]
    assert [cut_of(history, budget) for budget in (1, 10, 49, 50, 59, 60)] == [3, 3, 3, 1, 1, 0]


def test_the_budget_shrinks_by_as_much_as_a_provider_reports_more():
    history = [Step(60), Step(40, envelope=20)]
    assert [budget_of(history, 1000, prompt) for prompt in (None, 50, 100, 200, 300)] == [1000, 1000, 1000, 500, 333]
    assert budget_of(history, 1000, 200, bare=True) == 400
    assert budget_of(history, 5, 10_000) == 1
    assert budget_of([Step(0)], 5, 10_000) == 5


# --- logs ------------------------------------------------------------------------------------------------------------


def thought(signature: str, **more: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": "x" * 40, "thinkingSignature": signature, **more}


def compacted(script: Told, first: str, keep: int = 25, **more: Any) -> Compacted:
    fields = {"method": "snapcompact", "summary": "so far", "firstKeptEntryId": first, "tokensBefore": 1, **more}
    script.add("compaction", **fields)
    return omp.compactions(with_settings(script, keep))[-1]


def with_settings(script: Told, keep: int) -> Log:
    return script.log({"settings": b"compaction:\n  keepRecentTokens: %d\n" % keep})


def talk(*signatures: str) -> tuple[Told, list[str]]:
    """Answers of ten tokens beside their signatures, and the keys of their entries."""
    script = Told(target=RESPONSES).begin()
    return script, [script.assistant(thought(s), total=0) for s in signatures]


def cuts(told: Compacted) -> list[tuple[int, bool, bool]]:
    return [(rule.at, rule.envelope, rule.own) for rule in told.rules]


def test_the_messages_an_envelope_cost_are_told():
    script, keys = talk("", "", "s" * 400)
    told = compacted(script, keys[2])
    assert cuts(told) == [(2, True, True), (1, False, True)]
    assert [place.at for place in Compaction(told).lost] == ["line 6"]
    assert (told.budget, told.marker.dropped) == (25, told.messages[:2])


def test_a_report_says_what_the_envelope_cost(tmp_path: Path):
    script, keys = talk("", "", "s" * 400)
    compacted(script, keys[2])
    agent = tmp_path / ".omp" / "agent"
    (agent / "sessions" / "-p").mkdir(parents=True)
    (agent / "sessions" / "-p" / "s.jsonl").write_bytes(script.bytes())
    (agent / "config.yml").write_text("compaction:\n  keepRecentTokens: 25\n")
    inspection = ctxscope.open(tmp_path)
    (found,) = inspection.snapshot.compactions
    inspection.close()
    assert (
        "The rule of 18.2 (25 tokens for the tail) cuts there because of the envelope: without opaque reasoning bytes it "
        "would have kept 1 message more (line 6)." in found.words
    )


def test_a_rule_that_cuts_elsewhere_than_the_log_says_is_not_its_own():
    script, keys = talk("", "", "s" * 400)
    assert cuts(compacted(script, keys[1])) == [(2, True, False), (1, False, False)]


def test_a_compaction_ran_under_the_settings_of_its_time():
    script, keys = talk("", "", "")
    script.add("compaction", method="snapcompact", summary="so far", firstKeptEntryId=keys[2], tokensBefore=1)
    log = Log(script.log().ref)

    def observe(source: str, at: int, value: bytes) -> None:
        for entry in omp.entries(
            Record(source, "file" if source == "settings" else str(at), Place(0, f"line {at}"), value)
        ):
            log.add(replace(entry, seq=len(log.versions)))

    observe("settings", 1, b"compaction:\n  keepRecentTokens: 15\n")
    for at, line in enumerate(script.lines(), 1):
        observe("session", at, line)
    (before,) = omp.compactions(log)
    observe("settings", 1, b"compaction:\n  keepRecentTokens: 25\n")
    assert omp.compactions(log) == [before]
    assert (before.budget, before.setting, cuts(before)[0]) == (
        15,
        "reserveTokens 16384, keepRecentTokens 15",
        (2, True, True),
    )


def test_nothing_is_told_of_a_cut_that_the_rule_did_not_make():
    script, keys = talk("", "")
    assert compacted(script, keys[1], fromExtension=True).rules == ()
    again = compacted(script, keys[1])  # a rescue puts one compaction behind another
    assert (again.rules, again.budget) == ((), None)
    remote, keys = talk("", "")
    compacted(remote, keys[1], preserveData={"openaiRemoteCompaction": {"replacementHistory": []}})
    remote.user("on")
    assert compacted(remote, keys[1]).rules == ()
    script, keys = talk("", "")
    script.add("compaction", summary="so far", firstKeptEntryId=keys[1], tokensBefore=1)
    assert omp.compactions(script.log())[-1].rules == ()  # no settings


def test_signatures_that_the_log_leaves_out_count_in_the_process_that_was_given_them():
    item = {"type": "reasoning", "id": "rs", "encrypted_content": "e" * 400, "summary": []}
    payload = {"type": "openaiResponsesHistory", "items": [item]}
    script = Told(target=RESPONSES).begin()
    keys = [script.assistant(thought(""), total=0) for _ in range(2)]
    keys.append(script.assistant(thought(""), providerPayload=payload, total=0))
    restarted = Told(target=RESPONSES, rows=[*script.rows], last=script.last, seconds=script.seconds)
    assert cuts(compacted(script, keys[2])) == [(2, True, True), (1, False, True)]
    restarted.add("custom", customType="session_exit", data={})
    assert cuts(compacted(restarted, keys[1])) == [(1, True, True), (1, False, True)]


def test_a_message_counts_as_the_compaction_found_it():
    script = Told(target=RESPONSES).begin()
    script.user("go")
    script.assistant({"type": "toolCall", "id": "c", "name": "read", "arguments": {}}, stop="toolUse", total=0)
    script.result("c", "x" * 400)
    last = script.assistant(text("x" * 40), total=0)
    script.add("compaction", method="snapcompact", summary="so far", firstKeptEntryId=last, tokensBefore=1)
    log, before = with_settings(script, 50), script.bytes()
    (told,) = omp.compactions(log)
    result = next(row for row in script.rows if row.get("message", {}).get("role") == "toolResult")
    result["message"] |= {"content": [text("[Uneventful result elided]")], "prunedAt": script.milliseconds + 60_000}
    script.user("on")
    rewrite(log, before, script.bytes())
    assert omp.compactions(log)[0].rules == told.rules
    assert cuts(told) == [(3, True, True), (3, False, True)]
    assert omp.compactions(with_settings(script, 50))[0].rules[0].at == 0  # what the file holds since says less


def test_the_next_compaction_walks_what_the_one_before_kept_and_never_its_summary():
    script, keys = talk("", "", "")
    compacted(script, keys[1])
    keys.append(script.assistant(thought(""), total=0))
    told = compacted(script, keys[2])
    assert len(told.messages) == 4
    assert cuts(told) == [(2, True, True), (2, False, True)]
    script.user("on")
    assert {rule.at for rule in compacted(script, keys[2], 9999).rules} == {1}


def test_an_older_compaction_among_what_was_kept_gives_no_second_summary():
    script, keys = talk("", "")
    compacted(script, keys[0], summary="first")
    script.user("and?")
    compacted(script, keys[0], summary="second")
    script.user("on")
    said = json.dumps(messages(script.log()))
    assert (said.count("second"), said.count("first")) == (1, 0)


def test_a_reset_bounds_what_is_walked():
    script, _ = talk("", "s" * 400)
    script.add("reset_boundary")
    after = [script.assistant(thought(""), total=60) for _ in range(3)]
    told = compacted(script, after[2])
    assert (len(told.messages), told.budget) == (3, 12)
    assert cuts(told) == [(2, True, True), (2, False, True)]


def test_a_reset_also_bounds_what_a_compaction_kept():
    script, keys = talk("", "")
    script.add("reset_boundary")
    script.assistant(thought(""), total=0)
    script.add("compaction", method="soft", summary="so far", firstKeptEntryId=keys[0], tokensBefore=1)
    last = script.assistant(thought(""), total=60)
    assert compacted(script, last).budget == 4


def test_without_the_envelope_the_budget_shrinks_more():
    script, keys = talk("s" * 40, "")
    keys.append(script.assistant(thought(""), total=80))
    told = compacted(script, keys[2])
    assert (told.budget, cuts(told)) == (12, [(2, True, True), (2, False, True)])
    script, keys = talk("s" * 400, "")
    keys.append(script.assistant(thought(""), total=60))
    told = compacted(script, keys[1])
    assert (told.budget, cuts(told)) == (25, [(1, True, True), (2, False, True)])


@pytest.mark.parametrize("signature", ["", "s" * 400])
def test_what_is_left_and_what_came_last_is_estimated_without_the_envelope(signature):
    script, keys = talk("", signature)
    script.rows[-1]["message"]["contextSnapshot"] = {"nonMessageTokens": 1000}
    script.user("x" * 40)
    told = compacted(script, keys[1], summary="x" * 4000)
    assert told.unseen == 10
    assert told.reckoned_after is not None
    assert 2020 < told.reckoned_after < 2100  # head, summary, thinking, input, and the words around the summary


def test_commands_and_notes_count_bare():
    script = Told(target=RESPONSES).begin()
    ran = {"command": "x" * 20, "output": "y" * 20, "exitCode": 0, "cancelled": False, "truncated": False}
    script.user("x" * 40)
    script.say("bashExecution", **ran)
    script.say("developer", content="x" * 40)
    script.say("fileMention", files=[{"path": "p", "content": "x" * 400}])
    script.user("x" * 40, steering=True)
    script.add("custom_message", customType="note", content="x" * 40, display=True)
    last = script.add("branch_summary", fromId="x", summary="x" * 40)
    assert [compacted_at(script, last, keep) for keep in (10, 20, 30, 49, 50, 59, 60)] == [6, 5, 4, 4, 1, 1, 0]


def compacted_at(script: Told, first: str, keep: int) -> int:
    copy = Told(target=RESPONSES, rows=[*script.rows], last=script.last, seconds=script.seconds)
    return compacted(copy, first, keep).rules[0].at
