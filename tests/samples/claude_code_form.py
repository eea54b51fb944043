"""Spells what Claude Code 2.1 writes and sends: transcript lines, request records, bodies. Replies are as pi's."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.samples import pi_form
from tests.samples.pi_form import Part, Tokens, Use, sent
from tests.samples.recording import T0, Recording, compact

CWD = "/srv/aviary/logbook"
EPHEMERAL = {"type": "ephemeral"}
STOPS = {True: "tool_use", False: "end_turn"}


def recording(session: str, version: str) -> Recording:
    return Recording(
        "/v1/messages?beta=true",
        {
            "host": "127.0.0.1:8412",
            "content-type": "application/json",
            "anthropic-version": "2023-06-01",
            "user-agent": f"claude-cli/{version} (external, sdk-cli)",
            "x-claude-code-session-id": session,
            "x-app": "cli",
        },
    )


def reply(model: str, response: str, parts: list[Part], tokens: Tokens) -> str:
    """The SSE stream of an answer."""
    stop = STOPS[any(isinstance(p, Use) for p in parts)]
    stream = pi_form.reply(response, parts, tokens, stop)
    return stream.replace(compact({"model": pi_form.MODEL})[1:-1], compact({"model": model})[1:-1])


def reminder(text: str) -> dict[str, Any]:
    return {"type": "text", "text": f"<system-reminder>\n{text}\n</system-reminder>"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def result(use: Use, words: str) -> dict[str, Any]:
    return {"tool_use_id": use.id, "type": "tool_result", "content": words, "is_error": False}


def said(*parts: Part) -> dict[str, Any]:
    """An answer in a later request."""
    return {"role": "assistant", "content": [sent(p) for p in parts]}


def asked(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def marked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages as sent: the last one carries the cache mark, and so must be a list of blocks."""
    *earlier, last = messages
    content = last["content"]
    blocks = [text(content)] if isinstance(content, str) else list(content)
    blocks[-1] = {**blocks[-1], "cache_control": EPHEMERAL}
    return [*earlier, {**last, "content": blocks}]


def metadata(session: str) -> dict[str, Any]:
    return {"user_id": compact({"device_id": "d1" * 16, "account_uuid": "", "session_id": session})}


def canonical(value: Any) -> str:
    """sha256 over compact JSON with sorted keys, cache marks left out."""
    spelled = json.dumps(_unmarked(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(spelled.encode()).hexdigest()


def request_digest(params: dict[str, Any], shape: dict[str, Any], messages: list[dict[str, Any]]) -> str:
    """sha256 of a request without ids, billing text and transport; texts are blocks, marks stay."""
    system = [{**block, "cache_control": EPHEMERAL} for block in shape["system"]]
    body = {**params, **shape, "system": system, "messages": [listed(m) for m in messages]}
    return hashlib.sha256(
        json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    ).hexdigest()


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [_unmarked(v) for v in value] if isinstance(value, list) else value


def listed(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    return {**message, "content": [text(content)] if isinstance(content, str) else content}


def _iso(at: float) -> str:
    return datetime.fromtimestamp(T0 + at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class Transcript:
    """The lines of one file, chained as they come unless told otherwise."""

    session: str
    version: str
    model: str
    agent: str = ""
    lines: list[str] = field(default_factory=list)
    last: str | None = None
    _count: int = 0

    def _uuid(self) -> str:
        self._count += 1
        tag = self.agent[-4:] if self.agent else self.session[-4:]
        return f"c1a0de00-{tag}-4000-8000-{self._count:012d}"

    def line(self, at: float, kind: str, fields: dict[str, Any], parent: str | None = "", **more: Any) -> str:
        """A line of the chain; its uuid."""
        name = self._uuid()
        before = self.last if parent == "" else parent
        side = {"agentId": self.agent} if self.agent else {}
        record = {
            "parentUuid": before,
            "isSidechain": bool(self.agent),
            **side,
            "type": kind,
            **fields,
            "uuid": name,
            "timestamp": _iso(at),
            **more,
            "userType": "external",
            "entrypoint": "sdk-cli",
            "cwd": CWD,
            "sessionId": self.session,
            "version": self.version,
            "gitBranch": "main",
        }
        self.lines.append(compact(record))
        self.last = name
        return name

    def aside(self, record: dict[str, Any]) -> None:
        """A line outside the chain."""
        self.lines.append(compact({**record, "sessionId": self.session}))

    def user(self, at: float, content: Any, parent: str | None = "", **more: Any) -> str:
        return self.line(at, "user", {"message": {"role": "user", "content": content}}, parent, **more)

    def attachment(self, at: float, attached: dict[str, Any]) -> str:
        return self.line(at, "attachment", {"attachment": attached})

    def answer(self, at: float, response: str, parts: list[Part], tokens: Tokens, **more: Any) -> dict[str, str]:
        """A line a block, the usage on each; uuids of the tool calls' lines by id."""
        stop = STOPS[any(isinstance(p, Use) for p in parts)]
        places: dict[str, str] = {}
        for part in parts:
            message = {
                "id": response,
                "type": "message",
                "role": "assistant",
                "model": self.model,
                "content": [sent(part)],
                "stop_reason": stop,
                "stop_sequence": None,
                "usage": tokens.reported(tokens.output),
            }
            name = self.line(at, "assistant", {"message": message, "requestId": f"req_{response[4:]}"}, **more)
            if isinstance(part, Use):
                places[part.id] = name
        return places

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes("".join(f"{line}\n" for line in self.lines).encode())
