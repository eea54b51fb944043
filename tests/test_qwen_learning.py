"""What Qwen Code's log does not hold, taken from served bodies: the head, the environment, and who made a call."""

from __future__ import annotations

import json

from ctxscope import wire
from ctxscope.agents import qwen
from ctxscope.model import Body, Config, Difference, Learned, Rebuilt
from ctxscope.wire.body import make_body
from tests.qwen_cases import ENVIRONMENT, THANKS, Chat, body_of, call, content, learned_for, messages, rebuilt, result


def user(text: str) -> dict:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def assistant(text: str) -> dict:
    return {"role": "assistant", "content": text}


SUMMED = [user("short"), assistant(THANKS)]


def two_turns() -> Chat:
    chat = Chat()
    chat.user("look")
    chat.answer("Seen.")
    chat.user("again")
    chat.answer("Yes.")
    return chat


def borrowed(made: Rebuilt) -> dict[str, str]:
    return {p.path: p.provenance for p in made.pieces if p.provenance in ("learned", "echoed")}


def test_head_and_environment_are_echoed_once_and_learned_from_then_on() -> None:
    bodies = [body_of([user("look")]), body_of([user("look"), assistant("Seen."), user("again")])]
    made = rebuilt(two_turns(), bodies)
    assert [m.data for _, m in made] == [b.data for b in bodies]
    paths = ["/messages/0", "/messages/1", "/tools", "/max_tokens"]
    assert borrowed(made[0][1]) == dict.fromkeys(paths, "echoed")
    assert borrowed(made[1][1]) == dict.fromkeys(paths, "learned")


def test_another_environment_than_before_is_a_difference_and_named() -> None:
    other = json.loads(json.dumps(ENVIRONMENT).replace("A port.", "A harbour."))
    second = body_of([*other, user("look"), assistant("Seen."), user("again")], environment=False)
    made = rebuilt(two_turns(), [body_of([user("look")]), second])
    assert made[1][1].data != second.data
    log = two_turns().log()
    difference = Difference(0, 0, None, "/messages/1/content/0/text", "content", "", "", "")
    told = qwen.explain(log, qwen.requests(log)[1], difference, made[1][0])
    assert told is not None
    assert "starts anew" in told


def test_a_process_without_an_environment_message_is_taken_as_it_is() -> None:
    bodies = [
        body_of([user("look")], environment=False),
        body_of([user("look"), assistant("Seen."), user("again")], environment=False),
    ]
    assert [m.data for _, m in rebuilt(two_turns(), bodies)] == [b.data for b in bodies]


def compressed() -> Chat:
    """A compression while a result waits, its line written late; then two turns."""
    chat = Chat()
    chat.user("look")
    chat.answer(call("c1"))
    chat.result("c1")
    late = [content("user", result("c1")), content("model", "Seen.")]
    chat.compressed(content("user", "short"), content("model", THANKS), content("model", call("c1")), *late)
    chat.answer("Seen.")
    chat.user("again")
    chat.answer("Yes.")
    chat.user("third")
    chat.answer("No.")
    return chat


CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}
GIVEN = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "seen"}]}
MERGED = {**CALLED, "content": THANKS}
"""Thanks and the kept call stand side by side: one answer."""
LIVE = [user("short"), MERGED, GIVEN]
SUMMARY = user("First, reason in your scratchpad. Then, generate the <state_snapshot>.")


def served(*, anew: bool) -> list[Body]:
    asked = json.loads(body_of([user("look"), SUMMARY]).data)["messages"][1:]
    value = {"model": "m-1", "messages": [{"role": "system", "content": "Sum up."}, *asked], "max_tokens": 8000}
    summary = make_body(json.dumps(value, separators=(",", ":")).encode(), wire.by_name("openai-chat"))
    twice = assistant("Seen.Seen.") if anew else assistant("Seen.")
    then = [*LIVE, twice, user("again")]
    return [
        body_of([user("look")]),
        summary,
        body_of(LIVE, environment=False),
        body_of(then, environment=anew),
        body_of([*then, assistant("Yes."), user("third")], environment=anew),
    ]


def test_the_process_that_compressed_goes_on_without_the_environment() -> None:
    made = rebuilt(compressed(), served(anew=False))
    assert [m.data for _, m in made] == [b.data for b in served(anew=False)]
    assert not any(learned.hypotheses for learned, _ in made)


def test_a_process_that_starts_anew_has_it_again_and_the_late_answer_twice() -> None:
    made = rebuilt(compressed(), served(anew=True))
    assert [m.data for _, m in made] == [b.data for b in served(anew=True)]
    told = [learned.hypotheses for learned, _ in made]
    assert told[:3] == [(), (), ()]
    assert told[3] == told[4] != ()
    assert "line 7" in told[3][0]
    assert borrowed(made[3][1])["/messages/1"] == "learned"


def test_a_process_cannot_start_anew_twice_or_in_the_middle_of_a_turn() -> None:
    bodies = served(anew=True)
    bodies[4] = served(anew=False)[4]
    made = rebuilt(compressed(), bodies)
    assert [m.data == b.data for (_, m), b in zip(made, bodies, strict=True)] == [True, True, True, True, False]


def test_the_same_calls_teach_the_same_whatever_was_asked_before() -> None:
    log, bodies = compressed().log(), served(anew=True)
    pairs = list(zip(qwen.requests(log), bodies, strict=True))
    in_order = [qwen.rebuild(log, pairs[n][0], Config(), learned_for(log, pairs[: n + 1])).pieces for n in range(5)]
    for n in (4, 0, 3, 1, 2, 4):
        assert qwen.rebuild(log, pairs[n][0], Config(), learned_for(log, pairs[: n + 1])).pieces == in_order[n]


def test_without_a_recording_the_conversation_alone_is_rebuilt_and_that_is_said() -> None:
    log = two_turns().log()
    point = qwen.requests(log)[1]
    made = qwen.rebuild(log, point, Config(), Learned())
    assert made is not None
    assert json.loads(made.data).keys() == {"model", "messages", "stream", "stream_options"}
    assert messages(log, point) == [user("look"), assistant("Seen."), user("again")]
    assert "recording" in made.notices[0]


def test_kinds_of_requests_are_told_by_fixed_texts() -> None:
    bare = {"tools": []}
    assert qwen.classify(body_of([user("look")])) == "main"
    assert qwen.classify(body_of([user("look"), SUMMARY], **bare)) == "compaction"
    assert qwen.classify(body_of([user("Generate the session title now. Short.")], **bare)) == "side"
    remember = user("Managed memory directory: `/m`\n\nScan")
    assert qwen.classify(body_of([user("look"), remember, CALLED, GIVEN])) == "side"
    assert qwen.classify(body_of([user("look")], **bare)) is None


def test_causes_it_is_known_for_are_named() -> None:
    log = two_turns().log()
    point = qwen.requests(log)[1]

    def cause(served: str, path: str = "/messages/3/content/0/text", cls: str = "content") -> str:
        return qwen.explain(log, point, Difference(0, 0, None, path, cls, "", served, ""), Learned()) or ""

    assert "idle hour" in cause("[Old tool result content cleared]")
    assert "reminder" in cause("<system-reminder>\nplan")
    assert "spaces" in cause(" x", cls="whitespace")
    assert cause("something else") == ""
