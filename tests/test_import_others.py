"""LiteLLM callbacks, Hermes request dumps, raw folders, and what is none of all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ctxscope.capture import importers
from ctxscope.cli.main import main
from ctxscope.model import CtxscopeError
from tests.conftest import CAPTURES, ROOT, needs_captures
from tests.import_cases import loaded, wire_bodies

LITELLM = CAPTURES / "formats" / "litellm_callback"
CHAT = {"model": "m", "messages": [{"role": "user", "content": "é"}]}


def lines(path, *values):
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


# --- LiteLLM ---------------------------------------------------------------------------------------------------------


@needs_captures
def test_recorded_callbacks_hold_the_values_of_the_wire():
    found, problems = loaded(LITELLM / "pre_api.jsonl")
    assert problems == []
    wire = wire_bodies(LITELLM, "req")
    assert [json.loads(e.body) for e in found] == [json.loads(body) for body in wire]
    assert [list(json.loads(e.body)) for e in found] == [list(json.loads(body)) for body in wire]
    assert found[2].body != wire[2]  # LiteLLM's own route for Anthropic spells its bodies with spaces
    index = [json.loads(line) for line in (LITELLM / "wire" / "index.jsonl").read_bytes().splitlines()]
    assert [e.target for e in found] == [line["path"] for line in index]
    assert {(e.fidelity, e.upstream, e.answer) for e in found} == {("parsed", "http://127.0.0.1:8099", None)}


def callback(**more):
    return {
        "litellm_call_id": "c1",
        "additional_args": {
            "complete_input_dict": {**CHAT, "extra_body": {"top_k": 3}, "timeout": 60},
            "api_base": "https://h/v1/",
        },
        **more,
    }


STANDARD = {
    "id": "x",
    "status": "success",
    "startTime": 1000.5,
    "completionStartTime": 1001.0,
    "endTime": 1002.0,
    "model": "m",
    "api_base": "https://h/v1",
    "messages": CHAT["messages"],
    "model_parameters": {"temperature": 0},
    "response": {"id": "r1"},
}


def test_what_the_client_library_merges_is_merged(tmp_path):
    ((exchange,), _) = loaded(lines(tmp_path / "a.jsonl", callback()))
    assert exchange.body == '{"model":"m","messages":[{"role":"user","content":"é"}],"top_k":3}'.encode()
    assert (exchange.target, exchange.upstream) == ("/v1/chat/completions", "https://h")
    assert exchange.time == (tmp_path / "a.jsonl").stat().st_mtime


def test_callbacks_before_and_after_a_call_are_one_exchange(tmp_path):
    other = callback(litellm_call_id="c2")
    path = lines(tmp_path / "a.jsonl", callback(), other, callback(standard_logging_object=STANDARD))
    first, second = loaded(path)[0]
    assert (first.time, first.answer.time, first.ending.time) == (1000.5, 1001.0, 1002.0)
    assert (first.fidelity, first.answer.status, first.answer.body) == ("parsed", 200, b'{"id":"r1"}')
    assert second.answer is None


def test_attempts_at_one_call_stay_apart(tmp_path):
    failed = {**STANDARD, "status": "failure", "error_str": "slow down", "error_information": {"error_code": "429"}}
    again = {**CHAT, "user": "u"}
    path = lines(
        tmp_path / "a.jsonl",
        callback(),
        callback(standard_logging_object=failed),
        callback(additional_args={"complete_input_dict": again}),
        callback(additional_args={"complete_input_dict": again}, standard_logging_object=STANDARD),
    )
    first, second = loaded(path)[0]
    assert (first.answer.status, json.loads(first.answer.body)) == (429, {"error": {"message": "slow down"}})
    assert (json.loads(second.body), second.answer.status) == (again, 200)


def test_of_two_open_attempts_the_answer_is_that_of_the_same_body(tmp_path):
    other = {"complete_input_dict": {**CHAT, "user": "u"}}
    answered = callback(additional_args=other, original_response='{"id":"other"}')
    path = lines(tmp_path / "a.jsonl", callback(), callback(additional_args=other), answered)
    first, second = loaded(path)[0]
    assert first.answer is None
    assert second.answer.body == b'{"id":"other"}'


def test_a_call_told_only_in_litellms_own_form_is_marked(tmp_path):
    ((exchange,), _) = loaded(lines(tmp_path / "a.jsonl", {"standard_logging_object": STANDARD}))
    assert exchange.fidelity == "normalised"
    assert json.loads(exchange.body) == {**CHAT, "temperature": 0}
    assert exchange.target == "/v1/chat/completions"


def test_the_reply_as_text_and_the_dates_as_text(tmp_path):
    times = {"start_time": "2026-11-29T17:20:01+00:00", "end_time": "2026-11-29T17:20:03+00:00"}
    path = lines(tmp_path / "a.jsonl", callback(original_response='{"id":"r2"}', **times))
    ((exchange,), _) = loaded(path)
    assert (exchange.answer.body, exchange.ending.time - exchange.time) == (b'{"id":"r2"}', 2.0)


@pytest.mark.parametrize(
    ("base", "body", "target"),
    [
        ("https://h/v1", {"input": []}, "/v1/responses"),
        ("https://h", {"messages": [], "system": "s"}, "/v1/messages"),
        ("https://h/v1/messages", {"messages": []}, "/v1/messages"),
        (
            "https://h/v1beta/models/g:generateContent?alt=sse",
            {"contents": []},
            "/v1beta/models/g:generateContent?alt=sse",
        ),
        (None, {"messages": []}, "/chat/completions"),
        (["https", "u:p", "H", None, "/v1/", None, None], {"messages": []}, "/v1/chat/completions"),
        ("not a url", {"messages": []}, "/chat/completions"),
    ],
)
def test_the_endpoint_is_told_by_the_address_or_the_shape(tmp_path, base, body, target):
    ((exchange,), _) = loaded(lines(tmp_path / "a.jsonl", {"complete_input_dict": body, "api_base": base}))
    assert exchange.target == target
    assert exchange.upstream == ("https://h" if base and base != "not a url" else "")


def test_one_array_or_one_object_is_read_too(tmp_path):
    array, one = tmp_path / "a.json", tmp_path / "b.json"
    array.write_text(json.dumps([callback(), 7, callback(litellm_call_id="c2")]))
    one.write_text(json.dumps(callback(), indent=2))
    found, problems = loaded(array)
    assert (len(found), len(problems)) == (2, 1)
    assert len(loaded(one)[0]) == 1
    one.write_text(json.dumps(callback(), indent=2)[:-40])
    assert loaded(one, "litellm")[0] == []


def test_objects_that_are_no_callback_are_told(tmp_path):
    path = lines(tmp_path / "a.jsonl", callback(), {"litellm_call_id": "c3"})
    found, problems = loaded(path)
    assert len(found) == 1
    expected = "expected a callback with complete_input_dict or standard_logging_object"
    assert problems == [f"{path} line 2: found an object with neither, {expected}; left out"]


# --- Hermes ----------------------------------------------------------------------------------------------------------


def dump(folder, body, *, error=None, url="https://api.deepseek.com/v1/chat/completions", **more):
    request = {
        "method": "POST",
        "url": url,
        "headers": {"Authorization": "Bearer sk-...cret", "Content-Type": "application/json"},
        "body": body,
    }
    value = {"timestamp": "2026-11-29T17:20:01.5+00:00", "session_id": "s1", "reason": "preflight", "request": request}
    path = folder / "request_dump_s1_20261129_172001_500000.json"
    path.write_text(json.dumps({**value, **({} if error is None else {"error": error}), **more}, indent=2))
    return path


def test_a_dump_before_a_call_is_a_request(tmp_path):
    path = dump(tmp_path, {**CHAT, "extra_body": {"reasoning": {"effort": "low"}}})
    assert importers.choose(path) == "hermes-dump"
    ((exchange,), problems) = loaded(path)
    assert problems == []
    assert json.loads(exchange.body) == {**CHAT, "reasoning": {"effort": "low"}}
    assert (exchange.target, exchange.upstream, exchange.fidelity) == (
        "/v1/chat/completions",
        "https://api.deepseek.com",
        "normalised",
    )
    assert (exchange.answer, exchange.ending, exchange.time) == (None, None, 1795972801.5)


def test_a_dump_names_the_chat_endpoint_whatever_the_api(tmp_path):
    anthropic = {"model": "m", "messages": [], "system": "s", "tools": [{"name": "t", "input_schema": {}}]}
    ((exchange,), _) = loaded(dump(tmp_path, anthropic, url="https://api.anthropic.com/chat/completions"))
    assert exchange.target == "/v1/messages"
    ((exchange,), _) = loaded(dump(tmp_path, {"input": []}, url="https://api.openai.com/v1/responses"))
    assert exchange.target == "/v1/responses"


@pytest.mark.parametrize(
    ("error", "status", "body", "how"),
    [
        (
            {"type": "BadRequestError", "status_code": 400, "response_status": 400, "response_text": '{"error":1}'},
            400,
            b'{"error":1}',
            "complete",
        ),
        (
            {"type": "RateLimitError", "status_code": 429, "body": {"message": "slow"}},
            429,
            b'{"message":"slow"}',
            "complete",
        ),
        ({"type": "APIConnectionError", "message": "at 203.0.113.9"}, None, None, "upstream unreachable"),
        ({"type": "APITimeoutError", "message": "after 60"}, None, None, "upstream timeout"),
    ],
)
def test_a_dump_of_an_error_tells_the_reply(tmp_path, error, status, body, how):
    ((exchange,), _) = loaded(dump(tmp_path, CHAT, error=error))
    assert (exchange.answer and exchange.answer.status, exchange.answer and exchange.answer.body) == (status, body)
    assert exchange.ending.how == how
    assert "203" not in exchange.ending.detail


def test_a_dump_that_was_cut_is_no_call(tmp_path):
    path = dump(tmp_path, CHAT)
    path.write_bytes(path.read_bytes()[:-30])
    assert importers.choose(path) == "hermes-dump"
    with pytest.raises(CtxscopeError, match="found no request with a url and a body, expected Hermes request dump"):
        loaded(path)
    with pytest.raises(CtxscopeError, match="found no timestamp"):
        loaded(dump(tmp_path, CHAT, timestamp=None))


# --- raw folders -----------------------------------------------------------------------------------------------------


@needs_captures
@pytest.mark.parametrize("place", ["wire", "", "wire/index.jsonl"])
def test_a_recorded_folder_keeps_bytes_numbers_and_times(place):
    folder = CAPTURES / "formats" / "mitmproxy_har"
    name = importers.choose(folder / place)
    assert name == "raw-folder"
    capture = importers.load(name).read(folder / place)
    found = [item.load() for item in capture.items]
    index = [json.loads(line) for line in (folder / "wire" / "index.jsonl").read_bytes().splitlines()]
    assert [item.n for item in capture.items] == [line["n"] for line in index]
    assert [e.time for e in found] == [line["t"] for line in index]
    assert [e.body for e in found] == wire_bodies(folder, "req")
    assert [e.answer.body for e in found] == wire_bodies(folder, "res")
    assert dict(found[0].headers)["user-agent"] == "pydantic-ai/2.68.0"


def test_a_folder_with_gaps_is_told(tmp_path):
    (tmp_path / "index.jsonl").write_text(
        '{"n":1,"t":5,"path":"/a","headers":{"Content-Encoding":"gzip"}}\n{"n":2,"t":6,"path":"/b"}\nx\n'
    )
    (tmp_path / "0001.req").write_bytes(b"{}")
    found, problems = loaded(tmp_path)
    assert [(e.body, e.answer, e.headers) for e in found] == [(b"{}", None, ())]
    assert len(problems) == 2


def test_links_that_leave_the_folder_are_told_and_not_followed(tmp_path):
    secret, folder = tmp_path / "secret", tmp_path / "capture"
    secret.write_bytes(b"not for sale")
    (folder / "kept").mkdir(parents=True)
    (folder / "kept" / "body").write_bytes(b"[]")
    (folder / "index.jsonl").write_text("".join(f'{{"n":{n},"t":{n},"path":"/a"}}\n' for n in (1, 2, 3, 4)))
    (folder / "0001.req").write_bytes(b"{}")
    (folder / "0001.res").symlink_to(secret)
    (folder / "0002.req").symlink_to("../secret")
    (folder / "0003.req").symlink_to("kept/body")
    (folder / "0004.req").symlink_to(folder / "0002.req")
    found, problems = loaded(folder)
    assert [(e.body, e.answer) for e in found] == [(b"{}", None), (b"[]", None)]
    assert problems == [
        f"{folder}: found links that leave the folder as 0001.res, 0002.req, 0004.req, expected the bodies; left out"
    ]


def test_a_folder_named_by_a_link_is_read(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "index.jsonl").write_text('{"n":1,"t":5,"path":"/a"}\n')
    (tmp_path / "real" / "0001.req").write_bytes(b"{}")
    (tmp_path / "link").symlink_to("real")
    found, problems = loaded(tmp_path / "link")
    assert ([e.body for e in found], problems) == ([b"{}"], [])


def test_an_index_that_lies_elsewhere_is_refused(tmp_path):
    (tmp_path / "elsewhere").write_text('{"n":1,"t":5,"path":"/a"}\n')
    (tmp_path / "capture").mkdir()
    (tmp_path / "capture" / "index.jsonl").symlink_to("../elsewhere")
    with pytest.raises(
        CtxscopeError, match=r"index\.jsonl: found a link that leaves the folder, expected the file itself"
    ):
        loaded(tmp_path / "capture")


# --- what is none ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("session.jsonl", b'{"type":"session","id":"s"}\n{"type":"message","message":{"role":"user"}}\n'),
        ("a.txt", b"hello"),
        ("a.json", b'{"a": 1}'),
        ("b.json", b"[[[["),
        ("a.bin", bytes(range(256))),
        ("a.db", b"SQLite format 3\0" + bytes(100)),
    ],
)
def test_what_no_format_claims_is_refused_with_all_that_are_known(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(CtxscopeError) as refused:
        importers.choose(tmp_path / name)
    assert str(refused.value) == (
        f"{tmp_path / name}: found {len(data)} bytes in no format known here; expected one of claude-tap, claude-trace, "
        "HAR, Hermes request dump, LiteLLM callbacks, mitmproxy flows, raw folder"
    )


def test_empty_missing_and_other_folders_are_refused(tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    for name, found in (
        ("empty", "an empty file"),
        ("gone", "no such file or folder"),
        ("folder", "found a folder in no format"),
    ):
        with pytest.raises(CtxscopeError, match=found):
            importers.choose(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("words", [[], ["--format", "har"], ["--format", "raw-folder"]])
@pytest.mark.parametrize("name", ["pipe", "link", "index.jsonl"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, words, name):
    path = tmp_path / name
    os.mkfifo(tmp_path / "pipe" if name == "link" else path)
    if name == "link":
        path.symlink_to("pipe")
    run = subprocess.run(
        [sys.executable, "-m", "ctxscope", "import", str(path), *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=60,
    )
    assert run.returncode == 2
    assert run.stderr == (
        f"ctxscope: {path}: found a pipe, a device or a socket; expected a capture: a file, or a raw folder\n"
    )


@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="needs a device")
def test_a_device_is_refused(capsys):
    assert main(["import", "/dev/zero", "--format", "har"]) == 2
    assert capsys.readouterr().err.startswith("ctxscope: /dev/zero: found a pipe, a device or a socket; ")
