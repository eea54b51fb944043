"""The Copilot CLI sample: what the session says, what its log keeps, what crossed the wire (1.0.102, own provider)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.samples.recording import T0, Recording, compact, pieces

SESSION = "5d0e1a3c-77a1-4c1e-9d0b-3f6a2b8c4e10"
CWD = "/home/dev/harbour"
MODEL = "harbour-chat"
SYSTEM = "You keep the log of a small harbour. Answer in one sentence; read the files before you guess.\n"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read",
            "description": "Read a file of the log.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "gauge",
            "description": "Level at a station, in centimetres.",
            "parameters": {"type": "object", "properties": {"station": {"type": "string"}}, "required": ["station"]},
        },
    },
]
LIMIT = 6000


@dataclass(frozen=True)
class Use:
    """A tool call: its arguments as the model spelt them, and what it says it is about."""

    id: str
    name: str
    spelled: str
    about: str


@dataclass(frozen=True)
class Answer:
    """What the model said; ``thought`` comes with opaque details."""

    id: str
    text: str = ""
    thought: str = ""
    uses: tuple[Use, ...] = ()

    @property
    def details(self) -> list[dict[str, Any]]:
        sealed = f"c2VhbGVk{self.id[-4:]}" * 8
        return [{"type": "reasoning.text", "text": self.thought, "signature": sealed, "index": 0}]


def live(answer: Answer) -> dict[str, Any]:
    """An answer within the run that received it."""
    message: dict[str, Any] = {"reasoning_details": answer.details} if answer.thought else {}
    message |= {"role": "assistant", "content": answer.text or None, "refusal": None}
    if answer.uses:
        message["tool_calls"] = [_call(u.id, u.name, u.spelled) for u in answer.uses]
    return {**message, **({"reasoning_content": answer.thought} if answer.thought else {})}


def found(answer: Answer) -> dict[str, Any]:
    """The same after a resume: arguments spelt anew, nothing opaque."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.uses:
        message["tool_calls"] = [_call(u.id, u.name, compact(json.loads(u.spelled))) for u in answer.uses]
    return message


def result(use: Use, text: str, *, resumed: bool) -> dict[str, Any]:
    """A tool's result; after a resume with its source."""
    source = {"__copilotMessageSource": {"kind": "tool", "name": use.name, "summary": use.about}} if resumed else {}
    return {"role": "tool", "tool_call_id": use.id, "content": text, **source}


def _call(call: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}


def dated(at: float, text: str) -> str:
    """A user's message as it is sent."""
    return f"<current_datetime>{_iso(at)}</current_datetime>\n\n{text}"


def user(at: float, text: str) -> dict[str, Any]:
    return {"role": "user", "content": dated(at, text)}


def body(messages: list[dict[str, Any]]) -> str:
    params = {"temperature": 0, "top_p": 0.95, "max_tokens": LIMIT}
    end = {"tools": TOOLS, "stream": True, "stream_options": {"include_usage": True}}
    return compact({"model": MODEL, "messages": [{"role": "system", "content": SYSTEM}, *messages], **params, **end})


