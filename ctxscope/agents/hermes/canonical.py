"""The agent's in-memory message list: a row as the dictionary the agent holds, in live or loaded form (hermes.md §4.1).

A row is *live* while the process that made it lives and *loaded* once another process read it back; the two differ in
key order, and a loaded tool message has lost its ``name``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.hermes.rows import content_of, listed, tool_calls_of
from ctxscope.model import Entry

_FENCE = re.compile(r"</?\s*memory-context\s*>", re.IGNORECASE)
_NOTE = re.compile(r"\[System note: The following is recalled memory context, NOT new user input\.[^\]]*\]\s*")
_FENCED = re.compile(r"<\s*memory-context\s*>.*?</\s*memory-context\s*>", re.IGNORECASE | re.DOTALL)
_LIVE = ("reasoning_content", "reasoning_details", "codex_reasoning_items", "codex_message_items", "tool_calls")
_LOADED = ("tool_calls", "message_id", "observed", *_LIVE[:4])
SIDECAR = "api_content"
_JSON_COLUMNS = frozenset({"reasoning_details", "codex_reasoning_items", "codex_message_items"})


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One message of the canonical list with the rows it was made of."""

    data: Mapping[str, Any]
    """In the agent's key order; never changed in place."""
    rows: tuple[Entry, ...]
    """Empty for a message the agent makes up."""
    loaded: bool

    @property
    def role(self) -> str:
        """The role."""
        return str(self.data["role"])

    def changed(self, **values: Any) -> Message:
        """The same with some values replaced where they stand, or added at the end."""
        return Message({**self.data, **values}, self.rows, self.loaded)

    def sent(self) -> Message:
        """The copy that goes into a request: its sidecar in place of its content (hermes.md §4.3)."""
        if SIDECAR not in self.data:
            return self
        data = {k: v for k, v in self.data.items() if k != SIDECAR}
        return Message({**data, "content": self.data[SIDECAR]}, self.rows, self.loaded)


def message_of(entry: Entry, *, loaded: bool) -> Message:
    """A row as the agent holds it in memory."""
    row = entry.data
    data: dict[str, Any] = {"role": row["role"]}
    if row["role"] == "tool":
        _tool(data, row, loaded=loaded)
    else:
        data["content"] = _content(row, loaded=loaded)
        sidecar = sidecar_of(row)
        if sidecar is not None:
            data[SIDECAR] = sidecar
        for name in _LOADED if loaded else _LIVE:
            value = _column(row, name)
            if value is not None:
                data[name] = value
    data["reasoning"] = row.get("reasoning")
    data["finish_reason"] = row.get("finish_reason")
    return Message(data, (entry,), loaded)


def _tool(data: dict[str, Any], row: Mapping[str, Any], *, loaded: bool) -> None:
    if not loaded and row.get("tool_name") is not None:
        data["name"] = row["tool_name"]
    data["content"] = content_of(row)
    data["tool_call_id"] = row.get("tool_call_id")
    if loaded:
        for name in ("message_id", "observed"):
            value = _column(row, name)
            if value is not None:
                data[name] = value


def _column(row: Mapping[str, Any], name: str) -> Any:
    """A column's value where the agent sets the key, else ``None``."""
    if name == "tool_calls":
        return tool_calls_of(row) or None
    if name == "message_id":
        return row.get("platform_message_id")
    if name == "observed":
        return True if row.get("observed") else None
    value = row.get(name)
    return listed(value) if name in _JSON_COLUMNS and value else value


def sidecar_of(row: Mapping[str, Any]) -> str | None:
    """The exact text sent instead of the content.

    It is ``api_content`` when that is a non-empty string of a user or assistant row; any other shape or role is
    dropped (hermes.md §4.3).
    """
    value = row.get("api_content")
    if isinstance(value, str) and value and row.get("role") in {"user", "assistant"}:
        return value
    return None


def sent_content(row: Mapping[str, Any], *, loaded: bool) -> Any:
    """What a user or assistant row puts on the wire: its sidecar, or its content."""
    sidecar = sidecar_of(row)
    return sidecar if sidecar is not None else _content(row, loaded=loaded)


def _content(row: Mapping[str, Any], *, loaded: bool) -> Any:
    """The content, cleaned when it was reloaded; a sidecar beside it keeps it from that."""
    content = content_of(row)
    if not loaded or not isinstance(content, str) or sidecar_of(row) is not None:
        return content
    return _FENCE.sub("", _NOTE.sub("", _FENCED.sub("", content))).strip() if "memory" in content.lower() else content


def sorted_arguments(text: str, *, ascii_only: bool) -> str:
    """Tool-call arguments as the agent re-spells them: compact, keys sorted; ``{}`` for what does not parse."""
    try:
        return json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True, ensure_ascii=ascii_only)
    except (ValueError, TypeError, RecursionError):
        return "{}"


def blank(value: Any) -> bool:
    """Whether a content says nothing."""
    return value is None or value in ("", []) or (isinstance(value, str) and not value.strip())


def tool_ids(message: Message) -> frozenset[str]:
    """Ids of the calls an assistant message makes."""
    calls: Iterable[Mapping[str, Any]] = message.data.get("tool_calls") or ()
    return frozenset(str(i) for c in calls for i in (c.get("id"), c.get("call_id")) if i)
