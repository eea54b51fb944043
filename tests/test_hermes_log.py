"""Hermes rows into calls: generations, rotation, rewinds, dead turns, markers and what the agent's files tell."""

from __future__ import annotations

from collections.abc import ItemsView
from pathlib import Path

import pytest

from ctxscope.agents import hermes
from ctxscope.agents.hermes.settings import scalars, threshold_of
from ctxscope.model import Place, Record
from tests.hermes_rows import START, Written, call

SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted. It was about digging."


def test_every_said_assistant_row_is_a_call_and_an_open_end_waits() -> None:
    log = Written()
    log.user("dig")
    log.says("", tool_calls=call("a"))
    log.tool("a")
    assert log.keys() == ["2", "after:3"]
    log.says("done")
    assert log.keys() == ["2", "4"]
    assert [p.turn for p in log.points] == [1, 1]
    assert log.points[0].ids == {"a"}
    assert [b.kind for b in log.points[0].blocks or ()] == ["tool_call"]


def test_carried_rows_are_no_calls_and_earlier_calls_keep_their_context() -> None:
    log = Written()
    log.user("one")
    log.says("two")
    log.user("three")
    log.says("four")
    log.update(1, 2, 3, 4, active=0, compacted=1)
    log.row("user", SUMMARY)
    log.row("user", "three", ts=START + 3)
    log.row("assistant", "four", ts=START + 4)
    log.user("five")
    assert log.keys() == ["2", "4", "after:8"]
    assert log.context(1) == [1, 2, 3]
    assert log.context() == [5, 6, 7, 8]
    (marker,) = hermes.markers(log.log)
    assert (marker.kind, marker.logged, [p.at for p in marker.dropped]) == ("compaction", True, ["row 1", "row 2"])


def test_a_marker_is_found_by_its_place_even_when_its_text_is_damaged() -> None:
    log = Written()
    log.user("one")
    log.says("two")
    log.update(1, 2, active=0, compacted=1)
    log.row("user", "one", ts=START + 1)
    log.row("assistant", "damaged", finish_reason=None)
    log.user("three")
    log.says("four")
    log.update(3, 4, 5, 6, active=0, compacted=1)
    log.row("user", "three", ts=START + 4)
    log.row("assistant", "four", ts=START + 5)
    assert log.keys() == ["2", "6"]
    assert log.context(1) == [3, 4, 5]


def test_a_damaged_marker_in_front_starts_its_generation() -> None:
    log = Written()
    log.user("one")
    log.says("two")
    log.update(1, 2, active=0, compacted=1)
    log.row("assistant", "damaged", finish_reason=None)
    log.row("user", "one", ts=START + 1)
    log.user("three")
    log.says("four")
    log.update(3, 4, 5, 6, active=0, compacted=1)
    log.row("user", "three", ts=START + 4)
    assert log.keys() == ["2", "6", "after:7"]
    assert log.context(1) == [3, 4, 5]


def test_a_0_19_compaction_shows_in_times_a_microsecond_apart() -> None:
    log = Written()
    log.schema(22)
    log.user("one")
    log.says("two")
    log.user("three")
    log.update(1, 2, 3, active=0, compacted=1)
    for i, (role, text) in enumerate([("user", SUMMARY), ("assistant", "two"), ("user", "three")]):
        log.row(role, text, ts=START + 10 + i * 1e-6)
    log.now = START + 11
    log.says("four")
    assert log.keys() == ["2", "7"]
    assert log.context(1) == [4, 5, 6]


def test_a_rotated_session_carries_its_parents_rows_and_what_they_were() -> None:
    log = Written(parent="earlier", started_at=START + 9)
    log.turn(fresh=True, session="earlier")
    log.user("none", source="parent_messages", ts=START - 9)
    log.user("one", source="parent_messages")
    log.says("", tool_calls=call("a"), source="parent_messages")
    log.tool("a", source="parent_messages")
    log.row("user", "one", ts=START + 1)
    log.row("assistant", "", ts=START + 2, tool_calls=call("a"))
    log.row("tool", "dug", ts=START + 3, tool_call_id="a", tool_name="dig")
    assert log.keys() == ["after:7"]
    log.says("done")
    log.turn(fresh=True)
    log.user("more")
    assert log.keys() == ["8", "after:9"]
    assert [p.turn for p in log.points] == [1, 2]
    assert "name" in log.messages(at=0)[2]
    assert "name" not in log.messages()[2]
    kinds = [(m.kind, m.where) for m in hermes.markers(log.log)]
    assert kinds[0][0] == "restore"
    assert "rotated from session earlier" in kinds[0][1]