def reply(answer: Answer, prompt: int, cached: int) -> str:
    """The SSE stream of an answer."""
    head = {"id": answer.id, "object": "chat.completion.chunk", "created": int(T0), "model": MODEL}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if answer.thought:
        deltas.append({"reasoning_content": answer.thought, "reasoning_details": answer.details})
    deltas += [{"content": t} for t in pieces(answer.text)]
    for index, use in enumerate(answer.uses):
        function = {"name": use.name, "arguments": use.spelled}
        deltas.append({"tool_calls": [{"index": index, "id": use.id, "type": "function", "function": function}]})
    chunks = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish(answer)}]})
    usage = {"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20}
    chunks.append({**head, "choices": [], "usage": {**usage, "prompt_tokens_details": {"cached_tokens": cached}}})
    return "".join(f"data: {compact(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"


def finish(answer: Answer) -> str:
    return "tool_calls" if answer.uses else "stop"


def _iso(at: float) -> str:
    return datetime.fromtimestamp(T0 + at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class Events:
    """``events.jsonl``, event by event."""

    lines: list[str] = field(default_factory=list)
    last: str | None = None

    def event(self, kind: str, at: float, data: dict[str, Any]) -> str:
        key = f"0e0e0000-0000-4000-8000-{len(self.lines) + 1:012d}"
        line = {"type": kind, "data": data, "id": key, "timestamp": _iso(at), "parentId": self.last}
        self.lines.append(compact(line))
        self.last = key
        return key

    def start(self) -> None:
        data = {"sessionId": SESSION, "version": 1, "producer": "copilot-agent", "copilotVersion": "1.0.102"}
        told = {"startTime": _iso(0.0), "selectedModel": MODEL, "context": {"cwd": CWD}}
        self.event("session.start", 0.0, {**data, **told})

    def user(self, at: float, text: str) -> None:
        sent = {"content": text, "transformedContent": dated(at, text), "delivery": "idle", "turnId": "0"}
        self.event("user.message", at, sent)

    def called(self, at: float, answer: Answer, size: int, prompt: int, cached: int) -> None:
        """The start of a turn, what the call cost, and the answer."""
        self.event("assistant.turn_start", at, {"turnId": "0"})
        used = {"model": MODEL, "inputTokens": prompt, "outputTokens": 20, "cacheReadTokens": cached}
        more = {"cacheWriteTokens": 0, "reasoningTokens": 0, "maxPromptTokens": 64000, "maxOutputTokens": LIMIT}
        where = {"requestBodyBytes": size, "requestBodyEncoding": "identity", "apiCallId": answer.id}
        end = {"apiEndpoint": "/chat/completions", "modelProvider": "other", "finishReason": finish(answer)}
        self.event("session.usage_record", at + 0.8, {"usage": {**used, **more, **where, **end}})
        said: dict[str, Any] = {"messageId": f"m-{answer.id}", "model": MODEL, "content": answer.text}
        asked = [
            {"toolCallId": u.id, "name": u.name, "arguments": json.loads(u.spelled), "intentionSummary": u.about}
            for u in answer.uses
        ]
        thought = {"reasoningText": answer.thought} if answer.thought else {}
        said |= {"toolRequests": asked, **thought, "apiCallId": answer.id}
        self.event("assistant.message", at + 0.9, said)

    def result(self, at: float, use: Use, text: str) -> None:
        start = {"toolCallId": use.id, "toolName": use.name, "arguments": json.loads(use.spelled)}
        self.event("tool.execution_start", at, start)
        self.event("tool.execution_complete", at, {"toolCallId": use.id, "success": True, "result": {"content": text}})

    def write(self, home: Path) -> None:
        folder = home / ".copilot/session-state" / SESSION
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "events.jsonl").write_bytes("".join(line + "\n" for line in self.lines).encode())


def resumed(case: Path) -> None:
    """Two runs: what the first one sent live, with opaque details and the model's own spelling, changes in the second."""
    log = Events()
    wire = Recording(
        "/v1/chat/completions",
        {"host": "127.0.0.1:8412", "content-type": "application/json", "user-agent": "OpenAI/JS 5.20.1"},
    )
    uses = (
        Use("call_res_a", "read", '{"path": "log/2026-02.md"}', "read the log"),
        Use("call_res_b", "gauge", '{ "station": "north m\\u00f4le" }', "ask the gauge"),
    )
    first = Answer("chatcmpl-res0001", "I look at both.", "The log may be behind the gauge.", uses)
    second = Answer("chatcmpl-res0002", "High water was at 06:10, the gauge shows 241 cm — as logged.")
    third = Answer("chatcmpl-res0003", "It was the môle's north station.")
    texts = ("high water 06:10, 241 cm\n", "241")

    log.start()
    log.user(1.0, "Does the gauge agree with the log? «Hochwasser»")
    log.event("system.message", 1.1, {"role": "system", "content": SYSTEM})
    messages = [user(1.0, "Does the gauge agree with the log? «Hochwasser»")]
    sent = body(messages)
    wire.add(1.2, sent, reply(first, 300, 0), took=0.7)
    log.called(1.15, first, len(sent.encode()), 300, 0)
    for use, text in zip(uses, texts, strict=True):
        log.result(2.1, use, text)
    log.event("assistant.turn_end", 2.2, {"turnId": "0"})

    sent = body([*messages, live(first), *(result(u, t, resumed=False) for u, t in zip(uses, texts, strict=True))])
    wire.add(2.4, sent, reply(second, 420, 300), took=0.7)
    log.called(2.3, second, len(sent.encode()), 420, 300)
    log.event("assistant.turn_end", 3.3, {"turnId": "1"})
    log.event("session.shutdown", 3.5, {"shutdownType": "routine"})

    log.event("session.resume", 60.0, {"resumeTime": _iso(60.0), "selectedModel": MODEL, "context": {"cwd": CWD}})
    log.user(60.5, "Which station was that?")
    messages += [found(first), *(result(u, t, resumed=True) for u, t in zip(uses, texts, strict=True)), found(second)]
    sent = body([*messages, user(60.5, "Which station was that?")])
    wire.add(60.7, sent, reply(third, 430, 250), took=0.7)
    log.called(60.6, third, len(sent.encode()), 430, 250)
    log.event("assistant.turn_end", 61.6, {"turnId": "0"})

    log.write(case / "log")
    wire.write(case / "wire")


CASES = (resumed,)
