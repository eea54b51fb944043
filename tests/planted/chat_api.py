"""Bodies and replies of Chat Completions, as OpenAI, its imitators and local engines speak it (reference §3, §5, §7)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from tests.planted.dialects import JSON, Answer, Dialect, dumps, sse
from tests.planted.pieces import Counted, Piece, Prompt, plain, prompt
from tests.planted.texts import schema

_IN_PREFIX = (
    "model",
    "parallel_tool_calls",
    "response_format",
    "reasoning_effort",
    "verbosity",
    "service_tier",
    "thinking",
    "chat_template_kwargs",
    "provider",
)
"""Settings that a rendered prefix depends on (§3.1, §4), where a body has them."""


def openai_usage(counted: Counted) -> JSON:
    """§7: cached tokens are a part of the prompt's."""
    usage: JSON = {"prompt_tokens": counted.total, "completion_tokens": counted.out}
    usage["total_tokens"] = counted.total + counted.out
    if not counted.silent:
        usage["prompt_tokens_details"] = {"cached_tokens": counted.read}
    return usage


def writing_usage(counted: Counted) -> JSON:
    """With what was written (gpt-5.6 and later, OpenRouter, Kimi)."""
    usage = openai_usage(counted)
    usage["prompt_tokens_details"]["cache_write_tokens"] = counted.write
    return usage


def deepseek_usage(counted: Counted) -> JSON:
    """Hit and miss are the prompt."""
    rest = {"prompt_cache_hit_tokens": counted.read, "prompt_cache_miss_tokens": counted.total - counted.read}
    return openai_usage(counted) | rest


def llama_usage(counted: Counted) -> JSON:
    """The engine's timings stand beside it: ``timings_of``."""
    return openai_usage(counted)


def timings_of(counted: Counted) -> JSON:
    """llama.cpp's own count (§5)."""
    new = counted.total - counted.read
    return {
        "timings": {
            "cache_n": counted.read,
            "prompt_n": new,
            "prompt_ms": new * 1.5,
            "prompt_per_second": 666.7,
            "predicted_n": counted.out,
            "predicted_ms": counted.out * 20.0,
            "predicted_per_second": 50.0,
        }
    }


