"""Chats of Qwen Code for tests, written line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxscope import wire
from ctxscope.agents import Log, at_hand, qwen
from ctxscope.model import Body, Config, Learned, Place, Point, Rebuilt, Record, SessionRef
from ctxscope.wire.body import make_body

SYSTEM = {"role": "system", "content": "Be brief."}
ENVIRONMENT = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "This is the Qwen Code. We are setting up the context for our chat.\nA port."}
        ],
    },
    {"role": "assistant", "content": "Got it. Thanks for the context!"},
]
THANKS = "Got it. Thanks for the additional context!"
CONTINUE = "Continue with the prior task using the context above."
TOOLS = [{"type": "function", "function": {"name": "look", "description": "l", "parameters": {"type": "object"}}}]


@dataclass
class Chat:
    """A chat file; each line goes on from the one before unless told otherwise, two seconds later."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    last: str | None = None
    version: str = "0.15.10"

    def add(self, kind: str, *, after: str | None = "", **more: Any) -> str:
        name = f"l{len(self.rows) + 1}"
        minutes, seconds = divmod(2 * len(self.rows), 60)
        row = {
            "uuid": name,
            "parentUuid": self.last if after == "" else after,
            "sessionId": "s-1",
            "timestamp": f"2026-01-01T10:{minutes:02}:{seconds:02}.000Z",
            "type": kind,
            "cwd": "/p",
            "version": self.version,
        }
        self.rows.append({**row, **more})
        self.last = name
        return name

    def user(self, *parts: str | dict[str, Any], after: str | None = "") -> str:
        listed = [{"text": p} if isinstance(p, str) else p for p in parts]
        return self.add("user", after=after, message={"role": "user", "parts": listed})

    def event(self, name: str, **more: Any) -> str:
        told = {"event.name": f"qwen-code.{name}", **more}
        return self.add("system", subtype="ui_telemetry", systemPayload={"uiEvent": told})

    def answer(self, *parts: str | dict[str, Any], prompt: int = 90, model: str = "m-1", response: str = "") -> str:
        if response:
            self.event("api_response", response_id=response, model=model, input_token_count=prompt)
        listed = [{"text": p} if isinstance(p, str) else p for p in parts]
        usage = {
            "promptTokenCount": prompt,
            "candidatesTokenCount": 9,
            "thoughtsTokenCount": 2,
            "cachedContentTokenCount": 30,
        }
        return self.add("assistant", model=model, message={"role": "model", "parts": listed}, usageMetadata=usage)

    def result(self, identity: str, output: str = "seen") -> str:
        return self.add("tool_result", message={"role": "user", "parts": [result(identity, output)]})

    def compressed(self, *contents: dict[str, Any], response: str = "") -> str:
        if response:
            self.event("api_response", response_id=response, input_token_count=500)
        info = {"originalTokenCount": 900, "newTokenCount": 400, "compressionStatus": 1}
        payload = {"info": info, "compressedHistory": list(contents)}
        return self.add("system", subtype="chat_compression", systemPayload=payload)

    def log(self) -> Log:
        return log_of(self.rows)


def content(role: str, *parts: str | dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": p} if isinstance(p, str) else p for p in parts]}


def thought(text: str) -> dict[str, Any]:
    return {"text": text, "thought": True}


def call(identity: str, **args: Any) -> dict[str, Any]:
    return {"functionCall": {"id": identity, "name": "look", "args": args}}


def result(identity: str, output: str = "seen") -> dict[str, Any]:
    return {"functionResponse": {"id": identity, "name": "look", "response": {"output": output}}}


def log_of(rows: Sequence[dict[str, Any] | bytes]) -> Log:
    """A session read at once."""
    log = Log(SessionRef("qwen", "s-1", (Path("/h/.qwen/projects/-p/chats/s-1.jsonl"),), Path("/h")))
    for number, row in enumerate(rows, 1):
        line = row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False).encode()
        for entry in qwen.entries(Record("session", str(number), Place(0, f"line {number}"), line)):
            log.add(entry)
    return log


