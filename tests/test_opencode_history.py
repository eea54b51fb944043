"""What each of opencode's calls read: summaries, cleared outputs, undone messages, rows that change under way."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from ctxscope.agents import at_hand, opencode
from ctxscope.model import Body, Config, Learned
from tests.opencode_cases import LOOK, SESSION, changed, fresh, full, messages, read, refs
from tests.samples.opencode_form import Database, Use, insert, text, thought, used

SIGNED = {"metadata": {"anthropic": {"signature": "c2ln"}}}
MARK = {"cache_control": {"type": "ephemeral"}}
ANTHROPIC = "anthropic-messages"


@pytest.mark.parametrize("tail", [False, True])
def test_a_summary_stands_for_what_was_before_and_a_kept_tail_follows_it(tmp_path: Path, tail: bool):
    full(tail).write(tmp_path)
    log = read(tmp_path).log
    points = opencode.requests(log)
    assert [(p.kind, p.turn) for p in points] == [("main", 1), ("main", 2), ("compaction", 2), ("main", 3)]
    kept = ["two", "second"] if tail else []
    sent = [m["content"] for m in messages(log, points[-1])]
    assert sent == ["What did we do so far?", "SUM", *kept, "three"]
    assert opencode.rebuild(log, points[2], Config(), Learned()) is None
    (marker,) = opencode.markers(log)
    assert (marker.kind, marker.point, marker.before_tokens) == ("compaction", points[-1].key, 9000)
    assert len(marker.dropped) == (2 if tail else 4)


def asked_for(rows: Database, home: Path, systems: int, asks: str) -> str:
    """The text of the last request for a summary: what the log implies, and behind it what the request asks."""
    rows.write(home)
    log = read(home).log
    point = [p for p in opencode.requests(log) if p.kind == "compaction"][-1]
    said = [*[{"role": "system", "content": "s"}] * systems, {"role": "user", "content": f"other{asks}"}]
    served = Body(json.dumps({"model": "buoy-chat", "messages": said}).encode(), "openai-chat", ())
    rebuilt = opencode.rebuild(log, point, Config(), opencode.learn(log, point, served, at_hand()))
    assert rebuilt is not None
    borrowed = {p.path for p in rebuilt.pieces if p.provenance == "echoed"}
    assert borrowed == {*(f"/messages/{n}" for n in range(systems)), f"/messages/{systems}/content"}
    return str(json.loads(rebuilt.data)["messages"][-1]["content"])


def test_a_request_for_a_summary_holds_the_conversation_as_text(tmp_path: Path):
    rows = fresh()
    file = {"type": "file", "mime": "image/png", "filename": "a.png", "url": "data:,"}
    one = rows.user(SESSION, 1, text("one"), text("more"), text("no", ignored=True), file)
    failed = {**used(Use("c2", "look", "{}")), "state": {"status": "error", "input": {}, "error": "gone"}}
    long = used(Use("c3", "look", "{}", "🙂" * 1500))
    rows.answer(SESSION, 2, one, thought("hm"), text("a"), used(LOOK, attachments=[file]), failed, long)
    full = rows.user(SESSION, 7, {"type": "compaction", "auto": False})
    rows.answer(SESSION, 8, full, text("SUM"), summary=True, agent="compaction")
    lines = [
        "Here is the conversation so far:\n\n<conversation>\n[User]: one\nmore\n[Attached image/png: a.png]\n",
        "[Assistant reasoning]: hm\n[Assistant]: a",
        '[Assistant tool call]: look({"b":1,"a":"é"})\n[Tool result]: seen\n[Attached image/png: a.png]',
        "[Assistant tool call]: look({})\n[Tool error]: gone",
        f"[Assistant tool call]: look({{}})\n[Tool result]: {'🙂' * 1000}\n[truncated]",
        "</conversation>\n\nAsk.",
    ]
    assert asked_for(rows, tmp_path / "one", 2, "\n</conversation>\n\nAsk.") == "\n".join(lines)
    two = rows.user(SESSION, 10, text("two"))
    rows.answer(SESSION, 11, two, text("b"))
    three = rows.user(SESSION, 13, text("three"))
    again = rows.user(SESSION, 14, {"type": "compaction", "auto": True, "tail_start_id": three})
    rows.answer(SESSION, 15, again, text("SUM2"), summary=True, agent="compaction")
    found = asked_for(rows, tmp_path / "two", 1, "\n</prior-summary>\n\nAsk.")
    assert found.split("<conversation>\n", 1)[1] == (
        "[User]: two\n\n[Assistant]: b\n</conversation>\n\nHere is the summary of the conversation before the "
        "<conversation> above:\n\n<prior-summary>\nSUM\n</prior-summary>\n\nAsk."
    )


def test_a_request_that_was_too_large_is_summarised_without_its_input(tmp_path: Path):
    rows = fresh()
    one = rows.user(SESSION, 1, text("one"))
    rows.answer(SESSION, 2, one, text("a"))
    rows.user(SESSION, 4, text("huge"))
    full = rows.user(SESSION, 5, {"type": "compaction", "auto": True, "overflow": True})
    rows.answer(SESSION, 6, full, text("SUM"), summary=True, agent="compaction")
    found = asked_for(rows, tmp_path, 1, "\n</conversation>\n\nAsk.")
    assert found.split("<conversation>\n", 1)[1] == "[User]: one\n\n[Assistant]: a\n</conversation>\n\nAsk."


def test_a_summary_that_failed_stands_for_nothing(tmp_path: Path):
    rows = full(tail=False)
    failed = json.loads(rows.messages[5]["data"]) | {"error": {"name": "APIError"}}
    rows.messages[5]["data"] = json.dumps(failed)
    rows.write(tmp_path)
    log = read(tmp_path).log
    sent = [m["content"] for m in messages(log, opencode.requests(log)[-1])]
    assert sent == ["one", "first", "two", "second", "What did we do so far?", "three"]
    assert opencode.markers(log) == []


def test_outputs_are_cleared_for_the_calls_made_after_it(tmp_path: Path):
    rows = fresh()
    asked = rows.user(SESSION, 1, text("hi"))
    rows.answer(SESSION, 2, asked, used(LOOK, time={"start": 0, "end": 0, "compacted": 1769936405000}))
    rows.answer(SESSION, 4, asked, text("before"))
    rows.answer(SESSION, 6, asked, text("after"))
    rows.write(tmp_path)
    log = read(tmp_path).log
    outputs = [m["content"] for p in opencode.requests(log)[1:] for m in messages(log, p) if m["role"] == "tool"]
    assert outputs == ["seen", "[Old tool result content cleared]"]
    (marker,) = opencode.markers(log)
    assert (marker.kind, marker.point) == ("prune", opencode.requests(log)[-1].key)
    assert [str(p) for p in marker.dropped] == [str(rows.parts[2]["id"]).join(("row ", ""))]


def test_messages_undone_while_followed_stay_in_the_calls_that_read_them(tmp_path: Path):
    rows = fresh()
    one = rows.user(SESSION, 1, text("one"))
    rows.answer(SESSION, 2, one, text("first"))
    two = rows.user(SESSION, 4, text("wrong"))
    undone = rows.answer(SESSION, 5, two, text("bad"))
    rows.answer(SESSION, 6, two, text("worse"))
    last = rows.messages[-1]["id"]
    path = rows.write(tmp_path)
    session = read(tmp_path)
    for name in (two, undone, last):
        changed(path, "DELETE FROM part WHERE message_id = ?", name)
        changed(path, "DELETE FROM message WHERE id = ?", name)
    later = Database(messages=[*rows.messages], parts=[*rows.parts])
    three = later.user(SESSION, 8, text("right"))
    later.answer(SESSION, 9, three, text("good"))
    connection = sqlite3.connect(path, isolation_level=None)
    insert(connection, "message", later.messages[5:])
    insert(connection, "part", later.parts[len(rows.parts) :])
    connection.close()
    session.poll()
    points = opencode.requests(session.log)
    sent = [[m["content"] for m in messages(session.log, p)] for p in points]
    assert sent == [["one"], ["one", "first", "wrong"], ["one", "first", "wrong", "bad"], ["one", "first", "right"]]
    (marker,) = opencode.markers(session.log)
    assert (marker.kind, marker.point, len(marker.dropped)) == ("rewind", points[-1].key, 3)
    # who did not see them says less, not other things
    cold = read(tmp_path).log
    assert [[m["content"] for m in messages(cold, p)] for p in opencode.requests(cold)] == [sent[0], sent[3]]


def test_answers_no_model_gave_are_no_calls_and_one_under_way_waits(tmp_path: Path):
    rows = fresh()
    asked = rows.user(SESSION, 1, text("The following tool was executed by the user", synthetic=True))
    rows.message(SESSION, 2, {"role": "assistant", "parentID": asked}, [used(LOOK)])
    two = rows.user(SESSION, 3, text("so"))
    rows.message(SESSION, 4, {"role": "assistant", "parentID": two, "modelID": "m", "providerID": "p"}, [])
    path = rows.write(tmp_path)
    session = read(tmp_path)
    (point,) = opencode.requests(session.log)
    sent = [m["role"] for m in messages(session.log, point)]
    assert (point.answer, point.turn, sent) == (None, 1, ["user", "assistant", "tool", "user"])
    started = {
        "id": "prt_zz1",
        "message_id": rows.messages[-1]["id"],
        "session_id": SESSION,
        "time_created": 1,
        "time_updated": 1,
    }
    connection = sqlite3.connect(path, isolation_level=None)
    insert(
        connection,
        "part",
        [{**started, "data": '{"type":"step-start"}'}, {**started, "id": "prt_zz2", "data": json.dumps(text("sa"))}],
    )
    session.poll()
    assert [(p.key, p.answer) for p in opencode.requests(session.log)] == [(point.key, None)]
    done = {"role": "assistant", "parentID": two, "modelID": "m", "providerID": "p", "finish": "stop"}
    changed(
        path, "UPDATE message SET data = ?, time_updated = 9 WHERE id = ?", json.dumps(done), rows.messages[-1]["id"]
    )
    changed(path, "UPDATE part SET data = ?, time_updated = 9 WHERE id = 'prt_zz2'", json.dumps(text("said")))
    connection.close()
    session.poll()
    (answered,) = opencode.requests(session.log)
    assert (answered.key, [b.text for b in answered.blocks or ()]) == (point.key, ["said"])


def test_a_rewritten_input_that_no_request_shows_leaves_the_calls_as_they_were(tmp_path: Path):
    rows = full(tail=False)
    path = rows.write(tmp_path)
    session = read(tmp_path)
    before = opencode.requests(session.log)
    data = {**json.loads(rows.messages[0]["data"]), "summary": {"diffs": [1]}}
    changed(
        path, "UPDATE message SET data = ?, time_updated = 9 WHERE id = ?", json.dumps(data), rows.messages[0]["id"]
    )
    assert session.poll()
    after = opencode.requests(session.log)
    assert [a is b for a, b in zip(before, after, strict=True)] == [True] * 4
    part = json.dumps(text("eine"))
    changed(path, "UPDATE part SET data = ?, time_updated = 9 WHERE id = ?", part, rows.parts[0]["id"])
    session.poll()
    again = opencode.requests(session.log)
    assert messages(session.log, again[1])[0]["content"] == "eine"
    assert again[1] is not after[1]
    assert messages(session.log, again[-1])[0]["content"] == "What did we do so far?"


def test_rows_are_read_bit_by_bit_to_the_same_end(tmp_path: Path):
    rows = full(tail=True)
    every = [("message", r) for r in rows.messages] + [("part", r) for r in rows.parts]
    order = {name: n for n, name in enumerate(dict.fromkeys(r["id"] for r in rows.messages))}
    every.sort(key=lambda x: (order[x[1].get("message_id", x[1]["id"])], x[0] == "part"))
    path = Database(sessions=rows.sessions).write(tmp_path)
    session = read(tmp_path)
    for table, row in every:
        connection = sqlite3.connect(path, isolation_level=None)
        insert(connection, table, [row])
        connection.close()
        session.poll()
        opencode.markers(session.log)
        for point in opencode.requests(session.log):
            opencode.rebuild(session.log, point, Config(), Learned())
    whole = read(tmp_path).log
    assert [(p.key, p.kind, p.turn) for p in opencode.requests(session.log)] == [
        (p.key, p.kind, p.turn) for p in opencode.requests(whole)
    ]
    for one, other in zip(opencode.requests(session.log), opencode.requests(whole), strict=True):
        assert one.kind == "compaction" or messages(session.log, one) == messages(whole, other)
    assert opencode.markers(session.log) == opencode.markers(whole)


def test_sessions_of_subagents_name_their_parent(tmp_path: Path):
    rows = fresh()
    rows.session("ses_00a0f00d2ffeChildChildChildC", "child", 1.0, SESSION, "general")
    asked = rows.user("ses_00a0f00d2ffeChildChildChildC", 2, text("look"))
    rows.answer("ses_00a0f00d2ffeChildChildChildC", 3, asked, text("seen"))
    rows.write(tmp_path)
    assert {r.id[-1]: r.parent for r in refs(tmp_path)} == {"t": None, "C": SESSION}
    (point,) = opencode.requests(read(tmp_path, "ses_00a0f00d2ffeChildChildChildC").log)
    assert (point.kind, point.lineage) == ("subagent", "sub:ses_00a0f00d2ffeChildChildChildC")


def test_a_fork_begins_behind_the_messages_that_were_copied_into_it(tmp_path: Path):
    rows = fresh()
    fork = "ses_00a0f00d2ffeForkForkForkFork"
    for name in (SESSION, fork):
        asked = rows.user(name, 1, text("hi"))
        rows.answer(name, 2, asked, text("a"))
    rows.session(fork, "fork", 5.0)
    more = rows.user(fork, 6, text("and"))
    rows.answer(fork, 7, more, text("b"))
    rows.write(tmp_path)
    assert len(opencode.requests(read(tmp_path).log)) == 1
    assert list(opencode.markers(read(tmp_path).log)) == []
    log = read(tmp_path, fork).log
    (point,) = opencode.requests(log)
    assert ([m["content"] for m in messages(log, point)], point.turn) == (["hi", "a", "and"], 2)
    (marker,) = opencode.markers(log)
    assert (marker.kind, marker.point) == ("resume", point.key)
    assert marker.where == "goes on from 2 messages copied from another session"
