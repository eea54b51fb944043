"""Writes a ``state.db`` with the columns of Hermes 0.20.1 (schema 26) or 0.19 (22), the same bytes at every run."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SESSIONS = """
id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, session_key TEXT, chat_id TEXT, chat_type TEXT,
thread_id TEXT, display_name TEXT, origin_json TEXT, expiry_finalized INTEGER DEFAULT 0, model TEXT,
model_config TEXT, system_prompt TEXT, system_prompt_hash TEXT, parent_session_id TEXT, started_at REAL NOT NULL,
ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0,
input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0,
cache_write_tokens INTEGER DEFAULT 0, reasoning_tokens INTEGER DEFAULT 0, cwd TEXT, git_branch TEXT,
git_repo_root TEXT, git_metadata_generation INTEGER NOT NULL DEFAULT 0, billing_provider TEXT, billing_base_url TEXT,
billing_mode TEXT, estimated_cost_usd REAL, actual_cost_usd REAL, cost_status TEXT, cost_source TEXT,
pricing_version TEXT, title TEXT, title_source TEXT, last_activity_at REAL, last_activity_description TEXT,
last_activity_provenance TEXT, api_call_count INTEGER DEFAULT 0, handoff_state TEXT, handoff_platform TEXT,
handoff_error TEXT, compression_failure_cooldown_until REAL, compression_failure_error TEXT,
compression_fallback_streak INTEGER NOT NULL DEFAULT 0, compression_ineffective_count INTEGER NOT NULL DEFAULT 0,
profile_name TEXT, rewind_count INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0,
pinned INTEGER NOT NULL DEFAULT 0, hidden INTEGER NOT NULL DEFAULT 0, last_read_at REAL
"""

MESSAGES = """
id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, effect_disposition TEXT, timestamp REAL NOT NULL,
token_count INTEGER, finish_reason TEXT, reasoning TEXT, reasoning_content TEXT, reasoning_details TEXT,
codex_reasoning_items TEXT, codex_message_items TEXT, platform_message_id TEXT, observed INTEGER DEFAULT 0,
active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT, display_kind TEXT,
display_metadata TEXT
"""

USAGE = """
session_id TEXT NOT NULL, model TEXT NOT NULL, billing_provider TEXT NOT NULL DEFAULT '',
billing_base_url TEXT NOT NULL DEFAULT '', billing_mode TEXT NOT NULL DEFAULT '', task TEXT NOT NULL DEFAULT '',
api_call_count INTEGER NOT NULL DEFAULT 0, input_tokens INTEGER NOT NULL DEFAULT 0,
output_tokens INTEGER NOT NULL DEFAULT 0, cache_read_tokens INTEGER NOT NULL DEFAULT 0,
cache_write_tokens INTEGER NOT NULL DEFAULT 0, reasoning_tokens INTEGER NOT NULL DEFAULT 0,
estimated_cost_usd REAL NOT NULL DEFAULT 0, actual_cost_usd REAL NOT NULL DEFAULT 0, cost_status TEXT,
cost_source TEXT, first_seen REAL, last_seen REAL,
PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task)
"""

TABLES = {
    "schema_version": "version INTEGER NOT NULL",
    "system_prompts": "hash TEXT PRIMARY KEY, prompt TEXT NOT NULL",
    "sessions": SESSIONS,
    "messages": MESSAGES,
    "session_model_usage": USAGE,
    "state_meta": "key TEXT PRIMARY KEY, value TEXT",
    "compression_locks": "session_id TEXT PRIMARY KEY, holder TEXT NOT NULL, acquired_at REAL NOT NULL, "
    "expires_at REAL NOT NULL",
}

OLD, NEW = 22, 26
SINCE_0_20 = frozenset(
    [
        *("system_prompt_hash", "git_metadata_generation", "title_source", "last_activity_at", "pinned", "hidden"),
        *("last_activity_description", "last_activity_provenance", "compression_ineffective_count", "last_read_at"),
        *("display_kind", "display_metadata"),
    ]
)
"""Columns of sessions and messages that 0.19 does not have, nor the table of prompts: the session row holds the text."""

CHANGE_COUNTER, VALID_FOR, WRITER = slice(24, 28), slice(92, 96), slice(96, 100)
"""Fields of the SQLite header that tell who wrote the file and how often, and nothing of what it holds."""


Rows = Sequence[dict[str, Any]]


def tables(schema: int) -> dict[str, str]:
    """Columns by table."""
    if schema == NEW:
        return TABLES
    old = {name: _without(columns, SINCE_0_20) for name, columns in TABLES.items() if name in {"sessions", "messages"}}
    return {name: old.get(name, columns) for name, columns in TABLES.items() if name != "system_prompts"}


def _without(columns: str, names: frozenset[str]) -> str:
    return ",".join(one for one in columns.split(",") if one.split()[0] not in names)


def write_database(path: Path, schema: int, prompts: Rows, sessions: Rows, messages: Rows, usage: Rows) -> None:
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA page_size = 512")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("BEGIN")
    for table, columns in tables(schema).items():
        connection.execute(f"CREATE TABLE {table} ({columns})")
    connection.execute("CREATE INDEX idx_messages_session_id ON messages(session_id, id)")
    filled = {"schema_version": [{"version": schema}], "system_prompts": prompts, "sessions": sessions}
    for table, rows in {**filled, "messages": messages, "session_model_usage": usage}.items():
        for row in rows:
            marks = ", ".join("?" for _ in row)
            connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    connection.execute("COMMIT")
    connection.execute("VACUUM")
    connection.close()
    data = bytearray(path.read_bytes())
    data[CHANGE_COUNTER] = data[VALID_FOR] = (1).to_bytes(4, "big")
    data[WRITER] = (3040001).to_bytes(4, "big")
    path.write_bytes(data)
