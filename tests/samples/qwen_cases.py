"""The Qwen Code sample: what the session says, what its chat file keeps, what crossed the wire.

A compression in the middle of a turn. Its line is written while the history goes on growing, so that it holds the answer
that came after it too: a new process reads that answer twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.samples.recording import T0, Recording, compact

CWD = "/home/vera/weir"
SESSION = "c41d9b70-55f2-4e0e-b1a7-9f3e2d6a0c18"
MODEL = "qwen3-coder-plus"
SYSTEM = (
    "You mind a weir. Read the gauge before you answer, give levels in centimetres, and change nothing by yourself."
)
SUMMARIZER = "You are the component that sums up a conversation about a weir. Answer with one <state_snapshot>."
ENVIRONMENT = (
    "This is the Qwen Code. We are setting up the context for our chat.\nToday's date is Sunday, February 1, 2026.\n"
    f"I'm currently working in the directory: {CWD}"
)
SUMMARIZE = "First, reason in your scratchpad. Then, generate the <state_snapshot>."
THANKS = "Got it. Thanks for the additional context!"
CONTINUE = "Continue with the prior task using the context above."
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "gauge",
            "description": "The level at one of the weir's gauges.",
            "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
        },
    }
]


def stamp(at: float) -> str:
    return datetime.fromtimestamp(T0 + at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class Chat:
    """The chat file: each line goes on from the one before."""

    lines: list[str] = field(default_factory=list)

    def add(self, at: float, kind: str, **more: Any) -> None:
        n = len(self.lines)
        parent = f"line-{n:04d}" if n else None
        head = {
            "uuid": f"line-{n + 1:04d}",
            "parentUuid": parent,
            "sessionId": SESSION,
            "timestamp": stamp(at),
            "type": kind,
        }
        self.lines.append(compact({**head, "cwd": CWD, "version": "0.15.10", **more}))

    def said(self, at: float, text: str) -> None:
        self.add(at, "user", message={"role": "user", "parts": [{"text": text}]})

    def telemetry(self, at: float, response: str, prompt: int, output: int) -> None:
        told = {"event.name": "qwen-code.api_response", "response_id": response, "model": MODEL, "status_code": 200}
        counts = {"input_token_count": prompt, "output_token_count": output, "cached_content_token_count": 0}
        self.add(at, "system", subtype="ui_telemetry", systemPayload={"uiEvent": {**told, **counts}})

    def answer(self, at: float, response: str, parts: list[dict[str, Any]], prompt: int, output: int) -> None:
        self.telemetry(at, response, prompt, output)
        usage = {"promptTokenCount": prompt, "candidatesTokenCount": output, "totalTokenCount": prompt + output}
        self.add(at + 0.1, "assistant", model=MODEL, message={"role": "model", "parts": parts}, usageMetadata=usage)

    def result(self, at: float, part: dict[str, Any]) -> None:
        self.add(at, "tool_result", message={"role": "user", "parts": [part]})


def use(name: str, at: str) -> dict[str, Any]:
    return {"functionCall": {"id": name, "name": "gauge", "args": {"at": at}}}


def gave(name: str, level: str) -> dict[str, Any]:
    return {"functionResponse": {"id": name, "name": "gauge", "response": {"output": level}}}


# --- messages of a request -------------------------------------------------------------------------------------------


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def assistant(text: str | None, *calls: tuple[str, str], thought: str = "") -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        called = [{"name": "gauge", "arguments": compact({"at": at})} for _, at in calls]
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": f} for (i, _), f in zip(calls, called, strict=True)
        ]
    return {**message, "reasoning_content": thought} if thought else message


def tool(name: str, level: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": [{"type": "text", "text": level}]}


BEGUN = [user(ENVIRONMENT), assistant("Got it. Thanks for the context!")]


def body(messages: list[dict[str, Any]]) -> str:
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    system = {"role": "system", "content": SYSTEM}
    return compact({"model": MODEL, "messages": [system, *messages], **stream, "tools": TOOLS, "max_tokens": 8000})


def summary_body(messages: list[dict[str, Any]]) -> str:
    system = {"role": "system", "content": SUMMARIZER}
    return compact({"model": MODEL, "messages": [system, *messages, user(SUMMARIZE)], "max_tokens": 8000})


def usage(prompt: int, output: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}


def reply(name: str, message: dict[str, Any], prompt: int, output: int) -> str:
    """The SSE stream of an answer."""
    delta = {k: v for k, v in message.items() if v is not None}
    calls = message.get("tool_calls")
    if calls:
        delta["tool_calls"] = [{"index": i, **call} for i, call in enumerate(calls)]
    chunk = {"id": name, "object": "chat.completion.chunk", "created": 1769936400, "model": MODEL}
    stop = "tool_calls" if calls else "stop"
    told = [
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}], "usage": usage(prompt, output)},
    ]
    return "".join(f"data: {compact(t)}\n\n" for t in told) + "data: [DONE]\n\n"


def plain(name: str, text: str, prompt: int, output: int) -> str:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return compact(
        {"id": name, "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": usage(prompt, output)}
    )


def compression_read_twice(case: Path) -> None:
    """Two rounds of the tool with a compression before the second's end; then a new process."""
    chat, wire = (
        Chat(),
        Recording(
            "/v1/chat/completions",
            {
                "host": "127.0.0.1:8415",
                "content-type": "application/json",
                "user-agent": "QwenCode/0.15.10 (linux; x64)",
            },
        ),
    )
    asked, thought, answer = (
        "Is the upper pool too high?",
        "Both gauges, upper first.",
        "No: 212 cm above, 180 cm below.",
    )
    upper, lower = ("call_up", "upper"), ("call_low", "lower")
    snapshot = "<state_snapshot>The user asks whether the upper pool is too high.</state_snapshot>"

    chat.said(0, asked)
    first = [*BEGUN, user(asked)]
    wire.add(0.1, body(first), reply("cmpl-1", assistant(None, upper, thought=thought), 240, 16))
    chat.answer(1.6, "cmpl-1", [{"text": thought, "thought": True}, use(*upper)], 240, 16)
    chat.result(1.9, gave("call_up", "212 cm"))
    second = [*first, assistant("", upper, thought=thought), tool("call_up", "212 cm")]
    wire.add(2.0, body(second), reply("cmpl-2", assistant(None, lower), 9100, 11))
    chat.answer(3.5, "cmpl-2", [use(*lower)], 9100, 11)
    chat.result(3.8, gave("call_low", "180 cm"))

    wire.add(3.9, summary_body(first), plain("cmpl-3", snapshot, 1300, 20))
    chat.telemetry(5.4, "cmpl-3", 1300, 20)
    kept = [
        {"role": "model", "parts": [{"text": thought, "thought": True}, use(*upper)]},
        {"role": "user", "parts": [gave("call_up", "212 cm")]},
        {"role": "model", "parts": [use(*lower)]},
    ]
    early = [{"role": "user", "parts": [gave("call_low", "180 cm")]}, {"role": "model", "parts": [{"text": answer}]}]
    begun = [
        {"role": "user", "parts": [{"text": snapshot}]},
        {"role": "model", "parts": [{"text": THANKS}]},
        {"role": "user", "parts": [{"text": CONTINUE}]},
    ]
    info = {"originalTokenCount": 9111, "newTokenCount": 8831, "compressionStatus": 1}
    payload = {"info": info, "compressedHistory": [*begun, *kept, *early]}
    chat.add(5.5, "system", subtype="chat_compression", systemPayload=payload)
    third = [
        user(snapshot),
        assistant(THANKS),
        user(CONTINUE),
        *second[3:],
        assistant(None, lower),
        tool("call_low", "180 cm"),
    ]
    wire.add(5.6, body(third), reply("cmpl-4", assistant(answer), 420, 15))
    chat.answer(7.1, "cmpl-4", [{"text": answer}], 420, 15)

    chat.said(30, "Good. Note it down, please — 🌊")
    fourth = [*BEGUN, *third, assistant(answer + answer), user("Good. Note it down, please — 🌊")]
    wire.add(30.1, body(fourth), reply("cmpl-5", assistant("Noted: 212 / 180 cm."), 610, 9))
    chat.answer(31.6, "cmpl-5", [{"text": "Noted: 212 / 180 cm."}], 610, 9)

    chats = case / "log" / ".qwen" / "projects" / "-home-vera-weir" / "chats"
    chats.mkdir(parents=True, exist_ok=True)
    (chats / f"{SESSION}.jsonl").write_bytes("".join(f"{line}\n" for line in chat.lines).encode())
    wire.write(case / "wire")


CASES = [compression_read_twice]
