"""Where the Gemini CLI keeps its chats: finding them, naming them, and the files a session consists of (gemini.md §2)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ctxscope.agents.gemini import lines
from ctxscope.agents.reading.files import head as head_of
from ctxscope.agents.reading.files import numbered
from ctxscope.model import CtxscopeError, SessionRef, SourceSpec
from ctxscope.wire import json_text

FOLDER = ".gemini"
SURE = 0.9
_MOST_DEPTH = 8
"""Subagents of subagents that are looked for."""


def discover(home: Path) -> Iterator[SessionRef]:
    """Sessions under ``<home>/.gemini/tmp/<project>/chats``, one for each id.

    A process that resumes a session begins, in a later minute, a file of its own with a header and the first context,
    and then goes on in the old one (measured, 0.61.0): such a file is no session beside the one it names.
    """
    found: dict[str, list[tuple[SessionRef, bool]]] = {}
    for path in sorted((home / FOLDER / "tmp").glob("*/chats/session-*.jsonl")):
        try:
            head = head_of(path)
            ref = _ref(path, home, head)
        except (OSError, CtxscopeError):
            continue
        found.setdefault(ref.id, []).append((ref, _is_stub(head)))
    for same in found.values():
        told = [ref for ref, stub in same if not stub]
        yield from told or [same[0][0]]


def claims(path: Path, head: bytes) -> float:
    """How surely ``head`` begins a chat of the Gemini CLI: its first line is the header."""
    if path.suffix != ".jsonl":
        return 0.0
    data = lines.parsed(head.partition(b"\n")[0])
    return SURE if data is not None and lines.is_header(data) and "id" not in data else 0.0


def refs(path: Path, home: Path) -> Iterator[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when its first line is not the header."""
    try:
        head = head_of(path)
    except OSError as error:
        raise CtxscopeError(
            f"{path}: cannot be read ({error.strerror}); a chat of the Gemini CLI was expected"
        ) from None
    yield _ref(path, home, head)


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The chat file, those of its subagents, and the user's settings where they exist."""
    chains = {path: chain for chain, path in _subagents(ref.paths[0].parent, (ref.id,))}
    return (
        SourceSpec(lines.SESSION, ref.paths[0], "jsonl"),
        *(
            SourceSpec(f"{lines.AGENT}:{'/'.join(chains[path])}", path, "jsonl", log, optional=True)
            for log, path in numbered(ref, chains)
        ),
        SourceSpec(lines.SETTINGS, ref.home / FOLDER / "settings.json", "whole", optional=True, kept=False),
    )


def _subagents(chats: Path, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Path]]:
    """Chat files of subagents, in a folder named for the session that started them, with the ids that lead to each."""
    folder = above[-1]
    if not folder or "/" in folder or folder in {".", ".."} or len(above) > _MOST_DEPTH:
        return
    for path in sorted((chats / folder).glob("*.jsonl")):
        chain = (*above, path.stem)
        yield chain[1:], path
        yield from _subagents(chats, chain)


def _ref(path: Path, home: Path, head: bytes) -> SessionRef:
    first = head.partition(b"\n")[0]
    header = lines.parsed(first)
    if header is None or not lines.is_header(header):
        found = "an empty file" if not first.strip() else "a first line that is not it"
        raise CtxscopeError(
            f'{path}: found {found}; a chat of the Gemini CLI begins with {{"sessionId":…,"projectHash":…}}'
        )
    stat = path.stat()
    return SessionRef(
        agent="gemini",
        id=header["sessionId"],
        paths=(path,),
        home=home,
        directory=_directory(path, header["projectHash"]),
        updated=stat.st_mtime,
        size=stat.st_size,
        started=lines.stamp(header),
    )


def _directory(path: Path, project: str) -> str | None:
    """The working directory: the one of those the agent names whose hash the header has."""
    folder = path.parent.parent
    named = [_text(folder / ".project_root"), *_projects(folder.parent.parent / "projects.json")]
    return next((d for d in named if d and hashlib.sha256(d.encode("utf-8", "replace")).hexdigest() == project), None)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _projects(path: Path) -> list[str]:
    """Folders the agent was used in, as it lists them itself."""
    try:
        data: Any = json_text.loads(path.read_bytes())
    except (OSError, ValueError):
        return []
    known = data.get("projects") if isinstance(data, Mapping) else None
    return list(known) if isinstance(known, Mapping) else []


def _is_stub(head: bytes) -> bool:
    """Whether a file holds no message of its own."""
    return all(
        data is None or lines.kind_of(data) in {"session", "set"} for data in map(lines.parsed, head.split(b"\n"))
    )
