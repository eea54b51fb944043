"""Spells what opencode 1.18 keeps and sends: rows of its database, Chat Completions bodies."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.samples.recording import T0, Recording, compact

PROVIDER, MODEL = "harbour", "buoy-chat"
VERSION = "1.18.33"
TABLES = {
    "session": """
id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text, slug text NOT NULL,
directory text NOT NULL, path text, title text NOT NULL, version text NOT NULL, share_url text,
summary_additions integer, summary_deletions integer, summary_files integer, summary_diffs text, metadata text,
cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL, tokens_output integer DEFAULT 0 NOT NULL,
tokens_reasoning integer DEFAULT 0 NOT NULL, tokens_cache_read integer DEFAULT 0 NOT NULL,
tokens_cache_write integer DEFAULT 0 NOT NULL, revert text, permission text, agent text, model text,
time_created integer NOT NULL, time_updated integer NOT NULL, time_compacting integer, time_archived integer
""",
    "message": """
id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
data text NOT NULL
""",
    "part": """
id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
time_updated integer NOT NULL, data text NOT NULL
""",
}
CHANGE_COUNTER, VALID_FOR, WRITER = slice(24, 28), slice(92, 96), slice(96, 100)
"""Fields of the SQLite header that tell who wrote the file and how often, and nothing of what it holds."""


@dataclass(frozen=True)
class Use:
    id: str
    name: str
    arguments: str
    """As the model spelled them; the parsed value is kept and sent."""
    output: str = ""


def recording(session: str) -> Recording:
    return Recording("/v1/chat/completions", headers(session))


def headers(session: str) -> dict[str, str]:
    """What each request of a session names it by."""
    agent = {"host": "127.0.0.1:8413", "user-agent": f"opencode/{VERSION}"}
    return {**agent, "x-session-affinity": session, "x-session-id": session}


def answer_sent(text: str, thought: str = "", uses: tuple[Use, ...] = ()) -> list[dict[str, Any]]:
    """An answer in a later request, and the results of its tools."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if uses:
        functions = [{"name": u.name, "arguments": compact(json.loads(u.arguments))} for u in uses]
        pairs = zip(uses, functions, strict=True)
        message["tool_calls"] = [{"id": u.id, "type": "function", "function": f} for u, f in pairs]
    message["reasoning_content"] = thought
    return [message, *({"role": "tool", "tool_call_id": u.id, "content": u.output} for u in uses)]


def body(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
    asked = {"model": MODEL, "max_tokens": 4096, "messages": messages}
    given = {"tools": tools, "tool_choice": "auto"} if tools else {}
    return compact({**asked, **given, "stream": True, "stream_options": {"include_usage": True}})


@dataclass
class Database:
    """Rows in the order they were made; ids grow with them."""

    sessions: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    parts: list[dict[str, Any]] = field(default_factory=list)

    def session(self, name: str, title: str, at: float, parent: str | None = None, agent: str = "build") -> None:
        model = compact({"id": MODEL, "providerID": PROVIDER, "variant": "default"})
        row = {
            "id": name,
            "project_id": "global",
            "parent_id": parent,
            "slug": "small-mole",
            "directory": "/home/ada/mole",
        }
        row |= {"title": title, "version": VERSION, "agent": agent, "model": model}
        self.sessions.append({**row, "time_created": _ms(at), "time_updated": _ms(at)})

    def message(self, session: str, at: float, data: dict[str, Any], parts: list[dict[str, Any]]) -> str:
        number = len(self.messages) + 1
        name = f"msg_22a0{number:08x}sampleSAMPLE"
        times = {"time_created": _ms(at), "time_updated": _ms(at)}
        self.messages.append({"id": name, "session_id": session, **times, "data": compact(data)})
        for part in parts:
            own = f"prt_22a0{len(self.parts) + 1:08x}sampleSAMPLE"
            row = {"id": own, "message_id": name, "session_id": session, **times, "data": compact(part)}
            self.parts.append(row)
        return name

    def user(self, session: str, at: float, *parts: dict[str, Any], agent: str = "build", model: str = MODEL) -> str:
        data = {"role": "user", "time": {"created": _ms(at)}, "agent": agent}
        return self.message(session, at, {**data, "model": {"providerID": PROVIDER, "modelID": model}}, [*parts])

    def answer(
        self,
        session: str,
        at: float,
        asked: str,
        *parts: dict[str, Any],
        tokens: tuple[int, int, int] = (100, 0, 10),
        agent: str = "build",
        model: str = MODEL,
        **more: Any,
    ) -> str:
        """An answer; ``tokens`` are those of the prompt, those read from the cache, those of the answer."""
        prompt, read, output = tokens
        told = {"total": prompt + output, "input": prompt - read, "output": output, "reasoning": 0}
        told["cache"] = {"write": 0, "read": read}
        finish = "tool-calls" if any(p["type"] == "tool" for p in parts) else "stop"
        data = {"role": "assistant", "parentID": asked, "mode": agent, "agent": agent, "cost": 0, "tokens": told}
        data |= {"modelID": model, "providerID": PROVIDER, "time": {"created": _ms(at), "completed": _ms(at + 1.6)}}
        end = {"type": "step-finish", "reason": finish, "tokens": told, "cost": 0}
        return self.message(session, at, {**data, "finish": finish, **more}, [{"type": "step-start"}, *parts, end])

    def write(self, home: Path) -> Path:
        path = home / ".local" / "share" / "opencode" / "opencode.db"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA page_size = 512")
        connection.execute("BEGIN")
        for table, rows in zip(TABLES, (self.sessions, self.messages, self.parts), strict=True):
            connection.execute(f"CREATE TABLE `{table}` ({TABLES[table]})")
            insert(connection, table, rows)
        connection.execute("COMMIT")
        connection.execute("VACUUM")
        connection.close()
        data = bytearray(path.read_bytes())
        data[CHANGE_COUNTER] = data[VALID_FOR] = (1).to_bytes(4, "big")
        data[WRITER] = (3040001).to_bytes(4, "big")
        path.write_bytes(data)
        return path


def insert(connection: sqlite3.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        marks = ", ".join("?" for _ in row)
        connection.execute(f"INSERT INTO `{table}` ({', '.join(row)}) VALUES ({marks})", list(row.values()))


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def thought(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "reasoning", "text": words, "time": {"start": 0, "end": 0}, **more}


def used(use: Use, **state: Any) -> dict[str, Any]:
    done = {"status": "completed", "input": json.loads(use.arguments), "output": use.output, "title": use.name}
    done |= {"metadata": {}, "time": {"start": 0, "end": 0}}
    return {"type": "tool", "tool": use.name, "callID": use.id, "state": {**done, **state}}


def _ms(at: float) -> int:
    return round((T0 + at) * 1000)
