"""Where Kimi CLI keeps a session: ``~/.kimi/sessions/<md5 of the working directory>/<id>/`` (kimi.md §2).

``context.jsonl`` is what the model reads. Before it is written anew (compaction, ``/clear``, a message to the past) it is
renamed to ``context_1.jsonl``, the next time ``context_2.jsonl``, and so on: all of them in order are the session.
``wire.jsonl`` holds what the screen was told; subagents have the same files in ``subagents/<id>/``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import md5
from pathlib import Path
from typing import Any

from ctxscope.agents.reading.files import head, numbered
from ctxscope.model import CtxscopeError, SessionRef, SourceSpec
from ctxscope.wire.json_text import loads_leniently

CONTEXT, WIRE = "context.jsonl", "wire.jsonl"
SURE = 0.95
_ROTATED = re.compile(r"context_([0-9]+)\.jsonl")
_COPIES = ("Fork: ", "Undo: ")
"""How the title of a session begins that ``/fork`` or ``/undo`` made of another one's first turns."""


def discover(home: Path) -> Iterator[SessionRef]:
    """Sessions under ``<home>/.kimi/sessions``; those in which nothing was said yet are passed over."""
    for folder in sorted((home / ".kimi" / "sessions").glob("*/*")):
        if any(status.st_size for status in _written(folder)):
            yield _ref(folder, home)


def claims(path: Path, head: bytes) -> float:
    """How surely a file is one of a session's: by the role or the kind its first line states."""
    first = _object(head.partition(b"\n")[0]) if path.suffix == ".jsonl" else {}
    if first.get("role") in ("_system_prompt", "_checkpoint"):
        return SURE
    return SURE if first.get("type") == "metadata" and "protocol_version" in first else 0.0


def refs(path: Path, home: Path) -> Iterator[SessionRef]:
    """The session a file is part of; raises ``CtxscopeError`` when it is none of this agent's."""
    try:
        found = claims(path, head(path))
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read ({error.strerror}); a file of Kimi CLI was expected") from None
    if not found:
        raise CtxscopeError(f'{path}: found no row of Kimi CLI; its files begin with {{"role":"_system_prompt"}}')
    folder = path.parents[2] if path.parent.parent.name == "subagents" else path.parent
    if path in _contexts(folder) or path.name in (CONTEXT, WIRE):
        yield _ref(folder, home)
    else:
        yield SessionRef("kimi", path.stem, (path,), home, updated=path.stat().st_mtime, size=path.stat().st_size)


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The session's files, those of its subagents, and the settings.

    The key of a context file ends in the number of its rotation; the current one has none, and keeps its key when what it
    held moves to another name. Events come after rows: an answer's event is written before its row, so that whoever
    has read the row finds the event too.
    """
    folder = ref.paths[0].parent
    if ref.paths[0].name != CONTEXT:
        return (SourceSpec("context", ref.paths[0], "jsonl"),)
    found = {path: key for key, path in _files(folder)}
    specs = [SourceSpec(found[path], path, "jsonl", log, optional=log > 0) for log, path in numbered(ref, found)]
    specs.sort(key=lambda spec: spec.key.startswith("wire"))
    settings = ref.home / ".kimi" / "config.toml"
    return (*specs, SourceSpec("config", settings, "whole", optional=True, kept=False))


def family(ref: SessionRef) -> Iterator[SessionRef]:
    """Sessions of the same working directory that begin with the very same event: one is a copy of the other's turns."""
    mine = _opening(ref.paths[0].parent)
    for path in sorted(ref.paths[0].parent.parent.glob(f"*/{CONTEXT}")):
        if mine and path != ref.paths[0] and _opening(path.parent) == mine:
            yield _ref(path.parent, ref.home)


def _ref(folder: Path, home: Path) -> SessionRef:
    title = _json(folder / "state.json").get("custom_title")
    written = _written(folder)
    return SessionRef(
        agent="kimi",
        id=folder.name,
        paths=tuple(dict.fromkeys((folder / CONTEXT, folder / WIRE, *(path for _, path in _files(folder))))),
        home=home,
        directory=_directory(folder, home),
        updated=max((status.st_mtime for status in written), default=None),
        size=sum(status.st_size for status in written),
        title=title if isinstance(title, str) else None,
        parent=_copied_from(folder),
    )


def _copied_from(folder: Path) -> str | None:
    """The session that ``/fork`` or ``/undo`` copied: the one with the same beginning that is no copy itself."""
    mine = _opening(folder) if _is_copy(folder) else b""
    others = (path.parent for path in sorted(folder.parent.glob(f"*/{CONTEXT}")) if mine and path.parent != folder)
    return next((other.name for other in others if not _is_copy(other) and _opening(other) == mine), None)


def _written(folder: Path) -> list[os.stat_result]:
    found = []
    for path in _contexts(folder):
        with suppress(OSError):  # renamed just now
            found.append(path.stat())
    return found


def _is_copy(folder: Path) -> bool:
    return str(_json(folder / "state.json").get("custom_title")).startswith(_COPIES)


def _opening(folder: Path) -> bytes:
    """The first event after the header, with its time; empty where there is none."""
    try:
        return b"".join(head(folder / WIRE).split(b"\n", 2)[1:2])
    except OSError:
        return b""


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Keys and paths of all files: ``context``, ``context:1``, ``wire``; ``context:a1b2``, ``wire:a1b2`` of a subagent."""
    subagents = sorted(path.parent for path in folder.glob(f"subagents/*/{CONTEXT}"))
    for place in (folder, *subagents):
        name = "" if place is folder else f":{place.name}"
        for path in _contexts(place):
            number = _ROTATED.fullmatch(path.name)
            yield f"context{name}:{number[1]}" if number else f"context{name}", path
        yield f"wire{name}", place / WIRE


def _contexts(folder: Path) -> list[Path]:
    """The context files that are there, in the order they were written: the rotated ones by number, the current one."""
    rotated = [(int(m[1]), path) for path in folder.glob("context_*.jsonl") if (m := _ROTATED.fullmatch(path.name))]
    current = [folder / CONTEXT] if (folder / CONTEXT).is_file() else []
    return [*(path for _, path in sorted(rotated)), *current]


def _directory(folder: Path, home: Path) -> str | None:
    """The working directory whose hash the folder above is named by, where ``kimi.json`` lists it."""
    listed = _json(home / ".kimi" / "kimi.json").get("work_dirs")
    paths = [w.get("path") for w in listed if isinstance(w, dict)] if isinstance(listed, list) else []
    hashed = {md5(p.encode("utf-8", "replace")).hexdigest(): p for p in paths if isinstance(p, str)}  # noqa: S324 - a name, no secret
    return hashed.get(folder.parent.name)


def _json(path: Path) -> Mapping[str, Any]:
    try:
        return _object(path.read_bytes())
    except OSError:
        return {}


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        value = loads_leniently(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
