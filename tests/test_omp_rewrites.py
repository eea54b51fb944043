"""Messages written anew in their place, text and images kept outside the log, reminders, forks: calls as of their time."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.agents import Log, omp
from ctxscope.agents.omp.reminder import Zone
from ctxscope.model import Config, Learned, Place, Record, SessionRef
from tests.omp_cases import CHAT, Told, log_of, messages, rewrite, take
from tests.pi_sessions import call, text

SHAKEN = "[shaken ~50 tokens — recover: artifact://3 (region {})]"


def results(log: Log) -> list[list[str]]:
    """For each call the texts of the tool results in its request."""
    found = []
    for point in omp.requests(log):
        sent = messages(log, point)
        found.append([m["content"] for m in sent if m["role"] == "tool"])
    return found


def row_of(script: Told, key: str) -> dict[str, Any]:
    return next(r for r in script.rows if r.get("id") == key)


def read_twice() -> tuple[Told, str]:
    script = Told(CHAT).begin()
    script.user("read")
    script.assistant(call("t1", p=1), stop="toolUse")
    key = script.result("t1", "the original")
    script.assistant(text("read"))
    return script, key


def prune(script: Told, key: str, words: str = "[Superseded by a newer read of this file]") -> None:
    script.seconds += 2
    message = row_of(script, key)["message"]
    row_of(script, key)["message"] = {**message, "content": [text(words)], "prunedAt": script.milliseconds}
    script.seconds += 2


def test_a_call_sees_the_result_as_it_stood_then() -> None:
    script, key = read_twice()
    old = script.bytes()
    log = script.log()
    prune(script, key)
    script.user("more")
    script.assistant(text("ok"))
    rewrite(log, old, script.bytes())
    assert results(log) == [[], ["the original"], ["[Superseded by a newer read of this file]"]]
    (marker,) = omp.markers(log)
    assert (marker.kind, marker.point) == ("prune", omp.requests(log)[2].key)
    assert marker.dropped == (Place(0, "line 7"),)


def test_a_rewrite_seen_before_an_answer_that_was_begun_earlier_does_not_touch_it() -> None:
    """The file is written anew right behind an answer: a follower reads both at once, the changed line first."""
    script, key = read_twice()
    old = script.bytes()
    log = script.log()
    script.user("more")
    script.assistant(text("late"))
    prune(script, key)
    script.user("again")
    script.assistant(text("after"))
    rewrite(log, old, script.bytes())
    assert results(log)[2:] == [["the original"], ["[Superseded by a newer read of this file]"]]


def test_a_waiting_request_sees_every_rewrite_and_no_later_answer_does() -> None:
    script, key = read_twice()
    old = script.bytes()
    log = script.log()
    script.user("more")
    late = script.bytes()
    rewrite(log, old, late)
    prune(script, key)
    rewrite(log, late, script.bytes())
    assert results(log)[-1] == ["[Superseded by a newer read of this file]"]
    before = script.bytes()
    script.assistant(text("late"))
    script.rows[-1]["message"]["timestamp"] -= 5000
    rewrite(log, before, script.bytes())
    assert results(log)[-1] == ["the original"]


def test_a_cold_read_of_a_pruned_log_explains_what_it_cannot_know() -> None:
    script, key = read_twice()
    prune(script, key)
    script.user("more")
    script.assistant(text("ok"))
    log = script.log()
    assert results(log)[1] == ["[Superseded by a newer read of this file]"]
    assert [(m.kind, m.point) for m in omp.markers(log)] == [("prune", omp.requests(log)[2].key)]


def shaken() -> tuple[Told, dict[str, bytes]]:
    script, key = read_twice()
    asked = script.user("see:\n<doc>\nlong\n</doc>\nend")
    script.assistant(text("seen"))
    prune(script, key, SHAKEN.format(1))
    row_of(script, asked)["message"]["content"] = [text(f"see:\n{SHAKEN.format(2)}\nend")]
    script.user("more")
    script.assistant(text("ok"))
    parts = [
        "### region 1 (read, ~50 tok)",
        "",
        "the original",
        "",
        "### region 2 (user, ~50 tok)",
        "",
        "<doc>\nlong\n</doc>",
        "",
    ]
    return script, {"artifact:3.shake.log": "\n".join(parts).encode()}


def test_shaken_regions_are_put_back_from_the_artifact_for_calls_before() -> None:
    script, side = shaken()
    log = script.log(side)
    first = [m["content"][0]["text"] for m in messages(log, omp.requests(log)[2]) if m["role"] == "user"]
    last = [m["content"][0]["text"] for m in messages(log) if m["role"] == "user"]
    assert results(log)[1:] == [["the original"], ["the original"], [SHAKEN.format(1)]]
    assert first == ["read", "see:\n<doc>\nlong\n</doc>\nend"]
    assert last == ["read", f"see:\n{SHAKEN.format(2)}\nend", "more"]
    made = omp.rebuild(log, omp.requests(log)[2], Config(), Learned())
    assert made is not None
    assert [b"the original" in p.data or b"<doc>" in p.data for p in made.pieces if p.external] == [True, True]
    assert [m.kind for m in omp.markers(log)] == ["shake"]


def test_an_artifact_that_comes_late_gives_the_same_as_one_that_was_there() -> None:
    script, side = shaken()
    late = script.log()
    assert results(late)[1] == [SHAKEN.format(1)]
    for source, value in side.items():
        for entry in omp.entries(Record(source, "file", Place(1, "file"), value)):
            late.add(entry)
    assert results(late) == results(script.log(side))
    assert omp.basis(late, omp.requests(late)[0]) != omp.basis(script.log(), omp.requests(late)[0])


def test_what_is_learned_of_shaken_regions_again_and_again_leaves_nothing_of_older_trees() -> None:
    """Each time the log is folded anew; what was made of the tree before must not be taken for what this one gives."""
    script, side = shaken()
    log = script.log(side)
    texts, dates = results(log), reminders(log)
    assert all(dates)
    for number in range(1, 40):
        words = side["artifact:3.shake.log"].replace(b"the original", b"original %d" % number)
        for entry in omp.entries(Record("artifact:3.shake.log", "file", Place(1, "file"), words, number)):
            log.add(entry)
        assert results(log) == [[t.replace("the original", f"original {number}") for t in sent] for sent in texts]
        assert reminders(log) == dates


def test_images_taken_out_are_a_strip_and_earlier_calls_still_had_them() -> None:
    script = Told(CHAT).begin()
    picture = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    key = script.user("look")
    row_of(script, key)["message"]["content"].append(picture)
    script.assistant(text("seen"))
    old = script.bytes()
    log = script.log()
    row_of(script, key)["message"]["content"].pop()
    script.user("more")
    script.assistant(text("ok"))
    rewrite(log, old, script.bytes())
    kinds = [[p["type"] for p in messages(log, p)[0]["content"]] for p in omp.requests(log)]
    assert kinds == [["text", "image_url"], ["text"]]
    assert [(m.kind, m.point) for m in omp.markers(log)] == [("strip", omp.requests(log)[1].key)]


def test_a_note_of_recovery_takes_an_answer_out_of_later_requests_and_is_no_marker() -> None:
    script = Told(CHAT).begin()
    script.user("go")
    key = script.assistant(text(""), stop="stop")
    script.assistant(text("there"))
    old = script.bytes()
    log = script.log()
    row_of(script, key)["message"]["retryRecovery"] = {"kind": "auto-retry", "status": "recovered"}
    script.user("more")
    script.assistant(text("ok"))
    rewrite(log, old, script.bytes())
    assert [m["role"] for m in messages(log)] == ["user", "assistant", "user"]
    assert omp.markers(log) == []


def test_batches_of_any_size_give_the_same() -> None:
    """A file written anew twice, read by followers that look at other moments in between."""
    script, key = read_twice()
    stages = [script.bytes()]
    script.user("more")
    script.assistant(text("late"))
    prune(script, key)
    stages.append(script.bytes())
    script.user("again")
    script.assistant(text("after"))
    stages.append(script.bytes())

    def followed(ask: Callable[[], bool]) -> Log:
        log = log_of(stages[0])
        for old, new in itertools.pairwise(stages):
            before, after = old.split(b"\n"), new.split(b"\n")
            for n, line in enumerate(after, 1):
                if n > len(before) or before[n - 1] != line:
                    take(log, [(n, line)], 1)
                    if ask():
                        omp.markers(log)
                        results(log)
        return log

    chance = random.Random(7)
    wanted = results(followed(lambda: False))
    for _ in range(20):
        assert results(followed(lambda: chance.random() < 0.5)) == wanted


def reminders(log: Log, **choice: Any) -> list[list[str]]:
    found = []
    for point in omp.requests(log):
        made = omp.rebuild(log, point, Config(), Learned(choice=choice))
        assert made is not None
        sent = [p for m in json.loads(made.data)["messages"] for p in m["content"] if isinstance(p, dict)]
        found.append([p["text"][25:35] for p in sent if p["text"].startswith("<system-reminder>")])
    return found


def test_a_date_that_changed_leads_the_newest_message_and_the_first_keeps_its_own() -> None:
    script = Told(CHAT).begin()
    script.user("one")
    script.assistant(text("1"))
    script.user("two")
    script.assistant(text("2"))
    script.rows[-1]["message"]["timestamp"] += 86_400_000
    script.user("three")
    script.assistant(text("3"))
    script.rows[-1]["message"]["timestamp"] += 86_400_000
    assert reminders(script.log()) == [["2026-01-01"], ["2026-01-01", "2026-01-02"], ["2026-01-01", "2026-01-02"]]


def test_a_process_started_anew_dates_the_first_message_anew() -> None:
    script = Told(CHAT).begin()
    script.user("one")
    script.assistant(text("1"))
    script.add("custom", customType="session_exit", data={})
    script.user("two")
    script.assistant(text("2"))
    script.rows[-1]["message"]["timestamp"] += 86_400_000
    log = script.log()
    assert reminders(log) == [["2026-01-01"], ["2026-01-02"]]
    assert [m.kind for m in omp.markers(log)] == ["resume"]


def test_the_time_zone_is_the_nearest_one_that_explains_the_dates() -> None:
    zone = Zone()
    assert zone.minutes == 0
    late = 1767308400.0  # 2026-01-01T23:00Z
    ahead = zone.told(late, b"2026-01-02")
    assert (ahead.minutes, ahead.date(late)) == (60, b"2026-01-02")
    assert ahead.told(late - 7200, b"2026-01-02").minutes == 180
    assert zone.told(late - 22 * 3600, b"2025-12-31").minutes == -75
    assert zone.told(late, b"2020-05-05") == zone
    assert zone.told(late, b"no date") == zone


def test_a_fork_makes_its_own_calls_under_its_own_id() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(text("1"))
    script.rows[1] |= {"id": "1-fork", "parentSession": "/x/2026_0-session.jsonl", "timestamp": script.now()}
    script.user("two")
    script.assistant(text("2"))
    log = script.log()
    ids = [json.loads(_body(log, p))["metadata"]["user_id"] for p in omp.requests(log)]
    assert ids == ['{"session_id":"0-session"}', '{"session_id":"1-fork"}']
    assert omp.requests(log)[1].branched_from == omp.requests(log)[0].key
    (marker,) = omp.markers(log)
    assert (marker.kind, marker.point) == ("resume", omp.requests(log)[1].key)


def _body(log: Log, point: Any) -> bytes:
    made = omp.rebuild(log, point, Config(), Learned())
    assert made is not None
    return made.data


def test_the_same_answer_persisted_again_is_one_call() -> None:
    script = Told().begin()
    asked = script.user("one")
    script.assistant(text("cut"), stop="length", responseId="r")
    for _ in range(2):
        script.rows.append({**script.rows[-1], "id": f"again{len(script.rows)}", "parentId": asked})
    script.last = script.rows[-1]["id"]
    script.user("two")
    script.assistant(text("2"))
    log = script.log()
    assert [(p.lineage, sorted(p.ids)) for p in omp.requests(log)] == [("main", ["r"]), ("main", ["r9"])]
    assert omp.markers(log) == []
    assert [m["role"] for m in messages(log)] == ["user", "assistant", "user"]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_none_counts_as_missing(value: str) -> None:
    script = Told(CHAT).begin()
    script.user("one")
    script.assistant(text("1"))
    script.result("t1", "done")
    script.rows[-2]["message"]["usage"] = {"input": "#", "output": 5, "reasoningTokens": "#"}
    script.rows[-2]["message"]["timestamp"] = "#"
    script.rows[-1]["message"]["prunedAt"] = "#"
    log = log_of(b"\n".join(json.dumps(r).replace('"#"', value).encode() for r in script.rows))
    point = omp.requests(log)[0]
    assert point.stored_usage is not None
    assert (point.stored_usage.output, point.stored_usage.reasoning) == (5, None)
    assert omp.rebuild(log, point, Config(), Learned()) is not None
    omp.markers(log)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_value_in_place_of_a_field_raises(data: st.DataObject) -> None:
    script = Told(data.draw(st.sampled_from([CHAT, ("anthropic-messages", "a", "b"), ("openai-responses", "a", "b")])))
    script.begin()
    script.user("one", steering=True)
    script.assistant({"type": "thinking", "thinking": "x", "thinkingSignature": "y"}, call("t1", p=1), stop="toolUse")
    script.result("t1", "done")
    archive = {"snapcompact": {"frames": [{"data": "QQ=="}], "textHead": "a", "textTail": "b", "truncatedChars": 1}}
    script.add("compaction", summary="s", firstKeptEntryId="x", tokensBefore=1, method="soft", preserveData=archive)
    script.add("custom_message", customType="x", content="y", display=True)
    script.add("model_usage", purpose="t", api="a", provider="b", model="c", usage={"input": 1})
    script.add("branch_summary", fromId="x", summary="s")
    script.say("pythonExecution", code="1", output="2")
    script.say("fileMention", files=[{"path": "a", "content": "b"}])
    script.user("two")
    script.assistant(text("end"))
    script.user("open")
    for _ in range(data.draw(st.integers(1, 4))):
        holder: Any = data.draw(st.sampled_from(script.rows))
        while isinstance(holder, dict | list) and holder:
            keys = list(holder) if isinstance(holder, dict) else range(len(holder))
            key = data.draw(st.sampled_from(list(keys)))
            if not isinstance(holder[key], dict | list) or data.draw(st.booleans()):
                holder[key] = data.draw(VALUES)
                break
            holder = holder[key]
    log = log_of(b"\n".join(json.dumps(r).encode() for r in script.rows))
    omp.markers(log)
    omp.notices(log)
    omp.config(log)
    for point in omp.requests(log):
        omp.endpoint(log, point)
        omp.estimates(log, point)
        omp.naive(log, point)
        omp.error_line(log, point)
        omp.rebuild(log, point, Config(), Learned())


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=80), st.sampled_from(["session", "blob:x", "artifact:1.shake.log"]))
def test_any_bytes_are_entries(value: bytes, source: str) -> None:
    log = Log(SessionRef("omp", "s", (Path("s"),), Path()))
    for entry in omp.entries(Record(source, "1", Place(0, "line 1"), value)):
        log.add(entry)
    omp.requests(log)
    omp.notices(log)
    omp.claims(Path("x.jsonl"), value)
