"""What a team's log of messages mostly does not hold, by JSON path; where a log does hold it, the log wins."""

from __future__ import annotations

from ctxscope.model import Learnable

PARAMS = (
    *(
        "model",
        "stream",
        "stream_options",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "n",
        "stop",
        "stop_sequences",
        "seed",
    ),
    *("max_tokens", "max_completion_tokens", "max_output_tokens", "frequency_penalty", "presence_penalty"),
    *("repetition_penalty", "logit_bias", "logprobs", "top_logprobs", "response_format", "text", "tool_choice"),
    *(
        "parallel_tool_calls",
        "tool_config",
        "toolConfig",
        "reasoning",
        "reasoning_effort",
        "thinking",
        "enable_thinking",
    ),
    *("include_reasoning", "verbosity", "metadata", "user", "safety_identifier", "store", "service_tier", "include"),
    *("previous_response_id", "conversation", "truncation", "background", "prompt", "prompt_cache_key", "modalities"),
    *(
        "prompt_cache_retention",
        "prediction",
        "audio",
        "web_search_options",
        "functions",
        "function_call",
        "anthropic_beta",
    ),
    *("anthropic_version", "betas", "container", "context_management", "mcp_servers", "output_config", "output_format"),
    *("inference_geo", "generationConfig", "generation_config", "safetySettings", "safety_settings", "cachedContent"),
    *("labels", "provider", "models", "route", "transforms", "plugins", "usage", "extra_body", "chat_template_kwargs"),
    *("keep_alive", "options", "format", "think", "cache_control", "guided_json", "max_tool_calls", "moderation"),
)
"""Request parameters of the four APIs and of servers that speak them."""
_PARAM = "a request parameter; a log of messages does not hold it unless it keeps whole requests"
_HEAD = "the head of the request; not in the log unless it keeps whole requests, or the system message as the first one"
_MARK = "a cache mark, set when a request is sent"
_OPAQUE = "opaque bytes of the provider that a log of what was said need not keep"
_LEAD = 3
"""System messages at the start of a body that may be learned."""
_BLOCKS = ("/messages/*", "/messages/*/content/*", "/messages/*/content/*/content/*", "/messages/*/tool_calls/*")
_ITEMS = ("/input/*", "/input/*/content/*")

LEARNABLE = (
    *(
        Learnable(f"/{name}", _HEAD)
        for name in ("tools", "system", "instructions", "systemInstruction", "system_instruction")
    ),
    *(
        Learnable(f"/{bulk}/{n}", f"{_HEAD}; only a system message is")
        for bulk in ("messages", "input")
        for n in range(_LEAD)
    ),
    *(Learnable(f"/{name}", _PARAM) for name in PARAMS),
    *(Learnable(f"{path}/{key}", _MARK) for path in _BLOCKS for key in ("cache_control", "prompt_cache_breakpoint")),
    *(
        Learnable(f"{path}/{key}", _OPAQUE)
        for path in _BLOCKS
        for key in ("signature", "thought_signature", "extra_content")
    ),
    Learnable("/messages/*/content/*/data", _OPAQUE),
    *(Learnable(f"/messages/*/reasoning_details/*/{key}", _OPAQUE) for key in ("signature", "data")),
    *(Learnable(f"{path}/{key}", _OPAQUE) for path in _ITEMS for key in ("encrypted_content", "id", "status")),
    Learnable("/contents/*/parts/*/thoughtSignature", _OPAQUE),
    *(Learnable(f"/contents/*/parts/*/function{way}/id", _OPAQUE) for way in ("Call", "Response")),
)
_PATHS = frozenset(item.path for item in LEARNABLE)


def may_learn(key: str) -> bool:
    """Whether a top-level value may be taken from a body."""
    return f"/{key}" in _PATHS
