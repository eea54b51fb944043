"""Spells what pi 1.6 writes and sends on the Anthropic API: session JSONL, home files, bodies, SSE replies."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.samples.recording import T0, Recording, compact, pieces

PROVIDER = "lighthouse"
MODEL = "claude-sonnet-4-5"
BASE_URL = "http://127.0.0.1:8411"
EPHEMERAL = {"type": "ephemeral"}
THINKING_LOW = {"type": "enabled", "budget_tokens": 2048, "display": "summarized"}
THINKING_OFF = {"type": "disabled"}


def recording() -> Recording:
    return Recording(
        "/v1/messages?beta=true",
        {
            "host": "127.0.0.1:8411",
            "accept": "application/json",
            "content-type": "application/json",
            "anthropic-version": "2023-06-01",
            "user-agent": "pi/1.6.0 (linux; node/v22.20.0; x64)",
            "x-api-key": "<cut>",
        },
    )


@dataclass(frozen=True)
class Think:
    text: str
    signature: str


@dataclass(frozen=True)
class Say:
    text: str


@dataclass(frozen=True)
class Use:
    id: str
    name: str
    spelled: str
    """Arguments as the model spelled them; pi keeps and re-sends the parsed value."""

    @property
    def arguments(self) -> Any:
        return json.loads(self.spelled)


Part = Think | Say | Use


def logged(part: Part) -> dict[str, Any]:
    """A block of an assistant entry."""
    if isinstance(part, Think):
        return {"type": "thinking", "thinking": part.text, "thinkingSignature": part.signature}
    if isinstance(part, Say):
        return {"type": "text", "text": part.text}
    return {"type": "toolCall", "id": part.id, "name": part.name, "arguments": part.arguments}


def sent(part: Part) -> dict[str, Any]:
    """The same block in a later request."""
    if isinstance(part, Think):
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    if isinstance(part, Say):
        return {"type": "text", "text": part.text}
    return {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments}


# --- messages of a request -------------------------------------------------------------------------------------------


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def assistant(*parts: Part) -> dict[str, Any]:
    return {"role": "assistant", "content": [sent(p) for p in parts]}


def results(*pairs: tuple[str, str]) -> dict[str, Any]:
    """Tool results of one assistant, ``(tool id, text)``: one user message holds them all."""
    blocks = [{"type": "tool_result", "tool_use_id": i, "content": text, "is_error": False} for i, text in pairs]
    return {"role": "user", "content": blocks}


def body(messages: list[dict[str, Any]], system: str, tools: list[dict[str, Any]], **limits: Any) -> str:
    """A request body. The mark goes on the system block, the last tool and the last block of the last message."""
    *earlier, last = messages
    *before, final = last["content"]
    last = {**last, "content": [*before, {**final, "cache_control": EPHEMERAL}]}
    return compact(
        {
            "model": MODEL,
            "messages": [*earlier, last],
            "max_tokens": limits["max_tokens"],
            "stream": True,
            "system": [{"type": "text", "text": system, "cache_control": EPHEMERAL}],
            "tools": [*tools[:-1], {**tools[-1], "cache_control": EPHEMERAL}],
            "thinking": limits["thinking"],
        }
    )


# --- replies ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tokens:
    read: int
    write: int
    output: int
    thought: int = 0
    input: int = 3

    @property
    def prompt(self) -> int:
        return self.input + self.read + self.write

    def reported(self, output: int) -> dict[str, Any]:
        return {
            "input_tokens": self.input,
            "cache_creation_input_tokens": self.write,
            "cache_read_input_tokens": self.read,
            "cache_creation": {"ephemeral_5m_input_tokens": self.write, "ephemeral_1h_input_tokens": 0},
            "output_tokens": output,
            "service_tier": "standard",
        }

    def stored(self) -> dict[str, Any]:
        zero = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0, "totalFromProvider": False}
        return {
            "input": self.input,
            "output": self.output,
            "cacheRead": self.read,
            "cacheWrite": self.write,
            "totalTokens": self.prompt + self.output,
            "cost": zero,
            "cacheWrite1h": 0,
            "reasoning": self.thought,
        }


def reply(response: str, parts: list[Part], tokens: Tokens, stop: str) -> str:
    """The SSE stream of an answer."""
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {
                "id": response,
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": tokens.reported(1),
            },
        }
    ]
    for index, part in enumerate(parts):
        start, deltas = _streamed(part)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": stop, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": tokens.reported(tokens.output)})
    events.append({"type": "message_stop"})
    return "".join(f"event: {e['type']}\ndata: {compact(e)}\n\n" for e in events)


def too_long(request: str, tokens: int, window: int) -> str:
    """The refusal of a prompt that is longer than the model takes."""
    message = f"prompt is too long: {tokens} tokens > {window} maximum"
    error = {"type": "invalid_request_error", "message": message}
    return compact({"type": "error", "error": error, "request_id": request})


def _streamed(part: Part) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if isinstance(part, Think):
        thoughts = [{"type": "thinking_delta", "thinking": t} for t in pieces(part.text)]
        start = {"type": "thinking", "thinking": "", "signature": ""}
        return start, [*thoughts, {"type": "signature_delta", "signature": part.signature}]
    if isinstance(part, Say):
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": t} for t in pieces(part.text)]
    start = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
    return start, [{"type": "input_json_delta", "partial_json": t} for t in pieces(part.spelled)]


# --- the log ---------------------------------------------------------------------------------------------------------


def _iso(at: float) -> str:
    return datetime.fromtimestamp(T0 + at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _ms(at: float) -> int:
    return round((T0 + at) * 1000)


@dataclass
class SessionFile:
    """A session's JSONL, appended to entry by entry; each new entry is the child of the one before it."""

    id: str
    cwd: str
    level: str
    opened: float = 0.0
    lines: list[str] = field(default_factory=list)
    leaf: str | None = None

    def __post_init__(self) -> None:
        header = {"type": "session", "version": 3, "id": self.id, "timestamp": _iso(self.opened), "cwd": self.cwd}
        self.lines.append(compact(header))

    def entry(self, kind: str, key: str, at: float, **payload: Any) -> None:
        base = {"type": kind, "id": key, "parentId": self.leaf, "timestamp": _iso(at)}
        self.lines.append(compact({**base, **payload}))
        self.leaf = key

    def start(self, keys: tuple[str, str, str], sections: dict[str, str], tools: list[dict[str, Any]]) -> None:
        """Model, thinking level and the system message that opens every 1.6 session."""
        at = self.opened + 0.3
        self.entry("model_change", keys[0], at, provider=PROVIDER, modelId=MODEL)
        self.entry("thinking_level_change", keys[1], at, thinkingLevel=self.level)
        message = {"role": "system", "content": "", "sections": sections, "timestamp": _ms(at + 0.5)}
        self.entry("message", keys[2], at + 0.5, message={**message, "toolsAdded": tools})

    def user(self, key: str, at: float, text: str) -> None:
        content = [{"type": "text", "text": text}]
        self.entry("message", key, at, message={"role": "user", "content": content, "timestamp": _ms(at)})

    def answer(self, key: str, at: float, parts: list[Part], tokens: Tokens, *, response: str, stop: str) -> None:
        """An assistant entry; ``stop`` is the provider's word."""
        message = {
            "role": "assistant",
            "content": [logged(p) for p in parts],
            "api": "anthropic-messages",
            "provider": PROVIDER,
            "model": MODEL,
            "usage": tokens.stored(),
            "stopReason": {"end_turn": "stop", "tool_use": "toolUse", "max_tokens": "length"}[stop],
            "timestamp": _ms(at - 1.4),
            "responseId": response,
            "rawStopReason": stop,
            "durationMs": 1400,
            "thinkingLevel": self.level,
        }
        self.entry("message", key, at, message=message)

    def failed(self, key: str, at: float, words: str) -> None:
        """The assistant entry of a call that ended in an error."""
        message = {
            "role": "assistant",
            "content": [],
            "api": "anthropic-messages",
            "provider": PROVIDER,
            "model": MODEL,
            "usage": Tokens(0, 0, 0, input=0).stored(),
            "stopReason": "error",
            "timestamp": _ms(at - 0.4),
            "errorMessage": words,
            "thinkingLevel": self.level,
        }
        self.entry("message", key, at, message=message)

    def result(self, key: str, at: float, use: Use, text: str) -> None:
        message = {
            "role": "toolResult",
            "toolCallId": use.id,
            "toolName": use.name,
            "content": [{"type": "text", "text": text}],
            "isError": False,
            "durationMs": 12,
            "timestamp": _ms(at),
        }
        self.entry("message", key, at, message=message)

    def write(self, home: Path) -> None:
        folder = home / ".pi/agent/sessions" / ("--" + self.cwd[1:].replace("/", "-") + "--")
        folder.mkdir(parents=True, exist_ok=True)
        stamp = _iso(self.opened).replace(":", "-").replace(".", "-")
        text = "".join(line + "\n" for line in self.lines)
        (folder / f"{stamp}_{self.id}.jsonl").write_bytes(text.encode())


def write_home(home: Path, max_tokens: int, level: str, *, window: int = 200000, **settings: Any) -> None:
    """``settings.json`` and ``models.json`` of a home whose only provider is ours."""
    agent = home / ".pi/agent"
    agent.mkdir(parents=True, exist_ok=True)
    free = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    model = {"id": MODEL, "name": MODEL, "reasoning": True, "input": ["text"], "cost": free}
    models = [{**model, "contextWindow": window, "maxTokens": max_tokens}]
    provider = {"baseUrl": BASE_URL, "api": "anthropic-messages", "apiKey": "unused", "models": models}
    chosen = {"defaultProvider": PROVIDER, "defaultModel": MODEL, "defaultThinkingLevel": level, **settings}
    for name, value in (("models.json", {"providers": {PROVIDER: provider}}), ("settings.json", chosen)):
        (agent / name).write_bytes((json.dumps(value, indent=2) + "\n").encode())
