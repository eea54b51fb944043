"""Captures of Claude Code and other agents by claude-trace and claude-tap: parsed bodies."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctxscope.capture import importers
from ctxscope.model import CtxscopeError
from tests.conftest import CAPTURES, needs_captures
from tests.import_cases import loaded, tap_bundle, tap_lines, tap_record, tap_store, tap_store_closed

TRACE = CAPTURES / "formats" / "claude_trace" / "claude-trace.jsonl"
LONG = "plum " * 200


def pair(when: float, body: object, response: object = None, **more: object) -> str:
    request = {
        "timestamp": when,
        "method": "POST",
        "url": "https://api.anthropic.com/v1/messages",
        "headers": {},
        "body": body,
    }
    return json.dumps({"request": request, "response": response, "logged_at": "1970-01-01T00:20:00Z", **more})


# --- claude-trace ----------------------------------------------------------------------------------------------------


@needs_captures
def test_a_recorded_trace_keeps_values_and_streams():
    found, problems = loaded(TRACE)
    lines = [json.loads(line) for line in TRACE.read_bytes().splitlines()]
    assert problems == []
    assert [json.loads(e.body) for e in found] == [line["request"]["body"] for line in lines]
    assert [list(json.loads(e.body)) for e in found] == [list(line["request"]["body"]) for line in lines]
    assert [e.answer.body.decode() for e in found] == [line["response"]["body_raw"] for line in lines]
    assert {(e.fidelity, e.target) for e in found} == {("parsed", "/v1/messages?beta=true")}
    assert all(e.time < e.answer.time <= e.ending.time for e in found)


def test_bodies_are_spelled_as_clients_of_that_day_did(tmp_path):
    path = tmp_path / "t.jsonl"
    body = {"b": "é \u2028", "a": [1.5, None, True, 2**70], "c": "\ud800"}
    path.write_text(pair(1, body, {"timestamp": 2, "status_code": 200, "headers": {}, "body": {"x": 1}}) + "\n")
    ((exchange,), _) = loaded(path)
    assert exchange.body == '{"b":"é \u2028","a":[1.5,null,true,1180591620717411303424],"c":"\\ud800"}'.encode()
    assert exchange.answer.body == b'{"x":1}'
    assert exchange.ending.time == 1200.0


def test_a_request_that_was_never_answered_is_kept(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(pair(1, None, note="ORPHANED_REQUEST") + "\n" + pair(2, "no json") + "\n")
    (orphan, text), _ = loaded(path)
    assert (orphan.answer, orphan.ending.how, orphan.body) == (None, "stopped", b"")
    assert (text.answer, text.ending, text.body) == (None, None, b"no json")


def test_a_broken_line_loses_no_other(tmp_path):
    path = tmp_path / "t.jsonl"
    lines = [pair(1, {}), '{"request": {', "", "[1]", '{"request": {"url": 7}, "response": null}', pair(2, {})[:-9]]
    path.write_text("\n".join([*lines[:-1], pair(3, {}), lines[-1]]))
    found, problems = loaded(path, "claude-trace")
    assert [e.time for e in found] == [1, 3]
    expected = "expected a JSON object with request.url and request.timestamp; left out"
    assert problems == [
        f"{path} line 2: found a line that is no JSON, {expected}",
        f"{path} line 4: found a list, {expected}",
        f"{path} line 5: found an object without request.url, {expected}",
        f"{path} line 7: found half a line, {expected}",
    ]


def test_many_broken_lines_are_one_sentence(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(pair(1, {}) + "\n" + "{{\n" * 40)
    _, problems = loaded(path)
    assert len(problems) == 1
    assert "line 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 and 28 more: found a line that is no JSON" in problems[0]


def test_only_a_line_feed_ends_a_line(tmp_path):
    path = tmp_path / "t.jsonl"
    body = {"text": "a\u2028b\x85c"}
    path.write_text(json.dumps(json.loads(pair(1, body)), ensure_ascii=False) + "\r\n", encoding="utf-8")
    ((exchange,), problems) = loaded(path)
    assert (json.loads(exchange.body), problems) == (body, [])


# --- claude-tap ------------------------------------------------------------------------------------------------------

RECORDS = [
    tap_record(1, "2026-11-29T17:20:03+00:00", [{"role": "user", "content": LONG}]),
    tap_record(
        2, "2026-11-29T17:20:02.500+00:00", [{"role": "user", "content": LONG}, {"role": "user", "content": "x"}]
    ),
]


@pytest.fixture(params=[tap_lines, tap_bundle, tap_store_closed])
def container(request, tmp_path):
    """The same records in each of claude-tap's containers."""
    names = {tap_lines: "trace.jsonl", tap_bundle: "a.ctap.json", tap_store_closed: "my.db"}
    return request.param(tmp_path / names[request.param], RECORDS)


