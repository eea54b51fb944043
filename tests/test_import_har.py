"""HTTP archives: what of them is bytes, and what is only a value."""

from __future__ import annotations

import base64
import json

import pytest

from ctxscope.capture import importers
from ctxscope.model import CtxscopeError
from tests.conftest import CAPTURES, needs_captures
from tests.import_cases import entry, har, loaded, wire_bodies

RECORDED = CAPTURES / "formats" / "mitmproxy_har"


def one(tmp_path, *args, **kwargs):
    ((exchange,), problems) = loaded(har(tmp_path / "a.har", entry(*args, **kwargs)))
    assert problems == []
    return exchange


@needs_captures
def test_a_recorded_archive_holds_the_bytes_of_the_wire():
    found, problems = loaded(RECORDED / "flows.har")
    assert problems == []
    assert [e.body for e in found] == wire_bodies(RECORDED, "req")
    assert [e.answer.body for e in found] == wire_bodies(RECORDED, "res")
    assert {(e.fidelity, e.upstream, e.target, e.answer.status) for e in found} == {
        ("bytes", "http://127.0.0.1:8099", "/v1/chat/completions", 200)
    }


@needs_captures
def test_archive_and_flows_of_one_run_agree_in_their_times():
    flows, _ = loaded(RECORDED / "flows.mitm")
    entries, _ = loaded(RECORDED / "flows.har")
    for flow, from_har in zip(flows, entries, strict=True):
        assert from_har.time == pytest.approx(flow.time, abs=1e-5)
        assert from_har.answer.time <= from_har.ending.time
        # mitmproxy's own sum of the parts counts the connecting, which came before the request
        assert flow.ending.time - 1e-3 <= from_har.ending.time <= flow.ending.time + 0.05


def test_an_entry_is_an_exchange(tmp_path):
    found = one(tmp_path)
    assert (found.upstream, found.target) == ("https://api.openai.com", "/v1/chat/completions?x=%20y")
    assert (found.body, found.fidelity, found.method) == (b'{"a":1}', "bytes", "POST")
    assert found.answer.time - found.time == pytest.approx(0.9)
    assert found.ending.time - found.time == pytest.approx(1.0)


def test_a_reply_kept_decoded_is_not_decoded_twice(tmp_path):
    found = one(tmp_path)
    assert found.answer.body == b"hello"
    assert found.answer.headers == (("content-type", "text/plain"),)


def test_binary_replies_are_in_base64(tmp_path):
    content = {"text": base64.b64encode(bytes(range(256))).decode(), "encoding": "base64"}
    found = one(tmp_path, response={"status": 200, "headers": [], "content": content})
    assert found.answer.body == bytes(range(256))


@pytest.mark.parametrize(
    ("text", "more", "body", "fidelity"),
    [
        ("é漢", {}, "é漢".encode(), "bytes"),
        ("\udcff\x00", {}, b"\xff\x00", "bytes"),  # mitmproxy: bytes that are no text
        ("a\ufffdb", {}, "a\ufffdb".encode(), "parsed"),  # a browser: bytes that were no text are lost
        ("ab", {"bodySize": 3}, b"ab", "parsed"),
        ("ab", {"headers": [["Content-Length", "7"]]}, b"ab", "parsed"),
        ("ab", {"headers": [["Content-Length", "2"]], "bodySize": -1}, b"ab", "bytes"),
        ("ab", {"headers": [["content-encoding", "gzip"], ["content-length", "99"]]}, b"ab", "bytes"),
        ("é", {"postData": {"mimeType": "text/plain; charset=latin-1", "text": "é"}, "bodySize": 1}, b"\xe9", "bytes"),
        ("é", {"postData": {"mimeType": "text/plain; charset=nosuch", "text": "é"}}, "é".encode(), "parsed"),
        (
            "é",
            {"headers": [["content-encoding", "gzip"], ["content-length", "2"]], "bodySize": -1},
            "é".encode(),
            "parsed",
        ),
        ("", {"bodySize": 0}, b"", "bytes"),
        ("", {"bodySize": -1}, b"", "bytes"),
        ('{\n  "a": 1\n}', {"bodySize": -1}, b'{\n  "a": 1\n}', "parsed"),  # put into another form, its size left out
        ('{\n  "a": 1\n}', {"bodySize": None}, b'{\n  "a": 1\n}', "parsed"),
        ('{"a":1}', {"headers": [["Content-Length", "7"]], "bodySize": 9}, b'{"a":1}', "parsed"),
    ],
)
def test_a_text_is_the_bytes_only_where_its_size_confirms_it(tmp_path, text, more, body, fidelity):
    found = one(tmp_path, text, request=more)
    assert (found.body, found.fidelity) == (body, fidelity)