def body_of(messages: Sequence[dict[str, Any]], *, environment: bool = True, **more: Any) -> Body:
    """A served request."""
    head = [SYSTEM, *(ENVIRONMENT if environment else ())]
    params = {"stream": True, "stream_options": {"include_usage": True}, "tools": TOOLS, "max_tokens": 8000}
    value = {"model": "m-1", "messages": [*head, *messages], **params, **more}
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return make_body(data, wire.by_name("openai-chat"))


def messages(log: Log, point: Point, learned: Learned | None = None) -> list[dict[str, Any]]:
    """The messages the log implies."""
    made = qwen.rebuild(log, point, Config(), learned or Learned())
    assert made is not None
    found: list[dict[str, Any]] = json.loads(made.data)["messages"]
    return found


def said(log: Log, point: Point, learned: Learned | None = None) -> list[str]:
    """The messages in short: role, text, ids of tool calls."""
    return [_short(m) for m in messages(log, point, learned)]


def _short(message: dict[str, Any]) -> str:
    content = message["content"]
    text = " ".join(b.get("text", "?") for b in content) if isinstance(content, list) else content
    calls = [f"call({c['id']})" for c in message.get("tool_calls", ())]
    name = [f"({message['tool_call_id']})"] if message["role"] == "tool" else []
    return " ".join([f"{message['role'][0]}:{text}", *calls, *name]).strip()


def learned_for(log: Log, served: Sequence[tuple[Point, Body]]) -> Learned:
    """What holds for the last of some joined calls."""
    point, body = served[-1]
    return qwen.learn(log, point, body, at_hand(served[:-1]))


def rebuilt(chat: Chat, bodies: Sequence[Body], *, known: Sequence[Body] = ()) -> list[tuple[Learned, Rebuilt]]:
    """What each call is rebuilt as, all before it being joined; ``known``: what was joined and asked about once already."""
    log = chat.log()
    points = qwen.requests(log)
    if known:
        learned_for(log, list(zip(points, known, strict=True)))
    pairs = list(zip(points, bodies, strict=True))
    made = []
    for n in range(1, len(pairs) + 1):
        learned = learned_for(log, pairs[:n])
        one = qwen.rebuild(log, points[n - 1], Config(), learned)
        assert one is not None
        made.append((learned, one))
    return made


def datas(bodies: Iterable[Body | Rebuilt]) -> list[bytes]:
    return [b.data for b in bodies]


NEWEST = "0.24.4"
SKILLS, PLACE, DATE = (
    f"<system-reminder>\n{text}\n</system-reminder>"
    for text in (
        "A skill for sluices.",
        "This is the Qwen Code. We are setting up the context for our chat.\nA port.",
        "The current date is: Sunday.",
    )
)
"""What a process of 0.21.2 and later begins with, and what stands before the first words said in it."""


def words(*texts: str) -> dict[str, Any]:
    """A message of the user's side."""
    return {"role": "user", "content": [{"type": "text", "text": t} for t in texts]}


def found(identity: str, text: str) -> dict[str, Any]:
    """A result as it is sent."""
    return {"role": "tool", "tool_call_id": identity, "content": [{"type": "text", "text": text}]}


def replied(text: str | None, *calls: str, thought: str = "", mirrored: bool = False) -> dict[str, Any]:
    """An answer as it is sent again."""
    function = {"name": "look", "arguments": "{}"}
    made: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        made["tool_calls"] = [{"id": i, "type": "function", "function": function} for i in calls]
    if thought:
        made |= {"reasoning_content": thought} | ({"reasoning": thought} if mirrored else {})
    return made


def reminded(*messages: dict[str, Any], **more: Any) -> Body:
    """A served request of 0.21.2 and later."""
    return body_of(messages, environment=False, **more)


def aside(system: str, *messages: dict[str, Any]) -> Body:
    """A served request with a system prompt of its own and no tools."""
    told = [{"role": "system", "content": system}, *messages]
    data = json.dumps(
        {"model": "m-1", "messages": told, "max_tokens": 20_000}, ensure_ascii=False, separators=(",", ":")
    )
    return make_body(data.encode(), wire.by_name("openai-chat"))
