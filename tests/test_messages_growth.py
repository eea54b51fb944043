"""A team's log as it grows, is rewritten, or holds what nobody expected."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ctxscope
from ctxscope.agents import Log, at_hand, messages
from ctxscope.agents.messages.fold import Fold, Request
from ctxscope.agents.messages.grouping import Grouper
from ctxscope.agents.messages.trail import Message, Trail
from ctxscope.model import Config, Entry, Learned, Place, Point, Record, SessionRef
from ctxscope.wire import by_name
from ctxscope.wire.body import make_body
from tests.messages_cases import (
    CALLS,
    CASES,
    CHAT_CASES,
    CLAUDE,
    CLAUDE_CASES,
    FULL,
    TALK,
    Case,
    chat_calls,
    compact,
    lines,
    spans,
)


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


def records(text: bytes, *, whole: bool) -> Iterator[Record]:
    if whole:
        yield Record("log", "file", Place(0, "file"), text)
        return
    for number, line in enumerate(text.split(b"\n"), 1):
        if line:
            yield Record("log", str(number), Place(0, f"line {number}"), line)


def log_of(found: list[Record], name: str = "chat") -> Log:
    log = Log(SessionRef("messages", name, (Path(f"{name}.jsonl"),), Path()))
    fold(log, found)
    return log


def fold(log: Log, found: list[Record]) -> None:
    for record in found:
        for entry in messages.entries(record):
            log.add(replace(entry, seq=len(log.versions)))


def looks(log: Log) -> list[tuple[Any, ...]]:
    return [
        (p.key, p.turn, p.lineage, p.kind, p.ids, p.blocks, len(p.context), data_of(log, p))
        for p in messages.requests(log)
    ]


def data_of(log: Log, point: Point) -> bytes:
    made = messages.rebuild(log, point, Config(), Learned())
    assert made is not None
    return made.data


def name_of(case: Case) -> str:
    return "boxes-1" if case.file.startswith("spans") else case.file.partition(".")[0]


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.file.endswith(".jsonl")])
def test_lines_read_one_by_one_say_what_they_say_at_once(name: str) -> None:
    case = CASES[name]
    found = list(records(case.log.encode(), whole=False))
    whole, grown = log_of(found, name_of(case)), log_of([], name_of(case))
    kept: dict[str, Point] = {}
    for record in found:
        fold(grown, [record])
        for point in messages.requests(grown):
            if point.blocks is not None and point.key in kept and kept[point.key].blocks == point.blocks:
                assert kept[point.key] is point  # what was judged stays judged
            kept[point.key] = point
        messages.markers(grown)
        messages.notices(grown)
    assert looks(grown) == looks(whole)
    assert looks(whole)
    assert messages.markers(grown) == messages.markers(whole)
    assert messages.notices(grown) == messages.notices(whole)


@pytest.mark.parametrize("name", ["array", "array_indented", "snapshots_in_an_array", "spans_indented"])
def test_a_file_written_anew_with_each_message_says_what_the_last_one_says(name: str) -> None:
    case = CASES[name]
    values = (
        json.loads(case.log)
        if case.log[0] == "["
        else [json.loads(t) for t in case.log.split("\n}\n") for t in [t + "\n}"] if "{" in t]
    )
    grown = log_of([], name_of(case))
    for count in range(1, len(values) + 1):
        text = (
            json.dumps(values[:count]) if case.log[0] == "[" else "".join(json.dumps(v) + "\n" for v in values[:count])
        )
        fold(grown, [Record("log", "file", Place(0, "file"), text.encode(), count)])
        messages.requests(grown)
    assert looks(grown) == looks(log_of(list(records(text.encode(), whole=True)), name_of(case)))
    assert [p.turn for p in messages.requests(grown)] == [1, 1, 2]


@pytest.mark.parametrize("name", CASES)
def test_no_prefix_of_a_log_raises(name: str) -> None:
    data = CASES[name].log.encode()
    for end in range(0, len(data), max(1, len(data) // 60)):
        for whole in (True, False):
            log = log_of(list(records(data[:end], whole=whole)))
            messages.requests(log)
            messages.markers(log)
            messages.notices(log)


def test_an_array_that_breaks_off_shows_what_is_whole(tmp_path: Path) -> None:
    text = json.dumps(FULL)
    folder = CHAT_CASES["array"].write(tmp_path, text[: text.index("None.") + 2])
    inspection = ctxscope.open(folder)
    assert [c.rebuilt.state for c in inspection.snapshot.calls[:2]] == ["equal", "equal"]
    assert any("breaks off behind message 6" in notice for notice in inspection.snapshot.notices)
    inspection.close()


def test_a_request_waits_for_its_answer() -> None:
    log = log_of(list(records(lines(FULL[:2]).encode(), whole=False)))
    (point,) = messages.requests(log)
    assert (point.answer, point.blocks, point.key) == (None, None, "after:2")
    fold(log, list(records(lines(FULL[:3]).encode(), whole=False))[2:])
    (point,) = messages.requests(log)
    assert point.answer is not None
    assert [b.kind for b in point.blocks or ()] == ["tool_call"]
    fold(log, list(records(lines(FULL[:4]).encode(), whole=False))[3:])
    assert [p.key for p in messages.requests(log)] == ["3", "after:4"]


def test_of_parallel_calls_all_must_have_their_result() -> None:
    two = copy.deepcopy(FULL[:4])
    two[2]["tool_calls"].append({**two[2]["tool_calls"][0], "id": "call_2"})
    log = log_of(list(records(lines(two).encode(), whole=False)))
    assert [p.key for p in messages.requests(log)] == ["3"]
    rest = lines([{"role": "tool", "tool_call_id": "call_2", "content": "no"}]).encode()
    fold(log, [Record("log", "5", Place(0, "line 5"), rest.strip())])
    assert [p.key for p in messages.requests(log)] == ["3", "after:5"]


def _markers(before: list[Any], after: list[Any]) -> list[tuple[str, str | None]]:
    rows = lines([{"session_id": "s", "model": "m", "messages": m} for m in (before, after)])
    log = log_of(list(records(rows.encode(), whole=False)), "s")
    return [(m.kind, m.point) for m in messages.markers(log)]


QUESTION = {"role": "user", "content": "Next?"}


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        ([*FULL[:4], QUESTION], None),
        ([FULL[0], *FULL[3:4], QUESTION], "prune"),
        ([*FULL[:3], {**FULL[3], "content": "[cut]"}, QUESTION], "strip"),
        ([FULL[0], {"role": "user", "content": "Summary."}, QUESTION], "compaction"),
        (FULL[:2], "rewind"),
        ([*FULL[:2], QUESTION], "rewind"),
    ],
    ids=["goes on", "left out", "changed", "summed up", "cut off", "other end"],
)
def test_a_request_that_does_not_go_on_from_the_one_before_is_marked(after: list[Any], kind: str | None) -> None:
    assert _markers(FULL[:4], after) == ([(kind, "2")] if kind else [])


def test_other_tools_and_another_model_are_marked() -> None:
    rows = [{"model": f"m-{i}", "tools": [{"n": i}], "messages": FULL[: 2 + i]} for i in range(2)]
    log = log_of(list(records(lines(rows).encode(), whole=False)))
    assert [m.kind for m in messages.markers(log)] == ["model_switch", "tools_changed"]


def test_a_line_rewritten_leaves_earlier_calls_as_they_were() -> None:
    log = log_of(list(records(lines(FULL[:5]).encode(), whole=False)))
    before = [data_of(log, p) for p in messages.requests(log)]
    changed = compact({**FULL[1], "content": "Something else"}).encode()
    fold(log, [Record("log", "2", Place(0, "line 2"), changed, 1)])
    fold(log, list(records(lines(FULL).encode(), whole=False))[5:])
    points = messages.requests(log)
    assert [data_of(log, p) for p in points[:2]] == before
    assert b"Something else" in data_of(log, points[2])


# --- drift -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.file.endswith(".jsonl")])
def test_records_and_fields_that_are_new_are_counted_and_change_no_verdict(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    rows = [json.loads(line) for line in case.log.splitlines()]
    stranger = {"type": "heartbeat", "at": 1}
    grown = [row for each in rows for row in ({**each, "x_new": 1} if isinstance(each, dict) else each, stranger)]
    inspection = ctxscope.open(case.write(tmp_path, lines(grown)))
    assert {c.rebuilt.state for c in inspection.snapshot.calls if c.exchange} == {"equal"}
    told = " ".join(inspection.snapshot.notices)
    assert f"{len(rows)} entries" in told
    assert "heartbeat" in told
    if any(isinstance(row, dict) and "role" in row for row in rows):
        assert "«x_new»" in told
    inspection.close()


@pytest.mark.parametrize(
    "stranger",
    [
        {"level": "info", "message": "request took 3 s"},
        {"level": "info", "message": {"text": "?"}, "state": "ok", "session": {"a": 1}, "torn": 1},
    ],
)
def test_records_of_a_logger_among_the_messages_are_unknown(stranger: dict[str, Any], tmp_path: Path) -> None:
    case = CHAT_CASES["lines"]
    rows = [row for each in FULL for row in (each, stranger)]
    inspection = ctxscope.open(case.write(tmp_path, lines(rows)))
    assert [c.rebuilt.state for c in inspection.snapshot.calls if c.exchange] == ["equal"] * 3
    assert any(f"{len(FULL)} entries" in notice for notice in inspection.snapshot.notices)
    inspection.close()


def test_a_turn_is_counted_once_for_one_request_and_its_trail_is_kept() -> None:
    """A trail is told by what it is, not by where it lay: another one may lie there once it is gone."""
    grown = Fold(SessionRef("messages", "chat", (Path("chat.jsonl"),), Path()), Grouper("chat"))
    for number in range(1, 50):
        trail = Trail()
        (entry,) = messages.entries(Record("log", "1", Place(0, "line 1"), compact(FULL[1]).encode()))
        trail.add(Message(entry.data["message"], entry.place, entry))
        request = Request(trail, 1, entry)
        assert (grown._turn(request), grown._turn(request)) == (number, number)
        kept = grown.counted
        assert kept is not None
        assert kept[0] is trail
        del trail, request, kept


@pytest.mark.parametrize("name", ["snapshots_with_replies", "claude_snapshots", "spans"])
def test_the_order_of_an_envelopes_keys_does_not_matter(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    rows = [dict(reversed(json.loads(line).items())) for line in case.log.splitlines()]
    inspection = ctxscope.open(case.write(tmp_path, lines(rows)))
    assert {c.rebuilt.state for c in inspection.snapshot.calls if c.exchange} == {"equal"}
    inspection.close()


# --- hostile input ---------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
SEEDS: list[Any] = [*FULL, *CLAUDE, *[q for q, _ in CALLS], *spans(), {"request": CALLS[0][0], "response": CALLS[0][1]}]
SEEDS += [json.loads(line) for case in ("responses", "gemini") for line in CASES[case].log.splitlines()]


def spoil(value: Any, path: list[int], new: Any) -> Any:
    """A copy with the value at some place replaced, or without it."""
    if not path or not isinstance(value, dict | list) or not value:
        return new
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[path[0] % len(keys)]
    found = copy.copy(value)
    if path[1:] or path[0] % 3:
        found[key] = spoil(value[key], path[1:], new)
    else:
        del found[key]
    return found


def ask_everything(log: Log) -> None:
    body = make_body(compact(CALLS[1][0]).encode(), by_name("openai-chat"))
    claude = make_body(compact(CLAUDE_CASES["claude_lines"].exchanges[1][0]).encode(), by_name("anthropic-messages"))
    for point in messages.requests(log):
        for served in (body, claude):
            learned = messages.learn(log, point, served, at_hand())
            assert messages.rebuild(log, point, Config(), learned) is not None
        messages.rebuild(log, point, Config(), Learned())
        messages.endpoint(log, point)
        messages.naive(log, point)
        messages.error_line(log, point)
        assert list(point.context) == [point.context[i] for i in range(len(point.context))]
    messages.markers(log)
    messages.notices(log)
    messages.config(log)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.integers(0, len(SEEDS) - 1), st.lists(st.integers(0, 8), max_size=6), JSON), min_size=1, max_size=5
    )
)
def test_missing_and_wrong_values_raise_nothing(changes: list[tuple[int, list[int], Any]]) -> None:
    rows = [spoil(SEEDS[seed], path, new) for seed, path, new in changes]
    text = "".join(json.dumps(row) + "\n" for row in [*FULL[:2], *rows, *TALK[1:4]]).encode("utf-8", "surrogatepass")
    ask_everything(log_of(list(records(text, whole=False))))
    ask_everything(log_of(list(records(text, whole=True))))
    ask_everything(log_of(list(records(json.dumps(rows).encode(), whole=True))))


@pytest.mark.parametrize("deep", ["[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900, "[" * 30_000])
def test_depth_raises_nothing(deep: str) -> None:
    forms = (
        '{"role":"user","content":%s}',
        '{"role":"assistant","content":"x","tool_calls":%s}',
        '{"messages":[{"role":"user","content":"hi"}],"tools":%s}',
        '{"traceId":"a","spanId":"b","attributes":[{"key":"gen_ai.input.messages","value":%s}]}',
        "%s",
    )
    for form in forms:
        text = "\n".join((compact(TALK[0]), form.replace("%s", deep), compact(TALK[3]), "")).encode()
        assert 0 <= messages.claims(Path("x.jsonl"), text) <= 0.55
        assert messages.claims(Path("x.json"), form.replace("%s", deep).encode()[:65536]) <= 0.55
        for whole in (True, False):
            ask_everything(log_of(list(records(text, whole=whole))))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80) | st.text(alphabet='[]{}",:role user\\', max_size=60).map(str.encode))
def test_no_bytes_raise(data: bytes) -> None:
    for whole in (True, False):
        for record in records(data, whole=whole):
            assert all(isinstance(entry, Entry) for entry in messages.entries(record))
    assert 0 <= messages.claims(Path("x.json"), data) <= 0.55


def test_a_conversation_of_thousands_costs_what_is_new() -> None:
    """No call looks at all messages before it: the pieces of a request are those of the one before, and its own."""
    talk = [
        m
        for i in range(1500)
        for m in ({"role": "user", "content": f"q{i}"}, {"role": "assistant", "content": f"a{i}"})
    ]
    log = log_of(list(records(lines(talk).encode(), whole=False)))
    points = messages.requests(log)
    assert len(points) == 1500
    first, last = (messages.rebuild(log, points[i], Config(), Learned()) for i in (-2, -1))
    assert first is not None
    assert last is not None
    assert all(a is b for a, b in zip(first.pieces[2:-1], last.pieces[2:], strict=False) if b"content" in a.data)
    served = [make_body(compact(q).encode(), by_name("openai-chat")) for q, _ in chat_calls(talk[:6], None)]
    assert messages.learn(log, points[0], served[0], at_hand()).keys == ("model", "messages", "temperature", "tools")