@pytest.mark.parametrize(("size", "fidelity"), [(-1, "bytes"), (2, "bytes"), (3, "parsed")])
def test_base64_is_the_bytes_unless_its_size_contradicts_it(tmp_path, size, fidelity):
    posted = {"mimeType": "application/json", "encoding": "base64", "text": "e3\n0="}
    found = one(tmp_path, request={"postData": posted, "bodySize": size})
    assert (found.body, found.fidelity) == (b"{}", fidelity)


def test_an_archive_without_sizes_says_what_its_bodies_are(tmp_path):
    capture = importers.load("har").read(har(tmp_path / "a.har", entry(request={"bodySize": -1})))
    assert [item.fidelity for item in capture.items] == ["parsed"]
    assert any("no stated size confirms" in note for note in importers.load("har").notes)


@pytest.mark.parametrize("text", ["%%%", "abc", "aGk=\u20ac"])
def test_a_reply_that_cannot_be_decoded_does_not_cost_the_request(tmp_path, text):
    response = {"status": 200, "headers": [], "content": {"size": 2, "text": text, "encoding": "base64"}}
    path = har(tmp_path / "a.har", entry(), entry("[]", response=response))
    found, problems = loaded(path)
    assert [(e.body, e.answer.status, e.answer.body) for e in found] == [
        (b'{"a":1}', 200, b"hello"),
        (b"[]", 200, None),
    ]
    assert problems == [
        f"{path} entry 2: found base64 that cannot be decoded, expected a reply or message in base64; left out"
    ]


def test_a_message_that_cannot_be_decoded_does_not_cost_the_others(tmp_path):
    messages = [
        {"type": "send", "time": 1000.5, "opcode": 2, "data": "AAE"},
        {"type": "receive", "time": 1001.5, "opcode": 1, "data": "hi"},
    ]
    path = har(tmp_path / "a.har", entry(_webSocketMessages=messages))
    ((found,), problems) = loaded(path)
    assert [(s.sender, s.data) for s in found.messages] == [("server", b"hi")]
    assert len(problems) == 1


def test_a_compressed_request_loses_the_header_that_said_so(tmp_path):
    found = one(tmp_path, request={"headers": [["Content-Encoding", "zstd"], ["X-A", "b"], ["content-length", "4"]]})
    assert found.headers == (("X-A", "b"),)


def test_a_request_whose_body_is_not_in_the_archive_is_told_and_left_out(tmp_path):
    path = har(tmp_path / "a.har", entry(None, request={"bodySize": 900}), entry(None), entry())
    found, problems = loaded(path)
    assert [e.body for e in found] == [b"", b'{"a":1}']
    assert problems == [
        f"{path} entry 1: found a request whose body was not kept, expected an HTTP request with its body; left out"
    ]


def test_failures_and_requests_without_an_answer_are_kept(tmp_path):
    none = {"status": 0, "headers": [], "content": {}}
    path = har(
        tmp_path / "a.har",
        entry(response={**none, "_error": "net::ERR_CONNECTION_REFUSED"}),
        entry(response={**none, "_error": "net::ERR_ABORTED"}),
        entry(response={**none, "_error": None}),
        entry(response=None),
        entry(response={"status": 429, "headers": [], "content": {"text": "slow"}}),
        entry(response={"status": 200, "headers": [], "content": {"size": 900}}),
    )
    found, problems = loaded(path)
    assert problems == []
    assert [e.ending and e.ending.how for e in found] == [
        "upstream unreachable",
        "client left",
        None,
        None,
        "complete",
        None,
    ]
    assert [e.answer and (e.answer.status, e.answer.body) for e in found] == [
        None,
        None,
        None,
        None,
        (429, b"slow"),
        (200, None),
    ]