def test_a_session_that_went_on_in_another_waits_for_no_call() -> None:
    log = Written()
    log.user("one")
    assert log.keys() == ["after:1"]
    log = Written(end_reason="compression")
    log.user("one")
    assert log.keys() == []


def test_an_answer_keeps_each_of_its_opaque_items() -> None:
    log = Written()
    log.user("one")
    details = [{"type": "reasoning.text", "text": "hm", "signature": "s"}, {"type": "reasoning.encrypted", "data": "d"}]
    log.says("two", reasoning="hm", reasoning_details=details)
    assert [(b.kind, b.text, b.envelope) for b in log.points[0].blocks or ()] == [
        ("thinking", "hm", "s"),
        ("thinking", "", "d"),
        ("text", "two", ""),
    ]


def test_a_subagents_session_carries_nothing_and_is_told_apart() -> None:
    log = Written(parent="boss", model_config='{"_delegate_from": "boss"}')
    log.user("old", source="parent_messages", ts=START + 50)
    log.user("dig")
    log.says("done")
    assert log.keys() == ["3"]
    assert log.points[0].kind == "subagent"


def test_rewound_rows_leave_the_context_and_the_branch_is_known() -> None:
    log = Written()
    log.user("one")
    log.says("two")
    log.user("wrong")
    log.says("oops")
    log.update(3, 4, active=0)
    log.user("right")
    assert log.keys() == ["2", "4", "after:5"]
    assert log.context(1) == [1, 2, 3]
    assert log.context(2) == [1, 2, 5]
    assert log.points[2].branched_from == "messages:2"
    assert [m.kind for m in hermes.markers(log.log)] == ["rewind"]


def test_a_second_undo_does_not_bring_the_first_back() -> None:
    log = Written()
    log.user("one")
    log.says("two")
    log.update(1, 2, active=0)
    log.user("other")
    log.says("three")
    log.update(3, 4, active=0)
    log.user("last")
    assert [log.context(i) for i in range(3)] == [[1], [3], [5]]


def test_rows_deleted_by_a_retry_stay_calls_of_their_own() -> None:
    log = Written()
    log.user("one")
    log.says("bad")
    log.delete(1, 2)
    log.row("user", "one", ts=START + 1)
    log.says("good")
    assert log.keys() == ["2", "4"]
    assert [log.context(i) for i in range(2)] == [[1], [3]]


def test_a_turn_without_answer_is_dead_and_the_agents_error_is_told() -> None:
    log = Written()
    log.user("one")
    log.line("2026-01-01 00:00:00,000 ERROR [plot] agent.loop: the provider said 500")
    log.line("2026-01-01 00:00:00,000 ERROR [other] agent.loop: not ours")
    log.user("two")
    log.says("done")
    assert log.keys() == ["after:1", "3"]
    assert log.points[0].data["dead"]
    told = hermes.notices(log.log)
    assert any("the provider said 500" in t for t in told)
    assert not any("not ours" in t for t in told)
    assert any(t.startswith("row 1: no answer") for t in told)


def test_a_final_text_that_was_delivered_and_not_kept_is_told() -> None:
    log = Written()
    log.turn(fresh=True)
    log.user("one")
    log.says("", tool_calls=call("a"))
    log.line(
        "2026-01-01 00:00:00,000 INFO [plot] agent.loop: Turn ended: reason=text_response(finish_reason=stop) model=m "
        "last_msg_role=assistant response_len=41 session=plot"
    )
    assert hermes.notices(log.log) == ("row 2: the turn delivered 41 characters of text, the row keeps none",)


def test_a_nudge_is_not_a_turn_and_its_fragment_is_a_call() -> None:
    log = Written()
    log.user("one")
    log.says("cut in the mid", finish_reason="length")
    log.user("[System: Your previous response was truncated by the output length limit. Go on.]")
    log.says("dle")
    assert log.keys() == ["2", "4"]
    assert log.context(1) == [1, 2, 3]
    assert [p.turn for p in log.points] == [1, 1]


