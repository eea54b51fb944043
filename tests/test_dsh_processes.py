"""Compactions, titles, the processes and sessions a log passes through, and records that are not known."""

from __future__ import annotations

import json
from typing import Any

from ctxscope.agents import Log, dsh
from ctxscope.model import Learned, Value
from tests.dsh_cases import answer, begun, cut, learned_from, log_of, read, rebuilt, sent, step, texts, three_turns
from tests.samples.dsh_form import SessionLog, answered, body, compact, said
from tests.samples.dsh_texts import COMPACTOR, PACKAGES, SYSTEM, TOOLS
from tests.samples.pi_form import Say, Use

USE = Use("toolu_1", "sheet", '{"number": 1}')


# --- compactions and titles ------------------------------------------------------------------------------------------


def compacting() -> tuple[SessionLog, list[int]]:
    log, numbers = three_turns()
    log.event(5.0, "compaction/start", {"compactionId": "c", "turn": 2})
    return log, numbers


def test_a_compaction_s_request_ends_with_an_instruction_that_is_learned() -> None:
    log, (first, a, _) = compacting()
    items = [said("look"), answered(Say("one")), said(COMPACTOR)]
    served = body(items, SYSTEM, log.along(-1, len(log.records) - 1), PACKAGES, tools=TOOLS, cap=2000)
    done = log.event(6.0, "compaction/summary", {"summary": [], "shadowedSeqs": [first, a], "maxTokens": 2000})
    held = read(log)
    point = next(p for p in dsh.requests(held) if p.kind == "compaction")
    assert dsh.classify(cut(served)) == "compaction"
    assert point.answer.data["seq"] == done
    learned = learned_from(held, point, served)
    made = rebuilt(held, point, learned)
    assert made.data.decode() == served
    (piece,) = (p for p in made.pieces if p.path.startswith("/messages"))
    assert (json.loads(piece.data), piece.provenance) == (COMPACTOR, "echoed")
    again = learned_from(held, point, served, (point, cut(served)))
    assert again.values[piece.path] == Value(piece.data, "learned")


def test_how_far_a_compaction_that_failed_went_is_said_to_be_read_from_the_wire() -> None:
    log, _ = compacting()
    items = [said("look"), answered(Say("one")), said(COMPACTOR)]
    served = body(items, SYSTEM, log.along(-1, len(log.records) - 1), PACKAGES, tools=TOOLS, cap=2000)
    log.event(6.0, "compaction/end", {"compactionId": "c", "turn": 2, "error": "no text"})
    held = read(log)
    point = next(p for p in dsh.requests(held) if p.kind == "compaction")
    learned = learned_from(held, point, served)
    assert rebuilt(held, point, learned).data.decode() == served
    assert learned.hypotheses == ("a compaction without a summary took the first 3 events of the context",)
    assert dsh.error_line(held, point) == "no text"
    assert any("given up" in n and "«no text»" in n for n in dsh.notices(held))
    assert [m.kind for m in dsh.markers(held)] == []


def test_the_cap_of_a_compaction_is_its_summary_s_or_the_last_one_s_or_taken_from_the_wire() -> None:
    log, (first, a, _) = compacting()
    items = [said("look"), said(COMPACTOR)]
    served = body(items, SYSTEM, log.along(-1, len(log.records) - 1), PACKAGES, tools=TOOLS, cap=777)
    log.event(6.0, "compaction/end", {"compactionId": "c", "turn": 2, "error": "no text"})
    held = read(log)
    point = next(p for p in dsh.requests(held) if p.kind == "compaction")
    learned = learned_from(held, point, served)
    assert rebuilt(held, point, learned).data.decode() == served
    assert learned.values["/max_tokens"] == Value(b"777", "echoed")
    log.event(7.0, "compaction/start", {"compactionId": "d", "turn": 2})
    log.event(7.1, "compaction/summary", {"summary": [], "shadowedSeqs": [first, a], "maxTokens": 900})
    log.event(8.0, "compaction/start", {"compactionId": "e", "turn": 2})
    log.event(8.1, "compaction/end", {"compactionId": "e", "turn": 2, "error": "no text"})
    held = read(log)
    caps = [sent(held, p)["max_tokens"] for p in dsh.requests(held) if p.kind == "compaction"]
    assert caps == [2000, 900, 900]


def test_a_title_is_asked_for_as_its_own_record_says() -> None:
    log = begun()
    block = {"content": [{"type": "text", "text": "Generate the session title from this JSON array: []"}]}
    route = {"provider": "deepseek-official", "model": "small"}
    asked = {"route": route, "messageSeqs": [4], "system": "Title.", "messages": [block], "maxTokens": 64}
    log.event(1.1, "session/title-llm-request", {**asked, "reasoningEffort": "off"})
    log.event(1.2, "session/title", {"title": "Own", "messageSeqs": [4], "source": {"kind": "fallback"}})
    log.event(1.3, "session/title", {"title": "Look", "messageSeqs": [4], "source": {"kind": "provider"}})
    held = read(log)
    title = next(p for p in dsh.requests(held) if p.kind == "side")
    assert [(b.kind, b.text) for b in title.blocks] == [("text", "Look")]
    request = sent(held, title)
    assert [request[k] for k in ("model", "max_tokens", "system", "thinking")] == [
        "small",
        64,
        "Title.",
        {"type": "disabled"},
    ]
    assert "tools" not in request
    assert dsh.endpoint(held, title).model == "small"
    assert dsh.classify(cut(rebuilt(held, title).data)) == "side"


