"""Usage that cannot be: parts that come to more than the whole are cut to it, and that is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxscope import wire
from ctxscope.model import Reply, Usage


def chat(usage: dict[str, Any]) -> Reply:
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": "a"}}
    return wire.by_name("openai-chat").reply(json.dumps({"id": "x", "choices": [choice], "usage": usage}).encode(), {})


def responses(usage: dict[str, Any]) -> Reply:
    told = {"id": "x", "status": "completed", "output": [], "usage": usage}
    return wire.by_name("openai-responses").reply(json.dumps(told).encode(), {})


@pytest.mark.parametrize(
    ("total", "read", "written", "usage"),
    [
        (1000, 900, 900, Usage(0, 900, 100, 1)),
        (1000, 1200, None, Usage(0, 1000, None, 1)),
        (1000, 1200, 50, Usage(0, 1000, 0, 1)),
        (1000, 900, 100, Usage(0, 900, 100, 1)),
        (1000, 400, None, Usage(600, 400, None, 1)),
    ],
)
def test_parts_are_never_more_than_the_prompt(total, read, written, usage):
    details = {k: v for k, v in (("cached_tokens", read), ("cache_write_tokens", written)) if v is not None}
    doubted = (read or 0) + (written or 0) > total
    for reply in (
        chat({"prompt_tokens": total, "completion_tokens": 1, "prompt_tokens_details": details}),
        responses({"input_tokens": total, "output_tokens": 1, "input_tokens_details": details}),
    ):
        assert reply.usage == usage
        assert reply.usage.reported == total
        assert bool(reply.doubts) is doubted
        assert all("1000 of the prompt" in told for told in reply.doubts)
