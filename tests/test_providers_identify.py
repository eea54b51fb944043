"""Which provider a request went to: by its real upstream, path, model, headers, or what a log calls it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis.providers import UNKNOWN, Providers, Seen
from ctxscope.model import CtxscopeError

ALL = Providers()
VERTEX = "/v1/projects/p/locations/us-east5/publishers"
INVOKE = "/model/us.anthropic.claude-opus-4-5-20251101-v1%3A0/invoke-with-response-stream"
NOVA = "/model/amazon.nova-pro-v1%3A0/converse-stream"

WENT: list[tuple[str, str, str, dict[str, Any]]] = [
    ("anthropic", "https://api.anthropic.com", "/v1/messages?beta=true", {"model": "claude-opus-4-5"}),
    ("anthropic", "https://API.Anthropic.com:443", "/v1/messages", {}),
    ("anthropic", "https://aws-external-anthropic.us-west-2.api.aws", "/v1/messages", {}),
    ("anthropic_bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com", INVOKE, {}),
    ("anthropic_bedrock", "https://bedrock-runtime-fips.us-east-1.amazonaws.com", INVOKE, {}),
    ("anthropic_bedrock", "https://bedrock-mantle.us-east-1.api.aws", "/anthropic/v1/messages", {}),
    (
        "anthropic_bedrock",
        "https://bedrock-runtime.eu-west-1.amazonaws.com",
        "/openai/v1/chat/completions",
        {"model": "anthropic.claude-opus-4-8"},
    ),
    (
        "anthropic_bedrock",
        "https://bedrock-runtime.eu-west-1.amazonaws.com",
        "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fx/invoke",
        {"api": "anthropic-messages"},
    ),
    (UNKNOWN, "https://bedrock-runtime.us-east-1.amazonaws.com", NOVA, {}),
    (
        "anthropic_vertex",
        "https://aiplatform.googleapis.com",
        f"{VERTEX}/anthropic/models/claude-x:streamRawPredict",
        {},
    ),
    ("anthropic_vertex", "https://us-east5-aiplatform.googleapis.com", f"{VERTEX}/anthropic/models/c:rawPredict", {}),
    ("anthropic_vertex", "https://aiplatform.eu.rep.googleapis.com", f"{VERTEX}/anthropic/models/c:rawPredict", {}),
    (
        "gemini",
        "https://europe-west1-aiplatform.googleapis.com",
        f"{VERTEX}/google/models/gemini-2.5-pro:generateContent",
        {},
    ),
    (UNKNOWN, "https://us-central1-aiplatform.googleapis.com", f"{VERTEX}/meta/models/llama:rawPredict", {}),
    ("gemini", "https://generativelanguage.googleapis.com", "/v1beta/models/gemini-2.5-pro:streamGenerateContent", {}),
    ("openai", "https://api.openai.com", "/v1/responses", {"model": "gpt-5.6"}),
    ("openai", "https://eu.api.openai.com", "/v1/chat/completions", {}),
    ("openai", "https://chatgpt.com", "/backend-api/codex/responses", {}),
    (UNKNOWN, "https://chatgpt.com", "/", {}),
    ("deepseek", "https://api.deepseek.com", "/chat/completions", {"api": "openai-chat"}),
    (
        "deepseek",
        "https://api.deepseek.com",
        "/anthropic/v1/messages",
        {"api": "anthropic-messages", "model": "claude-x"},
    ),
    ("kimi", "https://api.moonshot.ai", "/v1/chat/completions", {}),
    ("kimi", "https://api.moonshot.cn", "/anthropic/v1/messages", {"api": "anthropic-messages"}),
    ("kimi_coding", "https://api.kimi.com", "/coding/v1/messages", {}),
    ("kimi_coding", "https://api.kimi.ai", "/coding/v1/chat/completions", {}),
    (UNKNOWN, "https://api.kimi.com", "/v1/usages", {}),
    ("glm", "https://api.z.ai", "/api/paas/v4/chat/completions", {}),
    ("glm", "https://api.z.ai", "/api/anthropic/v1/messages", {}),
    ("glm", "https://open.bigmodel.cn", "/api/anthropic/v1/messages", {}),
    ("glm_coding", "https://api.z.ai", "/api/coding/paas/v4/chat/completions", {}),
    ("glm_coding", "https://open.bigmodel.cn", "/api/coding/paas/v4/chat/completions", {}),
    ("qwen", "https://dashscope.aliyuncs.com", "/compatible-mode/v1/chat/completions", {}),
    ("qwen", "https://dashscope-intl.aliyuncs.com", "/apps/anthropic/v1/messages", {}),
    ("qwen", "https://coding-intl.dashscope.aliyuncs.com", "/v1/chat/completions", {}),
    ("qwen", "https://ws-1.ap-southeast-1.maas.aliyuncs.com", "/compatible-mode/v1/chat/completions", {}),
    ("xai", "https://api.x.ai", "/v1/chat/completions", {}),
    ("xai", "https://us.api.x.ai", "/v1/responses", {}),
    ("openrouter", "https://openrouter.ai", "/api/v1/chat/completions", {"model": "anthropic/claude-opus-4.5"}),
    ("openrouter", "https://eu.openrouter.ai", "/api/v1/chat/completions", {}),
    (UNKNOWN, "http://127.0.0.1:11434", "/v1/chat/completions", {}),
]


@pytest.mark.parametrize(("provider", "upstream", "path", "more"), WENT, ids=[f"{p} {u}{t}" for p, u, t, _ in WENT])
def test_where_a_request_went(provider: str, upstream: str, path: str, more: dict[str, Any]):
    assert ALL.identify(Seen(upstream, path, **more)) == provider


@pytest.mark.parametrize(
    "upstream",
    [
        *("https://api.anthropic.com.evil.example", "https://xapi.anthropic.com", "https://anthropic.com"),
        *("https://notopenai.com", "https://api.openai.com.example", "https://openai.com", "https://api-openai.com"),
        *(
            "https://api.anthropic.com@evil.example",
            "https://evil.example/api.anthropic.com",
            "https://api.deepseek.community",
        ),
        *(
            "https://xapi.x.ai",
            "https://x.ai",
            "https://max.ai",
            "https://openrouter.ai.example",
            "https://myopenrouter.ai",
        ),
        *(
            "https://evilgenerativelanguage.googleapis.com",
            "https://xaiplatform.googleapis.com",
            "https://aiplatform.googleapis.com.example",
        ),
        *(
            "https://dashscope.aliyuncs.com.example",
            "https://mydashscope.aliyuncs.com",
            "https://api.moonshot.community",
        ),
        *(
            "https://bedrock-runtime.us-east-1.amazonaws.com.example",
            "https://chatgpt.com.example",
            "https://mock.test",
        ),
        *(
            "http://localhost:1234",
            "http://127.0.0.1",
            "http://127.1.2.3:80",
            "http://[::1]:8080",
            "http://0.0.0.0:1",
            "",
        ),
    ],
)
@pytest.mark.parametrize(
    "path",
    [
        *(
            "/v1/messages",
            f"{VERTEX}/anthropic/models/c:rawPredict",
            f"{VERTEX}/google/models/g:generateContent",
            INVOKE,
        ),
        *("/backend-api/codex/responses", "/coding/v1/messages", "/api/paas/v4/chat/completions"),
    ],
)
def test_what_looks_like_a_provider_is_none(upstream: str, path: str):
    seen = Seen(upstream, path, "claude-opus-4-5", "anthropic-messages")
    assert ALL.identify(seen) == UNKNOWN


def test_the_host_that_the_client_named_counts_where_no_upstream_is_known():
    assert ALL.identify(Seen(path="/v1/messages", headers={"host": "api.anthropic.com"})) == "anthropic"
    assert ALL.identify(Seen(path="/v1/messages", headers={"host": "127.0.0.1:8080"})) == UNKNOWN
    beside = Seen("http://127.0.0.1:8080", "/v1/messages", headers={"host": "api.anthropic.com"})
    assert ALL.identify(beside) == UNKNOWN


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1", "127.1.2.3:80", "[::1]:8080", "0.0.0.0:1", "[", ""])
def test_a_loopback_address_is_nobodys_name(host: str):
    assert Seen(f"http://{host}").host == ""
    assert Seen(headers={"host": host}).host == ""


@pytest.mark.parametrize(
    ("name", "model", "provider"),
    [
        *(("anthropic", None, "anthropic"), ("OpenAI", None, "openai"), ("openai-codex", None, "openai")),
        *(("google", None, "gemini"), ("google-gla", None, "gemini"), ("google-vertex", "gemini-2.5-pro", "gemini")),
        *(
            ("google-vertex-anthropic", None, "anthropic_vertex"),
            ("google-vertex", "claude-opus-5", "anthropic_vertex"),
        ),
        *(("google-vertex", "llama-4", UNKNOWN), ("amazon-bedrock", "amazon.nova-pro", UNKNOWN)),
        ("amazon-bedrock", "global.anthropic.claude-opus-5-v1:0", "anthropic_bedrock"),
        *(("deepseek", None, "deepseek"), ("deepseek-official", None, "deepseek"), ("openrouter", None, "openrouter")),
        *(("moonshotai", None, "kimi"), ("moonshotai-cn", None, "kimi"), ("kimi-for-coding", None, "kimi_coding")),
        *(("kimi-coding", None, "kimi_coding"), ("zai", None, "glm"), ("zai-coding-plan", None, "glm_coding")),
        *(("xai", None, "xai"), ("alibaba", None, "qwen"), ("ollama", None, "ollama"), ("lmstudio", None, "lm_studio")),
        *(("lm-studio", None, "lm_studio"), ("llama.cpp", None, "llama_cpp"), ("vllm", None, "vllm")),
        *(("openai-compatible", None, UNKNOWN), ("mockanth", None, UNKNOWN), ("", None, UNKNOWN)),
    ],
)
def test_what_logs_call_providers(name: str, model: str | None, provider: str):
    assert ALL.identify(Seen(model=model, name=name)) == provider


@pytest.mark.parametrize("chosen", [*ALL.names, UNKNOWN])
def test_a_chosen_provider_is_that_of_every_request(chosen: str):
    assert Providers(chosen=chosen).identify(Seen("https://api.openai.com", "/v1/responses")) == chosen


def test_a_chosen_provider_must_be_known():
    with pytest.raises(CtxscopeError, match=r"provider nobody: not known; expected one of anthropic, .*xai, or a file"):
        Providers(chosen="nobody")


@given(st.text(max_size=40), st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_anything_may_have_been_seen(upstream: str, path: str, model: str, value: str):
    seen = Seen(upstream, path, model, value, {"host": value}, value)
    assert ALL.identify(seen) in {*ALL.names, UNKNOWN}
    assert ALL.identify(Seen(None, path, headers={"host": upstream})) in {*ALL.names, UNKNOWN}
