"""Spells what omp 18.2 writes and sends: the session file with its title slot, side files, bodies and replies of two APIs."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.samples.pi_form import Say, Think, Tokens, Use, logged
from tests.samples.recording import T0, Recording, compact, pieces

Part = Say | Think | Use
CWD = "/home/ada/beehives"
EPHEMERAL = {"type": "ephemeral"}
RULES = "You keep the hive book of a small apiary. Look before you answer, and name the hive you speak of."
PLACE = "PROJECT\n\n<workstation>\n- OS: linux\n- Terminal: none\n</workstation>"
_TOOLS = {
    "weigh": ("Read the scale of one hive.", {"hive": "Name of the hive", "nights": "How many nights back"}),
    "note": ("Add a line to the hive book.", {"line": "Text of the line"}),
}
STEERING = (
    "<system-notice>\nUser interjection during work: priority; supersedes conflicting prior instructions. "
    "Re-read; ensure current work reflects user intent.\n</system-notice>\n"
)


def iso(at: float) -> str:
    return datetime.fromtimestamp(T0 + at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ms(at: float) -> int:
    return round((T0 + at) * 1000)


def reminder() -> dict[str, Any]:
    """What leads the first user message; the log holds nothing of it."""
    text = f"Today: 2026-02-01; current working directory: '{CWD}'. Do not repeat this information in your reply."
    return {"type": "text", "text": f"<system-reminder>\n{text}\n</system-reminder>"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _schema(fields: dict[str, str]) -> dict[str, Any]:
    properties = {"i": "concise intent", **fields}
    return {
        "type": "object",
        "properties": {k: {"type": "string", "description": v} for k, v in properties.items()},
        "required": [*fields, "i"],
        "additionalProperties": False,
    }


# --- Chat Completions ------------------------------------------------------------------------------------------------

CHAT = ("openai-completions", "apiary", "deepseek-hum")


def chat_recording() -> Recording:
    return Recording(
        "/v1/chat/completions", {"host": "127.0.0.1:8412", "user-agent": "omp/18.2.3", "authorization": "<cut>"}
    )


def chat_body(messages: list[dict[str, Any]]) -> str:
    tools = [
        {"type": "function", "function": {"name": n, "description": d, "parameters": _schema(f)}}
        for n, (d, f) in _TOOLS.items()
    ]
    system = [{"role": "system", "content": RULES}, {"role": "system", "content": PLACE}]
    return compact(
        {
            "model": CHAT[2],
            "messages": [*system, *messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            "store": False,
            "tools": tools,
            "max_completion_tokens": 8000,
            "reasoning_effort": "medium",
        }
    )


def chat_answer(*parts: Part) -> dict[str, Any]:
    """An answer in a later request; this model's always carry a reasoning field."""
    calls = [p for p in parts if isinstance(p, Use)]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(p.text for p in parts if isinstance(p, Say)),
        "reasoning_content": "\n".join(p.text for p in parts if isinstance(p, Think)),
    }
    if calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": compact(c.arguments)}}
            for c in calls
        ]
    return message


def chat_result(use: Use, words: str) -> dict[str, Any]:
    return {"role": "tool", "content": words, "tool_call_id": use.id}


def chat_reply(response: str, parts: list[Part], tokens: Tokens) -> str:
    """The SSE stream of an answer."""
    deltas: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Use):
            function = {"name": part.name, "arguments": part.spelled}
            deltas.append({"tool_calls": [{"index": 0, "id": part.id, "type": "function", "function": function}]})
        else:
            key = "reasoning_content" if isinstance(part, Think) else "content"
            deltas += [{key: piece} for piece in pieces(part.text)]
    stop = "tool_calls" if any(isinstance(p, Use) for p in parts) else "stop"
    head = {"id": response, "object": "chat.completion.chunk", "model": CHAT[2]}
    events: list[Any] = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
    cached = {"cached_tokens": tokens.read}
    usage = {"prompt_tokens": tokens.prompt, "completion_tokens": tokens.output, "prompt_tokens_details": cached}
    events.append({**head, "choices": [], "usage": usage})
    return "".join(f"data: {compact(e)}\n\n" for e in events) + "data: [DONE]\n\n"


