"""Spells what the DeepSeek Harness 0.2 writes and sends: a log of zstd frames, and bodies that carry the log's new part."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.samples import pi_form
from tests.samples.pi_form import Part, Say, Think, Tokens, Use, sent
from tests.samples.recording import T0, Recording, compact

PROVIDER, MODEL = "deepseek-official", "deepseek-v4-flash"
VERSION = 4
USER_ID = "5f0c2b1e-7d44-4a0c-9f13-2f4c6a0d9b77"
IN_REQUESTS = ("seq", "time", "data", "type", "surfaceOp", "sourceEventSeqs")
"""Order of an event's keys where it is sent along; on disk it is another."""
MOST_IN_A_BLOCK = 100_000
BUSY = (
    '{"type":"error","error":{"type":"overloaded_error","message":"the model is overloaded"},"request_id":"req_busy1"}'
)


def recording() -> Recording:
    return Recording(
        "/v1/messages",
        {
            "host": "127.0.0.1:8413",
            "content-type": "application/json",
            "accept": "text/event-stream",
            "anthropic-version": "2023-06-01",
            "user-agent": "deepseek-harness/0.2.1-rc.2",
            "x-api-key": "<cut>",
            "x-deepseek-harness-user-id": USER_ID,
        },
    )


def add(wire: Recording, at: float, session: str, body: str, reply: str, *, status: int = 200) -> None:
    """An exchange of a session, which its header names."""
    wire.headers = {**wire.headers, "x-deepseek-harness-session-id": session}
    wire.add(at, body, reply)
    if status != 200:
        wire.lines[-1] = json.dumps({**json.loads(wire.lines[-1]), "status": status})


def reply(response: str, parts: list[Part], tokens: Tokens, stop: str = "end_turn") -> str:
    """The SSE stream of an answer."""
    return pi_form.reply(response, parts, tokens, stop).replace(pi_form.MODEL, MODEL)


# --- requests --------------------------------------------------------------------------------------------------------

Item = tuple[str, list[dict[str, Any]]]
"""A role and the blocks one event gives."""


def said(*texts: str) -> Item:
    return "user", [{"type": "text", "text": text} for text in texts]


def answered(*parts: Part) -> Item:
    return "assistant", [sent(part) for part in parts]


def result(use: Use, text: str) -> Item:
    block = {"type": "tool_result", "tool_use_id": use.id, "content": [{"type": "text", "text": text}]}
    return "user", [{**block, "is_error": False}]


def messages(items: Sequence[Item]) -> list[dict[str, Any]]:
    """Events of one role behind one another share a message."""
    out: list[dict[str, Any]] = []
    for role, blocks in items:
        if out and out[-1]["role"] == role:
            out[-1]["content"] += blocks
        else:
            out.append({"role": role, "content": [*blocks]})
    return out


def body(items: Sequence[Item], system: str, sent_along: str, packages: Any, **more: Any) -> str:
    """A request; ``more`` holds ``tools``, ``cap`` and ``effort`` where they are not the usual ones."""
    effort = more.get("effort", "high")
    fields: dict[str, Any] = {
        "model": MODEL,
        "stream": True,
        "messages": messages(items),
        "max_tokens": more.get("cap", 32000),
        "thinking": {"type": "enabled" if effort != "off" else "disabled"},
    }
    if effort != "off":
        fields["output_config"] = {"effort": effort}
    fields["system"] = system
    if "tools" in more:
        names = ("name", "description", "input_schema")
        fields["tools"] = [dict(zip(names, tool.values(), strict=True)) for tool in more["tools"]]
    return compact(fields)[:-1] + f',"dsh_session_log":{sent_along},"dsh_plugin_packages":{compact(packages)}}}'


# --- the log ---------------------------------------------------------------------------------------------------------


def ms(at: float) -> int:
    return round((T0 + at) * 1000)


def frame(data: bytes) -> bytes:
    """A zstd frame that holds its bytes as they are: the same whatever library is at hand."""
    head = struct.pack("<IBI", 0xFD2FB528, 0b1010_0000, len(data))
    blocks = [data[i : i + MOST_IN_A_BLOCK] for i in range(0, len(data), MOST_IN_A_BLOCK)] or [b""]
    ends = [i == len(blocks) - 1 for i in range(len(blocks))]
    return head + b"".join(struct.pack("<I", end | len(b) << 3)[:3] + b for b, end in zip(blocks, ends, strict=True))


