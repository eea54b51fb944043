"""An answer as the transcript stores it: blocks, usage, why it ended (claude_code.md §3, dedupe rules)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from ctxscope.agents.claude_code.texts import mapped, string
from ctxscope.agents.claude_code.tree import Group
from ctxscope.model import Block, Stop, StopState, Usage
from ctxscope.wire import json_text

_STOPS: Mapping[str, StopState] = {
    "end_turn": "complete",
    "stop_sequence": "complete",
    "tool_use": "complete",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "pause_turn": "incomplete",
    "compaction": "incomplete",
    "refusal": "blocked",
}
_COUNTED = tuple(f.name for f in fields(Usage))
_PLACEHOLDERS = ((2, 1, 12), (2, 1, 17))
"""First and last version that store the usage of a stream's first event on every line of an answer (§3 rule 2)."""


def usage(group: Group) -> Usage | None:
    """Usage of an answer: it stands on every line, early ones may hold less; the most of each field counts."""
    rows = list(dict.fromkeys(n.head.usage for n in group.nodes if n.head.usage is not None))
    if not rows:
        return None
    most = rows[0] if len(rows) == 1 else Usage(*(_most(getattr(u, name) for u in rows) for name in _COUNTED))
    if is_placeholder(group, most.output):
        most = replace(most, output=None)
    return most if most != Usage() else None


def _most(values: Iterable[int | None]) -> int | None:
    return max((v for v in values if v is not None), default=None)


def is_placeholder(group: Group, output: int | None) -> bool:
    """Whether an answer's output tokens are those of its stream's first event: nothing says what it cost."""
    if output is None or any(n.head.stop for n in group.nodes):
        return False
    numbers = tuple(int(n) for n in re.findall(r"[0-9]{1,9}", group.nodes[0].head.version)[:3])
    return _PLACEHOLDERS[0] <= numbers <= _PLACEHOLDERS[1]


def stop(group: Group) -> Stop | None:
    """Why an answer ended, as its last line that says so has it."""
    reason = next((n.head.stop for n in reversed(group.nodes) if n.head.stop), "")
    return _stop(reason) if reason else None


@lru_cache
def _stop(reason: str) -> Stop:
    """One object for all answers that ended so."""
    return Stop(reason, _STOPS.get(reason, "unknown"))


def what(group: Group) -> str:
    """The answer in a line: its tool calls, else its text."""
    calls = [n.head.says for n in group.lines if n.head.uses]
    return ", ".join(calls) or " ".join(n.head.says for n in group.lines if n.head.says)


def blocks(group: Group) -> tuple[Block, ...]:
    """The answer's blocks in order, in the form common to all APIs."""
    found: list[Block] = []
    for node in group.lines:
        content = mapped(node.entry.data.get("message")).get("content")
        if isinstance(content, str):
            found.append(Block("text", content))
        elif isinstance(content, list):
            found += [_block(b) for b in content if isinstance(b, Mapping)]
    return tuple(found)


def _block(block: Mapping[str, Any]) -> Block:
    kind = block.get("type")
    if kind == "text":
        return Block("text", string(block.get("text")))
    if kind == "thinking":
        return Block("thinking", string(block.get("thinking")), envelope=string(block.get("signature")))
    if kind == "redacted_thinking":
        return Block("thinking", envelope=string(block.get("data")))
    if isinstance(kind, str) and kind.endswith("tool_use"):
        arguments = json_text.js(_sorted(block.get("input")))
        return Block("tool_call", arguments, string(block.get("id")), string(block.get("name")))
    return Block("other")


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _sorted(value[k]) for k in sorted(value)}
    return [_sorted(v) for v in value] if isinstance(value, list) else value