# --- processes -------------------------------------------------------------------------------------------------------


def reopened() -> tuple[SessionLog, str, str]:
    """A session two processes held, and the bodies each sent."""
    log = begun()
    first = body([said("look")], SYSTEM, log.along(-1, 5), PACKAGES, tools=TOOLS)
    log.accepted(1.1, 5)
    answer(log)
    log.ended(2.0, 1, 1, whole=True)
    log.event(9.0, "session/end-seed", {})
    log.turn(9.1, 2, "on")
    log.user(9.1, "on")
    log.request(9.1, [*TOOLS, {"name": "new", "description": "x", "parameters": {}}], "resume")
    through = len(log.records) - 1
    items = [said("look"), answered(Say("done")), said("on")]
    tools = log.records[-1]["data"]["header"]["tools"]
    second = body(items, SYSTEM, log.along(5, through, loaded=True), PACKAGES, tools=tools)
    return log, first, second


def test_another_process_is_a_marker_and_sends_one_more_member_of_the_header() -> None:
    log, first, second = reopened()
    held = read(log)
    old, new = dsh.requests(held)
    learned = learned_from(held, new, second, (old, cut(first)))
    assert rebuilt(held, new, learned).data.decode() == second
    assert learned.hypotheses == ()
    assert learned.values["/dsh_plugin_packages"].provenance == "learned"
    assert [(m.kind, m.point) for m in dsh.markers(held)] == [("resume", new.key), ("tools_changed", new.key)]


def test_the_header_sent_along_is_whole_as_one_of_the_two_kinds_of_process_has_it() -> None:
    """A process may turn out to be of the other kind; no other members may be missing."""
    log = begun(delegationDepth=0)
    through = len(log.records) - 1
    (point,) = dsh.requests(read(log))
    other = body([said("look")], SYSTEM, log.along(-1, through, loaded=True), PACKAGES, tools=TOOLS)
    learned = learned_from(read(log), point, other)
    assert rebuilt(read(log), point, learned).data.decode() == other
    assert len(learned.hypotheses) == 1
    along = json.loads(log.along(-1, through))
    for name in along["session"]:
        session = {k: v for k, v in along["session"].items() if k != name}
        served = body([said("look")], SYSTEM, compact({**along, "session": session}), PACKAGES, tools=TOOLS)
        learned = learned_from(read(log), point, served)
        assert name in sent(read(log))["dsh_session_log"]["session"]
        assert rebuilt(read(log), point, learned).data.decode() != served
        assert learned.hypotheses == ()


def test_packages_may_change_with_the_process_and_only_with_it() -> None:
    log, first, second = reopened()
    held = read(log)
    old, new = dsh.requests(held)
    changed = second.replace("1.0.3", "1.0.4")
    learned = learned_from(held, new, changed, (old, cut(first)))
    assert rebuilt(held, new, learned).data.decode() == changed
    assert learned.hypotheses == ("the process that went on with the session had other plugin packages loaded",)
    within = first.replace("1.0.3", "1.0.4")
    assert rebuilt(held, old, learned_from(held, old, within, (old, cut(first)))).data.decode() == first


def test_a_session_that_does_not_send_its_log_along_is_one_by_its_first_request() -> None:
    log = begun()
    held = read(log)
    (point,) = dsh.requests(held)
    served = body([said("look")], SYSTEM, log.along(-1, 5), PACKAGES, tools=TOOLS)
    start, end = served.index(',"dsh_session_log"'), served.index(',"dsh_plugin_packages"')
    plain = served[:start] + served[end:]
    learned = learned_from(held, point, plain)
    assert rebuilt(held, point, learned).data.decode() == plain
    assert learned.hypotheses == ("the process does not send its log along",)
    # a later request of the same process without it is a difference, and so is one the log says was accepted
    assert rebuilt(held, point, learned_from(held, point, plain, (point, cut(served)))).data.decode() == served


def test_copied_points_of_a_fork_have_the_ids_of_their_originals() -> None:
    log = begun()
    answer(log, Say("no tool, no id of a reply"))
    log.ended(2.0, 1, 1, whole=True)
    fork = SessionLog("session-y", log.cwd, 9.0, {"isSeeded": True, "parentSession": "session-x"})
    fork.records = [*log.records]
    fork.event(9.0, "session/end-seed", {})
    fork.turn(9.1, 2, "otherwise")
    fork.user(9.1, "otherwise")
    answer(fork, Say("else"), step=(2, 1))
    copied, own = dsh.requests(read(fork))
    (original,) = dsh.requests(read(log))
    assert copied.ids <= original.ids
    assert not own.ids <= original.ids
    assert [m.where for m in dsh.markers(read(fork))] == ["goes on from session session-x"]


