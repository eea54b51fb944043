"""Lines of an omp session file, and its side files, as entries (omp.md §3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from sys import float_info
from typing import Any

from ctxscope.agents.omp.side_files import MODELS, SETTINGS, read
from ctxscope.agents.pi import lines
from ctxscope.agents.pi.known import log_version
from ctxscope.agents.reading.drift import Dialect
from ctxscope.model import Entry, Record

SESSION = lines.SESSION
BLOB, ARTIFACT = "blob:", "artifact:"
"""How the keys of side files begin; behind it stands the hash, or the file's name."""
BLOB_REF = re.compile(r"blob:sha256:([0-9a-f]{64})")
ROLES = {
    *("user", "assistant", "toolResult", "developer", "custom", "hookMessage"),
    *("bashExecution", "pythonExecution", "fileMention", "branchSummary", "compactionSummary"),
}
_BASE = {"type", "id", "parentId", "timestamp"}
_COMPACTION = {
    *("summary", "shortSummary", "firstKeptEntryId", "tokensBefore", "tokensAfter", "method", "details"),
    *("fromExtension", "preserveData", "providerReplayThroughEntryId", "warning", "usage", "fromHook"),
}
DIALECT = Dialect(
    title="omp with log version",
    versions=("1", "2", "3"),
    version=log_version,
    common=_BASE,
    kinds={
        "title": {"v", "title", "source", "updatedAt", "pad"},
        "session": {
            *("version", "cwd", "title", "titleSource", "additionalDirectories", "parentSession"),
            *("previousSessionFiles", "providerPromptCacheKey"),
        },
        "message": {"message"},
        "model_change": {"model", "role", "resolvedModelIsFallback"},
        "thinking_level_change": {"thinkingLevel", "configured"},
        "service_tier_change": {"serviceTier"},
        "ttsr_injection": {"injectedRules"},
        "credential_pin": {"provider", "credentialId", "pin", "hash"},
        "model_usage": {
            *("purpose", "role", "api", "provider", "model", "usage", "stopReason", "responseId", "errorMessage"),
        },
        "title_change": {"title", "source", "previousTitle", "trigger"},
        "session_init": {
            *("systemPrompt", "task", "tools", "outputSchema", "outputSchemaMode", "spawns", "agent", "modelRole"),
            *("resolvedModel", "readOnly", "restrictToolNames", "readSummarize", "advisor", "isolated"),
        },
        "mode_change": {"mode", "data"},
        "reset_boundary": set(),
        "custom": {"customType", "data"},
        "custom_message": {"customType", "content", "display", "details", "attribution"},
        "branch_summary": {"fromId", "summary", "details", "fromExtension", "fromHook"},
        "compaction": _COMPACTION,
        "label": {"targetId", "label"},
    },
    sources=(SESSION,),
)
"""Records and the fields of their envelopes that are known; 18.2.3 names no version in its log."""


def entries(record: Record) -> Iterator[Entry]:
    """The entry of one record; a line that is no object, or not JSON, is ``unknown``. Never raises.

    A side file is one entry with its bytes; its key is its source's. Settings keep what is wanted of them, and no bytes.
    """
    if record.source in (SETTINGS, MODELS):
        told = read(record.source, record.value) if isinstance(record.value, bytes) else {}
        yield Entry(record.source, record.place, record.source, told, source=record.source)
        return
    if record.source != SESSION:
        kind = record.source.partition(":")[0] if isinstance(record.value, bytes) else "gone"
        raw = record.value if isinstance(record.value, bytes) else b""
        yield Entry(kind, record.place, record.source, {}, source=record.source, raw=raw)
        return
    for entry in lines.entries(record):
        yield entry if entry.kind == "gone" else replace(entry, kind=_kind(entry.data))


def _kind(data: Mapping[str, Any]) -> str:
    """The type a line states; of a message its role."""
    kind = data.get("type")
    if kind != "message":
        return kind if isinstance(kind, str) and kind in DIALECT.kinds else "unknown"
    message = data.get("message")
    role = message.get("role") if isinstance(message, Mapping) else None
    return role if isinstance(role, str) and role in ROLES else "unknown"


def is_message(entry: Entry) -> bool:
    """Whether an entry is a message of the conversation with a role that is known."""
    return entry.kind in ROLES and isinstance(entry.data.get("message"), Mapping)


def stamp(entry: Entry) -> float:
    """When it was made, in milliseconds since the epoch: the message's own stamp, else the line's; 0 where there is none."""
    own = finite(lines.message_stamp(entry.data))
    return own if own is not None else (finite(entry.time) or 0.0) * 1000


def pruned_at(entry: Entry) -> float | None:
    """When a tool result was rewritten in its place, in milliseconds since the epoch; ``None``: never."""
    message = entry.data.get("message")
    value = message.get("prunedAt") if isinstance(message, Mapping) else None
    return finite(value)


def finite(value: Any) -> float | None:
    """A number that can be counted with; ``None`` for what is none (JSON as it is read knows NaN and endless ones)."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max
    return float(value) if known else None
