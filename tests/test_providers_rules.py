"""What the bundled rules say of models, figure by figure, as prompt_caching gives them."""

from __future__ import annotations

from typing import Any

import pytest

from ctxscope.analysis.providers import UNKNOWN, Providers
from ctxscope.analysis.providers.rules import DIFFERENCES
from tests.providers_models import (
    CHATS,
    FROM_56,
    IS_55,
    KEPT,
    LAST_TURN,
    MINIMUMS,
    NO_CLAUDE,
    NO_GPT,
    UP_TO_54,
    spellings,
)

ALL = Providers()

FIGURES: list[tuple[str, str | None, dict[str, Any]]] = [
    (
        "anthropic",
        "claude-opus-4-5-20251101",
        {"mode": "explicit", "boundary": "mark", "step": 1, "tolerance": 0, "slack": 0, "writes": True, "minimum": 4096}
        | {"ttl": 300, "ttl_long": 3600, "ttl_sure": True, "lookback": 20, "ready": "first_byte", "reasoning": "kept"}
        | {"price_write": 1.25, "price_write_long": 2.0, "price_read": 0.1, "isolates": ("anthropic-workspace-id",)},
    ),
    ("anthropic", "claude-sonnet-4-5", {"minimum": 1024, "reasoning": "last_turn", "price_read": 0.1}),
    ("anthropic", "claude-opus-5-5", {"minimum": 512, "reasoning": "kept", "price_read": 0.05}),
    ("anthropic", "claude-fable-5-1", {"minimum": 512, "reasoning": "kept", "price_read": 0.025}),
    ("anthropic", "claude-opus-5", {"overhead_tools": (286, 406)}),
    ("anthropic", "claude-opus-4-8", {"overhead_tools": (290, 410)}),
    ("anthropic_vertex", "claude-opus-4-7@20260416", {"overhead_tools": (675, 804)}),
    ("anthropic", "claude-sonnet-4-6", {"overhead_tools": (497, 589)}),
    ("anthropic", "claude-haiku-4-5-20251001", {"overhead_tools": (496, 588)}),
    ("anthropic", "claude-sonnet-5", {"overhead_tools": (354, 474)}),
    ("anthropic", "claude-sonnet-4-20250514", {"overhead_tools": (313, 315), "overhead_message": None}),
    ("anthropic", "claude-3-5-haiku-latest", {"overhead_tools": (264, 355)}),
    ("anthropic", "claude-opus-5-5", {"overhead_tools": None}),
    ("openai", "gpt-4o", {"overhead_message": None}),
    ("gemini", "gemini-3.1-pro-preview", {"document_page": 560}),
    ("gemini", "gemini-2.5-pro", {"document_page": None}),
    ("anthropic", "claude-haiku-5-5", {"minimum": 4096, "reasoning": "unknown"}),
    ("anthropic", "claude-3-5-haiku-20241022", {"minimum": 2048, "reasoning": "last_turn"}),
    ("anthropic", "claude-3-5-haiku-latest", {"minimum": 2048}),
    ("anthropic", None, {"minimum": None, "reasoning": "unknown", "ttl": 300}),
    ("anthropic_bedrock", "us.anthropic.claude-opus-4-7", {"minimum": 4096, "isolates": (), "lookback": 20}),
    (
        "anthropic_bedrock",
        "anthropic.claude-opus-5-v1:0",
        {"minimum": 512, "ttl": 300, "ttl_sure": False, "mode": "explicit", "price_read": 0.1},
    ),
    ("anthropic_vertex", "claude-opus-4-7@20260416", {"minimum": 2048, "isolates": (), "ttl": 300, "writes": True}),
    (
        "openai",
        "gpt-5.6-sol",
        {"mode": "implicit", "boundary": "message", "step": 1, "tolerance": 0, "slack": 0, "writes": True}
        | {"minimum": 1024, "ttl": 1800, "ttl_long": 43200, "ttl_sure": False, "price_write": 1.25, "price_read": 0.1}
        | {"reasoning": "kept", "routes": ("prompt_cache_key", "user")}
        | {"isolates": ("prompt_cache_key", "openai-organization", "openai-project")},
    ),
    ("openai", "gpt-6.1-sol", {"price_read": 0.05, "minimum": 1024, "writes": True}),
    (
        "openai",
        "gpt-5.5-pro",
        {"boundary": "unit", "step": 128, "slack": 2048, "tolerance": 128, "minimum": None, "writes": False}
        | {"ttl": 1800, "ttl_long": 86400, "price_write": 1.0, "price_read": None, "reasoning": "last_turn"},
    ),
    (
        "openai",
        "gpt-5.1-codex",
        {"boundary": "unit", "step": 128, "slack": 0, "tolerance": 128, "minimum": 1024, "writes": False}
        | {"ttl": 300, "ttl_long": 86400, "price_write": 1.0, "price_read": None, "reasoning": "last_turn"},
    ),
    (
        "deepseek",
        "deepseek-v4-flash",
        {"mode": "implicit", "boundary": "message", "step": 64, "tolerance": 64, "minimum": 64, "ttl": None}
        | {"isolates": ("user_id",), "writes": False, "reasoning": "unknown", "price_read": 0.02},
    ),
    ("deepseek", "deepseek-v4-pro", {"price_read": 0.008}),
    ("deepseek", "deepseek-chat", {"price_read": None}),
    (
        "gemini",
        "gemini-2.5-pro",
        {"mode": "implicit", "boundary": None, "minimum": 2048, "ttl": None, "price_read": 0.1},
    ),
    ("gemini", "models/gemini-3.1-pro-preview", {"minimum": 4096}),
    ("gemini", "gemini-3-flash-preview", {"minimum": 4096}),
    ("gemini", "gemini-1.5-pro", {"minimum": None}),
    ("gemini", "gemini-30-pro", {"minimum": None}),
    ("xai", "grok-4.6", {"step": 128, "tolerance": 128, "price_read": 0.25, "minimum": None, "reasoning": "kept"}),
    (
        "kimi",
        "kimi-k3",
        {"step": 256, "tolerance": 256, "minimum": 256, "writes": True, "ttl": 300, "ttl_long": 3600, "ttl_sure": False}
        | {"price_write": 1.0, "price_write_long": 2.0, "price_read": 0.1, "mode": "implicit", "boundary": "unit"},
    ),
    ("kimi", "kimi-k2.6", {"writes": False, "price_write": None, "price_read": 0.1, "step": 256}),
    ("kimi", "kimi-k30", {"writes": False}),
    ("kimi_coding", "k3", {"writes": False, "step": 256, "ttl": 300, "ttl_long": None, "price_read": None}),
    ("glm", "glm-5.3", {"mode": "implicit", "boundary": None, "minimum": None, "ttl": None, "price_read": None}),
    (
        "qwen",
        "qwen3-coder-plus",
        {"mode": "implicit", "minimum": 1024, "price_read": 0.2, "lookback": None, "ready": None, "ttl": None},
    ),
    ("qwen", "MiniMax-M2.5", {"minimum": 512}),
    ("openrouter", "openai/gpt-5.6", {"mode": "unknown", "minimum": None, "ttl": None}),
    ("openrouter", "anthropic/claude-opus-4.5", {"mode": "explicit", "ttl": 300, "writes": True, "price_read": 0.1}),
    ("vllm", "any", {"step": 16, "tolerance": 16, "slack": 832, "minimum": 16, "isolates": ("cache_salt",)}),
    ("sglang", "any", {"step": 1, "tolerance": 64, "boundary": "unit", "isolates": ("cache_salt",)}),
    ("llama_cpp", "any", {"mode": "slots", "boundary": "token", "step": 1, "tolerance": 1, "minimum": 1, "ttl": None}),
    ("ollama", "any", {"mode": "slots", "boundary": "token", "tolerance": 1, "ttl": 300, "ttl_sure": False}),
    ("mlx", "any", {"mode": "implicit", "boundary": "token", "tolerance": 1}),
    ("lm_studio", "any", {"mode": "unknown", "boundary": "token"}),
]


