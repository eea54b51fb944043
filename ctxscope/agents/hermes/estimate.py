"""The agent's own rough token estimate, reproduced per version (hermes.md §6), and the naive count beside it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes.canonical import sidecar_of
from ctxscope.agents.hermes.log import prompt_text
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.prompts import system_entry, tools_of
from ctxscope.agents.hermes.rows import content_of, listed, tool_calls_of
from ctxscope.agents.hermes.runs import is_loaded, loaded_before, origins_of, rows_among
from ctxscope.model import Entry, Point
from ctxscope.wire.json_text import py

_CJK = re.compile("[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_IMAGE = 1500
_IMAGES = frozenset({"image", "image_url", "input_image"})
_BLANKED = frozenset({"reasoning_details", "timestamp", "_anthropic_content_blocks"})
_OLD_SKIPPED = frozenset({"_anthropic_content_blocks"})


def estimate(log: Log, point: Point) -> int | None:
    """Tokens the agent would reckon for the request at a point: prompt, messages, tools.

    The rough estimator of the version that wrote the log; ``None`` without a prompt to count. Message dictionaries are
    taken as the agent holds them in memory, hence by live and loaded form and with the notes of its compactions.

    Exact against the agent's own functions and, in 0.20, its own telemetry (measured on recorded histories); what 0.19
    notes on a compacted list was not recorded and is left out.
    """
    entry = system_entry(log, point)
    if entry is None:
        return None
    old = reading_of(log).old
    tools = tools_of(log, point)
    listed_tools = tools.data["tools"] if tools is not None else ()
    return rough(prompt_text(entry).strip(), old=old) + message_tokens(log, point) + tool_tokens(listed_tools)


def message_tokens(log: Log, point: Point) -> int:
    """The message part of the estimate."""
    return list_tokens(log, rows_among(point.context), loaded_before(log, point, {}))


def list_tokens(log: Log, rows: Sequence[Entry], boundary: int) -> int:
    """Tokens of message rows held by a process that loaded what lies below ``boundary``.

    It is what micro-compaction telemetry calls ``tokens_before`` and ``tokens_after``.
    """
    old = reading_of(log).old
    origins = origins_of(log)
    rewritten = {} if old else _rewritten(log)
    memo = shared_memo(log, "hermes.estimates")
    counted: list[tuple[int, int]] = []
    for entry in rows:
        loaded = is_loaded(origins, entry, boundary)
        notes = _notes(entry, rewritten.get(entry.data["id"]), boundary)
        key = (entry, loaded, tuple(notes.items()))
        if key not in memo:
            memo[key] = _message({**memory_of(entry, loaded=loaded), **notes}, old=old)
        counted.append(memo[key])
    total = sum(n for n, _ in counted)
    return (math.ceil(total / 4) if old else total) + _IMAGE * sum(images for _, images in counted)


@dataclass(frozen=True, slots=True)
class _Rewritten:
    """A row that a compaction wrote again."""

    batch: bool
    """By a batch compaction, not a micro pass."""
    first: int | None
    """Of a summary, the id under which it was first written; else ``None``."""
    micro: bool
    """A summary that a micro pass made."""


def _rewritten(log: Log) -> Mapping[int, _Rewritten]:
    """Rows written again by the compactions, by id."""
    reading = reading_of(log)
    known = log.memo.get("hermes.rewritten")
    if known is not None and known[0] is reading:
        return cast("Mapping[int, _Rewritten]", known[1])
    found: dict[int, _Rewritten] = {}
    first: dict[tuple[str, float], int] = {}
    for generation in reading.generations:
        carried = generation.rows[: generation.carried]
        fresh = [r for r in carried if r.summary and (r.role, r.ts) not in first]
        for row in carried:
            said = first.setdefault((row.role, row.ts), row.id) if row.summary else None
            found[row.id] = _Rewritten(any(not r.micro for r in fresh), said, row.micro)
    log.memo["hermes.rewritten"] = (reading, found)
    return found


def _notes(entry: Entry, rewritten: _Rewritten | None, boundary: int) -> dict[str, Any]:
    """The bookkeeping that the agent keeps in a message beside its columns.

    Found by exact arithmetic: with these, and no others, the estimate meets every number of recorded telemetry. A list
    written again carries row ids, and after a batch compaction no mark that it is stored; a summary carries flags, of
    which a process that loads it restores only a micro pass's own.
    """
    notes: dict[str, Any] = {"_db_persisted": True}
    if rewritten is None:
        return notes
    live = entry.data["id"] >= boundary
    if live and rewritten.batch:
        notes = {}
    if live:
        notes["_row_id"] = entry.data["id"]
    if rewritten.first is not None and rewritten.first >= boundary:
        notes |= {"_compressed_summary": True, "_compressed_summary_has_user_turn": True}
    if rewritten.first is not None and rewritten.micro:
        notes["_micro_compact_marker"] = True
    return notes


def memory_of(entry: Entry, *, loaded: bool) -> dict[str, Any]:
    """A row's columns as the dictionary the agent keeps in memory (hermes.md §4.1)."""
    row = entry.data
    out: dict[str, Any] = {"role": row["role"]}
    fields = _loaded_fields(row) if loaded else _live_fields(row)
    out.update((k, v) for k, v in fields if v is not None or (k, loaded) == ("reasoning", False))
    return out


