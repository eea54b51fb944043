"""What a new process would add to a rollout, and send (codex.md §4)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope.agents import Log, at_hand, codex
from ctxscope.model import NEXT_INPUT, Learned, NextRequest, Resume
from tests.codex_cases import log_of
from tests.codex_lines import SMALL, call, context, conversation, count, message, old, output, texts
from tests.samples.codex_form import Session, use, uuid7
from tests.test_codex_bodies import socket

PERMISSIONS, RULES = message("developer", "<permissions instructions> ask"), message("user", "# AGENTS.md instructions")
HERE = message("user", "<environment_context> /srv")
OPENING = (PERMISSIONS, RULES, HERE)
TURN = (message("user", "one"), context(), message("assistant", "One."), count(40))
AGAIN = "the context is given again before the input: permissions, AGENTS.md and the directory"


def resumed(lines: list[bytes], config: bytes | None = None) -> Resume | None:
    return codex.resume(log_of(lines, config), at_hand())


def gone_on(lines: list[bytes]) -> Log:
    """The log with the lines of a new process behind its own."""
    found = resumed(lines)
    assert found is not None
    return log_of([*lines, *(r.value for r in found.records if isinstance(r.value, bytes))])


def said(lines: list[bytes]) -> list[str]:
    """The texts the next request carries."""
    log = gone_on(lines)
    point = codex.requests(log)[-1]
    assert point.answer is None
    made = codex.rebuild(log, point, codex.config(log), Learned())
    assert made is not None
    return texts(json.loads(made.data)["input"])


def new_session() -> Session:
    """A thread of 0.171 with one whole turn."""
    session = Session(uuid7(0, 1))
    session.meta(0.0)
    conversation(session, 0.1, "How warm?", "resp_1")
    return session


def lines_of(session: Session) -> list[bytes]:
    return [line.encode() for line in session.lines]


def test_the_older_version_gives_its_context_again():
    lines = old(*OPENING, *TURN)
    first = ["<permissions instructions> ask", "# AGENTS.md instructions", "<environment_context> /srv"]
    assert said(lines) == [*first, "one", "One.", *first, NEXT_INPUT]
    found = resumed(lines)
    assert found is not None
    assert found.changes == (AGAIN,)
    assert [m.kind for m in codex.markers(gone_on(lines))] == ["resume"]


def test_of_a_context_that_changed_the_newest_whole_one_is_given():
    moved = message("user", "<environment_context> /srv/other")
    lines = old(*OPENING, *TURN, PERMISSIONS, RULES, moved, *TURN)
    assert said(lines)[-4:] == [*texts([row for _, row in (PERMISSIONS, RULES, moved)]), NEXT_INPUT]
    lines = old(*OPENING, *TURN, moved, *TURN)
    assert said(lines)[-4:] == [*texts([row for _, row in OPENING]), NEXT_INPUT]


def test_the_newer_version_adds_the_input_alone():
    lines = lines_of(new_session())
    found, log = resumed(lines), gone_on(lines)
    assert found is not None
    assert found.changes == ()
    assert said(lines)[-2:] == ["How warm? it is.", NEXT_INPUT]
    assert [m.kind for m in codex.markers(log)] == ["resume"]
    own = json.loads(found.records[-1].value)["payload"]
    turn = own["internal_chat_message_metadata_passthrough"]["turn_id"]
    assert own["id"].startswith("msg_")
    assert codex.requests(log)[-1].data["call"].settings.turn_id == turn
    assert turn not in b"".join(lines).decode()
    again = resumed(lines)
    assert again is not None
    assert again.records == found.records


def test_a_limit_that_was_reached_is_told():
    lines, config = old(*OPENING, *TURN), b"model_auto_compact_token_limit = %d"
    words = "a compaction comes first, for the last call's 40 tokens reach the limit of 40"
    for limit, told in ((40, True), (41, False)):
        found = resumed(lines, config % limit)
        assert found is not None
        assert any(w.endswith(words) for w in found.unknown) == told


def socket_cut(tmp_path: Path) -> NextRequest:
    """The next request of a session whose last message over its WebSocket carried only what was new."""
    log, recorded = socket(tmp_path)
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    end = next(i for i, line in enumerate(lines) if '"text":"And the water?"' in line)
    ended = {"timestamp": "2026-02-01T09:00:02.500Z", "type": "event_msg", "payload": {"type": "task_complete"}}
    log.write_text("".join(lines[:end]) + json.dumps(ended) + "\n", encoding="utf-8")
    inspection = ctxscope.open(log, recording=str(recorded))
    try:
        (found,) = inspection.next_requests()
        return found
    finally:
        inspection.close()


def test_a_new_connection_is_given_the_whole_input(tmp_path: Path):
    found = socket_cut(tmp_path)
    assert found.body is not None
    sent = json.loads(found.body.data)
    assert "previous_response_id" not in sent
    kinds = [*["message"] * 3, "function_call", "function_call_output", "message", "message"]
    assert [i["type"] for i in sent["input"]][-7:] == kinds
    assert texts(sent["input"])[-1] == NEXT_INPUT
    assert any("new connection" in word for word in found.changes)
    assert not any("goes on" in word or "since an earlier" in word for word in found.hypotheses)


def running() -> list[bytes]:
    session = new_session()
    session.begin(9.0, uuid7(9, 7))
    return lines_of(session)


def cut_call() -> list[bytes]:
    session = new_session()
    session.begin(9.0, uuid7(9, 7))
    session.user(9.1, "And now?")
    session.answer(9.2, "resp_2", [use(9, "exec_command", "{}")], SMALL)
    return lines_of(session)


def of_version(version: str) -> list[bytes]:
    return [line.replace(b'"0.98.0"', f'"{version}"'.encode()) for line in old(*OPENING, *TURN)]


def subagent() -> list[bytes]:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 1}}}
    lines = old(*OPENING, *TURN)
    head = json.loads(lines[0])
    head["payload"]["source"] = source
    return [json.dumps(head).encode(), *lines[1:]]


CLOSED: dict[str, Any] = {
    "nothing": [],
    "nothing asked yet": old(*OPENING),
    "an input that waits": old(*OPENING, *TURN, message("user", "two")),
    "a tool whose output is missing": old(*OPENING, message("user", "one"), call("a"), count(9)),
    "one of two outputs": old(*OPENING, message("user", "one"), call("a"), call("b"), count(9), output("b")),
    "an output nobody answered": old(*OPENING, message("user", "one"), call("a"), output("a")),
    "an answer that stops at its thoughts": old(
        *OPENING, message("user", "one"), ("response_item", {"type": "reasoning", "summary": []})
    ),
    "a turn that was begun": running(),
    "a call of a newer version": cut_call(),
    "a version not seen to go on": of_version("0.106.0"),
    "a version older than that": of_version("0.53.0"),
    "no version": of_version(""),
    "a subagent": subagent(),
}


@pytest.mark.parametrize("lines", CLOSED.values(), ids=CLOSED)
def test_nothing_is_said_where_it_is_not_known(lines: list[bytes]):
    assert resumed(lines) is None


def test_a_version_newer_than_both_is_taken_to_go_on_as_they_do():
    found = resumed([line.replace(b'"0.171.0"', b'"0.172.0"') for line in lines_of(new_session())])
    assert found is not None
    assert found.changes == ()