@pytest.mark.parametrize(("provider", "model", "figures"), FIGURES, ids=[f"{p} {m}" for p, m, _ in FIGURES])
def test_figures(provider: str, model: str | None, figures: dict[str, Any]):
    rules = ALL.rules(provider, model)
    assert {name: getattr(rules, name) for name in figures} == figures


def test_marks_make_another_cache_of_qwens():
    rules = ALL.rules("qwen", "qwen3-coder-plus", "openai-chat", marked=True)
    assert (rules.mode, rules.boundary, rules.lookback, rules.ready) == ("explicit", "mark", 20, "end")
    assert (rules.ttl, rules.ttl_sure, rules.price_write, rules.price_read) == (300, True, 1.25, 0.1)


def test_what_a_chat_costs_beside_its_text_is_told_of_one_api_and_its_older_models():
    for model in (*CHATS, "gpt-4o", "gpt-4o-mini", "gpt-4o-2024-08-06", "gpt-4", "gpt-3.5-turbo"):
        rules = ALL.rules("openai", model, "openai-chat")
        assert (rules.overhead_message, rules.overhead_reply, rules.overhead_tools) == (4, 3, None)
        assert ALL.rules("openai", model, "openai-responses").overhead_message is None
    for model in ("chatgpt-4o-latest", "gpt-4.1", "gpt-5", "o3", "gpt-5.6-sol", None):
        assert ALL.rules("openai", model, "openai-chat").overhead_message is None


