"""Chats of Qwen Code that are broken, torn, of another version, or not its own; and where they are found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxscope.agents import Log, at_hand, qwen
from ctxscope.model import Config, CtxscopeError, Learned, Place, Record
from tests.conftest import SAMPLES
from tests.qwen_cases import Chat, body_of, log_of

SAMPLE = next((SAMPLES / "qwen" / "compression_read_twice" / "log").rglob("*.jsonl"))
LINES = SAMPLE.read_bytes().split(b"\n")[:-1]
NAMES = st.sampled_from(
    [
        "uuid",
        "parentUuid",
        "type",
        "subtype",
        "message",
        "parts",
        "role",
        "systemPayload",
        "compressedHistory",
        "uiEvent",
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["user", "assistant", "system"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)


def ask_everything(log: Log) -> None:
    """Every question of the face; none may raise."""
    qwen.markers(log)
    qwen.notices(log)
    config, seen = qwen.config(log), []
    for point in qwen.requests(log):
        qwen.naive(log, point)
        qwen.error_line(log, point)
        assert qwen.rebuild(log, point, config, Learned()) is not None
        body = body_of([{"role": "user", "content": "x"}])
        qwen.rebuild(log, point, config, qwen.learn(log, point, body, at_hand(seen)))
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
        for entry in qwen.entries(Record("session", str(number), Place(0, f"line {number}"), line)):
            grown.add(entry)
        ask_everything(grown)
    ours, theirs = qwen.requests(grown), qwen.requests(whole)
    assert [(p.key, p.turn, p.ids, p.blocks, p.order) for p in ours] == [
        (p.key, p.turn, p.ids, p.blocks, p.order) for p in theirs
    ]
    for one, other in zip(ours, theirs, strict=True):
        assert (
            qwen.rebuild(grown, one, Config(), Learned()).data == qwen.rebuild(whole, other, Config(), Learned()).data
        )
    assert list(qwen.markers(grown)) == list(qwen.markers(whole))


def test_a_line_that_was_written_anew_is_read_anew() -> None:
    log = log_of(LINES)
    qwen.requests(log)
    changed = LINES[0].replace(b"too high", b"too low")
    for entry in qwen.entries(Record("session", "1", Place(0, "line 1"), changed, 1)):
        log.add(entry)
    made = [qwen.rebuild(log, p, Config(), Learned()).data for p in qwen.requests(log)]
    assert [b"too low" in data for data in made] == [True, True, True, False, False]


def test_what_is_new_is_counted_and_leaves_what_came_before() -> None:
    chat = Chat()
    chat.user("look")
    chat.answer("ok")
    before = qwen.rebuild(plain := chat.log(), qwen.requests(plain)[0], Config(), Learned())
    chat.add("dream")
    chat.add("system", subtype="nap")
    chat.rows[0]["mood"] = "calm"
    chat.rows[0]["version"] = "0.99.0"
    log = chat.log()
    notices = " ".join(qwen.notices(log))
    assert "«dream» (1)" in notices
    assert "«system/nap» (1)" in notices
    assert "«user.mood» (1)" in notices
    assert "«0.99.0», newer" in notices
    assert qwen.rebuild(log, qwen.requests(log)[0], Config(), Learned()).data == before.data


def test_a_line_whose_parent_is_not_there_goes_on_from_the_last_one_and_is_said() -> None:
    chat = Chat()
    chat.user("look")
    chat.answer("ok")
    chat.user("again", after="nowhere")
    chat.answer("yes")
    log = chat.log()
    assert len(qwen.requests(log)[-1].context) == 3
    assert any("line 3: its parent" in notice for notice in qwen.notices(log))


# --- where chats are found --------------------------------------------------------------------------------------------


def write(folder: Path, name: str, rows: list[dict]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def session(identity: str, origin: str = "") -> list[dict]:
    chat = Chat()
    chat.user("look")
    copied = {"forkedFrom": {"sessionId": origin, "messageUuid": "l1"}} if origin else {}
    return [{**row, "sessionId": identity, **copied} for row in chat.rows]


def test_sessions_are_found_with_those_they_were_branched_from(tmp_path: Path) -> None:
    chats = tmp_path / ".qwen" / "projects" / "-p" / "chats"
    paths = [write(chats, n, session(n, o)) for n, o in (("a", ""), ("b", "a"), ("c", "b"), ("d", ""))]
    (chats / "junk.jsonl").write_bytes(b"{}\n")
    found = list(qwen.discover(tmp_path))
    assert [(r.id, r.parent, r.directory) for r in found] == [
        ("a", None, "/p"),
        ("b", "a", "/p"),
        ("c", "b", "/p"),
        ("d", None, "/p"),
    ]
    assert [r.paths[0] for r in found] == paths
    assert [{r.id for r in qwen.family(ref)} for ref in found] == [{"b", "c"}, {"a", "c"}, {"a", "b"}, set()]


def test_only_its_own_form_of_lines_is_claimed() -> None:
    line = {"uuid": "u", "parentUuid": None, "sessionId": "s", "type": "user"}
    own = {**line, "message": {"role": "user", "parts": [{"text": "x"}]}}
    theirs = {**line, "message": {"role": "user", "content": "x"}}
    path = Path("a.jsonl")
    assert qwen.claims(path, json.dumps(own).encode()) > 0.5
    assert qwen.claims(path, json.dumps(dict(reversed(own.items()))).encode()) > 0.5
    for other in (
        theirs,
        {**own, "type": "x"},
        {**own, "sessionId": ""},
        {k: v for k, v in own.items() if k != "parentUuid"},
    ):
        assert qwen.claims(path, json.dumps(other).encode()) == 0
    for head in (b"", b"{", b"[]", b"\xff"):
        assert qwen.claims(path, head) == 0
    assert qwen.claims(Path("a.json"), json.dumps(own).encode()) == 0


def test_a_file_that_is_none_is_named_with_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(CtxscopeError, match="an empty file"):
        qwen.refs(write(tmp_path, "a", []), tmp_path)
    with pytest.raises(CtxscopeError, match="a first line that is not it"):
        qwen.refs(write(tmp_path, "b", [{"uuid": 1}]), tmp_path)