@dataclass
class SessionLog:
    """A session's log, record by record; what is written at one moment is one frame."""

    id: str
    cwd: str
    opened: float = 0.0
    more: Mapping[str, Any] = field(default_factory=dict)
    version: int = VERSION
    records: list[dict[str, Any]] = field(default_factory=list)
    ids: int = 0
    """Messages so far: each has an id of its own."""

    @property
    def header(self) -> dict[str, Any]:
        seeded = {"isSeeded": False} if self.version else {}
        base = {"version": self.version, "id": self.id, "createdAt": ms(self.opened), "cwd": self.cwd}
        return {"type": "session", **base, **seeded, "delegationDepth": 0, **self.more}

    def event(self, at: float, kind: str, data: Any, **more: Any) -> int:
        """The next record; ``more`` holds ``sourceEventSeqs``, ``surfaceOp``, ``ignorable``. Gives its number."""
        self.records.append({"type": kind, "seq": len(self.records), "time": ms(at), "data": data, **more})
        return len(self.records) - 1

    def message_id(self) -> str:
        self.ids += 1
        return f"{self.id}-m{self.ids:03}"

    def system(self, at: float, text: str) -> int:
        message = {"role": "system", "content": [{"type": "text", "text": text}], "source": {"kind": "system-prompt"}}
        data = {"turn": 1, "step": 1, "message": {**message, "id": self.message_id()}}
        return self.event(at, "system/message", data, surfaceOp="append")

    def user(self, at: float, *texts: str, kind: str = "user", **more: Any) -> int:
        blocks = [{"type": "text", "text": text} for text in texts]
        data = {"content": blocks, "source": {"kind": kind}, "role": "user", "id": self.message_id()}
        return self.event(at, "user/message", data, **{"surfaceOp": "append", **more})

    def request(self, at: float, tools: Sequence[Mapping[str, Any]], reason: str) -> int:
        config = {"provider": PROVIDER, "model": MODEL, "maxTokens": 32000, "reasoningEffort": "high"}
        header = {"config": config, "adapterDefaults": {"reasoningEffort": True}, "tools": list(tools)}
        return self.event(at, "request/header", {"header": header, "reason": reason})

    def accepted(self, at: float, through: int) -> int:
        data = {"sessionId": self.id, "sessionFormatVersion": self.version, "throughSeq": through}
        return self.event(at, "session-log-deepseek/delivery-accepted", data)

    def answer(self, at: float, step: tuple[int, int], parts: list[Part], tokens: Tokens, stop: str = "stop") -> int:
        usage = {"inputTokens": tokens.input, "outputTokens": tokens.output, "cacheReadTokens": tokens.read}
        usage |= {"cacheWriteTokens": tokens.write, "totalTokens": tokens.prompt + tokens.output}
        signed = [_kept(part) for part in parts]
        state = {"response": {"kind": "deepseek-messages", "version": 1, "model": MODEL}, "blocks": signed}
        source = {"kind": "model", "provider": PROVIDER, "model": MODEL, "replayState": state}
        message = {"role": "assistant", "content": [_stored(part) for part in parts], "source": source}
        finish = {"type": "chunk", "time": ms(at), "chunk": {"type": "finish", "reason": {"kind": stop}}}
        data = {"turn": step[0], "step": step[1], "message": {**message, "id": self.message_id()}, "usage": usage}
        return self.event(at, "assistant/message", {**data, "stream": [finish]}, surfaceOp="append")

    def tool(self, at: float, step: tuple[int, int], use: Use, text: str, **more: Any) -> int:
        """A tool's result, behind the record of its call."""
        place = {"turn": step[0], "step": step[1]}
        if not more:
            data = {**place, "callId": use.id, "name": use.name, "arguments": use.spelled}
            more = {"sourceEventSeqs": [self.event(at - 0.1, "tool/call", data)], "surfaceOp": "append"}
        message = {"role": "tool", "source": {"kind": "tool", "callId": use.id}, "toolCallId": use.id}
        message |= {"content": [{"type": "text", "text": text}], "isError": False, "id": self.message_id()}
        return self.event(at, "tool/result", {**place, "message": message}, **more)

    def turn(self, at: float, number: int, text: str) -> int:
        """A user's input up to the message the model sees; gives the number of the step's start."""
        words = [{"type": "text", "text": text}]
        inserted = [{"content": words, "source": {"kind": "user"}, "role": "user", "id": f"{self.id}-in{number}"}]
        self.event(at, "agent/inbox/spliced", {"target": "next-turn", "start": 0, "inserted": inserted})
        self.event(at, "turn/start", {"turn": number})
        return self.step(at + 0.01, number, 1)

    def step(self, at: float, turn: int, number: int) -> int:
        return self.event(at, "step/start", {"turn": turn, "step": number})

    def ended(self, at: float, turn: int, step: int, *, whole: bool = False) -> None:
        """The end of a step, and of its turn."""
        self.event(at, "step/end", {"turn": turn, "step": step})
        if whole:
            self.event(at, "turn/end", {"turn": turn, "reason": {"kind": "completed"}})

    def along(self, after: int, through: int, *, loaded: bool = False) -> str:
        """What a request carries of the log; ``loaded``: by a process that read its header from disk."""
        names = ("version", "id", "createdAt", "cwd", *(("delegationDepth",) if loaded else ()))
        events = [{k: r[k] for k in IN_REQUESTS if k in r} for r in self.records[after + 1 : through + 1]]
        head = {"version": 1, "sessionFormatVersion": self.version, "session": {k: self.header[k] for k in names}}
        return compact({**head, "afterSeq": after, "throughSeq": through, "events": events})

    def lines(self) -> list[str]:
        return [compact(self.header), *map(compact, self.records)]

    def write(self, home: Path) -> None:
        group = "--" + self.cwd.strip("/").replace("/", "-") + "--"
        folder = home / ".dsh" / "sessions" / group / self.id
        folder.mkdir(parents=True, exist_ok=True)
        batches: dict[Any, list[str]] = {}
        for record, line in zip([None, *self.records], self.lines(), strict=True):
            batches.setdefault(record and record["time"], []).append(line + "\n")
        data = b"".join(frame("".join(lines).encode()) for lines in batches.values())
        (folder / "session.v4.jsonl.zstd").write_bytes(data)


def _stored(part: Part) -> dict[str, Any]:
    if isinstance(part, Think):
        return {"type": "reasoning", "text": part.text}
    if isinstance(part, Say):
        return {"type": "text", "text": part.text}
    return {"type": "tool-call", "id": part.id, "name": part.name, "arguments": part.spelled}


def _kept(part: Part) -> dict[str, Any]:
    """What stands beside a block to send it again."""
    if isinstance(part, Think):
        return {"type": "reasoning", "signature": part.signature}
    return {"type": "text" if isinstance(part, Say) else "tool-call"}
