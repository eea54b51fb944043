"""Messages of a log by their places, on the samples: who spoke, and how it begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.cli import demo
from ctxscope.model import Entry, Logged, Place, SessionRef
from ctxscope.session.fold import SessionLog
from ctxscope.session.inspection import Inspection
from ctxscope.session.logged import MOST_CHARACTERS, logged_at
from tests.conftest import ROOT


def sample(name: str) -> Inspection:
    return Inspection.open(next(path for path in demo.samples() if path.name == name))


def dropped(opened: Inspection) -> list[Logged]:
    found = next(c for c in opened.snapshot.compactions if c.told.marker.kind == "compaction")
    return list(opened.messages(found.told.marker.session, found.told.messages or found.told.marker.dropped))


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_rows_of_a_table_with_their_tool_calls():
    said = dropped(sample("batch_compaction"))
    assert [each.role for each in said[:4]] == ["user", "assistant", "tool", "assistant"]
    assert said[0] == Logged(Place(0, "row 1"), "user", "How was the night in the east?")
    assert said[1].text == '→ read_sensor {"zone": "östlich", "hours": 6}'
    assert said[2].text.startswith('{"zone": "östlich", "readings": "00h')


def test_messages_in_one_table_and_what_they_say_in_another():
    said = dropped(sample("child_and_summary"))
    assert said[0].text == "Where does the «Möwe» lie, and how long?"
    assert said[1].text.endswith("I look.")


@pytest.mark.parametrize(
    ("case", "first"),
    [
        ("compaction_and_resume", "What is on sheet 41?"),
        ("compaction_rotates", "Is a storm coming?"),
        ("hooks_around_compaction", "How many wrens were ringed"),
        ("shaken_then_archived", "How does the linden hive do?"),
    ],
)
def test_lines_of_any_agent(case, first):
    said = dropped(sample(case))
    assert any(each.text.startswith(first) for each in said)
    assert all(each.role and len(each.text) <= MOST_CHARACTERS for each in said)


def test_a_place_that_the_log_does_not_hold_says_nothing():
    opened = sample("batch_compaction")
    gone = Place(0, "row 999")
    assert opened.messages(opened.snapshot.sessions[0].id, [gone]) == (Logged(gone),)
    assert opened.messages("no such session", [gone]) == (Logged(gone),)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["content", "message", "role", "name", "tool_calls", "function", "x"]), inner)
    ),
    max_leaves=20,
)


def said_of(agent: str, source: str, data: Mapping[str, Any]) -> Logged:
    session = SessionLog.open(SessionRef(agent, "s", (ROOT / "none.jsonl",), ROOT))
    place = Place(0, "line 1")
    session.conversation.add(source)
    session.log.add(Entry("user", place, f"{source}:k", data, source=source))
    (said,) = logged_at(session, [place])
    assert said.place == place
    return said


@given(
    form=st.sampled_from([("pi", "session"), ("hermes", "messages"), ("opencode", "message")]),
    data=st.dictionaries(st.sampled_from(["content", "message", "data", "role", "tool_calls", "parts"]), VALUES),
)
def test_no_content_makes_it_stumble(form: tuple[str, str], data: Mapping[str, Any]):
    assert len(said_of(*form, data).text) <= MOST_CHARACTERS


def test_each_agent_reads_its_own_form():
    listed = {"role": "user", "content": '\x00json:[{"type": "text", "text": "Which wren?"}]', "tool_calls": "[]"}
    assert said_of("hermes", "messages", listed).text == "Which wren?"
    assert "json" in said_of("pi", "session", {"message": listed}).text
