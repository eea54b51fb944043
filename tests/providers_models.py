"""Ids of models as requests spell them, by family, and names that look like them and are other models."""

from __future__ import annotations


def spellings(family: str, day: str = "20251101") -> list[str]:
    """A Claude family as Anthropic, Vertex AI and Bedrock spell it."""
    return [
        f"claude-{family}",
        f"claude-{family}-{day}",
        f"claude-{family}@{day}",
        f"anthropic.claude-{family}",
        f"anthropic.claude-{family}-v1",
        f"anthropic.claude-{family}-{day}-v1:0",
        f"us.anthropic.claude-{family}-{day}-v1:0",
        f"global.anthropic.claude-{family}-v1:0",
        f"Claude-{family.title()}-{day}",
    ]


MINIMUMS = {
    **dict.fromkeys(("opus-5", "opus-5-5", "sonnet-5-5", "fable-5", "fable-5-1", "mythos-5", "mythos-5-1"), 512),
    **dict.fromkeys(("fable-5-2", "mythos-5-2"), 512),
    **dict.fromkeys(("opus-4-8", "sonnet-5", "sonnet-4-6", "sonnet-4-5", "opus-4-1", "opus-4", "sonnet-4"), 1024),
    **dict.fromkeys(("opus-4-7", "mythos-preview", "3-5-haiku"), 2048),
    **dict.fromkeys(("opus-4-6", "opus-4-5", "haiku-4-5", "haiku-5-5"), 4096),
}
"""Of Claude families, the tokens of the shortest prefix that is kept."""

NO_CLAUDE = (
    *("claude-opus-4-10", "claude-opus-4-10-20271101", "claude-opus-4-11", "claude-opus-4-15", "claude-opus-4-50"),
    *("claude-opus-4-2", "claude-opus-4-3-20270101", "claude-opus-40", "claude-opus-45", "claude-opus-50"),
    *("claude-opus-5-1", "claude-opus-5-50", "claude-opus-5-20", "claude-sonnet-4-50", "claude-sonnet-50"),
    *("claude-sonnet-5-1", "claude-haiku-4-50", "claude-haiku-4-6", "claude-haiku-5", "claude-fable-5-10"),
    *("claude-fable-50", "claude-mythos-previews", "claude-mythos", "claude-instant", "claude", "opus-4-5", ""),
)
"""Of no family that ``MINIMUMS`` names."""

KEPT = (
    *("opus-4-5", "opus-4-6", "opus-4-7", "opus-4-8", "opus-5", "opus-5-5", "sonnet-4-6", "sonnet-5", "sonnet-5-5"),
    *("fable-5", "fable-5-1", "mythos-5", "mythos-5-1", "mythos-preview"),
)
LAST_TURN = (
    *("opus-4", "opus-4-0", "opus-4-1", "sonnet-4", "sonnet-4-0", "sonnet-4-5", "haiku-4-5"),
    *("3-opus", "3-haiku", "3-5-haiku", "3-5-sonnet", "3-7-sonnet"),
)
"""Families whose thinking of earlier turns is rendered, and those where it is not."""

UP_TO_54 = (
    *("gpt-4o", "gpt-4o-mini", "gpt-4o-2024-08-06", "chatgpt-4o-latest", "gpt-4.1", "gpt-4.1-nano", "gpt-5"),
    *("gpt-5-mini", "gpt-5-codex", "gpt-5-2025-08-07", "gpt-5.1", "gpt-5.1-codex", "gpt-5.1-codex-max", "gpt-5.2-pro"),
    *("gpt-5.3-codex", "gpt-5.4", "gpt-5.4-mini", "o1", "o1-pro", "o3", "o3-mini", "o4-mini", "o4-mini-2025-04-16"),
    "codex-mini-latest",
)
IS_55 = ("gpt-5.5", "gpt-5.5-pro", "gpt-5.5-2026-04-20")
FROM_56 = (
    *("gpt-5.6", "gpt-5.6-mini", "gpt-5.6-sol", "gpt-5.6-luna", "gpt-5.7", "gpt-6", "gpt-6-mini", "gpt-6-2026-09-01"),
    *("gpt-6.1", "gpt-6.1-sol", "gpt-6.1-sol-2026-10-20", "gpt-6.1-terra-2026-10-20"),
)
NO_GPT = (
    *("gpt-3.5-turbo", "gpt-4", "gpt-4-turbo", "gpt-50", "gpt-5.50", "gpt-5.10", "gpt-60", "gpt-oss-120b"),
    *("o30", "o4", ""),
)
"""Of no generation known."""

CHATS = ("gpt-3.5-turbo-0125", "gpt-4-0613", "gpt-4-turbo-2024-04-09", "gpt-4o-mini-2024-07-18")
"""Whose chats are told what they cost beside their text."""

OTHERS = (
    *("deepseek-chat", "deepseek-v4-flash", "deepseek-v4-pro", "deepseek-flash", "deepseek-pro", "grok-4.6", "glm-5.3"),
    *("gemini-2.5-pro", "models/gemini-2.5-flash", "gemini-3-pro-preview", "gemini-3.1-pro-preview"),
    *("kimi-k3", "kimi-k3-turbo", "kimi-k2.6", "k3", "k3-256k", "kimi-for-coding", "qwen3-coder-plus", "MiniMax-M2.5"),
    *("claude-3-5-haiku-latest", "anthropic/claude-opus-4.5", "openai/gpt-5.6", "mock-model"),
)
EVERY = (
    *(name for family in {*MINIMUMS, *KEPT, *LAST_TURN} for name in spellings(family)),
    *NO_CLAUDE,
    *UP_TO_54,
    *IS_55,
    *FROM_56,
    *NO_GPT,
    *CHATS,
    *OTHERS,
)
