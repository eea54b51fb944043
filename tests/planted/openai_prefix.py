"""OpenAI: prefixes that changed, in each family of models and both APIs (reference §3.1, §6, §12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.planted.changes import Family, changed, summarized, volatile
from tests.planted.changes_params import Setting, settings
from tests.planted.dialects import JSON
from tests.planted.families import gpt54_chat, gpt54_responses, gpt55, gpt56_chat, gpt56_responses
from tests.planted.shapes import ANY, LIKELY, SURE, Transition
from tests.planted.texts import picture

_FORMAT = {
    "type": "json_schema",
    "name": "note",
    "schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
}
RESPONSES: tuple[Setting, ...] = (
    Setting(
        "effort",
        "param_changed:effort",
        {"reasoning": {"effort": "medium"}},
        {"reasoning": {"effort": "high"}},
        "§3.1: reasoning.effort changes the rendered prefix",
    ),
    Setting(
        "verbosity",
        "param_changed:verbosity",
        {"text": {"verbosity": "medium"}},
        {"text": {"verbosity": "low"}},
        "§3.1: text.verbosity changes the rendered prefix",
    ),
    Setting(
        "format",
        "param_changed:format",
        {},
        {"text": {"format": _FORMAT}},
        "§3.1: text.format schema changes the rendered prefix",
    ),
    Setting(
        "parallel_tool_calls",
        "param_changed:parallel_tool_calls",
        {"parallel_tool_calls": True},
        {"parallel_tool_calls": False},
        "§3.1: parallel_tool_calls changes the rendered prefix",
    ),
    Setting(
        "service_tier",
        "param_changed:service_tier",
        {"service_tier": "default"},
        {"service_tier": "priority"},
        "§3.1: diagnostics treats service_tier as a miss; §13 conflicts",
        confidence=ANY,
        also=frozenset({"miss"}),
    ),
    Setting(
        "tool_choice_none",
        None,
        {"tool_choice": "auto"},
        {"tool_choice": "none"},
        "§3.1: tool_choice none is not prefix-visible",
    ),
    Setting(
        "allowed_tools",
        None,
        {},
        {
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "chart_read"}],
            }
        },
        "§3.1: allowed_tools is recommended because the prefix stays",
    ),
    Setting(
        "benign",
        None,
        {"metadata": {"run": "1"}, "safety_identifier": "a"},
        {"metadata": {"run": "2"}, "safety_identifier": "b", "max_output_tokens": 900, "temperature": 0.3},
        "§3.1: metadata, max_output_tokens, temperature, safety_identifier are not prefix-visible",
    ),
)
CHAT: tuple[Setting, ...] = (
    Setting(
        "effort",
        "param_changed:effort",
        {"reasoning_effort": "medium"},
        {"reasoning_effort": "low"},
        "§3.1: reasoning effort changes the rendered prefix",
    ),
    Setting(
        "verbosity",
        "param_changed:verbosity",
        {"verbosity": "medium"},
        {"verbosity": "high"},
        "§3.1: verbosity changes the rendered prefix",
    ),
    Setting(
        "format",
        "param_changed:format",
        {},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "note", "schema": _FORMAT["schema"]}}},
        "§3.1: response_format schema changes the rendered prefix",
    ),
    Setting(
        "parallel_tool_calls",
        "param_changed:parallel_tool_calls",
        {"parallel_tool_calls": True},
        {"parallel_tool_calls": False},
        "§3.1: parallel_tool_calls changes the rendered prefix",
    ),
    Setting(
        "tool_choice_none",
        None,
        {"tool_choice": "auto"},
        {"tool_choice": "none", "seed": 7, "max_completion_tokens": 800},
        "§3.1: tool_choice none, max tokens are not prefix-visible",
    ),
)


def transitions() -> Iterator[Transition]:
    for prefix, family, table in (
        ("gpt-5.6/responses", gpt56_responses, RESPONSES),
        ("gpt-5.6/chat", gpt56_chat, CHAT),
        ("gpt-5.4/chat", gpt54_chat, CHAT),
        ("gpt-5.5/responses", gpt55, RESPONSES),
    ):
        yield from changed(prefix, family)
        yield from settings(prefix, family, table)
    yield from volatile("gpt-5.6/responses", gpt56_responses)
    yield from volatile("gpt-5.6/chat", gpt56_chat, "clock", "uuid")
    yield from volatile("gpt-5.5/responses", gpt55, "clock")
    yield from volatile("gpt-5.4/chat", gpt54_chat, "clock", "cwd")
    yield from changed(
        "gpt-5.4/responses",
        gpt54_responses,
        *("system_grew", "tool_description", "history_rewritten_first", "tool_removed", "message_removed"),
    )
    yield summarized("gpt-5.6/responses", gpt56_responses)
    yield from _media()
    yield from _reasoning()
    yield from _arguments()
    yield _benign_spelling("gpt-5.6/responses", gpt56_responses)
    yield _benign_spelling("gpt-5.4/chat", gpt54_chat)
    yield _compaction_item()
    yield _continued()
    yield _continued_from_nowhere()


def _media() -> Iterator[Transition]:
    for name, others in (
        ("media_changed", ("image_stripped", "history_rewritten")),
        ("image_stripped", ("media_changed",)),
    ):
        tape = gpt56_responses()
        opening = tape.opening()
        shown = {"type": "input_image", "image_url": f"data:image/png;base64,{picture(90)}", "detail": "high"}
        opening["input"][0]["content"].append(shown)
        body = tape.begin(body=opening)
        other = shown | {"image_url": f"data:image/png;base64,{picture(33)}"}
        gone = {"type": "input_text", "text": "[image removed]"}
        body["input"][0]["content"][1] = other if name == "media_changed" else gone
        call = tape.ask(body)
        tape.note(tape.broken(call, name, "/input/0", *others))
        yield tape.done(f"gpt-5.6/responses/{name}", "§3.1: images must be identical; §12 C16")


def _reasoning() -> Iterator[Transition]:
    tape = gpt56_responses()
    tape.thinking = True
    body = tape.begin()
    assert body["input"].pop(1)["type"] == "reasoning"
    call = tape.ask(body)
    tape.note(tape.broken(call, "reasoning_stripped_client", "/input/1"))
    yield tape.done("gpt-5.6/responses/reasoning_stripped_client", "§8: all_turns by default; §12 C17")
    for family, prefix in ((gpt54_responses, "gpt-5.4/responses"), (gpt55, "gpt-5.5/responses")):
        tape = family()
        tape.thinking = True
        tape.tools = (*tape.tools, "tide_log", "fog_log", "buoy_log", "pier_log", "dock_log")
        body = tape.begin(2)  # a turn with a tool, whose reasoning is shown until the user speaks again
        call = tape.ask(body, turn=2)
        told = tape.broken(call, "reasoning_stripped_server", "/input/1", confidence=SURE | LIKELY)
        tape.note(replace(told, expected_read=None))
        yield tape.done(f"{prefix}/reasoning_stripped_server", "§8: reasoning.context current_turn before gpt-5.6; C18")


def _arguments() -> Iterator[Transition]:
    """The arguments of an old call, spelt in another way: a string inside the body is prefix."""
    others = ("history_rewritten", "json_serialisation_drift")
    tape = gpt56_chat()
    body = tape.begin()
    function = body["messages"][2]["tool_calls"][0]["function"]
    function["arguments"] = function["arguments"].replace(": ", ":").replace(", ", ",")
    call = tape.ask(body)
    tape.note(tape.broken(call, "assistant_echo_mismatch", "/messages/2", *others))
    yield tape.done("gpt-5.6/chat/arguments_whitespace", "§0.5, §6: whitespace inside the arguments string is visible")
    tape = gpt56_responses()
    body = tape.begin()
    body["input"][1]["arguments"] = body["input"][1]["arguments"].replace("é", "\\u00e9")
    call = tape.ask(body)
    tape.note(tape.broken(call, "assistant_echo_mismatch", "/input/1", *others))
    yield tape.done("gpt-5.6/responses/arguments_escapes", "§0.5, §6: escapes inside the arguments string are visible")


def _benign_spelling(prefix: str, family: Family) -> Transition:
    tape = family()
    body = tape.begin()
    call = tape.ask({key: body[key] for key in reversed(body)})
    tape.note(tape.warm(call, 3))
    return tape.done(f"{prefix}/benign_key_order", "§6: top-level key order is benign for OpenAI")


def _compaction_item() -> Transition:
    """The window that ``/responses/compact`` gave: the user's messages and one opaque item."""
    tape = gpt56_responses()
    body = tape.begin()
    users = [item for item in body["input"] if item.get("role") == "user"]
    sealed = {"type": "compaction", "id": "cmp_01", "encrypted_content": "c2VhbGVk" * 60}
    body["input"] = [*users, sealed, tape.dialect.user("Go on with the second pier.")]
    call = tape.ask(body)
    tape.note(tape.broken(call, "compaction", "/input/1"))
    return tape.done("gpt-5.6/responses/compaction_item", "§9 /responses/compact; §12 C14: compaction item appears")


