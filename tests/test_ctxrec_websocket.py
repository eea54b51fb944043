"""WebSocket connections: a message that asks for a reply is a call, and the readers of APIs understand it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxscope import wire
from ctxscope.capture import open_recording, websocket
from ctxscope.capture.ctxrec import CtxRec
from ctxscope.capture.events import End, Event, Head, Message, Request
from ctxscope.capture.writer import Writer
from ctxscope.wire.body import make_body
from ctxscope.wire.sse import events
from tests.ctxrec_events import HEADERS, META, PATH, UPSTREAM, read, write

OPENED: list[Event] = [Request(1, 1000.0, "GET", PATH, UPSTREAM, HEADERS), Head(1, 1000.1, 101, "Switching Protocols")]


def asks(n: int, **more: object) -> Message:
    data = json.dumps({"type": "response.create", "model": "m", "tools": [], **more}).encode()
    return Message(n, 1, 1000.0 + n, "client", "text", data, PATH, UPSTREAM)


def says(n: int, *messages: dict[str, object]) -> list[Event]:
    return [
        Message(n, 1, 1000.1 + n + i / 10, "server", "text", json.dumps(message).encode())
        for i, message in enumerate(messages)
    ]


def answer(n: int, response: str, text: str) -> list[Event]:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    usage = {"input_tokens": 9, "output_tokens": 2}
    return says(
        n,
        {"type": "response.created", "response": {"id": response, "model": "m"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": response, "status": "completed", "usage": usage}},
    )


def test_each_message_that_asks_is_a_call_its_reader_understands(tmp_path: Path):
    user = [{"role": "user", "content": "when is high tide?"}]
    more = [{"role": "user", "content": "and tomorrow?"}]
    path = write(
        tmp_path / "a.ctxrec",
        [
            *OPENED,
            asks(2, input=user),
            *answer(2, "resp_1", "at noon"),
            asks(3, input=more, previous_response_id="resp_1"),
            *answer(3, "resp_2", "at one"),
            End(1, 1009.0),
        ],
    )
    _, found = read(path)
    assert [(e.n, e.method, e.path) for e in found.values()] == [
        (1, "GET", PATH),
        (2, "WEBSOCKET", PATH),
        (3, "WEBSOCKET", PATH),
    ]
    assert wire.detect(found[1].path, found[1].headers, found[1].request()) is None
    assert (found[1].status, found[1].response(), found[1].response_bytes) == (101, b"", 0)
    api = wire.detect(found[2].path, found[2].headers, found[2].request())
    assert api is not None
    assert api.name == "openai-responses"
    reply = api.reply(found[2].response(), {})
    assert (reply.id, reply.complete, [b.text for b in reply.blocks]) == ("resp_1", True, ["at noon"])
    assert reply.usage is not None
    first, second = (make_body(found[n].request(), api, None, PATH) for n in (2, 3))
    assert api.is_continuation(second)
    whole = api.expand(second, first, reply, found[2].response())
    assert whole is not None
    assert [b.text for m in api.messages(whole) for b in m.blocks] == ["when is high tide?", "at noon", "and tomorrow?"]
    assert (found[2].first_byte, found[2].end) == (1002.1, pytest.approx(1002.3))
    assert dict(found[3].headers)["x-session-id"] == "s1"
    assert found[3].ended is None
    assert found[2].response_bytes == len(found[2].response())


def test_the_messages_themselves_stay_reachable(tmp_path: Path):
    recording, _ = read(write(tmp_path / "a.ctxrec", [*OPENED, asks(2), *says(2, {"a": 1}, {"b": 2})]))
    assert isinstance(recording, CtxRec)
    assert recording.messages(2) == ((1002.1, "text", b'{"a": 1}'), (1002.2, "text", b'{"b": 2}'))
    assert recording.reply_as_sent(2) == b'{"a": 1}{"b": 2}'
    assert recording.as_sent(2) == asks(2).data


def test_a_call_shows_at_once_and_grows_with_each_message(tmp_path: Path):
    path = tmp_path / "a.ctxrec"
    writer = Writer(path, META)
    recording = open_recording(path, 0)

    def news(*more: Event) -> list[tuple[int, int | None, bool]]:
        for event in more:
            writer.write(event)
        return [(e.n, e.response_bytes and e.response().count(b"data:"), e.end is not None) for e in recording.poll()]

    assert news(*OPENED) == [(1, None, False)]
    assert news(asks(2)) == [(2, None, False)]
    first, second, third = answer(2, "resp_1", "at noon")
    assert news(first) == [(2, 1, False)]
    assert news(second, third) == [(2, 3, False)]
    assert news(asks(3)) == [(2, 3, True), (3, None, False)]
    assert news(*answer(3, "resp_2", "at one")) == [(3, 3, False)]
    assert news(End(1, 1009.0)) == [(1, 0, True), (3, 3, True)]
    writer.close()


def test_only_a_call_that_lacks_its_end_was_broken_off(tmp_path: Path):
    whole = write(tmp_path / "a.ctxrec", [*OPENED, asks(2), *answer(2, "r", "yes"), End(1, 1009.0, "client left")])
    assert read(whole)[1][2].ended is None
    torn = [*OPENED, asks(2), *answer(2, "r", "yes"), asks(3), *answer(3, "s", "no")[:2]]
    broken = write(tmp_path / "b.ctxrec", [*torn, End(1, 1009.0, "upstream reset")])
    assert [e.ended for e in read(broken)[1].values()] == ["upstream reset", None, "upstream reset"]


def test_what_asks_for_nothing_is_a_call_only_once_it_is_answered(tmp_path: Path):
    def sends(n: int, data: bytes, kind: str = "text") -> Message:
        return Message(n, 1, 1000.0 + n, "client", kind, data, PATH, UPSTREAM)  # type: ignore[arg-type]

    events = [*OPENED, sends(2, b'{"type":"response.cancel"}'), sends(3, b'"response.create"'), sends(4, b"hello")]
    bye = Message(5, 1, 1009.0, "server", "close", b"")
    path = write(tmp_path / "a.ctxrec", [*events, *says(4, {"hi": 1}), sends(5, b"", "close"), bye])
    assert sorted(read(path)[1]) == [1, 4]


def test_what_a_server_says_first_is_the_reply_to_the_upgrade(tmp_path: Path):
    _, found = read(write(tmp_path / "a.ctxrec", [*OPENED, *says(1, {"type": "session.created"}), asks(2)]))
    assert found[1].response() == b'data: {"type": "session.created"}\n\n'
    assert found[1].end == 1001.1


def test_a_message_over_several_lines_is_one_event():
    text = b'{\n"a": 1,\r\n"b": "x"\r}'
    (event,) = events(websocket.event("text", text))
    assert event.value == {"a": 1, "b": "x"}
    assert events(websocket.event("binary", b"\0\n\n") + websocket.event("close", b"bye")) == []


def test_client_messages_cost_what_is_new(tmp_path: Path):
    tools = [{"name": f"tool {n}", "description": "measures the tide " * 9} for n in range(40)]
    with_tools = write(tmp_path / "a.ctxrec", [*OPENED, *(asks(n, tools=tools, input=[n]) for n in range(2, 30))])
    assert with_tools.stat().st_size < len(asks(2, tools=tools).data) + 28 * 450
