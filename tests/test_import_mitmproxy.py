"""mitmproxy flows read without mitmproxy."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.capture import importers
from ctxscope.capture.importers.tnetstring import parsed
from tests.conftest import CAPTURES, needs_captures
from tests.import_cases import flow, flows, loaded, tnetstring, wire_bodies

RECORDED = CAPTURES / "formats" / "mitmproxy_har"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.binary() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@needs_captures
def test_recorded_flows_hold_the_bytes_of_the_wire():
    found, problems = loaded(RECORDED / "flows.mitm")
    assert problems == []
    assert [e.body for e in found] == wire_bodies(RECORDED, "req")
    assert [e.answer.body for e in found] == wire_bodies(RECORDED, "res")
    assert {(e.fidelity, e.upstream, e.target, e.method, e.answer.status) for e in found} == {
        ("bytes", "http://127.0.0.1:8099", "/v1/chat/completions", "POST", 200)
    }
    assert all(e.time < e.answer.time < e.ending.time for e in found)
    assert found[0].answer.headers[-1] == ("request-id", "req_356a192b7913b04c5457")


@given(VALUES)
def test_what_was_spelled_is_read(value):
    assert parsed(tnetstring(value)) == value


@given(
    st.binary(max_size=60) | st.lists(st.sampled_from([b"1:", b"3:", b"0:~", b"}", b"]", b"a,", b"9"])).map(b"".join)
)
def test_noise_is_refused_in_one_way(data):
    with suppress(ValueError):
        parsed(data)


def test_nesting_without_end_is_refused():
    data = b"0:~"
    for _ in range(2_000):
        data = b"%d:%b]" % (len(data), data)
    with pytest.raises(ValueError, match="too deep"):
        parsed(data)


def test_a_flow_is_an_exchange_with_its_real_origin(tmp_path):
    ((exchange,), problems) = loaded(flows(tmp_path / "a.mitm", flow()))
    assert problems == []
    assert (exchange.time, exchange.method, exchange.target) == (1000.0, "POST", "/v1/messages?beta=true")
    assert (exchange.upstream, exchange.body) == ("https://api.anthropic.com", b'{"a":1}')
    assert (exchange.answer.time, exchange.answer.status, exchange.answer.body) == (1001.0, 200, b'{"ok":true}')
    assert (exchange.ending.time, exchange.ending.how) == (1002.0, "complete")


@pytest.mark.parametrize(
    ("request_state", "upstream"),
    [
        ({"host": "203.0.113.9"}, "https://api.anthropic.com"),  # transparent: the handshake names it
        ({"host": "Gateway.example", "port": 8443}, "https://gateway.example:8443"),
        ({"host": "127.0.0.1", "port": 8099, "scheme": b"http"}, "http://api.anthropic.com:8099"),
        ({"host": ""}, ""),
    ],
)
def test_the_origin_is_the_name_the_request_went_to(tmp_path, request_state, upstream):
    ((exchange,), _) = loaded(flows(tmp_path / "a.mitm", flow(request=request_state)))
    assert exchange.upstream == upstream


def test_bodies_stay_encoded_as_they_were_sent(tmp_path):
    state = flow(body=b"\x1f\x8b\x00not really", request={"headers": [[b"content-encoding", b"gzip"]]})
    ((exchange,), _) = loaded(flows(tmp_path / "a.mitm", state))
    assert exchange.body == b"\x1f\x8b\x00not really"
    assert exchange.headers == (("content-encoding", "gzip"),)


def test_requests_without_an_answer_and_failures_are_kept(tmp_path):
    refused = {"msg": "[Errno 111] Connect call failed ('203.0.113.9', 443)", "timestamp": 1009.0}
    path = flows(
        tmp_path / "a.mitm",
        flow(1, response=None),
        flow(2, response=None, error=refused),
        flow(3, response=None, error={"msg": "Client disconnected.", "timestamp": 4.0}),
        flow(5, error={"msg": "stream reset by api.anthropic.com", "timestamp": 9.0}),
        flow(6, response={"status_code": 429, "headers": [], "content": b"slow", "timestamp_start": 7.0}),
    )
    found, problems = loaded(path)
    assert problems == []
    assert [e.answer.status if e.answer else None for e in found] == [None, None, None, 200, 429]
    ends = [(e.ending.how, e.ending.detail) if e.ending else None for e in found]
    assert ends[:4] == [
        None,
        ("upstream unreachable", "Connect call failed"),
        ("client left", "Client disconnected"),
        ("upstream reset", "stream reset by"),
    ]


def test_a_websocket_is_its_messages(tmp_path):
    messages = [[1, True, b'{"type":"response.create"}', 1002.0, False, False], [2, False, b"\x00\x01", 1003.0, False]]
    socket = {
        "messages": messages,
        "closed_by_client": True,
        "close_code": 1000,
        "close_reason": "bye",
        "timestamp_end": 1004.0,
    }
    ((exchange,), problems) = loaded(flows(tmp_path / "a.mitm", flow(body=b"", websocket=socket)))
    assert problems == []
    assert [(s.time, s.sender, s.kind, s.data) for s in exchange.messages] == [
        (1002.0, "client", "text", b'{"type":"response.create"}'),
        (1003.0, "server", "binary", b"\x00\x01"),
        (1004.0, "client", "close", b"\x03\xe8bye"),
    ]
    assert exchange.ending.time == 1004.0


def test_what_holds_no_exchange_is_told_and_left_out(tmp_path):
    path = flows(
        tmp_path / "a.mitm",
        flow(1),
        {"version": 21, "type": "tcp", "client_conn": {}},
        flow(2, body=None),
        {"version": 99, "type": "http", "client_conn": {}, "request": {"new": 1}},
        flow(3),
    )
    found, problems = loaded(path)
    assert [e.time for e in found] == [1, 3]
    assert [p.removeprefix(str(path)) for p in problems] == [
        " flow 2: found a flow of tcp, expected a flow of HTTP with the request's body; left out",
        " flow 3: found a request whose body was streamed and not kept, expected a flow of HTTP with the request's body; left out",
        " flow 4: found flow format 99 in another shape, expected a flow of HTTP with the request's body; left out",
    ]


def test_a_reply_that_was_streamed_past_is_none(tmp_path):
    state = flow(response={"status_code": 200, "headers": [], "content": None, "timestamp_start": 1001.0})
    ((exchange,), _) = loaded(flows(tmp_path / "a.mitm", state))
    assert (exchange.answer.status, exchange.answer.body, exchange.ending) == (200, None, None)


def test_a_file_cut_anywhere_gives_every_whole_flow(tmp_path):
    whole = [tnetstring(flow(float(n))) for n in range(1, 4)]
    data = b"".join(whole)
    for cut in range(1, len(data), 97):
        path = flows(tmp_path / "a.mitm", data[:cut])
        found, problems = loaded(path, "mitmproxy")
        count = sum(sum(map(len, whole[: n + 1])) <= cut for n in range(3))
        assert [e.time for e in found] == [1.0, 2.0, 3.0][:count]
        assert len(problems) == (cut not in (len(whole[0]), len(whole[0]) * 2))


@pytest.mark.parametrize("broken", [b"garbage\n", b"99999999999:", b"12:5:hello,1:1#]", b"700:" + b"x" * 90])
def test_what_is_broken_in_the_middle_loses_nothing_behind_it(tmp_path, broken):
    path = flows(tmp_path / "a.mitm", flow(1), broken, flow(2), flow(3))
    found, problems = loaded(path)
    assert [e.time for e in found] == [1, 2, 3]
    assert len(problems) == 1
    assert f"at byte {len(tnetstring(flow(1)))}" in problems[0]


def test_a_flow_with_one_byte_wrong_loses_only_itself(tmp_path):
    second = tnetstring(flow(2)).replace(b"4:path;", b"4:path!", 1)
    found, problems = loaded(flows(tmp_path / "a.mitm", flow(1), second, flow(3)))
    assert [e.time for e in found] == [1, 3]
    assert "flow 2: found" in problems[0]


def test_flows_of_the_python_2_days_have_bytes_for_keys(tmp_path):
    def old(value):
        if isinstance(value, dict):
            return {k.encode(): old(v) for k, v in value.items()}
        return value.encode() if isinstance(value, str) else value

    state = old(flow()) | {b"version": [0, 17]}
    ((exchange,), problems) = loaded(flows(tmp_path / "a.mitm", state))
    assert problems == []
    assert (exchange.upstream, exchange.target) == ("https://api.anthropic.com", "/v1/messages?beta=true")


def test_a_capture_that_was_cut_since_says_so(tmp_path):
    path = flows(tmp_path / "a.mitm", flow())
    (item,) = importers.load("mitmproxy").read(path).items
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="length"):
        item.load()


def test_flows_are_known_by_content(tmp_path):
    path = flows(tmp_path / "capture.bin", flow())
    assert importers.choose(path) == "mitmproxy"
    assert importers.load("mitmproxy").claims(Path("x"), b'{"request":1}') == 0.0
