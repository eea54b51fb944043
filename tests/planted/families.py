"""The providers' doors: host, API, rules of the cache, a model of each family (reference §1)."""

from __future__ import annotations

from tests.planted.chat_api import ChatApi, deepseek_usage, llama_usage, openai_usage, timings_of, writing_usage
from tests.planted.dialects import JSON
from tests.planted.gemini_api import GeminiApi
from tests.planted.messages_api import EPHEMERAL, MessagesApi
from tests.planted.responses_api import ResponsesApi
from tests.planted.rules import Ends, Longest, Marks, Slots, Units
from tests.planted.tape import Tape

_MINIMUM = {
    "claude-opus-5": 512,
    "claude-sonnet-5": 1024,
    "claude-sonnet-4-6": 1024,
    "claude-sonnet-4-5": 1024,
    "claude-opus-4-1": 1024,
    "claude-opus-4-7": 2048,
    "claude-opus-4-5": 4096,
    "claude-haiku-4-5": 4096,
}
"""§2.3."""


def anthropic(
    model: str = "claude-opus-5", *, head: JSON = EPHEMERAL, tail: JSON | None = EPHEMERAL, stream: bool = True
) -> Tape:
    headers = {"anthropic-version": "2023-06-01", "x-api-key": "<cut>"}
    rules = Marks(_MINIMUM[model])
    return Tape("anthropic", "api.anthropic.com", MessagesApi(stream, head, tail), rules, model, headers)


def gpt56_responses(key: str = "") -> Tape:
    return Tape("openai", "api.openai.com", ResponsesApi(key=key), Ends(), "gpt-5.6")


def gpt56_chat(key: str = "") -> Tape:
    dialect = ChatApi(
        writing_usage, stream=True, isolated=("prompt_cache_key",), defaults={"prompt_cache_key": key} if key else None
    )
    return Tape("openai", "api.openai.com", dialect, Ends(), "gpt-5.6")


def gpt55() -> Tape:
    """Marks every 2048 tokens, counted from hidden ones that are taken off again (§1)."""
    rules = Longest(128, interval=2048, hidden=300, life=86_400.0)
    return Tape("openai", "api.openai.com", ResponsesApi(writes=False, old_thinking=False), rules, "gpt-5.5")


def gpt54_responses() -> Tape:
    rules = Longest(128, minimum=1024, life=3600.0)
    return Tape("openai", "api.openai.com", ResponsesApi(writes=False, old_thinking=False), rules, "gpt-5.4")


def gpt54_chat() -> Tape:
    rules = Longest(128, minimum=1024, life=3600.0)
    return Tape("openai", "api.openai.com", ChatApi(openai_usage, stream=True), rules, "gpt-5.4")


def deepseek() -> Tape:
    dialect = ChatApi(deepseek_usage, isolated=("user_id",), path="/chat/completions")
    return Tape("deepseek", "api.deepseek.com", dialect, Units(), "deepseek-v4-pro")


def llama_cpp(slots: int = 4) -> Tape:
    dialect = ChatApi(llama_usage, beside=timings_of)
    return Tape("llama_cpp", "127.0.0.1:8080", dialect, Slots(slots), "local-coder-30b")


def vllm(*, silent: bool = False) -> Tape:
    dialect = ChatApi(openai_usage, isolated=("cache_salt",), parses_arguments=True)
    rules = Longest(16, keeps_output=True, spares_last=True, silent=silent)
    return Tape("vllm", "127.0.0.1:8000", dialect, rules, "local-coder-30b")


def gemini() -> Tape:
    dialect = GeminiApi("gemini-2.5-pro")
    rules = Longest(1, minimum=2048, life=300.0)
    return Tape("gemini", "generativelanguage.googleapis.com", dialect, rules, "gemini-2.5-pro")


def openrouter() -> Tape:
    dialect = ChatApi(writing_usage, isolated=("session_id",), path="/api/v1/chat/completions")
    return Tape("openrouter", "openrouter.ai", dialect, Longest(1, life=600.0), "vendor/coder-large")


def kimi() -> Tape:
    """The platform's K3: what was read and written is the next read, in chunks of 256 (§0.1)."""
    rules = Longest(256, minimum=256, life=300.0, writes=True)
    return Tape("kimi", "api.moonshot.ai", ChatApi(writing_usage, whole_head=True), rules, "kimi-k3")


def qwen_implicit() -> Tape:
    dialect = ChatApi(openai_usage, path="/compatible-mode/v1/chat/completions")
    rules = Longest(1, minimum=1024)
    return Tape("qwen", "dashscope-intl.aliyuncs.com", dialect, rules, "qwen3-coder-plus")


def xai() -> Tape:
    dialect = ChatApi(openai_usage, isolated=("x-grok-conv-id",))
    return Tape("xai", "api.x.ai", dialect, Longest(128), "grok-5", {"x-grok-conv-id": "conv-0001"})


def ollama() -> Tape:
    rules = Longest(1, keeps_output=True, spares_last=True, life=300.0)
    return Tape("ollama", "127.0.0.1:11434", ChatApi(openai_usage), rules, "local-coder:30b")


def stranger_messages() -> Tape:
    """Somebody else's server with Anthropic's API; its rules are not known."""
    rules = Longest(1, keeps_output=False)
    headers = {"anthropic-version": "2023-06-01"}
    return Tape("unknown", "models.third-party.example", MessagesApi(), rules, "claude-opus-5", headers)


def stranger_chat(*, silent: bool = False) -> Tape:
    """Somebody else's server with OpenAI's API."""
    rules = Longest(1, silent=silent)
    return Tape("unknown", "llm.third-party.example", ChatApi(openai_usage), rules, "coder-large")
