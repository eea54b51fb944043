"""Providers that opencode knows: the variables with their keys, and where they are called.

From the catalogue that opencode 1.18.33 carries, those of most users; what its own cached catalogue names comes on top.
Where that gives no address, it is the one of the provider's package in the AI SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.launching.settings import base_url, inside, mapping


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider."""

    url: str
    keys: tuple[str, ...]


PROVIDERS: Mapping[str, Provider] = {
    "alibaba": Provider("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_KEY",)),
    "alibaba-cn": Provider("https://dashscope.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_KEY",)),
    "anthropic": Provider("https://api.anthropic.com/v1", ("ANTHROPIC_API_KEY",)),
    "cerebras": Provider("https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    "deepinfra": Provider("https://api.deepinfra.com/v1/openai", ("DEEPINFRA_API_KEY",)),
    "deepseek": Provider("https://api.deepseek.com", ("DEEPSEEK_API_KEY",)),
    "fireworks-ai": Provider("https://api.fireworks.ai/inference/v1/", ("FIREWORKS_API_KEY",)),
    "github-copilot": Provider("https://api.githubcopilot.com", ()),
    "google": Provider(
        "https://generativelanguage.googleapis.com/v1beta",
        ("GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"),
    ),
    "groq": Provider("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "huggingface": Provider("https://router.huggingface.co/v1", ("HF_TOKEN",)),
    "minimax": Provider("https://api.minimax.io/anthropic/v1", ("MINIMAX_API_KEY",)),
    "mistral": Provider("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "moonshotai": Provider("https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",)),
    "moonshotai-cn": Provider("https://api.moonshot.cn/v1", ("MOONSHOT_API_KEY",)),
    "nvidia": Provider("https://integrate.api.nvidia.com/v1", ("NVIDIA_API_KEY",)),
    "openai": Provider("https://api.openai.com/v1", ("OPENAI_API_KEY",)),
    "opencode": Provider("https://opencode.ai/zen/v1", ("OPENCODE_API_KEY",)),
    "opencode-go": Provider("https://opencode.ai/zen/go/v1", ("OPENCODE_API_KEY",)),
    "openrouter": Provider("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "togetherai": Provider("https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    "xai": Provider("https://api.x.ai/v1", ("XAI_API_KEY",)),
    "zai": Provider("https://api.z.ai/api/paas/v4", ("ZHIPU_API_KEY",)),
    "zai-coding-plan": Provider("https://api.z.ai/api/coding/paas/v4", ("ZHIPU_API_KEY",)),
}


def with_cached(catalogue: Mapping[str, Any]) -> dict[str, Provider]:
    """All known providers, those of the cached catalogue (``models.json``) included."""
    found = dict(PROVIDERS)
    for name, entry in catalogue.items():
        url = base_url(inside(mapping(entry), "api"))
        keys = inside(mapping(entry), "env")
        if url and "${" not in url and isinstance(keys, list):
            found[name] = Provider(url, tuple(key for key in keys if isinstance(key, str)))
    return found
