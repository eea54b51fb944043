"""Files an application keeps pydantic-ai's message history in: how one is told, and which belong together.

The library has no log of its own. What ``all_messages_json()`` gives is one JSON array a file; runs appended as they end
are lines, each with the array of ``new_messages_json()``. Files of one conversation are one session (pydantic_ai.md §2).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ctxscope.agents.reading.files import HEAD_BYTES
from ctxscope.agents.reading.files import head as head_of
from ctxscope.model import CtxscopeError, SessionRef, SourceSpec
from ctxscope.wire import json_text
from ctxscope.wire.blocks import listed, mapped, string
from ctxscope.wire.spans import blank_end, value_end

SURE, LIKELY = 0.95, 0.7
HISTORY = "history"
"""Source key of the fullest file; the others of a conversation are ``history:<number>``."""
MOST_FILES, MOST_SNAPSHOTS = 256, 16
"""Files of a folder that are looked at, and those of one conversation that are read."""
LINES = (".jsonl", ".ndjson")
SUFFIXES = (".json", *LINES)
_PEEK = 64
_FIRST_PART = re.compile(rb'"part_kind"\s*:\s*"[a-z-]+"')
_KIND = re.compile(rb'"kind"\s*:\s*"(?:request|response)"')
_BEGINS = re.compile(rb'\s*\[\s*\{\s*"parts"\s*:\s*\[\s*\{\s*"content"\s*:')
"""How the library spells a history whose first prompt alone is longer than what is looked at."""
_CONVERSATION = re.compile(rb'"conversation_id"\s*:\s*"([^"\\]+)"')


@dataclass(frozen=True, slots=True)
class Found:
    """A history file and what its first message says."""

    path: Path
    conversation: str
    """The conversation's id; of older histories, which have none, a hash of their first message."""
    id: str
    started: float | None
    updated: float
    size: int


def discover(home: Path) -> Iterator[SessionRef]:
    """Conversations whose histories lie in ``home`` itself, told by the first message of each file."""
    groups: dict[str, list[Found]] = {}
    for path in _candidates(home):
        found = _looked_at(path)
        if found is not None:
            groups.setdefault(found.conversation, []).append(found)
    for files in groups.values():
        yield _ref(sorted(files, key=lambda f: (-f.size, f.path.name)), home)


def claims(path: Path, head: bytes) -> float:
    """How surely ``head`` begins a history: an array of messages that have a kind and parts with a kind each."""
    if path.suffix not in SUFFIXES:
        return 0.0
    message = _first(head)
    if message is not None:
        return SURE if is_message(message) else 0.0
    if len(head) < HEAD_BYTES:
        return 0.0
    told = _FIRST_PART.search(head) and _KIND.search(head)
    return LIKELY if _BEGINS.match(head) or (told and head.lstrip()[:1] == b"[") else 0.0


def refs(path: Path, home: Path) -> Iterator[SessionRef]:
    """The one conversation in a file; raises ``CtxscopeError`` when it is no message history."""
    try:
        head, status = head_of(path), path.stat()
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read ({error.strerror}); a message history was expected") from None
    if not claims(path, head):
        found = "an empty file" if not head.strip() else "something else"
        raise CtxscopeError(f"{path}: found {found}; a pydantic-ai history is an array of messages with kind and parts")
    yield _ref([_told(path, head, status.st_mtime, status.st_size)], home)


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The files of the conversation, the fullest first."""
    return tuple(
        SourceSpec(
            HISTORY if number == 0 else f"{HISTORY}:{number}",
            path,
            "jsonl" if path.suffix in LINES else "whole",
            log=number,
            optional=number > 0,
        )
        for number, path in enumerate(ref.paths)
    )


def is_message(value: Mapping[str, Any]) -> bool:
    """Whether an object is a message of a history: a request or a response made of parts."""
    parts = value.get("parts")
    if value.get("kind") not in ("request", "response") or not isinstance(parts, list):
        return False
    return all(string(mapped(part).get("part_kind")) for part in parts)


def seconds(stamp: Any) -> float | None:
    """An ISO stamp in seconds since the epoch."""
    try:
        return datetime.fromisoformat(stamp).timestamp() if isinstance(stamp, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def _candidates(home: Path) -> list[Path]:
    try:
        names = sorted(p for p in home.iterdir() if p.suffix in SUFFIXES and not p.name.startswith("."))
    except OSError:
        return []
    return names[:MOST_FILES]


def _looked_at(path: Path) -> Found | None:
    """A history in a file; ``None`` for anything else. Most files are told by their first bytes."""
    try:
        with path.open("rb") as file:
            if file.read(_PEEK).lstrip()[:1] != b"[":
                return None
        head, status = head_of(path), path.stat()
    except OSError:
        return None
    return _told(path, head, status.st_mtime, status.st_size) if claims(path, head) else None


def _told(path: Path, head: bytes, updated: float, size: int) -> Found:
    message = _first(head) or {}
    named = _CONVERSATION.search(head) if not message else None
    name = string(message.get("conversation_id")) or (named[1].decode("utf-8", "replace") if named else "")
    first = hashlib.sha256(json_text.py(message).encode("utf-8", "surrogatepass")).hexdigest() if message else str(path)
    return Found(path, name or first, name or path.stem, seconds(message.get("timestamp")), updated, size)


def _ref(files: list[Found], home: Path) -> SessionRef:
    first = files[0]
    others = sorted(files[1:], key=lambda f: f.updated)[-MOST_SNAPSHOTS:]
    return SessionRef(
        agent="pydantic_ai",
        id=first.id,
        paths=(first.path, *sorted(f.path for f in others)),
        home=home,
        updated=max(f.updated for f in files),
        size=first.size,
        started=first.started,
    )


def _first(head: bytes) -> dict[str, Any] | None:
    """The first message of the array a file begins with; ``None`` where that is none, or reaches beyond the head."""
    text = head.decode("latin-1")
    start = blank_end(text, 0)
    if text[start : start + 1] != "[":
        return None
    at = blank_end(text, start + 1)
    try:
        value = json_text.loads(head[at : value_end(text, at)])
    except ValueError:
        return None
    return mapped(value) or None


def arrays(value: Any) -> list[Any]:
    """The messages of one stored value: those of an array, or a single one."""
    return listed(value) if isinstance(value, list) else [value]
