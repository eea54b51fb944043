"""Spells what Kimi CLI 1.40 writes and sends: context rows, events, Chat Completions bodies and their SSE replies."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path
from typing import Any

from tests.samples.recording import T0, Recording, compact, pieces

MODEL = "kimi-k2-thinking"
COMPACTS = "You are a helpful assistant that compacts conversation context."
COMPACTED = "<system>Previous context has been compacted. Here is the compaction output:</system>"


def recording() -> Recording:
    return Recording(
        "/v1/chat/completions",
        {
            "host": "127.0.0.1:8412",
            "accept": "application/json",
            "content-type": "application/json",
            "user-agent": "KimiCLI/1.40.0",
            "authorization": "<cut>",
        },
    )


@dataclass(frozen=True)
class Use:
    id: str
    name: str
    arguments: str
    """As the model spelled them: kept and sent so."""

    def spelled(self) -> dict[str, Any]:
        return {"type": "function", "id": self.id, "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(frozen=True)
class Tokens:
    prompt: int
    cached: int
    output: int


def answer_row(text: str, thought: str = "", uses: tuple[Use, ...] = ()) -> dict[str, Any]:
    """An assistant row: a text alone is a string, with thinking it is a list."""
    content: Any = [{"type": "think", "think": thought, "encrypted": None}] if thought else []
    content += [{"type": "text", "text": text}] if text else []
    content = text if text and not thought else content
    row = {"role": "assistant", "content": content}
    return {**row, **({"tool_calls": [use.spelled() for use in uses]} if uses else {})}


def answer_sent(text: str, thought: str = "", uses: tuple[Use, ...] = ()) -> dict[str, Any]:
    """The same in a later request."""
    message: dict[str, Any] = {"role": "assistant"}
    message |= {"content": text} if text or not uses else {}
    message |= {"tool_calls": [use.spelled() for use in uses]} if uses else {}
    return {**message, **({"reasoning_content": thought} if thought else {})}


def result(use: Use, told: str, output: str) -> dict[str, Any]:
    """A tool row, which is sent as it is."""
    parts = [{"type": "text", "text": f"<system>{told}</system>"}, {"type": "text", "text": output}]
    return {"role": "tool", "content": parts, "tool_call_id": use.id}


def body(session: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
    return compact(
        {
            "messages": messages,
            "model": MODEL,
            "max_tokens": 32000,
            "prompt_cache_key": session,
            "reasoning_effort": "high",
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": tools,
            "thinking": {"type": "enabled"},
        }
    )


def reply(
    name: str, tokens: Tokens, text: str, thought: str = "", uses: tuple[Any, ...] = (), model: str = MODEL
) -> str:
    """The SSE stream of an answer; ``uses`` have ``id``, ``name``, ``arguments``."""
    base = {"id": name, "created": int(T0), "model": model, "object": "chat.completion.chunk"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": part} for part in pieces(thought)]
    deltas += [{"content": part} for part in pieces(text)]
    for at, use in enumerate(uses):
        function = {"name": use.name, "arguments": use.arguments}
        deltas.append({"tool_calls": [{"index": at, "id": use.id, "type": "function", "function": function}]})
    events = [{**base, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    stop = "tool_calls" if uses else "stop"
    events.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
    usage = {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.prompt + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
    }
    events.append({**base, "choices": [], "usage": usage})
    return "".join(f"data: {compact(e)}\n\n" for e in events) + "data: [DONE]\n\n"


@dataclass
class Session:
    """A session's folder; ``rotate`` begins a new context file."""

    id: str
    cwd: str
    contexts: list[list[str]] = field(default_factory=lambda: [[]])
    events: list[str] = field(default_factory=lambda: [json.dumps({"type": "metadata", "protocol_version": "1.9"})])
    checkpoints: int = 0

    def note(self, role: str, **values: Any) -> None:
        """A row of the agent's own: spaced, escaped."""
        self.contexts[-1].append(json.dumps({"role": role, **values}))

    def checkpoint(self) -> None:
        self.note("_checkpoint", id=self.checkpoints)
        self.checkpoints += 1

    def row(self, message: dict[str, Any]) -> None:
        """A message: compact, raw."""
        self.contexts[-1].append(compact(message))

    def event(self, at: float, kind: str, **payload: Any) -> None:
        message = {"type": kind, "payload": payload}
        self.events.append(json.dumps({"timestamp": T0 + at, "message": message}, ensure_ascii=False))

    def turn(self, at: float, text: str) -> None:
        self.event(at, "TurnBegin", user_input=text)
        self.checkpoint()
        self.row({"role": "user", "content": text})

    def step(
        self,
        at: float,
        number: int,
        name: str,
        tokens: Tokens,
        text: str,
        thought: str = "",
        uses: tuple[Use, ...] = (),
    ) -> None:
        """A step whose answer came ``at`` some second; results of its tools follow as rows."""
        self.event(at - 1.5, "StepBegin", n=number)
        self.checkpoint()
        if thought:
            self.event(at - 0.2, "ContentPart", type="think", think=thought, encrypted=None)
        if text:
            self.event(at - 0.1, "ContentPart", type="text", text=text)
        for use in uses:
            self.event(at, "ToolCall", **use.spelled(), extras=None)
        usage = {"input_other": tokens.prompt - tokens.cached, "output": tokens.output}
        usage |= {"input_cache_read": tokens.cached, "input_cache_creation": 0}
        status = {
            "context_usage": tokens.prompt / 200000,
            "context_tokens": tokens.prompt,
            "max_context_tokens": 200000,
        }
        self.event(at, "StatusUpdate", **status, token_usage=usage, message_id=name, plan_mode=False, mcp_status=None)
        self.note("_usage", token_count=tokens.prompt)
        self.row(answer_row(text, thought, uses))
        self.note("_usage", token_count=tokens.prompt + tokens.output)

    def rotate(self) -> None:
        self.contexts.append([])
        self.checkpoints = 0

    def write(self, home: Path, title: str) -> None:
        base = home / ".kimi"
        folder = base / "sessions" / md5(self.cwd.encode()).hexdigest() / self.id  # noqa: S324 - a name, no secret
        folder.mkdir(parents=True, exist_ok=True)
        *old, current = self.contexts
        names = [f"context_{n}.jsonl" for n in range(1, len(old) + 1)]
        for name, lines in [*zip(names, old, strict=True), ("context.jsonl", current), ("wire.jsonl", self.events)]:
            (folder / name).write_bytes("".join(line + "\n" for line in lines).encode())
        known = {"work_dirs": [{"path": self.cwd, "kaos": "local", "last_session_id": self.id}]}
        state = {"version": 1, "custom_title": title, "archived": False}
        (base / "kimi.json").write_bytes((json.dumps(known, indent=2) + "\n").encode())
        (folder / "state.json").write_bytes((json.dumps(state, indent=2) + "\n").encode())