def _continued() -> Transition:
    """The fourth body carries only what is new, behind the third response."""
    tape = gpt56_responses()
    body = tape.begin(3, tape.opening() | {"store": True})
    short: JSON = body | {"input": body["input"][-1:], "previous_response_id": _response_id(3)}
    call = tape.ask(short, rendered=body)
    tape.note(tape.warm(call, 3))
    return tape.done(
        "gpt-5.6/responses/continued", "§9 previous_response_id: history not in the body, yet in the prompt"
    )


def _continued_from_nowhere() -> Transition:
    tape = gpt56_responses()
    first = tape.ask(tape.opening())
    tape.note(tape.cold(first))
    news = [tape.dialect.user("And the other pier?")]
    short: JSON = tape.opening() | {"input": news, "previous_response_id": "resp_ffffffffffffffffffffffff"}
    call = tape.ask(short)
    told = tape.broken(call, None, None, confidence=ANY)
    tape.note(replace(told, verdict="unknown", parent=None, expected_read=None, lost=None))
    return tape.done(
        "gpt-5.6/responses/continued_from_nowhere", "DESIGN 2: a missing earlier one is unknown, not a break"
    )


def _response_id(n: int) -> str:
    return "resp_" + f"openai{n:02d}main".encode().hex()[:24]
