"""Usage of a stream that broke off: what was written is known when it ends, and unknown before."""

from __future__ import annotations

import json

import pytest

from ctxscope.model import Usage
from ctxscope.wire import by_name

ANTHROPIC, CHAT, GEMINI = (by_name(name) for name in ("anthropic-messages", "openai-chat", "gemini"))
START = {
    "input_tokens": 4,
    "cache_read_input_tokens": 10,
    "output_tokens": 1,
    "output_tokens_details": {"thinking_tokens": 7},
}
"""A placeholder of 1 token of output, said before there is any."""


def stream(*values: object) -> bytes:
    return "".join(f"data: {json.dumps(v)}\n\n" for v in values).encode()


def message(usage: dict[str, object]) -> list[object]:
    block = {"type": "text", "text": ""}
    return [
        {"type": "message_start", "message": {"id": "msg_1", "content": [], "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "so"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 30}},
        {"type": "message_stop"},
    ]


@pytest.mark.parametrize(
    ("events", "usage"),
    [
        (1, Usage(4, 10, None, None, None)),
        (3, Usage(4, 10, None, None, None)),
        (4, Usage(4, 10, None, 30, None)),
        (5, Usage(4, 10, None, 30, 7)),
    ],
)
def test_the_placeholder_of_a_message_is_not_what_was_written(events, usage):
    assert ANTHROPIC.reply(stream(*message(START)[:events]), {}).usage == usage


def test_a_message_that_counts_only_at_its_start_is_believed_once_it_ended():
    first, *_, last = message(START)
    assert ANTHROPIC.reply(stream(first, last), {}).usage == Usage(4, 10, None, 1, 7)
    assert ANTHROPIC.reply(stream(first, {"type": "error", "error": {"message": "overloaded"}}), {}).usage == (
        Usage(4, 10, None, None, None)
    )


@pytest.mark.parametrize("reason", [None, "STOP"])
def test_a_chunk_counts_only_so_far(reason):
    counted = {"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}
    candidate = {"content": {"parts": [{"text": "so"}]}, **({"finishReason": reason} if reason else {})}
    found = GEMINI.reply(stream({"candidates": [candidate], "usageMetadata": counted}), {})
    assert found.complete is bool(reason)
    assert found.usage == (Usage(9, 0, None, 5, 3) if reason else Usage(9, 0, None, None, None))


@pytest.mark.parametrize("reason", [None, "stop"])
def test_a_chat_chunk_counts_only_so_far(reason):
    counted = {"prompt_tokens": 9, "completion_tokens": 2}
    choice = {"index": 0, "delta": {"content": "so"}, "finish_reason": reason}
    found = CHAT.reply(stream({"id": "c", "choices": [choice], "usage": counted}), {})
    assert found.usage == Usage(9, None, None, 2 if reason else None, None)
