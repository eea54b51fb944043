"""Chats of the Gemini CLI that are broken, torn, of another version, or not its own."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxscope.agents import Log, at_hand, gemini
from ctxscope.model import Config, Learned, Place, Record
from tests.conftest import SAMPLES
from tests.gemini_cases import Chat, body_of, log_of

SAMPLE = next((SAMPLES / "gemini" / "resume_doubles_results" / "log").rglob("session-*.jsonl"))
LINES = SAMPLE.read_bytes().split(b"\n")[:-1]
NAMES = st.sampled_from(
    [
        "id",
        "type",
        "content",
        "tokens",
        "toolCalls",
        "thoughts",
        "model",
        "$set",
        "messages",
        "$rewindTo",
        "parts",
        "text",
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["user", "gemini", "info"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)


def ask_everything(log: Log) -> None:
    """Every question of the face; none may raise."""
    points = gemini.requests(log)
    gemini.markers(log)
    gemini.notices(log)
    config = gemini.config(log)
    seen = []
    for point in points:
        gemini.naive(log, point)
        gemini.endpoint(log, point)
        assert gemini.rebuild(log, point, config, Learned()) is not None
        body = body_of([{"parts": [{"text": "x"}], "role": "user"}])
        gemini.rebuild(log, point, config, gemini.learn(log, point, body, at_hand(seen)))
        seen.append((point, body))


@given(st.lists(st.binary(max_size=40) | VALUES.map(lambda v: json.dumps(v).encode()), max_size=6))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_entries_and_every_question_has_an_answer(rows: list[bytes]) -> None:
    ask_everything(log_of(rows))


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, v in inside for p in paths_of(v, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@given(st.data())
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.data_too_large])
def test_any_value_in_any_place_of_a_real_chat_raises_nothing(data: st.DataObject) -> None:
    rows: list[Any] = [json.loads(line) for line in LINES]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(rows) - 1))
        rows[at] = replaced(rows[at], data.draw(st.sampled_from(paths_of(rows[at]))), data.draw(VALUES))
    ask_everything(log_of([json.dumps(row).encode() for row in rows]))


def test_a_chat_read_line_by_line_ends_as_one_read_at_once() -> None:
    whole, grown = log_of(LINES), log_of([])
    for number, line in enumerate(LINES, 1):
        for entry in gemini.entries(Record("session", str(number), Place(0, f"line {number}"), line)):
            grown.add(entry)
        ask_everything(grown)
    ours, theirs = gemini.requests(grown), gemini.requests(whole)
    assert [(p.key, p.turn, p.ids, p.blocks, p.order) for p in ours] == [
        (p.key, p.turn, p.ids, p.blocks, p.order) for p in theirs
    ]
    for one, other in zip(ours, theirs, strict=True):
        assert (
            gemini.rebuild(grown, one, Config(), Learned()).data
            == gemini.rebuild(whole, other, Config(), Learned()).data
        )
    assert list(gemini.markers(grown)) == list(gemini.markers(whole))


def test_a_line_that_was_written_anew_is_read_anew() -> None:
    log = log_of(LINES)
    before = [gemini.rebuild(log, p, Config(), Learned()).data for p in gemini.requests(log)]
    changed = LINES[2].replace(b"first boat", b"last boat")
    for entry in gemini.entries(Record("session", "3", Place(0, "line 3"), changed, 1)):
        log.add(entry)
    after = [gemini.rebuild(log, p, Config(), Learned()).data for p in gemini.requests(log)]
    assert [b"last boat" in data for data in after] == [True, True, False, False]  # a resume states its history itself
    assert after[2:] == before[2:]


def test_what_is_new_is_counted_and_leaves_what_came_before() -> None:
    chat = Chat().process()
    chat.user("u1", "look")
    chat.answer("g1", "ok")
    plain = chat.log()
    chat.add(id="n1", timestamp=chat.now(), type="dream", content="?")
    chat.rows[2]["mood"] = "calm"
    log = chat.log()
    notices = " ".join(gemini.notices(log))
    assert "«dream» (1)" in notices
    assert "«user.mood» (1)" in notices
    assert len(gemini.requests(log)) == 1
    before, after = (gemini.rebuild(one, gemini.requests(one)[0], Config(), Learned()) for one in (plain, log))
    assert before.data == after.data


def test_lines_that_are_no_objects_are_said() -> None:
    log = log_of([*LINES[:3], b"{torn", b"[1]", *LINES[3:]])
    assert sum("not a JSON object" in notice for notice in gemini.notices(log)) == 2
    assert [p.turn for p in gemini.requests(log)] == [p.turn for p in gemini.requests(log_of(LINES))]
