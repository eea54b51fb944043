"""The pass before Hermes' compaction walks: the line that stands for a tool's output, and what it takes to be shortened."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.agents.hermes.budget import Message, TailRule
from ctxscope.agents.hermes.pruning import pruned
from ctxscope.agents.hermes.tail import cut_of
from ctxscope.agents.hermes.tool_lines import line_of

OUTPUT = '{"output": "' + "plum\\n" * 50 + '", "exit_code": 3}'
LINES: list[tuple[str, Any, str]] = [
    ("terminal", {"command": "ls"}, "[terminal] ran `ls` -> exit 3, 1 lines output"),
    ("terminal", {"command": "x" * 90}, f"[terminal] ran `{'x' * 77}...` -> exit 3, 1 lines output"),
    ("read_file", {"path": "beds.txt", "offset": 7}, "[read_file] read beds.txt from line 7 (330 chars)"),
    ("write_file", {"path": "b", "content": "one\ntwo"}, "[write_file] wrote to b (2 lines)"),
    ("search_files", {"pattern": "plum"}, "[search_files] content search for 'plum' in . -> ? matches"),
    ("browser_click", {"ref": "@e1"}, "[browser_click] ref=@e1 (330 chars)"),
    ("web_extract", {"urls": [{"url": "https://a"}, "https://b"]}, "[web_extract] https://a (+1 more) (330 chars)"),
    ("execute_code", {"code": "a\nb" + "c" * 90}, f"[execute_code] `a b{'c' * 57}...` (1 lines output)"),
    ("memory", {"action": "add", "target": "user"}, "[memory] add on user"),
    ("dig", {"bed": 4, "deep": True, "left": "out"}, "[dig] bed=4 deep=True (330 chars result)"),
    ("dig", ["no", "object"], "[dig] (330 chars result)"),
]


@pytest.mark.parametrize(("tool", "arguments", "line"), LINES)
def test_a_line_tells_what_was_called_and_how_much_came(tool, arguments, line):
    assert len(OUTPUT) == 330
    assert [line_of(tool, json.dumps(arguments), OUTPUT, old=old) for old in (True, False)] == [line, line]


def test_0_20_keeps_an_answer_and_names_a_long_skill_to_load_again():
    answered, silent = ({"user_response": said} for said in ("the red ones", "[user did not respond within 5m]"))
    assert line_of("clarify", "{}", json.dumps(answered), old=False) == '[clarify] user responded: "the red ones"'
    for old, output in ((True, answered), (False, silent), (False, {"user_response": []})):
        assert line_of("clarify", "{}", json.dumps(output), old=old) == "[clarify] asked user a question"
    long = line_of("clarify", "{}", json.dumps({"user_response": "plum " * 90}), old=False)
    assert len(long) == 199
    assert long.endswith("...[truncated]")
    lines = [
        line_of("skill_view", '{"name": "beds"}', "s" * n, old=old)
        for n, old in ((5001, True), (5000, False), (5001, False))
    ]
    assert [line.endswith("(name='beds')]") for line in lines] == [False, False, True]


def asked(n: int, tool: str, arguments: str, output: Any, said: str = "go on") -> list[dict[str, Any]]:
    call = {"id": f"c{n}", "type": "function", "function": {"name": tool, "arguments": arguments}}
    return [
        {"role": "user", "content": said},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{n}", "content": output},
        {"role": "assistant", "content": "done"},
    ]


def contents(messages: list[Message]) -> list[Any]:
    return [m["content"] for m in messages if m["role"] == "tool"]


LAST = [m for n in range(3) for m in asked(90 + n, "memory", "{}", "short")]


def test_long_arguments_stay_json_with_their_texts_cut_and_others_stay_as_they_are():
    given_arguments = {"path": "beds", "content": "字" * 600, "lines": [1, "x" * 201]}
    for arguments, wanted in (
        (
            json.dumps(given_arguments),
            {"path": "beds", "content": "字" * 200 + "...[truncated]", "lines": [1, "x" * 200 + "...[truncated]"]},
        ),
        ("no json " * 90, None),
        ("[" * 50_000, None),
    ):
        history = [*asked(1, "write_file", arguments, "ok"), *LAST]
        for old in (True, False):
            shown = pruned(history, TailRule(old, 60, 3))[1]["tool_calls"][0]["function"]["arguments"]
            assert shown == (arguments if wanted is None else json.dumps(wanted, ensure_ascii=False))


def test_a_skill_in_use_keeps_its_text_in_0_20_alone():
    body = "skill " * 300
    loaded = asked(1, "skill_view", '{"name": "Beds"}', body)
    for said, kept in (("dig now", False), ("more BEDS please", True)):
        history = [*loaded, *LAST, *LAST[:4], {"role": "user", "content": said}]
        found = [contents(pruned(history, TailRule(old, 60, 3)))[0] == body for old in (True, False)]
        assert found == [False, kept]
    assert contents(pruned([*loaded, *LAST[:4]], TailRule(old=False, budget=60, last=3)))[0] == body  # just loaded


def test_images_of_a_tool_are_taken_out_and_a_line_is_not_shortened_again_by_0_20():
    line = "[dig] all of it (9,999 chars)" + " " * 250
    pictures = [{"type": "text", "text": "seen"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    multi = {"_multimodal": True, "text_summary": "two plums", "content": pictures}
    history = [*asked(1, "dig", "{}", line), *asked(2, "look", "{}", pictures), *asked(3, "look", "{}", multi), *LAST]
    for old in (True, False):
        first, second, third, *_ = contents(pruned(history, TailRule(old, 60, 3)))
        assert (first == line) is not old
        assert second == [pictures[0], {"type": "text", "text": "[screenshot removed to save context]"}]
        assert third == "[screenshot removed] two plums"


def test_the_budget_that_protects_is_of_the_outputs_before_equal_ones_became_references():
    same = "plum " * 120
    history = [m for n in range(8) for m in asked(n, "dig", "{}", same)]
    for old in (True, False):
        shown = contents(pruned(history, TailRule(old, 400, 3)))
        assert shown[-1] == same
        assert set(shown[:-1]) == {"[Duplicate tool output — same content as a more recent call]"}
        left = contents(pruned([*asked(77, "dig", "{}", "bed " * 100), *history[:8]], TailRule(old, 400, 3)))
        assert left[0] == "[dig] (400 chars result)"


def test_empty_messages_behind_the_last_question_are_no_part_of_0_20_s_walk():
    history = [*asked(1, "dig", "{}", "ok"), *asked(2, "dig", "{}", "bed " * 200), *LAST[1:]]
    rule = TailRule(old=False, budget=20, last=3)
    plain = cut_of(history, 4, rule)
    assert plain > 4
    for echo in ("", " ", [{"type": "text", "text": " "}]):
        echoed = [*history[:5], {"role": "user", "content": echo}, *history[5:]]
        assert cut_of(echoed, 4, rule) == plain + 1
        assert cut_of([*history, {"role": "user", "content": echo}], 4, rule) <= len(history)


texts = st.text(max_size=30)
values = st.recursive(
    st.none() | st.booleans() | texts | st.text("xy", min_size=201, max_size=300),
    lambda v: st.lists(v, max_size=2) | st.dictionaries(texts, v, max_size=2),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted({t for t, _, _ in LINES} | {"clarify", "skill_view", "web_extract"})),
    values,
    values,
    st.booleans(),
)
def test_any_arguments_and_outputs_have_a_line_and_a_cut(tool, arguments, output, old):
    spelled = json.dumps(arguments)
    assert line_of(tool, spelled, json.dumps(output), old=old).startswith(f"[{tool}]")
    history = [*asked(1, tool, spelled, json.dumps(output) + " " * 200), *LAST]
    assert 0 < cut_of(history, 0, TailRule(old, 50, 3)) <= len(history)