class ChatApi(Dialect):
    """``usage`` spells what was counted; ``beside`` adds to a reply; ``isolated`` names what nothing is shared across;
    with ``whole_head`` a change of tools or system costs all (§4 Kimi)."""

    path = "/v1/chat/completions"
    base = 1
    system_path = "/messages/0"

    def __init__(
        self,
        usage: Callable[[Counted], JSON] = openai_usage,
        *,
        stream: bool = False,
        isolated: tuple[str, ...] = (),
        beside: Callable[[Counted], JSON] | None = None,
        path: str = "/v1/chat/completions",
        defaults: JSON | None = None,
        parses_arguments: bool = False,
        marks: bool = False,
        whole_head: bool = False,
    ) -> None:
        self.usage = usage
        self.stream = stream
        self.isolated = isolated
        self.beside = beside
        self.path = path
        self.defaults = defaults or {}
        self.parses_arguments = parses_arguments
        self.marks = marks
        self.whole_head = whole_head
        self.shows_ids = False
        """Whether the template prints the ids of tool calls (Kimi K2, §6)."""

    def opening(self, model: str, system: str, tools: tuple[str, ...], words: str) -> JSON:
        body: JSON = {"model": model, "messages": [{"role": "system", "content": system}, self.user(words)]}
        body["tools"] = [self.tool(name) for name in tools]
        body |= copy.deepcopy(self.defaults)
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return self.marked(body)

    def marked(self, body: JSON) -> JSON:
        """Qwen's explicit markers: the system text, and the last message with a text."""
        if not self.marks:
            return body
        for message in body["messages"]:
            if isinstance(message["content"], list):
                for part in message["content"]:
                    part.pop("cache_control", None)
        for message in (body["messages"][0], body["messages"][-1]):
            if isinstance(message["content"], str):
                message["content"] = [{"type": "text", "text": message["content"]}]
            message["content"][-1]["cache_control"] = {"type": "ephemeral"}
        return body

    def said(self, given: Answer) -> list[JSON]:
        message: JSON = {"role": "assistant", "content": given.text}
        if given.thinking:
            message["reasoning_content"] = given.thinking
        if given.call:
            spelled = {"name": given.call[1], "arguments": plain(given.call[2]).decode()}
            message["tool_calls"] = [{"id": given.call[0], "type": "function", "function": spelled}]
        return [message]

    def told(self, given: Answer, words: str) -> list[JSON]:
        if not given.call:
            return [self.user(words)]
        return [{"role": "tool", "tool_call_id": given.call[0], "content": words}]

    def prompt(self, body: JSON, headers: dict[str, str]) -> Prompt:
        pieces = [Piece(plain(tool), 0) for tool in body.get("tools", ())]
        messages = body["messages"]
        for index, message in enumerate(messages):
            following = messages[index + 1]["role"] if index + 1 < len(messages) else None
            role = message["role"]
            end = role == "user" or (role == "tool" and following != "tool")
            end |= role in ("system", "developer") and index == 0 and following not in ("system", "developer")
            pieces += self._rendered(message, end)
        used = {k: body.get(k) for k in _IN_PREFIX}
        if self.whole_head:
            used["head"] = str([body.get("tools"), messages[0]])
        isolation = "/".join(str(body.get(k, headers.get(k, ""))) for k in self.isolated)
        explicit = (body.get("prompt_cache_options") or {}).get("mode") == "explicit"
        return prompt(pieces, (str(used), "", ""), isolation, explicit)

    def _rendered(self, message: JSON, end: bool) -> list[Piece]:
        parts: list[Any] = [message["role"]]
        content = message.get("content")
        level = 1 if message["role"] in ("system", "developer") else 2
        marked: int | None = None
        if isinstance(content, list):
            texts = [part.get("text") or plain(part).decode()[-400:] for part in content]
            if any("cache_control" in part for part in content):
                marked = 300
            if any("prompt_cache_breakpoint" in part for part in content):
                marked = 1800
            content = "".join(texts)
        parts += [message.get("reasoning_content"), content]
        for call in message.get("tool_calls") or ():
            parts += [call["function"]["name"], self._arguments(call["function"]["arguments"])]
            parts += [call["id"]] if self.shows_ids else []
        text = b"<|im_start|>" + b"\n".join(plain(part) for part in parts if part is not None) + b"<|im_end|>\n"
        return [Piece(text, level, marked, end)]

    def _arguments(self, text: str) -> Any:
        return json.loads(text) if self.parses_arguments else text

    def generated(self, given: Answer) -> bytes:
        return b"".join(p.text for m in self.said(given) for p in self._rendered(m, False))

    def reply(self, body: JSON, counted: Counted, given: Answer, number: str, extra: JSON) -> bytes:
        usage = self.usage(counted)
        more = (self.beside(counted) if self.beside else {}) | extra
        head: JSON = {"id": f"chatcmpl-{number}", "created": 1_790_000_000, "model": body["model"]}
        message = self.said(given)[0]
        stop = "tool_calls" if given.call else "stop"
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": stop}
            return dumps(head | {"object": "chat.completion", "choices": [choice], "usage": usage} | more)
        head["object"] = "chat.completion.chunk"
        delta = message | {"tool_calls": [c | {"index": i} for i, c in enumerate(message.get("tool_calls", []))]}
        delta = {k: v for k, v in delta.items() if v != []}
        chunks = [
            head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            head | {"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]},
            head | {"choices": [], "usage": usage} | more,
        ]
        return sse([*((None, chunk) for chunk in chunks), (None, "[DONE]")])

    def tool(self, name: str) -> JSON:
        described = {"name": name, "description": f"Works on {name}.", "parameters": copy.deepcopy(schema(name))}
        return {"type": "function", "function": described}

    def describe(self, tool: JSON) -> JSON:
        found: JSON = tool["function"]
        return found

    def schema_of(self, tool: JSON) -> JSON:
        found: JSON = tool["function"]["parameters"]
        return found

    def system(self, body: JSON) -> str:
        content = body["messages"][0]["content"]
        return str(content if isinstance(content, str) else content[0]["text"])

    def set_system(self, body: JSON, text: str) -> None:
        self.set_text(body["messages"][0], text)

    def user(self, text: str) -> JSON:
        return {"role": "user", "content": text}

    def assistant(self, text: str) -> JSON:
        return {"role": "assistant", "content": text}

    def set_text(self, message: JSON, text: str) -> None:
        if isinstance(message["content"], list):
            message["content"][0]["text"] = text
        else:
            message["content"] = text