@pytest.mark.parametrize(
    ("window", "share", "cap", "threshold"),
    [
        *(
            (100_000, 0.5, 0, 75_000),
            (70_000, 0.5, 0, 64_000),
            (64_000, 0.5, 0, 54_400),
            (1_000_000, 0.5, 64_000, 468_000),
        ),
        *((80_000, 0.5, 32_000, 40_800), (8_000, 0.75, 4_096, 3_318), (80_000, 0.95, 100_000, 76_000)),
        (256_000, 1.0, 32_000, 190_400),
    ],
)
def test_the_threshold_follows_the_agents_formula(window: int, share: float, cap: int, threshold: int) -> None:
    assert threshold_of(window, share, cap) == threshold


@pytest.mark.parametrize(
    ("schema", "compression", "window", "threshold"),
    [
        (26, "  threshold_tokens: 60000\n", 200_000, 60_000),
        (26, "  threshold_tokens: 160000\n", 200_000, 150_000),
        (26, "  threshold_tokens: 0\n", 200_000, 150_000),
        (26, "  model_thresholds:\n    gpt: 0.3\n", 200_000, None),
        (26, "  threshold: 0.5\n", 70_000, 64_000),
        (30, "  threshold: 0.5\n", 70_000, None),  # 0.21 reckons small windows otherwise
        (30, "  threshold: 0.5\n", 200_000, 150_000),
    ],
)
def test_a_threshold_that_settings_lower_or_that_is_not_known_is_not_that_of_the_formula(
    schema: int, compression: str, window: int, threshold: int | None
) -> None:
    log = Written()
    log.schema(schema)
    log.config(f"model:\n  context_length: {window}\ncompression:\n{compression}")
    assert hermes.config(log.log).threshold == threshold


def test_settings_are_read_as_far_as_they_are_plain() -> None:
    log = Written()
    log.config(
        "model:\n  default: 'a: b'\n  context_length: 100000 # tokens\ncompression:\n  protect_last_n: 2\n  x: [1]\n"
    )
    config = hermes.config(log.log)
    assert (config.window, config.threshold, config.protect_head, config.protect_tail) == (100_000, 75_000, None, 2)
    assert config.values == {"model.default": "a: b", "model.context_length": 100_000, "compression.protect_last_n": 2}
    assert scalars("a:\n  - b: 1\n\tc: 2\n: :\n") == {}


def test_settings_that_aliases_make_endless_are_walked_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Level(dict[str, object]):
        def items(self) -> ItemsView[str, object]:
            asked.append(1)
            return super().items()

    nested: object = []
    for _ in range(9):
        nested = Level(dict.fromkeys("abcd", nested))
    told = Level({"model": Level({"default": "m"}), "nested": nested})
    monkeypatch.setattr("ctxscope.agents.reading.yaml_text.mapping", lambda *_, **__: told)
    assert scalars("") == {"model.default": "m"}
    assert len(asked) <= 10_000


def test_one_database_is_a_container_of_sessions(tmp_path: Path) -> None:
    home = tmp_path / ".hermes"
    home.mkdir()
    (home / "state.db").write_bytes(b"SQLite format 3\x00" + b"CREATE TABLE messages(api_content)")
    (ref,) = hermes.discover(tmp_path)
    assert (ref.id, ref.paths) == ("", (home / "state.db",))
    row = {"id": "s", "cwd": "/w", "title": "t", "parent_session_id": "p", "started_at": 1.0, "last_activity_at": 2.0}
    (member,) = hermes.members(ref, [Record("sessions", "s", Place(0, "row s"), row)])
    assert (member.id, member.directory, member.title, member.parent, member.updated) == ("s", "/w", "t", "p", 2.0)
    assert [s.key for s in hermes.sources(member)].count("parent_messages") == 1
    assert hermes.claims(home / "state.db", (home / "state.db").read_bytes()) > 0.5
    assert hermes.claims(home / "state.db", b"{}") == 0.0


@pytest.mark.parametrize("value", [b"", b"\xff\xfe{", b"[1]", {}, {"id": "x", "role": 7}, {"role": "user"}])
@pytest.mark.parametrize("source", ["messages", "session", "snapshot", "config", "agent_log", "nothing"])
def test_what_is_not_understood_never_raises(source: str, value: object) -> None:
    log = Written()
    log._feed(source, "odd", value)  # type: ignore[arg-type]  # whatever a broken source may hold
    log.user("dig")
    assert log.keys() == ["after:1"]
    assert hermes.markers(log.log) == []
    log.rebuilt()