# --- Anthropic, passing as Claude Code -------------------------------------------------------------------------------

ANTHROPIC = ("anthropic-messages", "meadow", "claude-sonnet-4-5")
_SEED, _MASK = 0x4D659218E32A3268, (1 << 64) - 1
_P = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def anthropic_recording(session: str) -> Recording:
    headers = {"host": "127.0.0.1:8412", "anthropic-version": "2023-06-01", "x-claude-code-session-id": session}
    return Recording("/v1/messages?beta=true", {**headers, "user-agent": "claude-cli/2.1.257 (external, cli)"})


def anthropic_body(messages: list[dict[str, Any]], session: str) -> str:
    """A body with its own checksum: the XXH64 of the whole while its five digits are zeros."""
    marked = [_marked(m) if i >= len(messages) - 2 else m for i, m in enumerate(messages)]
    tools = [{"name": f"_{n}", "description": d, "input_schema": _schema(f)} for n, (d, f) in _TOOLS.items()]
    billing = "x-anthropic-billing-header: cc_version=2.1.257.efd; cc_entrypoint=cli; cch=00000;"
    identity = "You are Claude Code, Anthropic's official CLI for Claude."
    spelled = compact(
        {
            "model": ANTHROPIC[2],
            "messages": marked,
            "system": [text(billing), {**text(identity), "cache_control": EPHEMERAL}, text(RULES), text(PLACE)],
            "tools": [*tools[:-1], {**tools[-1], "cache_control": EPHEMERAL}],
            "metadata": {"user_id": compact({"session_id": session})},
            "max_tokens": 8000,
            "thinking": {"type": "enabled", "budget_tokens": 2048, "display": "summarized"},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "stream": True,
        }
    )
    return spelled.replace("cch=00000", f"cch={xxh64(spelled.encode()) & 0xFFFFF:05x}", 1)


def _marked(message: dict[str, Any]) -> dict[str, Any]:
    *before, last = message["content"]
    return {**message, "content": [*before, {**last, "cache_control": EPHEMERAL}]}


def anthropic_answer(*parts: Part) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Think):
            blocks.append({"type": "thinking", "thinking": part.text, "signature": part.signature})
        elif isinstance(part, Say):
            blocks.append(text(part.text))
        else:
            blocks.append({"type": "tool_use", "id": part.id, "name": f"_{part.name}", "input": part.arguments})
    return {"role": "assistant", "content": blocks}


