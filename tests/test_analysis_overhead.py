"""What a provider says it adds to a request: a part of its own, never in the visible text, and none where nothing is said."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope import wire
from ctxscope.analysis.providers import Providers
from ctxscope.analysis.tokens import Counter, ledger
from ctxscope.model import ApiName, Call, TokenLedger
from ctxscope.wire.body import make_body
from tests.counting import counter, no_network
from tests.pdf_files import plain, tree

FIXTURES = (counter, no_network)
"""Used by their names, or always."""
ALL = Providers()
TOOLS = [{"name": "read", "description": "Reads it.", "input_schema": {"type": "object"}}]
TOOL_PAGE = "platform.claude.com/docs/en/agents-and-tools/tool-use/overview, 2026-08-22"


def counted(counter: Counter, provider: str, api: ApiName, request: Mapping[str, Any], model: str) -> TokenLedger:
    made = make_body(json.dumps(request).encode(), wire.by_name(api))
    served = replace(made, model=model)
    params = {key: value for key, value in request.items() if isinstance(value, dict)}
    return ledger(counter, served, rules=ALL.rules(provider, model, api), param=lambda name: params.get(name, {}))


@pytest.mark.parametrize(
    ("choice", "tokens"),
    [
        (None, 496),
        ({"type": "auto"}, 496),
        ({"type": "none"}, 496),
        ({"type": "any"}, 588),
        ({"type": "tool", "name": "read"}, 588),
    ],
)
def test_anthropics_instruction_for_tools_is_added_where_there_are_tools(counter, choice, tokens):
    messages = [{"role": "user", "content": "hi"}]
    request = {"tools": TOOLS, "messages": messages} | ({"tool_choice": choice} if choice else {})
    found = counted(counter, "anthropic", "anthropic-messages", request, "claude-opus-4-5-20251101")
    bare = counted(counter, "glm", "anthropic-messages", request, "claude-opus-4-5-20251101")
    assert (found.parts.overhead, bare.parts.overhead) == (tokens, None)
    assert (found.overhead_for, found.overhead_from) == ("the instruction that goes with tools", TOOL_PAGE)
    assert replace(found.parts, overhead=None) == bare.parts
    assert found.visible == bare.visible
    without = counted(counter, "anthropic", "anthropic-messages", {"messages": messages}, "claude-opus-4-5")
    assert (without.parts.overhead, without.overhead_for, without.overhead_from) == (None, "", "")


def test_a_chat_costs_so_much_a_message_and_for_the_reply(counter):
    messages = [{"role": role, "content": "hi"} for role in ("system", "user", "assistant", "user")]
    found = counted(counter, "openai", "openai-chat", {"messages": messages, "user": "u"}, "gpt-4o-2024-08-06")
    assert found.parts.overhead == 4 * 4 + 3
    assert found.overhead_for == "4 messages and the reply's beginning"
    assert found.overhead_from.startswith("github.com/openai/openai-cookbook, ")
    for model in ("gpt-5.2", "gpt-4.1"):
        assert counted(counter, "openai", "openai-chat", {"messages": messages}, model).parts.overhead is None
    assert counted(counter, "vllm", "openai-chat", {"messages": messages}, "gpt-4o").parts.overhead is None


def gemini(counter: Counter, *parts: Mapping[str, Any], model: str = "gemini-3-pro-preview", **more: Any) -> int | None:
    request = {"contents": [{"role": "user", "parts": [{"text": "sum up"}, *parts]}], **more}
    found = counted(counter, "gemini", "gemini", request, model)
    assert (found.parts.images, found.visible) == (0, counter.count("sum up"))
    return found.parts.documents


def test_pages_cost_what_the_provider_says_of_the_resolution_it_takes_by_itself(counter):
    pdf, other = (base64.b64encode(plain(tree(pages))).decode() for pages in (5, 2))
    part, second = ({"inlineData": {"mimeType": "application/pdf", "data": data}} for data in (pdf, other))
    assert gemini(counter) == 0
    assert gemini(counter, part) == 5 * 560
    assert gemini(counter, part, second) == 7 * 560
    assert gemini(counter, part, generationConfig={"temperature": 0}) == 5 * 560
    assert gemini(counter, part, generationConfig={"mediaResolution": "MEDIA_RESOLUTION_LOW"}) is None
    assert gemini(counter, part | {"mediaResolution": {"level": "MEDIA_RESOLUTION_HIGH"}}) is None
    assert gemini(counter, part, model="gemini-2.5-pro") is None
    assert gemini(counter, part, {"fileData": {"mimeType": "application/pdf", "fileUri": "x"}}) is None
    assert gemini(counter, {"inlineData": {"mimeType": "text/plain", "data": pdf}}) is None


def recorded(folder: Path, *requests: Mapping[str, Any]) -> list[Call]:
    """Requests to Anthropic through a recording, counted."""
    wire_folder = folder / "wire"
    wire_folder.mkdir(parents=True)
    lines = []
    for n, request in enumerate(requests, 1):
        (wire_folder / f"{n:04}.req").write_bytes(json.dumps(request).encode())
        lines.append(json.dumps({"n": n, "t": n, "path": "/v1/messages", "headers": {"host": "api.anthropic.com"}}))
    (wire_folder / "index.jsonl").write_text("\n".join(lines) + "\n")
    inspection = ctxscope.open(folder)
    inspection.count()
    inspection.close()
    return list(inspection.snapshot.calls)


def opened(folder: Path, **options: str) -> list[TokenLedger]:
    """What a recording is counted as by a later launch."""
    inspection = ctxscope.open(folder, **options)
    inspection.count()
    inspection.close()
    return [call.tokens for call in inspection.snapshot.calls]


def test_a_recorded_call_is_told_what_its_own_parameters_decide(tmp_path):
    request = {"model": "claude-sonnet-4-6", "tools": TOOLS, "messages": [{"role": "user", "content": "hi"}]}
    forced = request | {"tool_choice": {"type": "any"}}
    odd = request | {"tool_choice": ["any"]}
    calls = recorded(tmp_path, request, forced, odd, {k: v for k, v in request.items() if k != "tools"})
    assert [call.tokens.parts.overhead for call in calls] == [497, 589, 497, None]


def test_other_rules_of_the_user_are_heeded_at_the_next_opening(tmp_path):
    request = {"model": "claude-sonnet-4-6", "tools": TOOLS, "messages": [{"role": "user", "content": "hi"}]}
    (first,) = recorded(tmp_path / "case", request)
    assert opened(tmp_path / "case") == [first.tokens]
    rules = 'provider = "anthropic"\n[[rule]]\nwhat = "overhead_tools"\nvalue = [1, 2]\nsource = "our own count"\n'
    (tmp_path / "own.toml").write_text(f"{rules}date = 2026-11-30\n")
    (other,) = opened(tmp_path / "case", provider=str(tmp_path / "own.toml"))
    assert (first.tokens.parts.overhead, other.parts.overhead) == (497, 1)
    assert other.overhead_from == "our own count, 2026-11-30"
    assert opened(tmp_path / "case") == [first.tokens]
