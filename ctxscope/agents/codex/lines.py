"""Lines of a rollout, and config.toml, as entries; and what is known of their form (codex.md §3)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ctxscope.agents.reading.drift import Dialect
from ctxscope.model import Entry, Record
from ctxscope.wire import json_text

SESSION, CONFIG, BASE = "session", "config", "base"
"""Source keys: the rollout, the settings of the Codex home, and rollouts that its history begins in (``base:<thread>``)."""
RECORDS = frozenset(
    {
        "session_meta",
        "turn_context",
        "world_state",
        "response_item",
        "compacted",
        "token_usage_record",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "event_msg",
    }
)
ITEMS = (
    *("message", "agent_message", "reasoning", "ghost_snapshot", "additional_tools"),
    *("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"),
    *("function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output"),
    *("image_generation_call", "compaction", "compaction_summary", "context_compaction"),
)
EVENTS = (
    *("task_started", "task_complete", "turn_aborted", "user_message", "agent_message", "agent_reasoning"),
    *("agent_reasoning_raw_content", "token_count", "context_compacted", "item_completed", "error", "warning"),
    *("thread_settings_applied", "thread_rolled_back", "thread_goal_updated", "thread_name_updated"),
    *("web_search_end", "patch_apply_end", "mcp_tool_call_end", "exec_command_end", "image_generation_end"),
    *("view_image_tool_call", "dynamic_tool_call_request", "dynamic_tool_call_response", "guardian_assessment"),
    *("entered_review_mode", "exited_review_mode", "undo_completed", "sub_agent_activity"),
    *("collab_agent_spawn_end", "collab_waiting_end", "collab_close_end", "collab_agent_interaction_end"),
)
VERSIONS = ("0.50.0", "0.53.0", "0.98.0", "0.106.0", "0.146.0", "0.171.0")
"""0.98 and 0.171 were recorded and compared; of the others public rollouts were read for their form (codex.md §1)."""


def entries(record: Record) -> Iterator[Entry]:
    """The entry of one record; a line that is no object, or not JSON, is ``unknown``. Never raises."""
    value = record.value
    if record.source == CONFIG:
        yield _config(record)
        return
    key = f"line:{record.key}" if record.source == SESSION else f"{record.source}:line:{record.key}"
    if value is None:
        yield Entry("gone", record.place, key, {}, source=record.source)
        return
    if not isinstance(value, bytes) or not value.strip():
        return
    data = parsed(value)
    kind = kind_of(data) if data is not None else "unknown"
    yield Entry(kind, record.place, key, data or {}, written(data or {}), source=record.source, raw=value)


def _config(record: Record) -> Entry:
    if not isinstance(record.value, bytes):
        return Entry("gone", record.place, CONFIG, {}, source=CONFIG)
    try:
        data = tomllib.loads(record.value.decode("utf-8", "replace"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return Entry("unknown", record.place, CONFIG, {}, source=CONFIG, raw=record.value)
    return Entry(CONFIG, record.place, CONFIG, data, source=CONFIG, raw=record.value)


def parsed(line: bytes) -> dict[str, Any] | None:
    """A line as an object; bytes that are no UTF-8 are let pass as U+FFFD. ``None`` for anything else."""
    try:
        data = json_text.loads_leniently(line)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def payload_of(entry: Entry) -> Mapping[str, Any]:
    """What an entry's line carries."""
    payload = entry.data.get("payload")
    return payload if isinstance(payload, Mapping) else {}


def type_of(entry: Entry) -> str:
    """The type of an entry's line; empty where it has none."""
    kind = entry.data.get("type")
    return kind if isinstance(kind, str) else ""


def kind_of(data: Mapping[str, Any]) -> str:
    """What a line means: a role, ``tool``, ``compaction``, the name of an event; ``unknown`` for records not known."""
    kind, payload = data.get("type"), data.get("payload")
    payload = payload if isinstance(payload, Mapping) else {}
    inner = payload.get("type")
    inner = inner if isinstance(inner, str) else ""
    if kind == "response_item":
        if inner == "message":
            role = payload.get("role")
            return role if isinstance(role, str) and role else "unknown"
        if inner.endswith("_output"):
            return "tool"
        return "assistant" if inner.endswith(("_call", "compaction", "reasoning")) else inner or "unknown"
    if kind == "event_msg":
        return inner if inner in EVENTS else "unknown"
    if kind == "compacted":
        return "compaction"
    return kind if isinstance(kind, str) and kind in RECORDS else "unknown"


def written(data: Mapping[str, Any]) -> float | None:
    """When a line was written, in seconds since the epoch."""
    stamp = data.get("timestamp")
    if not isinstance(stamp, str):
        return None
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError):
        return None


def _record_kind(entry: Entry) -> str:
    kind = type_of(entry)
    if kind in ("response_item", "event_msg"):
        inner = payload_of(entry).get("type")
        return f"{kind} {inner}" if isinstance(inner, str) else kind
    return kind


def _version(entry: Entry) -> str | None:
    if type_of(entry) != "session_meta":
        return None
    version = payload_of(entry).get("cli_version")
    return version if isinstance(version, str) else None


DIALECT = Dialect(
    "Codex CLI",
    {
        **dict.fromkeys(RECORDS - {"response_item", "event_msg"}, ()),
        **{f"response_item {kind}": () for kind in ITEMS},
        **{f"event_msg {kind}": () for kind in EVENTS},
    },
    common=("timestamp", "ordinal", "type", "payload", "metadata"),
    versions=VERSIONS,
    kind=_record_kind,
    version=_version,
    sources=(SESSION,),
)
