"""How much requests think: conversations as their header says, titles not at all, compactions as the adapter does by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxscope.agents import Log, dsh
from ctxscope.model import Point, Value
from tests.dsh_cases import answer, begun, cut, read, rebuilt, sent, three_turns
from tests.samples.dsh_form import SessionLog
from tests.samples.dsh_texts import COMPACTOR
from tests.samples.pi_form import Say

CHAT = "/chat/completions"


def header(log: SessionLog, effort: str, *, taken_over: bool = False) -> None:
    """Another header: an effort that was chosen, or that the adapter's default gave."""
    old = next(r["data"]["header"] for r in log.records if r["type"] == "request/header")
    defaults = {"reasoningEffort": True} if taken_over else {}
    config = {**old["config"], "reasoningEffort": effort}
    log.event(
        4.5, "request/header", {"header": {**old, "config": config, "adapterDefaults": defaults}, "reason": "change"}
    )


def compacted(log: SessionLog, *, summary: bool = True, **more: Any) -> tuple[Log, Point]:
    first = next(r["seq"] for r in log.records if r["type"] == "user/message")
    log.event(5.0, "compaction/start", {"compactionId": "c", "turn": 2})
    if summary:
        log.event(5.1, "compaction/summary", {"summary": [], "shadowedSeqs": [first], "maxTokens": 900, **more})
    log.event(5.2, "compaction/end", {"compactionId": "c", "turn": 2})
    held = read(log)
    return held, next(p for p in dsh.requests(held) if p.kind == "compaction")


def effort_of(request: dict[str, Any]) -> str | None:
    if request.get("thinking") == {"type": "disabled"}:
        return "off"
    found: str | None = request.get("reasoning_effort") or request.get("output_config", {}).get("effort")
    return found


def served(held: Log, point: Point, **changed: Any) -> bytes:
    """A body as it would be, with an instruction and some members as given; ``None`` takes one away."""
    value = {**sent(held, point), **changed}
    value["messages"] = [*value["messages"], {"role": "user", "content": COMPACTOR}]
    kept = {k: v for k, v in value.items() if v is not None}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_compaction_thinks_as_the_adapter_does_by_itself_whatever_was_chosen_since(version: int) -> None:
    log, _ = three_turns(version)
    header(log, "off")
    held, point = compacted(log)
    assert effort_of(sent(held, point)) == "high"
    assert effort_of(sent(held, dsh.requests(held)[-1])) == "off"


def test_of_headers_that_took_the_default_over_the_newest_tells_it() -> None:
    log, _ = three_turns()
    header(log, "low", taken_over=True)
    header(log, "max")
    held, point = compacted(log)
    made = rebuilt(held, point)
    assert effort_of(json.loads(made.data)) == "low"
    (piece,) = (p for p in made.pieces if p.data == b'"low"')
    assert (piece.provenance, piece.place.at) == ("logged", f"line {len(log.records) - 3}")


def test_a_model_that_does_not_reason_is_asked_for_no_thinking() -> None:
    log, _ = three_turns()
    del log.records[-1]["data"]["content"][0]["text"]  # any record: what counts is the header
    for record in log.records:
        if record["type"] == "request/header":
            del record["data"]["header"]["config"]["reasoningEffort"]
            record["data"]["header"]["adapterDefaults"] = {}
    held, point = compacted(log)
    assert "thinking" not in sent(held, point)


def chosen_only(version: int = 0) -> SessionLog:
    """A log whose headers all have an effort that was chosen."""
    log, _ = three_turns(version)
    for record in log.records:
        if record["type"] == "request/header":
            record["data"]["header"]["config"]["reasoningEffort"] = "max"
            record["data"]["header"]["adapterDefaults"] = {}
    return log


def test_without_such_a_header_the_usual_one_holds_and_another_is_learned() -> None:
    held, point = compacted(chosen_only())
    assert effort_of(sent(held, point)) == "high"
    data = served(held, point, reasoning_effort="low")
    learned = dsh.learn(held, point, cut(data, CHAT), _none())
    assert learned.values["/thinking"] == Value(b"low", "echoed")
    made = rebuilt(held, point, learned)
    assert {(p.path, p.provenance) for p in made.pieces if p.path.startswith(("/thinking", "/reasoning"))} == {
        ("/thinking", "echoed"),
        ("/reasoning_effort", "echoed"),
    }
    assert effort_of(json.loads(made.data)) == "low"