# --- families and what looks like them -------------------------------------------------------------------------------


@pytest.mark.parametrize("family", MINIMUMS)
@pytest.mark.parametrize("provider", ["anthropic", "anthropic_vertex"])
def test_the_minimum_of_a_claude_family_holds_for_all_its_spellings(provider: str, family: str):
    found = {name: ALL.rules(provider, name).minimum for name in spellings(family)}
    assert found == dict.fromkeys(found, MINIMUMS[family])


@pytest.mark.parametrize("name", NO_CLAUDE)
def test_a_name_like_a_claude_family_has_no_minimum(name: str):
    assert ALL.rules("anthropic", name).minimum is None


@pytest.mark.parametrize("family", KEPT)
def test_families_that_keep_thinking(family: str):
    assert {ALL.rules("anthropic", name).reasoning for name in spellings(family)} == {"kept"}


@pytest.mark.parametrize("family", LAST_TURN)
def test_families_that_drop_thinking_of_earlier_turns(family: str):
    assert {ALL.rules("anthropic", name).reasoning for name in spellings(family)} == {"last_turn"}


@pytest.mark.parametrize(
    "name", ["claude-opus-4-10", "claude-sonnet-4-10", "claude-haiku-5-5", "claude-haiku-5", "claude-30"]
)
def test_of_other_names_what_becomes_of_thinking_is_not_known(name: str):
    assert ALL.rules("anthropic", name).reasoning == "unknown"


def test_each_openai_model_is_of_one_generation():
    def generation(name: str) -> tuple[Any, ...]:
        rules = ALL.rules("openai", name)
        return rules.boundary, rules.slack, rules.writes, rules.reasoning

    assert {generation(name) for name in UP_TO_54} == {("unit", 0, False, "last_turn")}
    assert {generation(name) for name in IS_55} == {("unit", 2048, False, "last_turn")}
    assert {generation(name) for name in FROM_56} == {("message", 0, True, "kept")}
    assert {generation(name) for name in NO_GPT} == {(None, 2048, False, "unknown")}


# --- by API ----------------------------------------------------------------------------------------------------------


