"""Anthropic's API: prefixes that changed, and changes that are none (reference §2.2, §6, §12)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.planted.changes import billing_elsewhere, changed, summarized, volatile
from tests.planted.changes_params import Setting, settings
from tests.planted.dialects import JSON
from tests.planted.families import anthropic, stranger_messages
from tests.planted.messages_api import HOUR
from tests.planted.shapes import ANY, Transition
from tests.planted.texts import BILLING, picture, prose, system_text

_FAST = "fast-mode-2026-02-01"


def image(shade: int) -> JSON:
    """A picture as a block."""
    source = {"type": "base64", "media_type": "image/png", "data": picture(shade)}
    return {"type": "image", "source": source}


def _shows_image(body: JSON) -> None:
    last = body["messages"][-1]["content"]
    mark = last[-1].pop("cache_control")
    last.append(image(120) | {"cache_control": mark})


def _web_search(body: JSON) -> None:
    body["tools"].append({"type": "web_search_20250305", "name": "web_search"})


_THINK = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
_EDITS = {"edits": [{"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 150_000}}]}
_FORMAT = {"type": "json_schema", "schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}}}
PARAMS: tuple[Setting, ...] = (
    Setting(
        "tool_choice",
        "param_changed:tool_choice",
        {},
        {"tool_choice": {"type": "any"}},
        "§2.2: tool_choice invalidates messages, not tools and system",
    ),
    Setting(
        "disable_parallel",
        "param_changed:disable_parallel_tool_use",
        {"tool_choice": {"type": "auto"}},
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        "§2.2: disable_parallel_tool_use invalidates messages",
        ("param_changed:tool_choice",),
    ),
    Setting(
        "thinking_budget",
        "param_changed:thinking",
        _THINK,
        {"thinking": {"type": "enabled", "budget_tokens": 6000}},
        "§2.2: thinking budget_tokens invalidates messages, tools and system by model",
        open_read=True,
    ),
    Setting(
        "thinking_off",
        "param_changed:thinking",
        _THINK,
        {"thinking": {"type": "disabled"}},
        "§2.2: thinking mode invalidates messages, tools and system by model",
        open_read=True,
    ),
    Setting(
        "effort",
        "param_changed:effort",
        {"output_config": {"effort": "medium"}},
        {"output_config": {"effort": "low"}},
        "§2.2: output_config.effort invalidates messages, tools and system by model",
        open_read=True,
    ),
    Setting(
        "betas",
        "param_changed:betas",
        {},
        {},
        "§2.2: the set of active anthropic-beta headers is prompt-affecting by diagnostics",
        headers=(
            {"anthropic-beta": "files-api-2025-04-14"},
            {"anthropic-beta": "files-api-2025-04-14,mcp-client-2026"},
        ),
        open_read=True,
    ),
    Setting(
        "context_management",
        "param_changed:context_management",
        {},
        {"context_management": _EDITS},
        "§2.2: context_management is prompt-affecting by diagnostics",
        open_read=True,
    ),
    Setting(
        "output_format",
        "param_changed:format",
        {},
        {"output_format": _FORMAT},
        "§2.2: output_format is prompt-affecting by diagnostics",
        open_read=True,
    ),
    Setting(
        "speed",
        "model_changed",
        {},
        {"speed": "fast"},
        "§2.2: speed keeps tools only, but sources contradict each other about it; C02 counts it as the model",
        ("param_changed:speed", "param_changed:betas"),
        headers=({}, {"anthropic-beta": _FAST}),
        confidence=ANY,
        open_read=True,
    ),
    Setting(
        "images_appear",
        "param_changed:images",
        {},
        {},
        "§2.2: images present or absent anywhere invalidates messages, though the body only grew",
        change=_shows_image,
    ),
    Setting(
        "web_search",
        "tool_added",
        {},
        {},
        "§2.2: the web search toggle keeps tools only; §12 C05, C10 web tools",
        ("param_changed:web_search",),
        change=_web_search,
    ),
    Setting(
        "thinking_display",
        None,
        {"thinking": {"type": "adaptive", "display": "summarized"}},
        {"thinking": {"type": "adaptive", "display": "omitted"}},
        "§2.2: display may change freely",
    ),
    Setting(
        "benign_sampling",
        None,
        {"temperature": 1.0, "stop_sequences": ["STOP"]},
        {"temperature": 0.2, "top_p": 0.9, "stop_sequences": ["HALT"], "max_tokens": 2000},
        "§2.2: max_tokens, temperature, top_p, stop_sequences are benign",
    ),
    Setting(
        "benign_metadata",
        None,
        {"metadata": {"user_id": "one"}},
        {"metadata": {"user_id": "two"}, "service_tier": "standard_only", "stream": False},
        "§2.2: metadata, service_tier, stream are benign for Anthropic",
    ),
)


def transitions() -> Iterator[Transition]:
    yield from changed("anthropic", anthropic)
    yield from volatile("anthropic", anthropic)
    yield from settings("anthropic", anthropic, PARAMS)
    yield summarized("anthropic", anthropic)
    yield _billing_at_home()
    yield billing_elsewhere("third_party_messages", stranger_messages)
    yield from _media()
    yield _reasoning_stripped()
    yield _input_keys()
    yield _behind_the_mark()
    yield _partial()
    yield _benign_spelling()
    yield _mark_moved()
    yield _head_only()


def _billing_at_home() -> Transition:
    tape = anthropic()
    tape.system = system_text(BILLING[0])
    body = tape.begin()
    home = tape.dialect.prompt(body, {})
    tape.dialect.set_system(body, system_text(BILLING[1]))
    assert len(home.body) == len(tape.dialect.prompt(body, {}).body), "the checksum has a fixed length"
    shown = tape.grown(tape.calls[-1], 2)
    call = tape.ask(body, rendered=shown)
    tape.note(tape.warm(call, 3))
    return tape.done(
        "anthropic/billing_header", "§12 C04: cch kills third-party servers; Anthropic's own API handles it"
    )


def _media() -> Iterator[Transition]:
    for name, cause, others in (
        ("image_stripped", "image_stripped", ("media_changed", "param_changed:images")),
        ("media_changed", "media_changed", ("image_stripped", "history_rewritten")),
    ):
        tape = anthropic()
        opening = tape.opening()
        opening["messages"][0]["content"].insert(0, image(90))
        body = tape.begin(body=opening)
        block = {"type": "text", "text": "[image removed]"} if name == "image_stripped" else image(201)
        body["messages"][0]["content"][0] = block
        call = tape.ask(body)
        tape.note(tape.broken(call, cause, "/messages/0", *others))
        yield tape.done(f"anthropic/{name}", "§12 C16: image block replaced by text, or its bytes differ")


def _reasoning_stripped() -> Transition:
    tape = anthropic()
    tape.thinking = True
    body = tape.begin()
    blocks = body["messages"][1]["content"]
    assert blocks.pop(0)["type"] == "thinking"
    call = tape.ask(body)
    tape.note(tape.broken(call, "reasoning_stripped_client", "/messages/1"))
    return tape.done("anthropic/reasoning_stripped_client", "§12 C17: a thinking block of body n-1 is absent in n")


def _input_keys() -> Transition:
    tape = anthropic()
    body = tape.begin()
    block = body["messages"][1]["content"][-1]
    block["input"] = dict(reversed(block["input"].items()))
    call = tape.ask(body)
    others = ("history_rewritten", "json_serialisation_drift")
    tape.note(tape.broken(call, "assistant_echo_mismatch", "/messages/1", *others))
    return tape.done(
        "anthropic/tool_input_keys", "§6: key order in tool_use.input is visible; §12 C19 re-serialised args"
    )


def _behind_the_mark() -> Transition:
    """A reminder behind the last mark is another in each call."""
    tape = anthropic()
    body = tape.opening()
    for turn in range(4):
        sent = tape.dialect.grow(body, tape.calls[-1].answer, _word(turn)) if turn else body
        body = sent
        reminded = {**body, "messages": [dict(m) for m in body["messages"]]}
        last = reminded["messages"][-1]
        last["content"] = [*last["content"], {"type": "text", "text": f"Reminder {turn}: {prose(f'note {turn}', 200)}"}]
        call = tape.ask(reminded)
        tape.note(tape.cold(call) if turn == 0 else tape.warm(call, turn))
    return tape.done("anthropic/behind_the_mark", "DESIGN 2: text after the last boundary was never cached; §2.1")


def _word(turn: int) -> str:
    return prose(f"words {turn}", 900)


def _partial() -> Transition:
    """The head's mark lives for an hour and is read; the messages behind it are rewritten."""
    tape = anthropic(head=HOUR)
    body = tape.begin()
    tape.dialect.set_text(body["messages"][0], prose("a different start", 1400))
    call = tape.ask(body)
    assert call.counted.read
    tape.note(tape.broken(call, "history_rewritten", "/messages/0"))
    return tape.done(
        "anthropic/partial_loss", "§12: P inside the messages leaves the head readable; read != 0 is no proof"
    )


def _benign_spelling() -> Transition:
    tape = anthropic()
    body = tape.begin()
    body = {key: body[key] for key in reversed(body)}
    for message in body["messages"][:-1]:
        if len(message["content"]) == 1 and message["content"][0].keys() == {"type", "text"}:
            message["content"] = message["content"][0]["text"]
    call = tape.ask(body)
    tape.note(tape.warm(call, 3))
    return tape.done("anthropic/benign_spelling", "§6: top-level key order, string against one text block are benign")


def _mark_moved() -> Transition:
    """An older mark stays where it was while a new one is set behind: nothing moves in the prefix."""
    tape = anthropic()
    body = tape.begin()
    body["messages"][4]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    call = tape.ask(body)
    tape.note(tape.warm(call, 3))
    return tape.done("anthropic/second_mark", "§2.1: cache_control is not part of the hash")


def _head_only() -> Transition:
    """Another task with the same tools and system: it reads the head, and costs nothing."""
    tape = anthropic()
    tape.begin(2)
    call = tape.ask(tape.opening("other task"), seed="other task", turn=0)
    tape.note(tape.warm(call))
    return tape.done("anthropic/shares_head_only", "DESIGN 2: another task that shares only the head is no break")
