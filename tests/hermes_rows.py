"""Hermes logs written row by row, with texts of our own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctxscope.agents import Log, at_hand, hermes
from ctxscope.model import ApiName, Body, Learned, Place, Point, Rebuilt, Record, SessionRef
from ctxscope.wire import by_name
from ctxscope.wire.body import make_body

PROMPT = "You help with gardens."
START = 1_700_000_000.0


def call(name: str, arguments: str = "{}", **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": name, "call_id": name, "type": "function", "function": {"name": "dig", "arguments": arguments}, **more}
    ]


class Written:
    """A log in the writing: one session, fed to the agent's ``entries`` as a reader would."""

    def __init__(self, *, parent: str | None = None, **session: Any) -> None:
        self.log = Log(SessionRef("hermes", "plot", (Path("state.db"),), Path(), parent=parent))
        self._seq = 0
        self._id = 0
        self._lines = 0
        self.now = START
        self.rows: dict[int, dict[str, Any]] = {}
        self.session = {"id": "plot", "model": "m", "started_at": START, "model_config": "{}", **session}
        self.prompt(PROMPT)

    def _feed(self, source: str, key: str, value: Mapping[str, Any] | bytes | None) -> None:
        for entry in hermes.entries(Record(source, key, Place(0, f"row {key}"), value)):
            self._seq += 1
            self.log.add(replace(entry, seq=self._seq))

    def prompt(self, text: str) -> None:
        self._feed("prompts", text, {"hash": text, "prompt": text})
        self.session = {**self.session, "system_prompt_hash": text}
        self._feed("session", "plot", self.session)

    def schema(self, version: int) -> None:
        self._feed("schema", str(version), {"version": version})

    def snapshot(self, tools: Sequence[Any]) -> None:
        self._feed("snapshot", "file", json.dumps({"session_id": "plot", "tools": tools}).encode())

    def config(self, text: str) -> None:
        self._feed("config", "file", text.encode())

    def line(self, text: str) -> None:
        self._lines += 1
        self._feed("agent_log", str(self._lines), text.encode())

    def turn(self, *, fresh: bool, session: str = "plot", model: str = "m") -> None:
        """The lines of a turn whose user row is written next."""
        from datetime import UTC, datetime  # noqa: PLC0415 - only here

        when = datetime.fromtimestamp(self.now + 1, UTC)
        stamp = f"{when:%Y-%m-%d %H:%M:%S},000"
        if fresh:
            self.line(f"{stamp} INFO run_agent: OpenAI client created (agent_init, shared=True) provider=p base_url=u")
        where = f"{stamp} INFO [{session}] agent.turn_context"
        self.line(
            f"{where}: conversation turn: session={session} model={model} provider=p platform=cli history=1 msg='x'"
        )

    def row(self, role: str, content: Any, *, source: str = "messages", ts: float | None = None, **columns: Any) -> int:
        """A row one second after the last; its id."""
        self._id += 1
        self.now = self.now + 1 if ts is None else self.now
        for name in ("tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items"):
            if name in columns:
                columns[name] = json.dumps(columns[name])
        if role == "assistant" and "finish_reason" not in columns:
            columns["finish_reason"] = "tool_calls" if "tool_calls" in columns else "stop"
        row = {
            "id": self._id,
            "role": role,
            "content": content,
            "timestamp": ts or self.now,
            "active": 1,
            "compacted": 0,
        }
        self.rows[self._id] = {**row, **columns}
        self._feed(source, str(self._id), self.rows[self._id])
        return self._id

    def user(self, text: Any, **columns: Any) -> int:
        return self.row("user", text, **columns)

    def says(self, text: Any, **columns: Any) -> int:
        return self.row("assistant", text, **columns)

    def tool(self, name: str, text: Any = "dug", **columns: Any) -> int:
        return self.row("tool", text, tool_call_id=name, tool_name="dig", **columns)

    def update(self, *ids: int, **columns: Any) -> None:
        for number in ids:
            self.rows[number] = {**self.rows[number], **columns}
            self._feed("messages", str(number), self.rows[number])

    def delete(self, *ids: int) -> None:
        for number in ids:
            self._feed("messages", str(number), None)

    @property
    def points(self) -> Sequence[Point]:
        return hermes.requests(self.log)

    def keys(self) -> list[str]:
        return [p.key.replace("messages:", "") for p in self.points]

    def context(self, at: int = -1) -> list[int]:
        return [e.data["id"] for e in self.points[at].context if e.kind in {"user", "assistant", "tool"}]

    def learned(self, body: Body, at: int = -1, before: Sequence[tuple[Point, Body]] = ()) -> Learned:
        return hermes.learn(self.log, self.points[at], body, at_hand(before))

    def rebuilt(self, learned: Learned | None = None, at: int = -1) -> Rebuilt:
        made = hermes.rebuild(self.log, self.points[at], hermes.config(self.log), learned or Learned())
        assert made is not None
        return made

    def body(self, learned: Learned | None = None, at: int = -1) -> dict[str, Any]:
        return json.loads(self.rebuilt(learned, at).data)

    def messages(self, learned: Learned | None = None, at: int = -1) -> list[dict[str, Any]]:
        """Messages of the request (Responses: items), the system message left out."""
        body = self.body(learned, at)
        found = body["input"] if "input" in body else body["messages"]
        return [m for m in found if m.get("role") != "system"]


def served(value: Mapping[str, Any], api: ApiName = "openai-chat") -> Body:
    """A captured body as the agent's client spells it."""
    return make_body(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), by_name(api))


def as_if(api: ApiName, **choice: Any) -> Learned:
    """What a body of an API teaches at least."""
    keys = {"anthropic-messages": ("messages", "system"), "openai-responses": ("input",), "openai-chat": ("messages",)}
    return Learned(keys=keys[api], choice={"api": api, **choice})
