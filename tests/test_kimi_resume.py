"""What Kimi CLI would send if it were started anew: the rows of its current context, and a turn behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ctxscope import wire
from ctxscope.agents import at_hand, kimi
from ctxscope.model import NEXT_INPUT
from ctxscope.wire.body import make_body
from tests.kimi_cases import FIRST, METADATA, NAME, SUMMARY, assistant, checkpoint, folder_in, put, read, system, user
from tests.resumed_logs import foretold, resumed


def log_of(home: Path, rows: list[Any], rotated: list[Any] | None = None) -> Any:
    folder = folder_in(home)
    put(folder / "wire.jsonl", [METADATA])
    put(folder / "context.jsonl", rows)
    if rotated is not None:
        put(folder / "context_1.jsonl", rotated)
    return read(home).log


def said(log: Any) -> list[Any]:
    return [m.get("content") for m in foretold(kimi, log)["messages"]]


def test_the_next_input_stands_behind_the_rows(tmp_path: Path):
    log = log_of(tmp_path, FIRST)
    assert said(log) == ["Be brief.", "one", "a", "r", "b", NEXT_INPUT]
    assert not resumed(kimi, log).changes


def test_behind_a_compaction_the_current_rows_are_read_alone(tmp_path: Path):
    rows = [system(), checkpoint(0), user(SUMMARY), assistant("b")]
    log = log_of(tmp_path, rows, rotated=FIRST)
    assert said(log)[0] == "Be brief."
    assert said(log)[-2:] == ["b", NEXT_INPUT]
    assert len(said(log)) == 4


def test_an_input_nobody_answered_is_one_with_the_next(tmp_path: Path):
    log = log_of(tmp_path, [*FIRST, checkpoint(3), user("two"), checkpoint(4)])
    assert said(log)[-1] == [{"type": "text", "text": "two"}, {"type": "text", "text": NEXT_INPUT}]


def test_tools_and_parameters_are_those_of_the_last_choice(tmp_path: Path):
    log = log_of(tmp_path, FIRST)
    points = kimi.requests(log)
    data = f'{{"messages":[],"model":"moon","prompt_cache_key":"{NAME}","stream":true,"tools":[]}}'.encode()
    calls = [(p, make_body(data, wire.by_name("openai-chat"))) for p in points]
    found = foretold(kimi, log, calls)
    assert list(found) == ["messages", "model", "prompt_cache_key", "stream", "tools"]
    assert found["messages"][-1] == {"role": "user", "content": NEXT_INPUT}
    assert any("tools" in words for words in resumed(kimi, log).unknown)


def test_nothing_is_foretold_where_the_rows_do_not_tell_it(tmp_path: Path):
    homes = (tmp_path / name for name in "abc")
    assert kimi.resume(log_of(next(homes), FIRST[:5]), at_hand()) is None  # a tool call without its result
    assert kimi.resume(log_of(next(homes), [system(), checkpoint(0)]), at_hand()) is None
    told = [*FIRST, checkpoint(3), user("<system>CHECKPOINT 3</system>")]
    assert kimi.resume(log_of(next(homes), told), at_hand()) is None