def anthropic_result(use: Use, words: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": use.id, "content": [text(words)], "is_error": False}
    return {"role": "user", "content": [block]}


def _left(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _round(lane: int, word: int) -> int:
    return _left((lane + word * _P[1]) & _MASK, 31) * _P[0] & _MASK


def xxh64(data: bytes) -> int:
    """XXH64 as its specification has it, for 32 bytes and more."""
    lanes = [(_SEED + _P[0] + _P[1]) & _MASK, (_SEED + _P[1]) & _MASK, _SEED, (_SEED - _P[0]) & _MASK]
    at = 0
    while at + 32 <= len(data):
        lanes = [_round(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)]
        at += 32
    found = sum(_left(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for lane in lanes:
        found = ((found ^ _round(0, lane)) * _P[0] + _P[3]) & _MASK
    found = (found + len(data)) & _MASK
    for size, factor, by, then, plus in (
        (8, 0, 27, _P[0], _P[3]),
        (4, _P[0], 23, _P[1], _P[2]),
        (1, _P[4], 11, _P[0], 0),
    ):
        while at + size <= len(data):
            word = int.from_bytes(data[at : at + size], "little")
            found = _left(found ^ (word * factor & _MASK if factor else _round(0, word)), by) * then + plus & _MASK
            at += size
    for shift, factor in ((33, _P[1]), (29, _P[2]), (32, 1)):
        found = (found ^ found >> shift) * factor & _MASK
    return found


# --- the log ---------------------------------------------------------------------------------------------------------


@dataclass
class OmpFile:
    """A session file, line by line; entries can be written anew in their place."""

    id: str
    target: tuple[str, str, str]
    title: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    last: str | None = None

    def start(self) -> None:
        session = {"type": "session", "version": 3, "id": self.id, "timestamp": iso(0.0), "cwd": CWD}
        self.rows.append(session)
        self.entry("model_change", 0.1, model="/".join(self.target[1:]), resolvedModelIsFallback=False)
        self.entry("thinking_level_change", 0.1, thinkingLevel="medium", configured=None)

    def entry(self, kind: str, at: float, **data: Any) -> str:
        key = hashlib.sha256(f"{self.id} {len(self.rows)}".encode()).hexdigest()[:8]
        self.rows.append({"type": kind, "id": key, "parentId": self.last, "timestamp": iso(at), **data})
        self.last = key
        return key

    def user(self, at: float, words: str, **more: Any) -> str:
        message = {"role": "user", "content": [text(words)], **more, "attribution": "user", "timestamp": ms(at)}
        return self.entry("message", at, message=message)

    def answer(self, asked: float, at: float, parts: list[Part], tokens: Tokens, response: str) -> str:
        """An answer; its stamp is when it was asked for."""
        stop = "toolUse" if any(isinstance(p, Use) for p in parts) else "stop"
        usage = {k: v for k, v in tokens.stored().items() if k not in {"cacheWrite1h", "reasoning"}}
        api, provider, model = self.target
        message = {
            "role": "assistant",
            "content": [logged(p) for p in parts],
            "api": api,
            "provider": provider,
            "model": model,
            "usage": usage,
            "stopReason": stop,
            "timestamp": ms(asked),
            "responseId": response,
            "duration": round((at - asked) * 1000),
            "contextSnapshot": {"promptTokens": tokens.prompt, "nonMessageTokens": 240, "compactionEpoch": 0},
        }
        return self.entry("message", at, message=message)

    def result(self, at: float, use: Use, words: str) -> str:
        message = {
            "role": "toolResult",
            "toolCallId": use.id,
            "toolName": use.name,
            "content": [text(words)],
            "isError": False,
            "timestamp": ms(at),
        }
        return self.entry("message", at, message=message)

    def rewrite(self, key: str, at: float, words: str) -> None:
        """Put a tool result's text out of the log, as prune and shake do."""
        row = next(r for r in self.rows if r.get("id") == key)
        row["message"] = {**row["message"], "content": [text(words)], "prunedAt": ms(at)}

    def write(self, home: Path, artifacts: dict[str, str] | None = None, blobs: tuple[bytes, ...] = ()) -> None:
        agent = home / ".omp/agent"
        folder = agent / "sessions" / ("--" + CWD[1:].replace("/", "-") + "--")
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{iso(0.0).replace(':', '-').replace('.', '-')}_{self.id}"
        slot = {"type": "title", "v": 1, "title": self.title, "updatedAt": iso(0.0)}
        pad = 255 - len(compact({**slot, "pad": ""}).encode())
        rows = [{**slot, "pad": " " * pad}, *self.rows]
        (folder / f"{stem}.jsonl").write_bytes("".join(compact(r) + "\n" for r in rows).encode())
        for name, words in (artifacts or {}).items():
            (folder / stem).mkdir(exist_ok=True)
            (folder / stem / name).write_bytes(words.encode())
        for data in blobs:
            (agent / "blobs").mkdir(exist_ok=True)
            (agent / "blobs" / hashlib.sha256(data).hexdigest()).write_bytes(data)