def test_a_default_that_the_log_tells_is_never_learned() -> None:
    log, _ = three_turns(0)
    header(log, "max")
    held, point = compacted(log)
    learned = dsh.learn(held, point, cut(served(held, point, reasoning_effort="low"), CHAT), _none())
    assert "/thinking" not in learned.values
    assert effort_of(json.loads(rebuilt(held, point, learned).data)) == "high"


def test_a_process_may_ask_for_compactions_as_for_the_conversation() -> None:
    log, _ = three_turns(0)
    header(log, "max")
    held, point = compacted(log)
    learned = dsh.learn(held, point, cut(served(held, point, reasoning_effort="max"), CHAT), _none())
    assert "the process asks for a compaction with the effort of the conversation" in learned.hypotheses
    assert effort_of(json.loads(rebuilt(held, point, learned).data)) == "max"


def test_a_summary_tells_which_model_made_it() -> None:
    log, _ = three_turns()
    held, point = compacted(log, provider="deepseek-official", model="deepseek-v4-pro")
    made = rebuilt(held, point)
    assert json.loads(made.data)["model"] == "deepseek-v4-pro"
    (piece,) = (p for p in made.pieces if p.data == b'"deepseek-v4-pro"')
    assert piece.place == point.answer.place
    assert dsh.endpoint(held, point).model == "deepseek-v4-pro"


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_title_is_asked_for_without_thinking_where_its_record_says_nothing_of_it(version: int) -> None:
    log = begun(version)
    block = {"content": [{"type": "text", "text": "Generate the session title from this JSON array: []"}]}
    route = {"provider": "deepseek-official", "model": "small"}
    log.event(1.1, "session/title-llm-request", {"route": route, "messages": [block], "maxTokens": 64})
    held = read(log)
    (title,) = (p for p in dsh.requests(held) if p.kind == "side")
    assert sent(held, title)["thinking"] == {"type": "disabled"}
    assert "reasoning_effort" not in sent(held, title)


def test_a_process_may_say_nothing_where_it_does_not_think() -> None:
    log = begun(3)
    log.records[-1]["data"]["header"]["config"]["reasoningEffort"] = "off"
    answer(log, Say("one"))
    held = read(log)
    (point,) = dsh.requests(held)
    value = {k: v for k, v in sent(held, point).items() if k != "thinking"}
    learned = dsh.learn(held, point, cut(json.dumps(value), CHAT), _none())
    assert learned.hypotheses == ("the process asks for no thinking by saying nothing of it",)
    assert json.loads(rebuilt(held, point, learned).data) == value


def test_chat_carries_what_else_a_config_sets() -> None:
    log = begun(0)
    log.records[-1]["data"]["header"]["config"] |= {"temperature": 0.5, "stop": ["END"]}
    assert list(sent(read(log)))[-4:] == ["tools", "temperature", "max_tokens", "stop"]


def test_reasoning_without_text_is_not_sent_in_chat() -> None:
    log = begun(0)
    content = [{"type": "reasoning", "text": ""}, {"type": "text", "text": "so"}]
    log.event(2.0, "assistant/message", {"message": {"role": "assistant", "content": content}}, surfaceOp="append")
    log.step(3.0, 1, 2)
    assert sent(read(log))["messages"][-1] == {"role": "assistant", "content": "so"}


def test_a_message_is_its_role_s_whatever_record_it_stands_in() -> None:
    for version in (0, 4):
        log = begun(version)
        content = [{"type": "text", "text": "so"}]
        log.event(2.0, "assistant/message", {"message": {"role": "user", "content": content}}, surfaceOp="append")
        log.step(3.0, 1, 2)
        assert sent(read(log))["messages"][-1]["role"] == "user"


def _none() -> Any:
    from ctxscope.agents import at_hand  # noqa: PLC0415 - used by what learns alone

    return at_hand(())
