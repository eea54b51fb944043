"""A team's own files: recognised by what they hold, since they lie anywhere and have any name.

Nothing is looked for below a home. A file counts where a person names it, or where it lies in a folder that is searched;
other agents' files, which are messages too, are theirs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ctxscope.agents.messages import lines, near
from ctxscope.agents.messages.grouping import Grouper
from ctxscope.agents.messages.near import Kind
from ctxscope.model import CtxscopeError, Entry, Place, Record, SessionRef, SourceSpec

_LINES = (".jsonl", ".ndjson")
SUFFIXES = (".json", ".jsonl", ".ndjson", ".log", ".txt", "")
OWN_SUFFIXES = SUFFIXES[:3]
"""Those that are looked for in a searched folder."""
SURE, NEARLY = 0.55, 0.5
"""Another agent that knows a file as its own says more. What is nearly one is claimed, to be told what is wrong with it."""
MOST_FILES, MOST_SESSIONS = 200, 50
"""In a folder that is searched: files looked into, and sessions in a file; more of them are a data set."""
FOREIGN = frozenset(
    {
        *(
            ".aider",
            ".claude",
            ".cline",
            ".codex",
            ".copilot",
            ".crush",
            ".dsh",
            ".gemini",
            ".goose",
            ".hermes",
            ".kimi",
        ),
        *(".omp", ".opencode", ".pi", ".qwen", "goose", "opencode", "crush"),
    }
)
"""Folders that agents keep their own files in."""
_HEAD_BYTES = 65_536


def discover(home: Path) -> Iterator[SessionRef]:
    """Sessions in files directly in a folder, where that is not the user's home."""
    if home.resolve() == _own_home():
        return
    try:
        with os.scandir(home) as items:
            names = sorted(i.name for i in items if i.name.endswith(OWN_SUFFIXES) and i.is_file(follow_symlinks=False))
    except OSError:
        return
    for name in names[:MOST_FILES]:
        path = home / name
        try:
            status = path.stat()
            found = _found(path, home, status.st_mtime_ns, status.st_size)
        except (OSError, CtxscopeError):
            continue
        if len(found) <= MOST_SESSIONS:
            yield from found


def claims(path: Path, head: bytes) -> float:
    """At most 0.55: how surely a file holds messages, requests or spans of nobody's agent but the team's."""
    if path.suffix not in SUFFIXES or path.name == "index.jsonl" or is_foreign(path):
        return 0.0
    kind = near.look(head)
    return {Kind.OURS: SURE, Kind.NEARLY: NEARLY}.get(kind, 0.0)


def is_foreign(path: Path) -> bool:
    """Whether a file lies among another agent's own."""
    return bool(FOREIGN & set(path.parts[:-1])) or path.name.startswith(".")


def refs(path: Path, home: Path) -> Iterator[SessionRef]:
    """The sessions in a file, in order of first appearance; raises ``CtxscopeError`` when it holds none."""
    try:
        status = path.stat()
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if near.look(head) is not Kind.OURS:
            raise CtxscopeError(f"{path}: {near.told(head)}")
        names = _sessions(path)
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read ({error.strerror}); {near.EXPECTED}") from None
    if not names:
        raise CtxscopeError(f"{path}: {near.told(head)}")
    for name in names:
        yield SessionRef("messages", name, (path,), home, updated=status.st_mtime, size=status.st_size)


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The file: by lines where its first line is a JSON value and not all there is, else as a whole."""
    path = ref.paths[0]
    key = lines.LOG if ref.id == path.stem or ref.id.startswith(f"{path.stem}-") else f"{lines.LOG}:{ref.id}"
    return (SourceSpec(key, path, "jsonl" if _has_lines(path) else "whole"),)


def _own_home() -> Path | None:
    try:
        return Path.home().resolve()
    except (OSError, RuntimeError):
        return None


@lru_cache(maxsize=512)
def _found(path: Path, home: Path, changed: int, size: int) -> tuple[SessionRef, ...]:  # noqa: ARG001 - keys of the memo
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    return tuple(refs(path, home)) if claims(path, head) == SURE else ()


def _has_lines(path: Path) -> bool:
    """Whether a file is JSON lines: more than one, the first a value of its own; by its name also one object alone."""
    try:
        with path.open("rb") as file:
            first = file.readline()
            more = first.endswith(b"\n") and bool(file.read(1))
            return (more or (path.suffix in _LINES and first[:1] == b"{")) and near.is_json(first)
    except OSError:
        return False


def _sessions(path: Path) -> list[str]:
    """Names of the sessions in a file. Only whole requests, and messages with a session id, need all of it read."""
    grouper = Grouper(path.stem)
    names: dict[str, None] = {}
    for entry in _entries(path):
        if entry.kind in ("unknown", "span"):
            continue
        names[grouper.name(entry)] = None
        if entry.kind != "request" and not entry.data.get("session"):
            break
    return list(names)


def _entries(path: Path) -> Iterator[Entry]:
    if not _has_lines(path):
        yield from lines.entries(Record(lines.LOG, "file", Place(0, "file"), path.read_bytes()))
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip() and line.endswith(b"\n"):
                yield from lines.entries(Record(lines.LOG, str(number), Place(0, f"line {number}"), line))
