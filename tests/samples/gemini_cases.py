"""The Gemini CLI sample: what the session says, what its chat file keeps, what crossed the wire.

A resumed process sends every tool result twice and a stand-in for every signature. An answer with U+2028 is dropped and
asked for again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.samples.recording import T0, Recording, compact

CWD = "/home/vera/ferry"
SESSION = "7d0f3c52-9a41-4a36-8f0e-2b6c51e9d804"
MODEL = "gemini-2.5-pro"
CONTEXT_ID = hashlib.sha256(b"environment-context").hexdigest()[:32]
CONTEXT = f"<session_context>\nSunday, February 1, 2026. Workspace: {CWD} (timetable.md, boats.csv)\n</session_context>"
STANDS_IN = "skip_thought_signature_validator"
SIGNATURES = ("ZmVycnktb25l" * 8, "ZmVycnktdHdv" * 8)
"""Opaque bytes; base64 of nothing in particular."""
HEAD = {
    "systemInstruction": {
        "parts": [
            {"text": "You keep the timetable of a small ferry. Be brief, name the file you read, never guess a time."}
        ],
        "role": "user",
    },
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": "read_file",
                    "description": "Reads one file of the workspace.",
                    "parametersJsonSchema": {"type": "object", "properties": {"file_path": {"type": "string"}}},
                }
            ]
        }
    ],
    "generationConfig": {"temperature": 1, "thinkingConfig": {"includeThoughts": True}},
}


def stamp(at: float) -> str:
    return datetime.fromtimestamp(T0 + at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Use:
    """A call of the one tool and what it gave."""

    id: str
    path: str
    output: str
    signature: str

    @property
    def logged_id(self) -> str:
        return f"read_file__{self.id}"

    def call(self, signature: str) -> dict[str, Any]:
        called = {"id": self.id, "args": {"file_path": self.path}, "name": "read_file"}
        return {"functionCall": called, "thoughtSignature": signature}

    def response(self) -> dict[str, Any]:
        return {"functionResponse": {"name": "read_file", "response": {"output": self.output}, "id": self.id}}

    def logged_call(self) -> dict[str, Any]:
        called = {"id": self.logged_id, "name": "read_file", "args": {"file_path": self.path}}
        return {"functionCall": called}

    def logged_response(self) -> dict[str, Any]:
        return {"functionResponse": {"id": self.logged_id, "name": "read_file", "response": {"output": self.output}}}


@dataclass
class Chat:
    """The chat file, a line each."""

    lines: list[str] = field(default_factory=list)

    def add(self, record: dict[str, Any]) -> None:
        self.lines.append(compact(record))

    def process(self, at: float) -> None:
        """What a process writes first."""
        project = hashlib.sha256(CWD.encode()).hexdigest()
        self.add(
            {
                "sessionId": SESSION,
                "projectHash": project,
                "startTime": stamp(at),
                "lastUpdated": stamp(at),
                "kind": "main",
            }
        )
        self.messages(at, [self.message(CONTEXT_ID, at, "user", [{"text": CONTEXT}])])

    def messages(self, at: float, messages: list[dict[str, Any]]) -> None:
        self.add({"$set": {"messages": messages, "lastUpdated": stamp(at)}})

    def said(self, name: str, at: float, parts: list[dict[str, Any]]) -> None:
        self.add(self.message(name, at, "user", parts))
        self.add({"$set": {"lastUpdated": stamp(at)}})

    def answer(
        self, name: str, at: float, text: str, thought: str, prompt: int, output: int, use: Use | None = None
    ) -> None:
        tokens = {
            "input": prompt,
            "output": output,
            "cached": 0,
            "thoughts": 4,
            "tool": 0,
            "total": prompt + output + 4,
        }
        thoughts = [{"subject": "", "description": thought, "timestamp": stamp(at)}] if thought else []
        record = {**self.message(name, at, "gemini", text), "thoughts": thoughts, "tokens": tokens, "model": MODEL}
        self.add(record)
        self.add({"$set": {"lastUpdated": stamp(at)}})
        if use is not None:
            called = use.logged_call()["functionCall"]
            done = {
                "result": [use.logged_response()],
                "status": "success",
                "timestamp": stamp(at),
                "displayName": "ReadFile",
            }
            self.add({**record, "toolCalls": [{**called, **done}]})

    @staticmethod
    def message(name: str, at: float, kind: str, content: Any) -> dict[str, Any]:
        return {"id": name, "timestamp": stamp(at), "type": kind, "content": content}


def body(contents: list[dict[str, Any]]) -> str:
    return compact({"contents": contents, **HEAD})


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"parts": list(parts), "role": "user"}


def model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"parts": list(parts), "role": "model"}


def reply(name: str, parts: list[dict[str, Any]], prompt: int, output: int) -> str:
    """The one event of a streamed answer."""
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": output, "totalTokenCount": prompt + output + 4}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    told = {"candidates": [candidate], "usageMetadata": {**usage, "thoughtsTokenCount": 4}, "responseId": name}
    return f"data: {compact(told)}\n\n"


def resume_doubles_results(case: Path) -> None:
    """A tool call, then a new process: its results twice, its signature gone; then an answer asked for twice."""
    chat, wire = (
        Chat(),
        Recording(
            f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse",
            {"host": "127.0.0.1:8414", "content-type": "application/json", "user-agent": f"GeminiCLI/0.61.0/{MODEL}"},
        ),
    )
    timetable = Use(
        "fc_one", f"{CWD}/timetable.md", "06:10 north pier\n07:40 south pier — Sundays only\n", SIGNATURES[0]
    )
    boats = Use("fc_two", f"{CWD}/boats.csv", "name,seats\nÆgir,38\n", SIGNATURES[1])
    asked, later = "When does the first boat leave on a Sunday?", "And which boat is it?"
    thought, answer = "The timetable will say.", "At 06:10 from the north pier (timetable.md)."

    chat.process(0)
    chat.said("u-1", 0.5, [{"text": asked}])
    first = [user({"text": CONTEXT}, {"text": asked})]
    parts = [{"text": thought, "thought": True}, {"text": "I will look."}, timetable.call(timetable.signature)]
    wire.add(0.6, body(first), reply("resp-1", parts, 310, 12))
    chat.answer("g-1", 2.1, "I will look.", thought, 310, 12, timetable)
    chat.said("r-1", 2.3, [timetable.logged_response()])
    second = [*first, model({"text": "I will look."}, timetable.call(timetable.signature)), user(timetable.response())]
    wire.add(2.4, body(second), reply("resp-2", [{"text": answer}], 372, 14))
    chat.answer("g-2", 3.9, answer, "", 372, 14)

    chat.process(20)
    chat.add({"$set": {"sessionId": SESSION}})
    restored = [{"text": thought, "thought": True}, {"text": "I will look."}, timetable.logged_call()]
    chat.messages(
        20.1,
        [
            chat.message(CONTEXT_ID, 20.1, "user", [{"text": CONTEXT}]),
            chat.message("u-1", 20.1, "user", [{"text": asked}]),
            chat.message("g-1", 20.1, "gemini", restored),
            chat.message("g-1_response", 20.1, "user", [timetable.logged_response()]),
            chat.message("r-1", 20.1, "user", [timetable.logged_response()]),
            chat.message("g-2", 20.1, "gemini", [{"text": answer}]),
        ],
    )
    chat.said("u-2", 20.4, [{"text": later}])
    twice = [timetable.response(), timetable.response()]
    third = [*first, model({"text": "I will look."}, timetable.call(STANDS_IN)), user(*twice), model({"text": answer})]
    third.append(user({"text": later}))
    wire.add(20.5, body(third), reply("resp-3", [boats.call(boats.signature)], 455, 9))
    chat.answer("g-3", 22.0, "", "", 455, 9, boats)
    chat.said("r-3", 22.2, [boats.logged_response()])
    fourth = [*third, model(boats.call(boats.signature)), user(boats.response())]
    wire.add(22.3, body(fourth), reply("resp-4", [{"text": "The boat is\u2028Ægir."}], 498, 7))
    wire.add(24.9, body(fourth), reply("resp-5", [{"text": "It is the Ægir, with 38 seats."}], 498, 10))
    chat.answer("g-4", 26.4, "It is the Ægir, with 38 seats.", "", 498, 10)

    project = case / "log" / ".gemini" / "tmp" / "ferry"
    (project / "chats").mkdir(parents=True, exist_ok=True)
    (project / ".project_root").write_bytes(CWD.encode())
    text = "".join(f"{line}\n" for line in chat.lines)
    (project / "chats" / f"session-2026-02-01T09-00-{SESSION[:8]}.jsonl").write_bytes(text.encode())
    wire.write(case / "wire")


CASES = [resume_doubles_results]