def test_messages_of_a_websocket(tmp_path):
    messages = [
        {"type": "send", "time": 1000.5, "opcode": 1, "data": "{}"},
        {"type": "receive", "time": 1001.5, "opcode": 2, "data": "AAE="},
        {"type": "odd"},
    ]
    found = one(tmp_path, None, request={"method": "GET", "url": "wss://h.example/x"}, _webSocketMessages=messages)
    assert found.upstream == "https://h.example"
    assert [(s.time, s.sender, s.kind, s.data) for s in found.messages] == [
        (1000.5, "client", "text", b"{}"),
        (1001.5, "server", "binary", b"\x00\x01"),
    ]


def test_an_entry_that_is_none_loses_no_other(tmp_path):
    path = har(
        tmp_path / "a.har",
        entry(),
        7,
        {"request": {}},
        entry(when="yesterday"),
        entry(request={"url": "data:x"}),
        entry(),
    )
    found, problems = loaded(path)
    assert len(found) == 2
    assert [p.split("found ")[1].split(",")[0] for p in problems] == [
        "a number",
        "an entry without request.url",
        "an entry without a date as startedDateTime",
        "no http or https URL",
    ]


def test_an_archive_cut_anywhere_gives_every_whole_entry(tmp_path):
    path = har(tmp_path / "whole.har", *(entry(text=f'{{"n":{n}}}') for n in range(3)))
    data = path.read_bytes()
    cut_file = tmp_path / "cut.har"
    seen = set()
    for cut in [*range(data.index(b"[") + 1, len(data), 61), len(data) - 3, len(data) - 1]:
        cut_file.write_bytes(data[:cut])
        found, problems = loaded(cut_file, "har")
        whole = json_entries_before(data, cut)
        assert [e.body for e in found] == [f'{{"n":{n}}}'.encode() for n in range(whole)]
        assert len(problems) == (cut < len(data) - 2)  # before the list ends
        seen.add(whole)
    assert seen == {0, 1, 2, 3}


def json_entries_before(data: bytes, cut: int) -> int:
    """How many whole entries stand before a place."""
    archive = json.loads(data)
    at, count = data.index(b"[", data.index(b"entries")) + 1, 0
    for each in archive["log"]["entries"]:
        at += len(json.dumps(each))
        count += at <= cut
        at += 2
    return count


def test_a_damaged_entry_in_the_middle_loses_only_itself(tmp_path):
    path = har(tmp_path / "a.har", *(entry(text=f'{{"n":{n}}}') for n in range(4)))
    data = path.read_bytes()
    second = data.index(b'{\\"n\\":1}')
    path.write_bytes(data[: second - 30] + b"\x00\xff{{" + data[second - 20 :])
    found, problems = loaded(path)
    assert [e.body for e in found] == [b'{"n":0}', b'{"n":2}', b'{"n":3}']
    assert "entry 2: found what is no JSON" in problems[0]


@pytest.mark.parametrize("text", ['{"log":{"entries":7}}', '{"log":[]}', '{"log":', "[1]", "nonsense"])
def test_what_is_no_archive_is_refused(tmp_path, text):
    path = tmp_path / "a.har"
    path.write_text(text)
    with pytest.raises(CtxscopeError, match=r"a\.har: found no list log\.entries, expected an HTTP archive"):
        loaded(path, "har")


def test_archives_are_known_by_content(tmp_path):
    assert importers.choose(har(tmp_path / "x.json", entry())) == "har"
    bom = tmp_path / "bom.har"
    bom.write_bytes(b"\xef\xbb\xbf" + (tmp_path / "x.json").read_bytes())
    assert importers.choose(bom) == "har"
    assert len(loaded(bom)[0]) == 1
