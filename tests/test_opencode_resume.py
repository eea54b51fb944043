"""What opencode would send if it were started anew: all rows, and an input behind them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxscope import wire
from ctxscope.agents import at_hand, opencode
from ctxscope.model import NEXT_INPUT
from ctxscope.wire.body import make_body
from tests.opencode_cases import LOOK, SESSION, changed, database, fresh, full, read
from tests.resumed_logs import foretold, resumed
from tests.samples.opencode_form import text, used


def said(log: Any) -> list[Any]:
    return [m["content"] for m in foretold(opencode, log)["messages"]]


def talked(home: Path, agent: str = "build") -> Path:
    rows = fresh()
    one = rows.user(SESSION, 1, text("one"))
    rows.answer(SESSION, 2, one, text("look"), used(LOOK))
    rows.answer(SESSION, 4, one, text("first"), agent=agent)
    rows.write(home)
    return home


def test_the_next_input_stands_behind_the_rows(tmp_path: Path):
    log = read(talked(tmp_path)).log
    assert said(log) == ["one", "look", "seen", "first", NEXT_INPUT]
    assert not resumed(opencode, log).changes
    assert all(json.loads(r.value["data"]) for r in resumed(opencode, log).records)


def test_behind_a_summary_it_and_what_was_kept_is_read(tmp_path: Path):
    full(True).write(tmp_path)
    assert said(read(tmp_path).log) == [
        "What did we do so far?",
        "SUM",
        "two",
        "second",
        "three",
        "third",
        NEXT_INPUT,
    ]


def test_tools_and_parameters_are_those_of_the_agent_that_answered_last(tmp_path: Path):
    log = read(talked(tmp_path)).log
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "one"}]
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": messages, "tools": [{"x": 1}], "stream": True})
    calls = [(p, make_body(body.encode(), wire.by_name("openai-chat"))) for p in opencode.requests(log)]
    found = foretold(opencode, log, calls)
    assert found["messages"][0] == messages[0]
    assert (found["max_tokens"], found["tools"]) == (9, [{"x": 1}])
    assert not any("which agent" in words for words in resumed(opencode, log).unknown)


def test_that_the_agent_is_not_known_is_said_where_there_were_several(tmp_path: Path):
    log = read(talked(tmp_path, agent="plan")).log
    assert any("which agent" in words for words in resumed(opencode, log).unknown)


def test_a_tool_that_was_running_is_told_to_be_interrupted(tmp_path: Path):
    talked(tmp_path)
    state = json.dumps({"status": "running", "input": {"b": 1}})
    changed(
        database(tmp_path),
        "UPDATE part SET data = json_set(data, '$.state', json(?)), time_updated = time_updated + 1 "
        "WHERE data LIKE '%call_1%'",
        state,
    )
    assert "[Tool execution was interrupted]" in said(read(tmp_path).log)


def test_nothing_is_foretold_of_a_subagent_an_undone_or_an_unanswered_session(tmp_path: Path):
    for n, column in enumerate(("parent_id", "revert")):
        home = talked(tmp_path / str(n))
        changed(database(home), f"UPDATE session SET {column} = ?", '{"messageID":"msg_1"}')
        assert opencode.resume(read(home).log, at_hand()) is None
    rows = fresh()
    rows.user(SESSION, 1, text("one"))
    rows.write(tmp_path / "asked")
    assert opencode.resume(read(tmp_path / "asked").log, at_hand()) is None