def _live_fields(row: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    if row["role"] == "tool":
        return (
            ("name", row.get("tool_name")),
            ("tool_name", row.get("tool_name")),
            ("content", content_of(row)),
            ("tool_call_id", row.get("tool_call_id")),
            ("timestamp", row.get("timestamp")),
        )
    if row["role"] == "user":
        return (
            ("content", content_of(row)),
            ("timestamp", row.get("timestamp")),
            ("api_content", row.get("api_content")),
        )
    if row.get("finish_reason") is None:  # a summary the agent wrote: no reply's fields
        return (("content", content_of(row)), ("timestamp", row.get("timestamp")))
    return (
        ("content", content_of(row)),
        ("reasoning", row.get("reasoning")),
        ("finish_reason", row.get("finish_reason")),
        ("timestamp", row.get("timestamp")),
        ("reasoning_content", row.get("reasoning_content")),
        *((k, listed(row.get(k))) for k in ("reasoning_details", "codex_reasoning_items", "codex_message_items")),
        ("tool_calls", tool_calls_of(row) or None),
        ("api_content", row.get("api_content")),
    )


def _loaded_fields(row: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return (
        ("content", content_of(row)),
        ("api_content", row.get("api_content")),
        ("timestamp", row.get("timestamp")),
        ("tool_call_id", row.get("tool_call_id")),
        ("tool_name", row.get("tool_name")),
        ("effect_disposition", row.get("effect_disposition")),
        ("tool_calls", tool_calls_of(row) or None),
        ("message_id", row.get("platform_message_id")),
        ("observed", True if row.get("observed") else None),
        ("finish_reason", row.get("finish_reason")),
        ("reasoning", row.get("reasoning")),
        ("reasoning_content", row.get("reasoning_content")),
        *((k, listed(row.get(k))) for k in ("reasoning_details", "codex_reasoning_items", "codex_message_items")),
    )


def _message(memory: Mapping[str, Any], *, old: bool) -> tuple[int, int]:
    """(tokens, images) of one message; in 0.19 (characters, images), which are divided once for the whole list."""
    images = _images(memory.get("content"))
    if old:
        kept = {k: v for k, v in memory.items() if k not in _OLD_SKIPPED}
        return len(str(kept)), images
    shadow = {k: v for k, v in memory.items() if k not in _BLANKED and k != "api_content"}
    sent = sidecar_of(memory)
    if sent is not None:
        shadow["content"] = sent
    content = shadow.get("content")
    if isinstance(content, list):
        shadow["content"] = [_blanked(p) for p in content]
    elif isinstance(content, dict) and content.get("_multimodal"):
        shadow["content"] = content.get("text_summary", "")
    return rough(str(shadow), old=False), images


def _images(content: Any) -> int:
    parts = content.get("content") if isinstance(content, dict) and content.get("_multimodal") else content
    return sum(1 for p in parts if isinstance(p, dict) and p.get("type") in _IMAGES) if isinstance(parts, list) else 0


def _blanked(part: Any) -> Any:
    if isinstance(part, dict) and part.get("type") in _IMAGES:
        return {"type": part["type"], "image": "[stripped]"}
    return part


def rough(text: str, *, old: bool) -> int:
    """Tokens of a text by the agent's rule: four characters each, in 0.20 every CJK character one."""
    wide = 0 if old else len(_CJK.findall(text))
    return wide + math.ceil((len(text) - wide) / 4)


def tool_tokens(tools: Iterable[Mapping[str, Any]]) -> int:
    """Tokens of the tool list by the agent's rule."""
    characters = 0
    for tool in tools:
        function = tool.get("function") or {}
        name, description = str(function.get("name") or ""), str(function.get("description") or "")
        characters += len(name) + len(description) + len(py(function.get("parameters") or {}))
    return math.ceil(characters / 4)


def naive(log: Log, point: Point) -> int | None:
    """ceil(characters / 4) of the rows as stored, every column with its name: sidecars and envelopes counted whole."""
    memo = shared_memo(log, "hermes.naive")
    total = 0
    for entry in rows_among(point.context):
        if entry not in memo:
            memo[entry] = len(py({k: v for k, v in entry.data.items() if v is not None and not isinstance(v, bytes)}))
        total += memo[entry]
    return math.ceil(total / 4)
