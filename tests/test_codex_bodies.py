"""What Codex sends: what the log holds is never taken from the wire, what it does not is learned once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope.agents import codex
from ctxscope.capture.events import End, Event, Head, Message, Request
from tests.codex_cases import body_of, log_of, rebuilt
from tests.codex_lines import (
    SMALL,
    Row,
    short_session,
)
from tests.ctxrec_events import HEADERS, PATH, UPSTREAM, write
from tests.samples.codex_form import PASSTHROUGH, Session, reply, say, use, uuid7


def test_a_provider_that_takes_it_is_sent_the_turn_of_each_item():
    session, served = short_session(passthrough=True)
    made = rebuilt(log_of(line.encode() for line in session.lines), served)
    assert {k: data for k, (_, data, _) in made.items()} == served
    assert b"create_time" not in b"".join(served.values())
    turn = session.turn.encode()
    lines = [
        line.replace(b'{"turn_id":"' + turn, b'{"turn_id":"X' + turn) for line in (x.encode() for x in session.lines)
    ]
    altered = rebuilt(log_of(lines), served)
    assert all(data != served[k] for k, (_, data, _) in altered.items())


def test_the_base_item_may_name_the_turn_too():
    session, served = short_session(passthrough=True)
    id_ = b'"id":"msg_5a0fe7c5-0000-557e-8000-00000000beef"'
    named = {
        k: d.replace(id_, id_ + b',"%s":{"turn_id":"%s"}' % (PASSTHROUGH.encode(), session.turn.encode()))
        for k, d in served.items()
    }
    made = rebuilt(log_of(line.encode() for line in session.lines), named)
    assert {k: data for k, (_, data, _) in made.items()} == named
    assert not any(p.path.endswith(PASSTHROUGH) for _, _, found in made.values() for p in found.pieces)


def test_a_value_that_is_another_than_the_one_learned_is_a_difference():
    session, served = short_session()
    first, second = served
    for old_text, new_text in (
        (b'"strict":false', b'"strict":true'),
        (b'"store":false', b'"store":true'),
        (b"beef", b"babe"),
    ):
        changed = {**served, second: served[second].replace(old_text, new_text, 1)}
        assert changed[second] != served[second]
        made = rebuilt(log_of(line.encode() for line in session.lines), changed)
        assert made[first][1] == served[first]
        assert made[second][1] == served[second]


def test_what_the_log_holds_is_never_taken_from_the_wire():
    session, served = short_session()
    for key, data in served.items():
        for old_text, new_text in (
            (session.turn.encode(), uuid7(5, 5).encode()),
            (session.name.encode(), uuid7(6, 6).encode()),
            (b'"gpt-5.1-codex"', b'"gpt-5.1-other"'),
            (b'"summary":"detailed"', b'"summary":"concise"'),
            (b"Be exact with numbers", b"Be exakt with numbers"),
            (b"How warm?", b"How warm!"),
        ):
            changed = data.replace(old_text, new_text)
            assert changed != data
            made = rebuilt(log_of(line.encode() for line in session.lines), {key: changed})
            assert made[key][1] != changed, old_text


def test_the_order_of_client_metadata_is_the_requests_own_and_its_ids_the_logs():
    session, served = short_session()
    made = rebuilt(log_of(line.encode() for line in session.lines), served)
    orders = [tuple(json.loads(data)["client_metadata"]) for _, data, _ in made.values()]
    assert orders[0] != orders[1]
    for _, _, found in made.values():
        logged = {p.data for p in found.pieces if p.provenance == "logged"}
        assert {json.dumps(session.turn).encode(), json.dumps(session.name).encode()} <= logged


def test_a_remote_compaction_ends_with_what_triggers_it():
    session, served = short_session(passthrough=True)
    trigger = {"type": "compaction_trigger", PASSTHROUGH: {"turn_id": session.turn}}
    data = session.body(trigger, passthrough=True).encode()
    opaque = {"type": "compaction", "id": "cmp_1", "encrypted_content": "b3BhcXVl"}
    session.usage(3.0, "resp_3", SMALL)
    key = f"line:{len(session.lines) + 1}"
    session.compacted(3.1, "", [session.history[2], opaque | {PASSTHROUGH: {"turn_id": session.turn}}], "resp_3")
    session.user(4.0, "And now?")
    last = f"line:{len(session.lines) + 1}"
    after = session.body(passthrough=True).encode()
    session.answer(5.0, "resp_4", [say(9, "Cooler.")], SMALL)
    made = rebuilt(log_of(line.encode() for line in session.lines), {**served, key: data, last: after})
    assert (made[key][1], made[last][1]) == (data, after)
    point = made[key][0]
    assert (point.kind, point.ids, point.stored_usage.reported) == ("compaction", {"resp_3"}, SMALL.input)
    assert [b.envelope for b in point.blocks] == ["b3BhcXVl"]
    tools = [p.provenance for p in made[key][2].pieces if p.path == "/tools"]
    assert tools == ["learned"]
    assert codex.classify(body_of(data)) == "compaction"
    assert codex.classify(body_of(after)) is None


def test_the_summary_answer_may_be_an_item_of_its_own_or_not():
    """Where the compaction's answer is logged as an item, that item is the answer and no part of the history."""
    session, _ = short_session()
    session.item(3.0, {"type": "compaction", "id": "cmp_1", "encrypted_content": "b3BhcXVl"})
    session.usage(3.0, "resp_3", SMALL)
    session.compacted(3.1, "", session.history[-1:], "resp_3")
    points = codex.requests(log_of(line.encode() for line in session.lines))
    assert [(p.kind, max(p.ids)) for p in points] == [
        ("main", "resp_1"),
        ("main", "resp_2"),
        ("compaction", "resp_3"),
    ]


