"""Chats of the Gemini CLI for tests, written line by line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxscope import wire
from ctxscope.agents import Before, Log, at_hand, gemini
from ctxscope.model import Body, Config, Learned, Place, Point, Record, Reply, SessionRef
from ctxscope.wire.body import make_body

CONTEXT = {"id": "context", "type": "user", "content": [{"text": "<session_context>\nA port.\n</session_context>"}]}
HEAD = {
    "systemInstruction": {"parts": [{"text": "Be brief."}], "role": "user"},
    "tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": {"type": "object"}}]}],
    "generationConfig": {"temperature": 1},
}


@dataclass
class Chat:
    """A chat file; every line two seconds after the one before."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    seconds: int = 0

    def now(self) -> str:
        self.seconds += 2
        minutes, seconds = divmod(self.seconds, 60)
        return f"2026-01-01T10:{minutes:02}:{seconds:02}.000Z"

    def add(self, **row: Any) -> None:
        self.rows.append(row)

    def process(self) -> Chat:
        """What a process writes first."""
        self.add(sessionId="s-1", projectHash="p", startTime=self.now(), lastUpdated=self.now(), kind="main")
        self.messages([CONTEXT])
        return self

    def messages(self, messages: Sequence[dict[str, Any]]) -> None:
        self.rows.append({"$set": {"messages": list(messages), "lastUpdated": self.now()}})

    def resumed(self, messages: Sequence[dict[str, Any]]) -> None:
        self.rows.append({"$set": {"sessionId": "s-1"}})
        self.messages(messages)

    def user(self, name: str, *parts: dict[str, Any] | str) -> None:
        listed = [{"text": p} if isinstance(p, str) else p for p in parts]
        self.add(id=name, timestamp=self.now(), type="user", content=listed)

    def answer(
        self, name: str, text: str = "", *uses: tuple[str, dict[str, Any]], model: str = "m-1", **more: Any
    ) -> None:
        """An answer; its tool calls come with a second line."""
        row = {
            "id": name,
            "timestamp": self.now(),
            "type": "gemini",
            "content": text,
            "thoughts": [],
            "tokens": {"input": 90, "output": 7, "cached": 30, "thoughts": 2, "tool": 0, "total": 99},
            "model": model,
            **more,
        }
        self.add(**row)
        if uses:
            calls = [{"id": f"look__{i}", "name": "look", "args": args} for i, args in uses]
            self.add(**row, toolCalls=calls)

    def result(self, name: str, *ids: str, output: str = "seen") -> None:
        self.user(name, *[result(i, output) for i in ids])

    def log(self) -> Log:
        return log_of(self.rows)


def result(identity: str, output: str = "seen") -> dict[str, Any]:
    return {"functionResponse": {"id": f"look__{identity}", "name": "look", "response": {"output": output}}}


def call(identity: str, signature: str = "") -> dict[str, Any]:
    """A function call as a history that was rewritten has it."""
    signed = {"thoughtSignature": signature} if signature else {}
    return {"functionCall": {"name": "look", "args": {}, "id": f"look__{identity}"}, **signed}


def sent_call(identity: str, args: dict[str, Any] | None = None, signature: str = "") -> dict[str, Any]:
    signed = {"thoughtSignature": signature} if signature else {}
    return {"functionCall": {"id": identity, "args": args or {}, "name": "look"}, **signed}


def sent_result(identity: str, output: str = "seen") -> dict[str, Any]:
    return {"functionResponse": {"name": "look", "response": {"output": output}, "id": identity}}


def entries_of(rows: Sequence[dict[str, Any] | bytes], source: str = "session") -> list[Any]:
    lines = [r if isinstance(r, bytes) else json.dumps(r, ensure_ascii=False).encode() for r in rows]
    records = (Record(source, str(n), Place(0, f"line {n}"), line) for n, line in enumerate(lines, 1))
    return [entry for record in records for entry in gemini.entries(record)]


def log_of(rows: Sequence[dict[str, Any] | bytes], **others: Sequence[dict[str, Any]]) -> Log:
    """A session read at once; ``others`` are chats of subagents by id."""
    log = Log(SessionRef("gemini", "s-1", (Path("/h/.gemini/tmp/p/chats/session-x.jsonl"),), Path("/h")))
    for entry in entries_of(rows):
        log.add(entry)
    for name, more in others.items():
        for entry in entries_of(more, f"agent:{name}"):
            log.add(entry)
    return log


def body_of(contents: Sequence[dict[str, Any]], **head: Any) -> Body:
    """A served request."""
    data = json.dumps({"contents": list(contents), **HEAD, **head}, ensure_ascii=False, separators=(",", ":")).encode()
    return make_body(data, wire.by_name("gemini"))


def contents(log: Log, point: Point, learned: Learned | None = None) -> list[tuple[str, list[Any]]]:
    """Role and parts of each content the log implies."""
    made = gemini.rebuild(log, point, Config(), learned or Learned())
    assert made is not None
    return [(c["role"], c["parts"]) for c in json.loads(made.data)["contents"]]


def said(log: Log, point: Point) -> list[str]:
    """The contents in short: role, and text or name and id of each part."""
    return [f"{role[0]}:{' '.join(map(_short, parts))}" for role, parts in contents(log, point)]


def _short(part: dict[str, Any]) -> str:
    if "functionCall" in part:
        return f"call({part['functionCall']['id']})" + ("!" if "thoughtSignature" in part else "")
    if "functionResponse" in part:
        return f"result({part['functionResponse']['id']})"
    return str(part.get("text", "?")).partition("\n")[0]


def learned_for(
    log: Log, served: Sequence[tuple[Point, Body]], replies: Sequence[Reply | None] | None = None
) -> Learned:
    """What holds for the last of some joined calls; ``replies``: what they were answered with, where that was recorded."""
    point, body = served[-1]
    before = at_hand(served[:-1])
    if replies is not None:
        before = Answered(before.calls, before.upto, before.load, before.chain, replies.__getitem__)
    return gemini.learn(log, point, body, before)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answered(Before):
    """Joined calls with their replies."""

    reply: Callable[[int], Reply | None] = lambda _: None


def reply_of(*parts: dict[str, Any], ended: bool = True) -> Reply:
    """A streamed reply, a chunk for each part."""
    ends = [{"candidates": [{"content": {"parts": [], "role": "model"}, "finishReason": "STOP"}]}] if ended else []
    chunks = [{"candidates": [{"content": {"parts": [p], "role": "model"}}]} for p in parts] + ends
    return wire.by_name("gemini").reply("".join(f"data: {json.dumps(c)}\n\n" for c in chunks).encode(), {})