def test_every_container_gives_the_same_exchanges(container):
    assert importers.choose(container) == "claude-tap"
    found, problems = loaded(container)
    assert problems == []
    assert [json.loads(e.body) for e in found] == [record["request"]["body"] for record in RECORDS]
    first, second = found
    assert (first.fidelity, first.upstream, first.target) == (
        "parsed",
        "https://api.anthropic.com",
        "/v1/messages?beta=true",
    )
    assert first.ending.time - first.time == pytest.approx(2.0)
    assert second.time < first.time + 1
    assert json.loads(first.answer.body)["id"] == "msg_1"
    assert first.answer.headers == (("Content-Type", "application/json"),)


def test_streams_that_were_kept_come_as_streams(tmp_path):
    events = [{"event": "message_start", "data": {"type": "message_start"}}, {"event": "message", "data": {"id": 1}}]
    record = tap_record(1, "2026-11-29T17:20:03+00:00", [])
    record["response"]["sse_events"] = events
    ((exchange,), _) = loaded(tap_lines(tmp_path / "t.jsonl", [record]))
    assert exchange.answer.body == b'event: message_start\ndata: {"type":"message_start"}\n\ndata: {"id":1}\n\n'


def websocket(asked: list[object], heard: list[object]) -> dict[str, object]:
    record = tap_record(1, "2026-11-29T17:20:03+00:00", [], transport="websocket")
    record["request"] |= {
        "method": "WEBSOCKET",
        "path": "/v1/responses",
        "ws_events": asked,
        "body": {"type": "response.create"},
    }
    record["response"] = {"status": 101, "headers": {}, "body": {"id": "r"}, "ws_events": heard}
    return record


def test_a_websocket_is_told_in_turns(tmp_path):
    asked = [{"type": "response.create", "n": 1}, {"type": "response.create", "n": 2}, {"raw": "odd"}]
    heard = [{"type": "d"}, {"type": "response.completed"}, {"type": "d"}, {"type": "d"}, {"type": "response.failed"}]
    ((exchange,), _) = loaded(tap_lines(tmp_path / "t.jsonl", [websocket(asked, heard)]))
    assert (exchange.method, exchange.body, exchange.answer.status) == ("GET", b"", 101)
    told = [(s.sender, json.loads(s.data).get("n") or json.loads(s.data)["type"]) for s in exchange.messages[:-1]]
    assert told == [
        ("client", 1),
        ("server", "d"),
        ("server", "response.completed"),
        ("client", 2),
        ("server", "d"),
        ("server", "d"),
        ("server", "response.failed"),
    ]
    assert exchange.messages[-1].data == b"odd"
    assert {s.time for s in exchange.messages} == {exchange.time}


def test_a_websocket_of_which_only_the_sum_is_kept(tmp_path):
    ((exchange,), _) = loaded(tap_lines(tmp_path / "t.jsonl", [websocket([], [])]))
    assert [(s.sender, s.data) for s in exchange.messages] == [
        ("client", b'{"type":"response.create"}'),
        ("server", b'{"id":"r"}'),
    ]


