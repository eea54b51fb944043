"""Where Qwen Code keeps its chats: finding them, naming them, and the files a session consists of (qwen.md §2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ctxscope.agents.qwen import lines
from ctxscope.agents.reading.families import kin
from ctxscope.agents.reading.files import head as head_of
from ctxscope.model import CtxscopeError, SessionRef, SourceSpec

FOLDER = ".qwen"
SURE = 0.9
_LOOKED_AT = 20
"""First lines that are searched for one of a form no other agent writes."""


def discover(home: Path) -> Iterator[SessionRef]:
    """Sessions under ``<home>/.qwen/projects/<directory>/chats``; files that are not Qwen Code's are passed over."""
    for path in sorted((home / FOLDER / "projects").glob("*/chats/*.jsonl")):
        try:
            yield _ref(path, home, head_of(path))
        except (OSError, CtxscopeError):
            continue


def claims(path: Path, head: bytes) -> float:
    """How surely ``head`` begins a chat of Qwen Code: by the form of its first lines."""
    return SURE if path.suffix == ".jsonl" and _is_chat(head) else 0.0


def refs(path: Path, home: Path) -> Iterator[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when its first line is none of Qwen Code's."""
    try:
        head = head_of(path)
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read ({error.strerror}); a chat of Qwen Code was expected") from None
    yield _ref(path, home, head)


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The chat file, and the user's settings where they exist."""
    return (
        SourceSpec(lines.SESSION, ref.paths[0], "jsonl"),
        SourceSpec(lines.SETTINGS, ref.home / FOLDER / "settings.json", "whole", optional=True, kept=False),
    )


def family(ref: SessionRef) -> Iterator[SessionRef]:
    """Sessions beside it that it was branched from, or that were branched from it or one of these."""
    yield from kin(ref, _beside(ref))


def _beside(ref: SessionRef) -> Iterator[SessionRef]:
    """The other sessions of the folder."""
    for path in sorted(ref.paths[0].parent.glob("*.jsonl")):
        if path != ref.paths[0]:
            try:
                yield _ref(path, ref.home, head_of(path))
            except (OSError, CtxscopeError):
                continue


def _first(head: bytes) -> tuple[bytes, Mapping[str, Any] | None]:
    line = head.partition(b"\n")[0]
    return line, lines.parsed(line)


def _is_chat(head: bytes) -> bool:
    """Whether the first line is of this form, and an early one of a form that only this agent writes."""
    first = _first(head)[1]
    if first is None or not _is_line(first):
        return False
    return any(_is_own(data) for data in map(lines.parsed, head.split(b"\n")[:_LOOKED_AT]) if data is not None)


def _is_line(data: Mapping[str, Any]) -> bool:
    named = all(isinstance(data.get(name), str) for name in ("uuid", "sessionId", "type"))
    return named and "parentUuid" in data and data["type"] in lines.TYPES and bool(data["sessionId"])


def _is_own(data: Mapping[str, Any]) -> bool:
    """Messages of parts, where its relatives have content; system lines with a payload."""
    message = data.get("message")
    return (isinstance(message, Mapping) and isinstance(message.get("parts"), list)) or (
        data.get("type") == "system" and isinstance(data.get("systemPayload"), Mapping)
    )


def _ref(path: Path, home: Path, head: bytes) -> SessionRef:
    line, first = _first(head)
    if first is None or not _is_chat(head):
        found = "an empty file" if not line.strip() else "a first line that is not it"
        raise CtxscopeError(
            f'{path}: found {found}; a chat of Qwen Code begins with {{"uuid":…,"parentUuid":…,"sessionId":…,"type":…}}'
        )
    stat = path.stat()
    origin, cwd = first.get("forkedFrom"), first.get("cwd")
    parent = origin.get("sessionId") if isinstance(origin, Mapping) else None
    return SessionRef(
        agent="qwen",
        id=first["sessionId"],
        paths=(path,),
        home=home,
        directory=cwd if isinstance(cwd, str) else None,
        updated=stat.st_mtime,
        size=stat.st_size,
        parent=parent if isinstance(parent, str) and parent else None,
        started=lines.stamp(first),
    )
