"""What a request carries that the log never holds, by top-level key, with the reason (hermes.md §4.12)."""

from __future__ import annotations

from collections.abc import Mapping

from ctxscope.model import Learnable

ENVELOPE = {
    "model": "a model switch in the middle of a session is not written to it",
    "max_tokens": "the reply cap depends on the provider's tables",
    "max_completion_tokens": "the reply cap depends on the provider's tables",
    "max_output_tokens": "the reply cap depends on the provider's tables",
    "stream": "chosen by the front end that runs the agent",
    "stream_options": "chosen by the front end that runs the agent",
    "temperature": "chosen by provider",
    "top_p": "chosen by provider",
    "tool_choice": "chosen by transport",
    "parallel_tool_calls": "chosen by transport",
    "thinking": "derived from the reasoning setting and the provider",
    "output_config": "derived from the reasoning setting and the provider",
    "reasoning": "derived from the reasoning setting and the provider",
    "reasoning_effort": "derived from the reasoning setting and the provider",
    "text": "chosen by transport",
    "include": "chosen by transport",
    "store": "chosen by transport",
    "prompt_cache_key": "a hash over instructions, tools and a scope that is not stored",
    "service_tier": "provider setting",
    "metadata": "provider setting",
    "provider": "routing preferences of the provider's profile",
    "session_id": "sent on some routes only",
    "plugins": "provider setting",
    "extra_body": "provider setting",
    "user": "provider setting",
    "vl_high_resolution_images": "provider setting",
    "enable_thinking": "provider setting",
    "chat_template_kwargs": "provider setting",
    "think": "provider setting",
    "options": "provider setting",
}
PROMPTS: Mapping[str, str] = {
    "openai-chat": "/messages/0",
    "anthropic-messages": "/system",
    "openai-responses": "/instructions",
}
"""Where each API's body holds the system prompt."""
KEYS: Mapping[str, tuple[str, ...]] = {
    "openai-chat": ("messages", "model", "tools"),
    "anthropic-messages": ("messages", "model", "system", "tools"),
    "openai-responses": ("input", "instructions", "model", "tools"),
}
"""The order known without a served body; the envelope is then left out."""
LEARNABLE = (
    *(Learnable(f"/{name}", reason) for name, reason in ENVELOPE.items()),
    Learnable("/tools", "stored only in the JSON snapshot, which is off by default"),
    *(
        Learnable(path, "a prompt no session refers to any more is deleted (after a model switch)")
        for path in PROMPTS.values()
    ),
)