def test_a_subagent_s_session_is_a_lineage_of_its_own() -> None:
    log = begun(delegationDepth=1, parentSession="session-p", origin="subagent")
    answer(log)
    (point,) = dsh.requests(read(log))
    assert (point.kind, point.lineage) == ("subagent", "sub:session-x")


def test_another_provider_is_not_spoken_for() -> None:
    log = begun()
    log.records[-1]["data"]["header"]["config"]["provider"] = "elsewhere"
    held = read(log)
    (point,) = dsh.requests(held)
    assert dsh.rebuild(held, point, dsh.config(held), Learned()) is None
    assert (point.api, dsh.endpoint(held, point).provider) == (None, "elsewhere")


def test_model_and_steering_are_markers() -> None:
    log = begun()
    answer(log, USE)
    log.tool(2.5, (1, 1), USE, "1")
    step(log, 2)
    log.user(3.1, "wait, the other one")
    log.request(3.2, TOOLS, "change")
    log.records[-1]["data"]["header"]["config"]["model"] = "larger"
    answer(log, Say("so"), step=(1, 2))
    held = read(log)
    last = dsh.requests(held)[-1]
    assert [(m.kind, m.point) for m in dsh.markers(held)] == [("steer", last.key), ("model_switch", last.key)]
    assert texts(sent(held, last))[-1] == "u:1|wait, the other one"


# --- what is not known -----------------------------------------------------------------------------------------------


def unknown(held: list[str], at: int, **more: Any) -> Log:
    return log_of([*held[:at], json.dumps({"type": "future/thing", "data": {}, **more}), *held[at:]])


def test_a_record_that_is_not_known_voids_what_comes_after_it() -> None:
    log, _ = three_turns()
    answer(log, Say("two too"), step=(2, 1))
    lines = log.lines()
    clean = read(log)
    at = next(i for i, line in enumerate(lines) if '"type":"turn/end"' in line)
    held = unknown(lines, at, seq=at - 1)
    first, second = dsh.requests(held)
    assert rebuilt(held, first).data == rebuilt(clean, dsh.requests(clean)[0]).data
    assert dsh.rebuild(held, second, dsh.config(held), Learned()) is None
    (told,) = (n for n in dsh.notices(held) if "ignorable" in n)
    assert told.startswith(f"line {at + 1}: a record of the unknown type «future/thing»")


def test_one_that_may_be_passed_over_only_counts() -> None:
    log, _ = three_turns()
    answer(log, Say("two too"), step=(2, 1))
    lines = log.lines()
    clean = read(log)
    held = unknown(lines, len(lines) // 2, ignorable=True)
    assert [rebuilt(held, p).data for p in dsh.requests(held)] == [rebuilt(clean, p).data for p in dsh.requests(clean)]
    assert [n for n in dsh.notices(held) if "ignorable" in n] == []
    assert any("future/thing" in n for n in dsh.notices(held))


def test_one_with_a_number_is_sent_along_like_any_other() -> None:
    log = begun()
    log.event(1.1, "future/thing", {"a": 1}, ignorable=True)
    events = sent(read(log))["dsh_session_log"]["events"]
    keys = ["seq", "time", "data", "type", "ignorable"]
    assert [list(e) for e in events[-1:]] == [keys]


def test_lost_records_are_told() -> None:
    log = begun()
    del log.records[2]
    assert any("record 3 follows record 1" in n for n in dsh.notices(read(log)))


def test_a_newer_format_is_read_like_the_newest_known() -> None:
    log = begun(version=7)
    held = read(log)
    assert sent(held)["system"] == SYSTEM
    assert any("«v7», newer than any known here; read like v4" in n for n in dsh.notices(held))


def test_packed_rows_of_v0_count_as_many_records() -> None:
    log = begun(0)
    packed = {"turn": 1, "step": 1, "index": 0, "dt": [1, 1], "texts": ["a", "b", "c"]}
    first = len(log.records)
    log.records.append({"type": "text-chunks", "seq0": first, "time0": 1, "data": packed})
    finish = {"type": "finish", "reason": {"kind": "max-tokens"}}
    log.records.append({"type": "assistant/chunk", "seq": first + 3, "time": 1, "data": {"chunk": finish}})
    message = {"role": "assistant", "content": [{"type": "text", "text": "abc"}], "id": "m"}
    done = {"type": "assistant/message", "seq": first + 4, "time": 1, "data": {"message": message}}
    log.records.append({**done, "sourceEventSeqs": [*range(first, first + 4)], "surfaceOp": "append"})
    held = read(log)
    (point,) = dsh.requests(held)
    assert point.stop.state == "truncated"
    assert not [n for n in dsh.notices(held) if "lost" in n]
