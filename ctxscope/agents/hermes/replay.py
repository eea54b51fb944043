"""What of stored reasoning a chat request replays, by the host it goes to (hermes.md §4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_KIMI_HOSTS = ("kimi.com", "moonshot.ai", "moonshot.cn")


@dataclass(frozen=True, slots=True)
class Route:
    """Where a call goes, as far as the agent's rules ask."""

    model: str = ""
    provider: str = ""
    base_url: str = ""

    @property
    def host(self) -> str:
        """Host of the base URL."""
        return (urlsplit(self.base_url).hostname or "").lower()

    @property
    def pads_reasoning(self) -> bool:
        """Whether every assistant must carry ``reasoning_content`` (DeepSeek, Kimi, MiMo)."""
        names = (self.model.lower(), self.provider.lower(), self.host)
        if any("deepseek" in n or "mimo" in n or "xiaomi" in n for n in names):
            return True
        return self.host.endswith(_KIMI_HOSTS) or self.provider.lower().startswith(("kimi", "moonshot"))

    @property
    def native_anthropic(self) -> bool:
        """Whether signed thinking may be replayed: the agent looks for the name anywhere in the URL."""
        if self.base_url:
            return "anthropic.com" in self.base_url.lower()
        return self.provider.lower() == "anthropic"

    @property
    def kind(self) -> tuple[bool, bool, bool, bool]:
        """All that tells one route from another, for remembering what was spelled for it."""
        gemini = any(n in self.model.lower() for n in ("gemini", "gemma"))
        return (self.pads_reasoning, self.native_anthropic, gemini, "kimi" in self.host)


def reasoning_content(data: Mapping[str, Any]) -> str:
    """The ``reasoning_content`` of an assistant message on a host that demands one."""
    stored = data.get("reasoning_content")
    if isinstance(stored, str):
        return stored or " "
    reasoning = data.get("reasoning")
    if data.get("tool_calls") and reasoning:  # another provider's thinking is not this one's to read
        return " "
    return reasoning if isinstance(reasoning, str) and reasoning else " "
