"""A history that begins in another rollout: forks of 0.171 name the file and how much of it is theirs.

``history_base`` in the session's own record says the thread and the first ordinal that is not taken over. That thread may
begin in another one likewise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ctxscope.agents.codex.lines import BASE, payload_of, type_of
from ctxscope.model import Entry, SessionRef
from ctxscope.wire.blocks import integer, mapped, string

MOST = 32
"""Rollouts followed back; a chain that is longer, or bites its tail, is cut."""


def base_of(meta: Mapping[str, Any]) -> tuple[str, int] | None:
    """The thread that a session's record says its history begins in, and the first ordinal left behind."""
    base = mapped(meta.get("history_base"))
    name, end = string(base.get("thread_id")), integer(base.get("end_ordinal_exclusive"))
    return (name, end) if name and end is not None and name != meta.get("id") else None


def is_name(name: str) -> bool:
    """Whether an id can stand in a file's name, and in a pattern as itself."""
    return all(c.isalnum() or c in "-_" for c in name)


def rollout_of(name: str, near: Path, folders: Sequence[Path], known: Iterable[Path] = ()) -> Path | None:
    """The file of a thread: among those known, beside one that goes on from it, or in the folder of the day it began."""
    if not is_name(name):
        return None
    found = next((p for p in known if p.name.split(".")[0].endswith(name)), None)
    if found is not None:
        return found
    for folder in dict.fromkeys((near.parent, *_days(name, folders), *folders)):
        plain = sorted(folder.glob(f"rollout-*{name}.jsonl")) or sorted(folder.glob(f"rollout-*{name}.jsonl.zst"))
        if plain:
            return plain[0]
    return None


def _days(name: str, folders: Sequence[Path]) -> Iterator[Path]:
    """The folders of the day an id tells (its first 48 bits are milliseconds), by any clock on Earth."""
    try:
        began = datetime.fromtimestamp(int(name.replace("-", "")[:12], 16) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return
    for days in (0, -1, 1):
        day = began + timedelta(days=days)
        for folder in folders:
            yield folder / f"{day.year:04d}" / f"{day.month:02d}" / f"{day.day:02d}"


def source_of(name: str) -> str:
    """Key of the source that a thread is read by as the beginning of another."""
    return f"{BASE}:{name}"


def taken_over(header: Mapping[str, Any], entries: Iterable[Entry]) -> list[Entry]:
    """Of all entries those that a session's history begins with, oldest first; without the sessions' own records."""
    sources: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.source.startswith(f"{BASE}:") and entry.kind != "gone":
            sources.setdefault(entry.source, []).append(entry)
    parts: list[list[Entry]] = []
    meta = header
    while (base := base_of(meta)) is not None and len(parts) < MOST:
        own = sorted(sources.get(source_of(base[0]), ()), key=lambda e: e.place.number)
        parts.append([e for e in own if type_of(e) != "session_meta" and is_before(e, base[1])])
        meta = payload_of(own[0]) if own and type_of(own[0]) == "session_meta" else {}
    return [entry for part in reversed(parts) for entry in part]


def is_before(entry: Entry, end: int) -> bool:
    """Whether a line stands before an ordinal."""
    ordinal = integer(entry.data.get("ordinal"))
    return ordinal is not None and ordinal < end


def chain(ref: SessionRef, first: Mapping[str, Any], folders: Sequence[Path], read: Any) -> Iterator[tuple[str, Path]]:
    """Threads a session's history begins in and their files, nearest first; ``read`` gives the first record of a file."""
    meta, near, seen = first, ref.paths[0], {ref.id}
    while (base := base_of(meta)) is not None and base[0] not in seen and len(seen) < MOST:
        seen.add(base[0])
        path = rollout_of(base[0], near, folders, ref.paths)
        if path is None:
            return
        yield base[0], path
        try:
            meta = mapped((read(path) or {}).get("payload"))
        except OSError:
            return
        near = path