def test_k3_by_anthropics_api_keeps_what_is_marked():
    by = {api: ALL.rules("kimi", "kimi-k3", api) for api in ("anthropic-messages", "openai-chat")}
    assert (by["anthropic-messages"].mode, by["anthropic-messages"].boundary) == ("explicit", "mark")
    assert by["openai-chat"].mode == "implicit"
    for name, model in (
        ("kimi", "kimi-k2.6"),
        ("kimi_coding", "k3"),
        ("deepseek", "deepseek-chat"),
        ("glm", "glm-5.3"),
    ):
        assert ALL.rules(name, model, "anthropic-messages").mode == "implicit"


def test_thinking_on_the_endpoints_of_glm():
    assert ALL.rules("glm", "glm-5.3", "openai-chat").reasoning == "last_turn"
    assert ALL.rules("glm_coding", "glm-5.3", "openai-chat").reasoning == "kept"
    assert ALL.rules("glm", "glm-5.3", "anthropic-messages").reasoning == "unknown"


# --- parameters ------------------------------------------------------------------------------------------------------

ANTHROPIC = {
    "speed": ("system", "standard"),
    "tool_choice": ("messages", {"type": "auto"}),
    "thinking": ("messages", {"type": "disabled"}),
    "output_config": ("messages", {}),
    "output_format": ("messages", None),
    "context_management": ("messages", None),
}
OPENAI = {
    "parallel_tool_calls": ("all", True),
    "response_format": ("all", {"type": "text"}),
    "text": ("all", {}),
    "reasoning": ("all", {}),
    "reasoning_effort": ("all", None),
    "verbosity": ("all", "medium"),
    "context_management": ("all", None),
    "service_tier": ("all", "auto"),
}


@pytest.mark.parametrize(
    ("provider", "api", "table"),
    [
        ("anthropic", "anthropic-messages", ANTHROPIC),
        ("anthropic_vertex", "anthropic-messages", ANTHROPIC),
        ("anthropic_bedrock", "anthropic-messages", ANTHROPIC),
        (UNKNOWN, "anthropic-messages", ANTHROPIC),
        ("openai", "openai-chat", OPENAI),
        ("openai", "openai-responses", OPENAI),
        (UNKNOWN, "openai-chat", OPENAI),
        (UNKNOWN, "openai-responses", OPENAI),
        ("vllm", "openai-chat", OPENAI),
        (UNKNOWN, "gemini", {}),
        (UNKNOWN, None, {}),
    ],
)
def test_parameters_rendered_into_the_prompt(provider: str, api: str | None, table: dict[str, Any]):
    params = ALL.rules(provider, None, api).params
    assert {name: (param.loses, param.default) for name, param in params.items()} == table


@pytest.mark.parametrize("provider", ["anthropic", "openai", UNKNOWN])
def test_members_that_change_nothing(provider: str):
    params = {
        name: param
        for api in ("anthropic-messages", "openai-responses")
        for name, param in ALL.rules(provider, None, api).params.items()
    }
    hidden = {"thinking": ("display",), "reasoning": ("summary", "generate_summary")}
    defaults = {
        "output_config": {"effort": "high"},
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
    }
    assert {n: p.hidden for n, p in params.items() if p.hidden} == {n: v for n, v in hidden.items() if n in params}
    assert {n: p.defaults for n, p in params.items() if p.defaults} == {
        n: v for n, v in defaults.items() if n in params
    }


def test_only_what_is_documented_for_every_model_is_sure():
    params = ALL.rules("anthropic", "claude-opus-4-5", "anthropic-messages").params
    assert {name for name, param in params.items() if param.sure} == {"tool_choice", "thinking", "output_config"}
    params = ALL.rules("openai", "gpt-5.6", "openai-responses").params
    assert {name for name, param in params.items() if not param.sure} == {"service_tier"}


def test_effort_changes_nothing_at_kimi():
    for name in ("kimi", "kimi_coding"):
        assert "reasoning_effort" not in ALL.rules(name, "kimi-k3", "openai-chat").params