def test_records_that_cannot_be_put_together_lose_no_other(tmp_path):
    path = tap_bundle(tmp_path / "a.ctap.json", RECORDS)
    bundle = json.loads(path.read_text())
    lost = next(iter(bundle["records"][0]["record"]["request"]["body"]["messages"]))["__claude_tap_blob_ref__"]["hash"]
    bundle["blobs"] = {name: blob for name, blob in bundle["blobs"].items() if name != lost}
    bundle["records"] += [
        7,
        {"request": {}},
        RECORDS[0] | {"timestamp": None},
        tap_record(3, "2026-11-29T17:20:09Z", []),
    ]
    path.write_text(json.dumps(bundle))
    found, problems = loaded(path)
    assert [json.loads(e.answer.body)["id"] for e in found] == ["msg_3"]
    assert [p.removeprefix(f"{path} record ").split(", expected")[0] for p in problems] == [
        "1, 2: found a record whose repeated values are missing",
        "3: found a number",
        "4: found an object without request.path",
        "5: found a record without a time",
    ]


def test_a_bundle_cut_short_gives_the_records_whose_values_it_holds(tmp_path):
    records = [tap_record(n, f"2026-11-29T17:20:0{n}Z", []) for n in range(3)]
    path = tap_bundle(tmp_path / "a.ctap.json", records)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b'"blobs"')])
    found, problems = loaded(path)
    assert (len(found), len(problems)) == (0, 1)
    small = [{**r, "request": {**r["request"], "body": {"messages": []}}} for r in records]
    tap_bundle(path, small)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b'"turn": 2')])
    found, problems = loaded(path)
    assert (len(found), len(problems)) == (2, 1)


def everything_in(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    found = {}
    for path in folder.iterdir():
        status = path.stat()
        found[path.name] = (status.st_mtime_ns, status.st_size, status.st_ino, path.read_bytes())
    return found


@pytest.mark.parametrize("wal", [True, False])
def test_a_store_in_use_is_read_whole_and_not_touched(tmp_path, wal):
    with closing(tap_store(tmp_path / "traces.sqlite3", RECORDS, wal=wal)):
        before = everything_in(tmp_path)
        assert ("traces.sqlite3-wal" in before) == wal
        assert importers.choose(tmp_path / "traces.sqlite3") == "claude-tap"
        found, problems = loaded(tmp_path / "traces.sqlite3")
        assert everything_in(tmp_path) == before
    assert (len(found), problems) == (2, [])


def test_a_store_by_another_name_is_read_with_its_companions(tmp_path):
    (tmp_path / "real").mkdir()
    with closing(tap_store(tmp_path / "real" / "traces.sqlite3", RECORDS, wal=True)):
        (tmp_path / "link").symlink_to(tmp_path / "real" / "traces.sqlite3")
        assert len(loaded(tmp_path / "link", "claude-tap")[0]) == 2


def test_a_store_in_a_folder_one_may_not_write_is_read(tmp_path):
    path = tap_store_closed(tmp_path / "traces.sqlite3", RECORDS)
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert len(loaded(path)[0]) == 2
    finally:
        tmp_path.chmod(0o700)


def test_a_damaged_store_gives_what_can_be_read(tmp_path):
    records = [tap_record(n, "2026-11-29T17:20:09Z", [{"content": f"{n:04d}" * 4_000}]) for n in range(40)]
    path = tap_store_closed(tmp_path / "traces.sqlite3", records)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 40_960] = b"\xff" * 40_960
    path.write_bytes(data)
    found, problems = loaded(path)
    assert problems
    assert len(found) < 40


@pytest.mark.parametrize("data", [b"SQLite format 3\0" + b"\xff" * 4096, None])
def test_a_database_that_is_no_store_is_refused(tmp_path, data):
    path = tmp_path / "traces.sqlite3"
    if data is None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE other (x)")
    else:
        path.write_bytes(data)
    with pytest.raises(CtxscopeError, match=r"traces\.sqlite3: found .* expected claude-tap's store"):
        loaded(path)
