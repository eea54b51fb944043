"""``ctxscope import``: captures in, one recording out, nothing else touched."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ctxscope import resources
from ctxscope.capture import importers, open_recording, told
from ctxscope.capture.ctxrec import CtxRec
from ctxscope.cli.main import main
from tests.conftest import CAPTURES, ROOT, SAMPLES, needs_captures
from tests.import_cases import (
    entry,
    flow,
    flows,
    har,
    loaded,
    tap_lines,
    tap_record,
    tap_store_closed,
    tnetstring,
    wire_bodies,
)

FORMATS = CAPTURES / "formats"


def imported(capsys, *words: object) -> tuple[int, list[str]]:
    """The exit code, and what was said."""
    code = main(["import", *map(str, words)])
    out, err = capsys.readouterr()
    assert out == ""
    return code, err.splitlines()


def opened(path: Path) -> tuple[CtxRec, list]:
    recording = open_recording(path, 0)
    assert isinstance(recording, CtxRec)
    return recording, recording.poll()


@needs_captures
@pytest.mark.parametrize("name", ["mitmproxy_har/flows.mitm", "mitmproxy_har/flows.har", "mitmproxy_har/wire"])
def test_recorded_bytes_come_through_the_recording(tmp_path, capsys, name):
    out = tmp_path / "x.ctxrec"
    code, _ = imported(capsys, FORMATS / name, "-o", out)
    recording, found = opened(out)
    assert code == 0
    assert [recording.as_sent(e.n) for e in found] == wire_bodies(FORMATS / "mitmproxy_har", "req")
    assert [recording.reply_as_sent(e.n) for e in found] == wire_bodies(FORMATS / "mitmproxy_har", "res")
    assert {(e.fidelity, e.status, e.ended) for e in found} == {("bytes", 200, None)}
    first, _ = loaded(FORMATS / name)
    assert [(e.time, e.first_byte) for e in found] == [
        (pytest.approx(i.time, abs=1e-5), pytest.approx(i.answer.time, abs=1e-5)) for i in first
    ]


@needs_captures
@pytest.mark.parametrize(
    ("name", "format_name", "count"),
    [("claude_trace/claude-trace.jsonl", "claude-trace", 8), ("litellm_callback/pre_api.jsonl", "litellm", 4)],
)
def test_what_is_no_bytes_is_marked_in_the_recording(tmp_path, capsys, name, format_name, count):
    out = tmp_path / "x.ctxrec"
    _, said = imported(capsys, FORMATS / name, "-o", out)
    recording, found = opened(out)
    assert [e.fidelity for e in found] == ["parsed"] * count
    notes = importers.load(format_name).notes
    assert (recording.meta.source, recording.meta.notes) == (format_name, notes)
    assert f"{count} requests ({count} by value)" in said[0]
    assert [line.removeprefix("ctxscope: ") for line in said[1:-1]] == list(notes)


@needs_captures
def test_an_import_can_be_reported(tmp_path, capsys):
    out = tmp_path / "x.ctxrec"
    imported(capsys, FORMATS / "mitmproxy_har" / "flows.mitm", "-o", out)
    assert main(["report", str(out), "--format", "json"]) == 0
    calls = json.loads(capsys.readouterr().out)["calls"]
    assert [(call["api"], call["model"]) for call in calls] == [("openai-chat", "deepseek-reasoner")] * 7


def test_several_captures_become_one_in_order_of_arrival(tmp_path, capsys):
    first = flows(tmp_path / "a.mitm", flow(1795972800.0, b"one"), flow(1795972803.0, b"four"))
    second = har(tmp_path / "b.har", entry("two", "2026-11-29T17:20:01Z"), entry("three", "2026-11-29T17:20:02Z"))
    out = tmp_path / "x.ctxrec"
    code, said = imported(capsys, second, first, "-o", out)
    recording, found = opened(out)
    assert code == 0
    assert [(e.n, e.request()) for e in found] == [(1, b"one"), (2, b"two"), (3, b"three"), (4, b"four")]
    assert (recording.meta.source, recording.meta.time) == ("har, mitmproxy", 1795972800.0)
    assert recording.meta.upstreams == ("https://api.openai.com", "https://api.anthropic.com")
    assert said[0] == f"ctxscope: {second}: HAR: 2 requests (2 as bytes), 2 replies"
    assert said[1] == f"ctxscope: {first}: mitmproxy flows: 2 requests (2 as bytes), 2 replies"
    assert said[-1].startswith(f"ctxscope: wrote {out}: 4 requests of 15 B in ")


def test_attempts_and_requests_without_an_answer_come_through(tmp_path, capsys):
    slow = {"status_code": 429, "reason": b"Too Many", "headers": [], "content": b"slow", "timestamp_start": 2.0}
    gone = {"msg": "Client disconnected.", "timestamp": 12.0}
    path = flows(
        tmp_path / "a.mitm",
        flow(1, response={**slow, "timestamp_end": 3.0}),
        flow(5, response=None),
        flow(10, error=gone, response={**slow, "status_code": 200, "content": b'{"ok":', "timestamp_end": None}),
        flow(20, response={**slow, "content": None}),
    )
    imported(capsys, path, "-o", tmp_path / "x.ctxrec")
    _, found = opened(tmp_path / "x.ctxrec")
    assert [(e.status, e.response(), e.response_bytes, e.ended) for e in found] == [
        (429, b"slow", 4, None),
        (None, b"", None, None),
        (200, b'{"ok":', 6, "client left"),
        (429, b"", None, None),
    ]


def test_messages_of_a_websocket_are_exchanges(tmp_path, capsys):
    ask, delta = b'{"type":"response.create","input":[]}', b'{"type":"response.output_text.delta","delta":"a"}'
    done = b'{"type":"response.completed","response":{"id":"r1","output":[]}}'
    said = [(True, ask), (False, delta), (False, delta), (False, done), (True, ask), (False, done)]
    messages = [[1, client, data, 1001.0 + i, False, False] for i, (client, data) in enumerate(said)]
    state = flow(
        body=b"",
        websocket={"messages": messages},
        request={"path": b"/v1/responses"},
        response={"status_code": 101, "headers": []},
    )
    imported(capsys, flows(tmp_path / "a.mitm", state), "-o", tmp_path / "x.ctxrec")
    recording, found = opened(tmp_path / "x.ctxrec")
    asked = [e for e in found if e.method == "WEBSOCKET"]
    assert [(e.path, e.request(), e.upstream) for e in asked] == [
        ("/v1/responses", ask, "https://api.anthropic.com")
    ] * 2
    assert [[data for _, _, data in recording.messages(e.n)] for e in asked] == [[delta, delta, done], [done]]


def test_equal_messages_of_one_moment_are_all_there(tmp_path, capsys):
    event = {"type": "response.output_text.delta", "delta": "a"}
    record = tap_record(1, "2026-11-29T17:20:03Z", [], transport="websocket")
    record["request"] |= {"path": "/v1/responses", "ws_events": [{"type": "response.create"}]}
    record["response"]["ws_events"] = [event, event, event]
    imported(capsys, tap_lines(tmp_path / "t.jsonl", [record]), "-o", tmp_path / "x.ctxrec")
    recording, found = opened(tmp_path / "x.ctxrec")
    (asked,) = (e for e in found if e.method == "WEBSOCKET")
    assert len(recording.messages(asked.n)) == 3


# --- secrets ---------------------------------------------------------------------------------------------------------

SECRET = "qz7-planted-secret"  # noqa: S105 - to be looked for
KEYS = {
    "Authorization": f"Bearer {SECRET}",
    "x-api-key": SECRET,
    "Cookie": f"s={SECRET}",
    "OpenAI-Organization": SECRET,
}


def planted(folder: Path, kind: str) -> Path:
    """A capture of each format with a secret wherever HTTP has a place for one but in a body."""
    query = f"/v1/messages?beta=true&key={SECRET}&api_key={SECRET}"
    url = f"https://user:{SECRET}@api.anthropic.com{query}"
    as_bytes = [[name.encode(), value.encode()] for name, value in KEYS.items()]
    reply_headers = {"Set-Cookie": f"a={SECRET}", "anthropic-organization-id": SECRET}
    match kind:
        case "mitmproxy":
            state = flow(request={"path": query.encode(), "headers": as_bytes})
            state["response"]["headers"] = [[n.encode(), v.encode()] for n, v in reply_headers.items()]
            return flows(folder / "a.mitm", state)
        case "har":
            both = [{"name": n, "value": v} for n, v in {**KEYS, **reply_headers}.items()]
            response = {"status": 200, "headers": both, "content": {"text": "x"}}
            return har(folder / "a.har", entry(request={"url": url, "headers": both}, response=response))
        case "claude-trace":
            request = {"timestamp": 1, "method": "POST", "url": url, "headers": KEYS, "body": {}}
            response = {"timestamp": 2, "status_code": 200, "headers": reply_headers, "body": {}}
            path = folder / "t.jsonl"
            path.write_text(json.dumps({"request": request, "response": response}))
            return path
        case "claude-tap":
            record = tap_record(1, "2026-11-29T17:20:03Z", [], upstream_base_url=url)
            record["request"] |= {"path": query, "headers": KEYS}
            record["response"]["headers"] = reply_headers
            return tap_store_closed(folder / "traces.sqlite3", [record])
        case "litellm":
            given = {"complete_input_dict": {"messages": [], "extra_headers": KEYS}, "api_base": url, "headers": KEYS}
            path = folder / "l.jsonl"
            path.write_text(json.dumps({"additional_args": given, "api_key": SECRET, "litellm_call_id": "c"}))
            return path
        case "hermes-dump":
            request = {"method": "POST", "url": url, "headers": KEYS, "body": {"messages": []}}
            error = {"type": "APIConnectionError", "message": SECRET}
            dump = {
                "timestamp": "2026-11-29T17:20:03Z",
                "session_id": "s",
                "reason": "r",
                "request": request,
                "error": error,
            }
            path = folder / "request_dump_s.json"
            path.write_text(json.dumps(dump))
            return path
    index = {"n": 1, "t": 5, "path": query, "headers": KEYS}
    (folder / "index.jsonl").write_text(json.dumps(index) + "\n")
    (folder / "0001.req").write_bytes(b"{}")
    return folder


@pytest.mark.parametrize("kind", importers.names())
def test_no_secret_of_a_header_or_an_address_reaches_the_disk(tmp_path, capsys, kind):
    source = tmp_path / "in"
    source.mkdir()
    code, said = imported(capsys, planted(source, kind), "--format", kind)
    assert code == 0
    assert SECRET not in "".join(said)
    files = [path for path in resources.data_folder().rglob("*") if path.is_file()]
    assert len(files) == 1
    assert SECRET.encode() not in files[0].read_bytes()
    assert len(opened(files[0])[1]) == 1


# --- where it is written ---------------------------------------------------------------------------------------------


def test_without_a_place_it_lies_in_the_data_folder_and_is_private(tmp_path, capsys):
    path = flows(tmp_path / "a.mitm", flow(1795972800.0))
    for _ in range(2):
        assert imported(capsys, path)[0] == 0
    names = [p.name for p in resources.recordings().iterdir()]
    assert len(names) == 2
    assert all(re.fullmatch(r"2026-11-29T17-20-00-import-[0-9a-f]{4}\.ctxrec", name) for name in names)
    assert {stat.S_IMODE(p.stat().st_mode) for p in resources.recordings().iterdir()} == {0o600}
    assert stat.S_IMODE(resources.recordings().stat().st_mode) == 0o700


@pytest.mark.parametrize("what", ["file", "link", "itself", "folder"])
def test_nothing_that_exists_is_written_over(tmp_path, capsys, what):
    path = flows(tmp_path / "a.mitm", flow())
    out = path if what == "itself" else tmp_path / "out"
    if what == "file":
        out.write_bytes(b"mine")
    elif what == "link":
        out.symlink_to(tmp_path / "elsewhere")
    elif what == "folder":
        out.mkdir()
    before = path.read_bytes()
    code, said = imported(capsys, path, "-o", out)
    assert code == 2
    assert said == [f"ctxscope: {out}: exists; expected a new file to write to"]  # before anything was read
    assert path.read_bytes() == before
    assert not (tmp_path / "elsewhere").exists()


def test_nothing_is_written_among_an_agents_files(tmp_path, capsys):
    home = tmp_path / "home"
    shutil.copytree(SAMPLES / "pi" / "clean_append" / "log", home)
    path = flows(tmp_path / "a.mitm", flow())
    code, said = imported(capsys, path, "-o", home / ".pi" / "x.ctxrec")
    assert code == 2
    assert "belongs to" in said[-1]
    assert not (home / ".pi" / "x.ctxrec").exists()


def test_a_failure_leaves_nothing_half_written(tmp_path, capsys, monkeypatch):
    path = flows(tmp_path / "a.mitm", flow(1), flow(2))
    importer = importers.load("mitmproxy")

    def cut_afterwards(where: Path):
        capture = importer.read(where)
        where.write_bytes(where.read_bytes()[:-100])
        return capture

    monkeypatch.setattr(
        importers,
        "load",
        lambda _name: type("I", (), {"read": staticmethod(cut_afterwards), "title": "t", "notes": ()}),
    )
    code, said = imported(capsys, path, "-o", tmp_path / "x.ctxrec", "--format", "mitmproxy")
    assert code == 2
    assert said[-1] == f"ctxscope: {path}: found it changed while it was read, expected a finished capture"
    assert not (tmp_path / "x.ctxrec").exists()


def test_a_place_that_takes_nothing_is_one_sentence(tmp_path, capsys):
    path = flows(tmp_path / "a.mitm", flow())
    (tmp_path / "file").touch()
    code, said = imported(capsys, path, "-o", tmp_path / "file" / "x.ctxrec")
    assert code == 2
    assert "x.ctxrec: cannot be written: Not a directory" in said[-1]


FULL = """
import resource, sys
from ctxscope.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000))  # as a full disk is: nothing goes beyond
sys.exit(main(["import", *sys.argv[1:]]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource")
def test_a_full_disk_is_one_sentence_and_leaves_no_recording(tmp_path):
    path = flows(tmp_path / "a.mitm", *(flow(float(n), b"%d" % n * 400) for n in range(1, 9)))
    words = [sys.executable, "-c", FULL, str(path), "-o", str(tmp_path / "x.ctxrec")]
    run = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1].startswith(
        f"ctxscope: {tmp_path / 'x.ctxrec'}: cannot be written: File too large; expected"
    )
    assert not (tmp_path / "x.ctxrec").exists()


# --- what cannot be read ---------------------------------------------------------------------------------------------


def test_problems_are_told_and_the_rest_is_imported(tmp_path, capsys):
    path = flows(
        tmp_path / "a.mitm", flow(1), {"version": 21, "type": "tcp", "client_conn": {}}, tnetstring(flow(2))[:200]
    )
    code, said = imported(capsys, path, "-o", tmp_path / "x.ctxrec")
    assert code == 0
    whole, at = len(tnetstring(flow(2))), path.stat().st_size - 200
    expected = "expected a flow of HTTP with the request's body; left out"
    assert [line.removeprefix(f"ctxscope: {path}") for line in said[:3]] == [
        f" flow 2: found a flow of tcp, {expected}",
        f" flow at byte {at}: found 200 bytes of a flow of {whole}, {expected}",
        ": mitmproxy flows: 1 requests (1 as bytes), 1 replies",
    ]


def test_a_capture_without_an_exchange_is_an_error_and_no_recording(tmp_path, capsys):
    path = har(tmp_path / "a.har")
    code, said = imported(capsys, path)
    assert code == 2
    assert said[-1] == f"ctxscope: {path}: found no exchange that can be read, expected at least one"
    assert not resources.recordings().exists()


def test_a_format_can_be_told(tmp_path, capsys):
    path = flows(tmp_path / "a.mitm", flow())
    code, said = imported(capsys, path, "--format", "har")
    assert code == 2
    assert "found no list log.entries, expected an HTTP archive" in said[-1]
    with pytest.raises(SystemExit):
        main(["import", str(path), "--format", "pcap"])
    assert "claude-tap" in capsys.readouterr().err


@pytest.mark.parametrize("kind", importers.names())
@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe\x00", b"{", b"[1, {}]", b"[[", b"7:x", b'{"a":1}\n{"b"', b"SQLite format 3\0"]
)
def test_no_format_ever_fails_with_a_traceback(tmp_path, capsys, kind, data):
    path = tmp_path / "a"
    path.write_bytes(data)
    code, said = imported(capsys, path, "--format", kind)
    assert code == 2
    assert str(path) in said[-1]


def test_an_import_does_not_say_more_than_its_source(tmp_path, capsys):
    path = flows(tmp_path / "a.mitm", flow())
    imported(capsys, path, "-o", tmp_path / "x.ctxrec")
    meta = told(tmp_path / "x.ctxrec")
    assert (meta.agent, meta.command, meta.override, meta.source) == ("", (), (), "mitmproxy")