# --- what shows ------------------------------------------------------------------------------------------------------

FORM = ("top_level_order", "whitespace", "escape", "message_key_order", "tool_key_order", "form")
"""Differences of form only."""
SHOWN = [
    ("anthropic", "benign", (*FORM, "breakpoint", "arguments_text", "user_ids", "billing_header")),
    ("anthropic", "prompt", ("schema_key_order", "arguments_key_order")),
    ("anthropic", "unknown", ("number_spelling", "tool_call_id")),
    ("anthropic_vertex", "routing", ("top_level_order", "whitespace", "escape")),
    (
        "anthropic_vertex",
        "unknown",
        ("message_key_order", "tool_key_order", "form", "arguments_text", "billing_header"),
    ),
    ("anthropic_vertex", "prompt", ("schema_key_order", "arguments_key_order")),
    ("anthropic_bedrock", "unknown", (*FORM, "arguments_text", "user_ids", "billing_header")),
    ("anthropic_bedrock", "prompt", ("schema_key_order", "arguments_key_order")),
    ("openai", "benign", (*FORM, "breakpoint", "user_ids")),
    (
        "openai",
        "prompt",
        ("schema_key_order", "arguments_key_order", "arguments_text", "number_spelling", "billing_header"),
    ),
    ("openai", "unknown", ("tool_call_id",)),
    ("gemini", "benign", (*FORM[:-1], "arguments_text", "user_ids")),
    ("gemini", "unknown", ("form", "schema_key_order", "arguments_key_order", "number_spelling", "tool_call_id")),
    *(
        (name, "benign", (*FORM, "user_ids"))
        for name in ("deepseek", "kimi", "kimi_coding", "glm", "glm_coding", "qwen", "xai")
    ),
    *(
        (name, "unknown", ("schema_key_order", "arguments_key_order", "arguments_text", "number_spelling"))
        for name in ("deepseek", "kimi", "glm", "qwen", "xai")
    ),
    *((name, "prompt", ("tool_call_id", "billing_header")) for name in ("kimi", "kimi_coding")),
    *((name, "benign", (*FORM[:-1], "arguments_text", "user_ids")) for name in ("vllm", "sglang")),
    *((name, "prompt", ("schema_key_order", "arguments_key_order", "number_spelling")) for name in ("vllm", "sglang")),
    *(
        (name, "unknown", ("form", "tool_call_id"))
        for name in ("vllm", "sglang", "llama_cpp", "ollama", "mlx", "lm_studio")
    ),
    *(
        (name, "unknown", ("tool_key_order", "arguments_key_order", "arguments_text", "number_spelling"))
        for name in ("llama_cpp", "ollama", "mlx", "lm_studio")
    ),
    ("vllm", "benign", ("billing_header",)),
    *((name, "prompt", ("billing_header", "schema_key_order")) for name in ("sglang", "llama_cpp", "ollama", "mlx")),
    ("openrouter", "unknown", tuple(DIFFERENCES - {"breakpoint"})),
]


@pytest.mark.parametrize(("provider", "visibility", "differences"), SHOWN)
def test_what_a_prompt_shows(provider: str, visibility: str, differences: tuple[str, ...]):
    rules = ALL.rules(provider)
    assert {name: rules.shows(name) for name in differences} == dict.fromkeys(differences, visibility)


def test_what_leads_to_where_a_prefix_is_kept():
    assert ALL.rules("xai").routes == ("x-grok-conv-id", "prompt_cache_key")
    assert ALL.rules("openrouter").routes == ("session_id", "x-session-id", "prompt_cache_key", "provider")
    assert ALL.rules("openai", "gpt-4o").isolates == ("openai-organization", "openai-project")


def test_a_value_says_where_it_stands():
    rules = ALL.rules("anthropic", "claude-opus-4-5")
    assert rules.said("minimum") == "platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-08-22"
    assert rules.said("slack") == ""
