"""Spells what Codex 0.171 writes and sends: rollout lines, request bodies, SSE replies."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.samples.codex_texts import BASE, BASE_SENT, CWD, GIVEN, PROMPT, SUMMARY_LINE, TOOLS
from tests.samples.recording import T0, Recording, compact, pieces

MODEL = "gpt-5.1-codex"
PASSTHROUGH = "internal_chat_message_metadata_passthrough"
Item = dict[str, Any]


def uuid7(seconds: float, number: int) -> str:
    """An id that tells its time and is the same at every run."""
    stamp = f"{round((T0 + seconds) * 1000):012x}"
    return f"{stamp[:8]}-{stamp[8:]}-7{number:03x}-8a11-{number:012x}"


def recording() -> Recording:
    return Recording("/v1/responses", {"host": "127.0.0.1:8412", "content-type": "application/json"})


@dataclass(frozen=True)
class Tokens:
    """Usage of one call; cached ones are part of the input."""

    input: int
    cached: int
    output: int
    reasoning: int = 0

    @property
    def logged(self) -> dict[str, int]:
        return {
            "input_tokens": self.input,
            "cached_input_tokens": self.cached,
            "cache_write_input_tokens": 0,
            "output_tokens": self.output,
            "reasoning_output_tokens": self.reasoning,
            "total_tokens": self.input + self.output,
        }

    @property
    def reported(self) -> dict[str, Any]:
        return {
            "input_tokens": self.input,
            "input_tokens_details": {"cached_tokens": self.cached, "cache_write_tokens": 0},
            "output_tokens": self.output,
            "output_tokens_details": {"reasoning_tokens": self.reasoning},
            "total_tokens": self.input + self.output,
        }


# --- items -----------------------------------------------------------------------------------------------------------


def think(number: int, text: str, envelope: str) -> Item:
    summary = [{"type": "summary_text", "text": text}]
    return {
        "type": "reasoning",
        "id": f"rs_{number:04x}",
        "summary": summary,
        "content": None,
        "encrypted_content": envelope,
    }


def say(number: int, text: str) -> Item:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "type": "message",
        "status": "completed",
        "id": f"msg_{number:04x}",
        "role": "assistant",
        "content": content,
    }


def use(number: int, name: str, arguments: str) -> Item:
    own = {"type": "function_call", "status": "completed", "id": f"fc_{number:04x}"}
    return {**own, "name": name, "arguments": arguments, "call_id": f"call_{number:04x}"}


def given(name: str, role: str, *texts: str) -> Item:
    content = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "id": name, "role": role, "content": content}


def without(item: Item) -> Item:
    """An item as a provider other than OpenAI is sent it."""
    return {k: v for k, v in item.items() if k != PASSTHROUGH}


def reply(name: str, items: list[Item], tokens: Tokens) -> str:
    """A streamed reply."""
    head = {"id": name, "object": "response", "model": MODEL}
    events: list[Item] = [{"type": "response.created", "response": {**head, "status": "in_progress", "output": []}}]
    for index, item in enumerate(items):
        done = {k: v for k, v in item.items() if k != "content" or v is not None}
        if item["type"] == "message":
            start = {"type": "response.output_item.added", "output_index": index, "item": {**done, "content": []}}
            parts = pieces(item["content"][0]["text"])
            deltas = ({"type": "response.output_text.delta", "output_index": index, "delta": p} for p in parts)
            events += [start, *deltas]
        events.append({"type": "response.output_item.done", "output_index": index, "item": done})
    events.append({"type": "response.completed", "response": {**head, "status": "completed", "usage": tokens.reported}})
    return "".join(f"event: {e['type']}\ndata: {compact(e)}\n\n" for e in events)


# --- a session -------------------------------------------------------------------------------------------------------


@dataclass
class Session:
    """A rollout as it is written, beside what Codex has in memory and sends."""

    name: str
    lines: list[str] = field(default_factory=list)
    history: list[Item] = field(default_factory=list)
    """Items as logged."""
    turn: str = ""
    window: int = 0
    total: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    base: str = BASE
    base_sent: str = BASE_SENT

    def line(self, at: float, kind: str, payload: Item, **more: Any) -> None:
        stamp = datetime.fromtimestamp(T0 + at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        row = {"timestamp": stamp, "ordinal": len(self.lines), "type": kind, "payload": payload, **more}
        self.lines.append(compact(row))

    def event(self, at: float, kind: str, **payload: Any) -> None:
        self.line(at, "event_msg", {"type": kind, **payload})

    def meta(self, at: float, **more: Any) -> None:
        own = {"session_id": self.name, "id": self.name, "timestamp": "2026-02-01T09:00:00.000Z", "cwd": CWD}
        told = {"originator": "codex_exec", "cli_version": "0.171.0", "source": "exec", "thread_source": "user"}
        base = {"text": self.base, "provenance": {"type": "model", "model": MODEL}}
        self.line(
            at, "session_meta", {**own, **told, "model_provider": "greenhouse", "base_instructions": base, **more}
        )

    def settings(self, at: float) -> None:
        """Thread settings, as a process applies them."""
        own = {"model": MODEL, "model_provider_id": "greenhouse", "cwd": CWD, "reasoning_summary": "detailed"}
        self.event(at, "thread_settings_applied", thread_id=self.name, thread_settings=own)

    def begin(self, at: float, turn: str) -> None:
        """A turn, and at the first one the context."""
        self.turn = turn
        self.event(at, "task_started", turn_id=turn, root_turn_id=turn, model_context_window=258400)
        if not self.history:
            self.item(at, given(uuid_of("msg", at, 1), "developer", GIVEN[0]))
            self.item(at, given(uuid_of("msg", at, 2), "user", GIVEN[1]))
        context = {"turn_id": turn, "root_turn_id": turn, "cwd": CWD, "model": MODEL, "summary": "none"}
        self.line(at, "turn_context", context)

    def item(self, at: float, item: Item) -> None:
        logged = {**item, PASSTHROUGH: {"turn_id": self.turn}}
        self.history.append(logged)
        self.line(at, "response_item", logged, metadata={"history_sequence": len(self.lines)})

    def user(self, at: float, text: str) -> None:
        self.item(at, given(uuid_of("msg", at, 3), "user", text))

    def output(self, at: float, call: Item, text: str) -> None:
        own = {"type": "function_call_output", "id": uuid_of("fco", at, 4)}
        self.item(at, {**own, "call_id": call["call_id"], "output": text})

    def answer(self, at: float, name: str, items: list[Item], tokens: Tokens) -> None:
        for item in items:
            self.item(at, item)
        self.usage(at, name, tokens)

    def usage(self, at: float, name: str, tokens: Tokens) -> None:
        self.total = {k: self.total.get(k, 0) + v for k, v in tokens.logged.items()}
        own = {"thread_id": self.name, "turn_id": self.turn, "session_id": self.name, "root_turn_id": self.turn}
        totals = {"usage": tokens.logged, "thread_token_usage": self.total}
        self.line(at, "token_usage_record", {**own, "response_id": name, **totals})
        counts = {"total_token_usage": self.total, "last_token_usage": tokens.logged, "model_context_window": 258400}
        self.event(at, "token_count", info=counts, rate_limits=None)

    def end(self, at: float, last: str) -> None:
        self.event(at, "task_complete", turn_id=self.turn, root_turn_id=self.turn, last_agent_message=last)

    def compacted(self, at: float, message: str, history: list[Item], response: str) -> None:
        self.window += 1
        self.history = history
        told = {"window_number": self.window, "compaction_response_id": response}
        self.line(at, "compacted", {"message": message, "replacement_history": history, **told})

    # --- what it sends ---------------------------------------------------------------------------------------------------

    def body(self, *tail: Item, summary: bool = False, passthrough: bool = False) -> str:
        """A request for the history as it stands, ``tail`` behind it; ``summary``: for a local compaction."""
        sent = [
            {**i, PASSTHROUGH: {"turn_id": i[PASSTHROUGH]["turn_id"]}} if passthrough else without(i)
            for i in self.history
        ]
        fields = {"model": MODEL, "stream": True, "input": [self.base_item(), *sent, *tail]}
        return compact({**fields, **self.options(summary=summary)})

    def base_item(self) -> Item:
        return given("msg_5a0fe7c5-0000-557e-8000-00000000beef", "developer", self.base_sent)

    def options(self, *, summary: bool = False) -> dict[str, Any]:
        """What follows the input."""
        return {
            "tools": [] if summary else TOOLS,
            "tool_choice": "auto",
            "parallel_tool_calls": not summary,
            "reasoning": {"summary": "detailed"},
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": self.name,
            "client_metadata": self._client_metadata("compaction" if summary else "turn"),
        }

    def _client_metadata(self, kind: str) -> dict[str, str]:
        """A hash map: in another order each time."""
        self.sent += 1
        about = {"session_id": self.name, "turn_id": self.turn, "request_kind": kind, "model": MODEL}
        own = {
            "session_id": self.name,
            "thread_id": self.name,
            "turn_id": self.turn,
            "root_turn_id": self.turn,
            "x-codex-installation-id": "7d4f0f52-1111-4aaa-9bbb-2f3e4d5c6b7a",
            "x-codex-window-id": f"{self.name}:{self.window}",
            "x-codex-turn-metadata": compact(about),
        }
        order = sorted(own, key=lambda key: (sum(key.encode()) * (self.sent + 3)) % 31)
        return {key: own[key] for key in order}

    def headers(self) -> dict[str, str]:
        """Headers that name the thread."""
        return {"session-id": self.name, "thread-id": self.name, "x-codex-window-id": f"{self.name}:{self.window}"}

    def write(self, home: Path, stamp: str = "2026-02-01T09-00-00") -> Path:
        folder = home / ".codex" / "sessions" / "2026" / "02" / "01"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"rollout-{stamp}-{self.name}.jsonl"
        path.write_bytes("".join(line + "\n" for line in self.lines).encode())
        return path


def uuid_of(prefix: str, at: float, number: int) -> str:
    return f"{prefix}_{uuid7(at, number)}"


def prompt() -> Item:
    """The message a local compaction ends its request with."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": PROMPT}]}


def summarized(text: str) -> str:
    """The message that stands for the history from then on."""
    return f"{SUMMARY_LINE}\n{text}"


def write_config(home: Path, limit: int) -> None:
    lines = (
        f'model = "{MODEL}"\nmodel_provider = "greenhouse"\nmodel_auto_compact_token_limit = {limit}\n',
        '[model_providers.greenhouse]\nname = "greenhouse"\nbase_url = "http://127.0.0.1:8412/v1"\nwire_api = "responses"\n',
    )
    (home / ".codex").mkdir(parents=True, exist_ok=True)
    (home / ".codex" / "config.toml").write_text("".join(lines), encoding="utf-8")


def loads(body: str) -> Any:
    return json.loads(body)