def socket(tmp_path: Path, *, tells_turns: bool = False) -> tuple[Path, Path]:
    """A session over a WebSocket: warmed, then what is new each time; its log and its recording."""
    session = Session(uuid7(0, 1))
    session.meta(0.0)
    session.begin(0.1, uuid7(0.1, 2))
    session.settings(0.2)
    session.user(0.3, "How warm?")
    headers = (*HEADERS, ("thread-id", session.name))
    events: list[Event] = [
        Request(1, 1769936400.0, "GET", PATH, UPSTREAM, headers),
        Head(1, 1769936400.1, 101, "Switching"),
    ]
    number = 1

    def ask(at: float, items: list[Row], name: str, told: list[Row], **more: Any) -> None:
        nonlocal number
        number += 1
        options = session.options()
        fields = {
            "type": "response.create",
            "model": "gpt-5.1-codex",
            "stream": True,
            **more,
            "input": items,
            **options,
        }
        data = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
        events.append(Message(number, 1, 1769936400.0 + at, "client", "text", data, PATH, UPSTREAM))
        for block in reply(name, told, SMALL).split("\n\n")[:-1]:
            spoken = block.partition("data: ")[2].encode()
            events.append(Message(number, 1, 1769936400.0 + at + 0.1, "server", "text", spoken))

    def sent(start: int) -> list[Row]:
        own = PASSTHROUGH if not tells_turns else ""
        return [{k: v for k, v in item.items() if k != own} for item in session.history[start:]]

    ask(0.25, [session.base_item()], "resp_warm", [], generate=False)
    look = [use(2, "exec_command", "{}")]
    ask(0.5, sent(0), "resp_1", look, previous_response_id="resp_warm")
    session.answer(1.0, "resp_1", look, SMALL)
    session.output(1.1, look[0], "24 °C\n")
    ask(1.2, sent(-1), "resp_2", [say(3, "24 °C.")], previous_response_id="resp_1")
    session.answer(2.0, "resp_2", [say(3, "24 °C.")], SMALL)
    session.user(3.0, "And the water?")
    ask(3.1, [session.base_item(), *sent(0)], "resp_3", [say(4, "Cold.")])
    session.answer(4.0, "resp_3", [say(4, "Cold.")], SMALL)
    events.append(End(1, 1769936410.0))
    return session.write(tmp_path / "home"), write(tmp_path / "socket.ctxrec", events)


@pytest.mark.parametrize("tells_turns", [False, True])
def test_messages_of_a_socket_carry_what_is_new(tmp_path: Path, tells_turns: bool):
    log, recorded = socket(tmp_path, tells_turns=tells_turns)
    inspection = ctxscope.open(log, recording=str(recorded))
    try:
        calls = {c.exchange.n: c for c in inspection.snapshot.calls if c.exchange}
        views = {n: inspection.view(c.n) for n, c in calls.items()}
    finally:
        inspection.close()
    assert [(n, c.kind, c.rebuilt.state) for n, c in sorted(calls.items())][-4:] == [
        (2, "probe", "not_logged"),
        (3, "main", "equal"),
        (4, "main", "equal"),
        (5, "main", "equal"),
    ]
    before = [(p.provenance, p.data) for n in (3, 4) for p in views[n].pieces if p.data.startswith(b'"resp_')]
    assert before == [("echoed", b'"resp_warm"'), ("logged", b'"resp_1"')]
    whole = json.loads(views[4].effective.data)["input"]
    assert [i["type"] for i in whole] == ["message"] * 4 + ["function_call", "function_call_output"]
