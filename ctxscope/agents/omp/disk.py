"""Where omp keeps its sessions: finding them, naming them, and the files a session consists of (omp.md §2)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ctxscope.agents.omp.lines import ARTIFACT, BLOB, SESSION
from ctxscope.agents.omp.side_files import files
from ctxscope.agents.pi.disk import session_id
from ctxscope.agents.reading.files import head, numbered, racy
from ctxscope.model import CtxscopeError, SessionRef, SourceSpec
from ctxscope.wire import json_text

_TOP_LEVEL = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z?_")
"""How the names of users' sessions begin."""
SURE, ALIKE = 0.95, 0.3
"""A title slot before the header is omp's alone; a bare header of pi's form below ``.omp`` is a session of its first days."""
_REF = re.compile(rb'"blob:sha256:([0-9a-f]{64})"')
_OVERLAP = 80
"""Bytes of a reference that may lie on both sides of where a chunk ends."""
_CHUNK = 4 * 1024 * 1024


def discover(home: Path) -> Iterator[SessionRef]:
    """Sessions under ``<home>/.omp/agent/sessions``, those of subagents too; files that are not omp's are passed over."""
    root = home / ".omp" / "agent" / "sessions"
    for path in sorted(root.glob("*/**/*.jsonl")):
        try:
            yield from refs(path, home)
        except CtxscopeError:
            continue


def subagent(log: Path) -> str:
    """Name of the subagent whose log a file is, below that of the one that started it; empty for a session of a user.

    Its log lies in the folder of artifacts that bears the name of the session that started it (measured).
    """
    names: list[str] = []
    while _TOP_LEVEL.match(log.stem) is None and log.parent.name:
        names.insert(0, log.stem.rpartition(".")[2])  # an inner one is named after its outer one, too
        log = log.parent
    return "/".join(names) if _TOP_LEVEL.match(log.stem) else ""


def claims(path: Path, start: bytes) -> float:
    """How surely ``start`` begins an omp session: a title slot, then a header of pi's form."""
    if path.suffix != ".jsonl":
        return 0.0
    first, header = _opening(start)
    if header is None:
        return 0.0
    if first is not None:
        return SURE
    return SURE if ".omp" in path.parts and "sessions" in path.parts else ALIKE


def refs(path: Path, home: Path) -> Iterator[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when it does not begin as omp's do."""
    try:
        start, stat = head(path), path.stat()
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read ({error.strerror}); an omp session file was expected") from None
    slot, header = _opening(start)
    if header is None:
        found = "an empty file" if not start.strip() else "lines that are neither"
        raise CtxscopeError(
            f'{path}: found {found}; an omp session begins with {{"type":"title",…}} and {{"type":"session","id":…}}'
        )
    parent, cwd = header.get("parentSession"), header.get("cwd")
    title = (slot or {}).get("title") or header.get("title")
    yield SessionRef(
        agent="omp",
        id=header["id"],
        paths=(path,),
        home=home,
        directory=cwd if isinstance(cwd, str) else None,
        updated=stat.st_mtime,
        size=stat.st_size,
        title=title if isinstance(title, str) and title else None,
        parent=_starter(path) or (session_id(parent) if isinstance(parent, str) else None),
    )


def _starter(log: Path) -> str | None:
    """Id of the session that a subagent's log belongs to, by whose name its folder goes."""
    if not subagent(log):
        return None
    try:
        _, header = _opening(head(log.parent.with_name(f"{log.parent.name}.jsonl")))
    except OSError:
        return None
    return str(header["id"]) if header is not None else None


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The session file, the artifacts of its folder that hold shaken text, the blobs it names; settings and model table.

    A blob that it named once while it was followed stays one of the session's files: earlier calls were sent it.
    """
    log = ref.paths[0]
    # The first line is written anew in its place; the reader tells such a change as another version of the line.
    found: dict[Path, str] = {}
    try:
        shaken = sorted(log.with_suffix("").glob("*.shake.log"))
    except OSError:
        shaken = []
    for path in shaken:
        found[path] = ARTIFACT + path.name
    agent = ref.home / ".omp" / "agent"
    blobs = agent / "blobs"
    for path in (*(blobs / digest for digest in named_blobs(log)), *(p for p in ref.paths if p.parent == blobs)):
        if path.is_file():
            found[path] = BLOB + path.name
    side = (SourceSpec(found[p], p, "whole", log=n, optional=True) for n, p in numbered(ref, found))
    told = (SourceSpec(key, path, "whole", optional=True, kept=False) for key, path in files(agent))
    return (SourceSpec(SESSION, log, "jsonl"), *side, *told)


def family(ref: SessionRef) -> Iterator[SessionRef]:
    """Sessions in the same folder that fork this one, or that it forks, and those of its subagents.

    A subagent's log lies in the folder of artifacts that bears the session's name (source only).
    """
    log = ref.paths[0]
    mine = session_id(log.name)
    for path in _others(log):
        try:
            other = next(refs(path, ref.home), None)
        except CtxscopeError:
            continue
        if other is None or other.id == ref.id:
            continue
        if path.parent != log.parent:
            yield replace(other, parent=other.parent or ref.id)
        elif other.parent in {ref.id, mine} or other.id == ref.parent:
            yield other


def _others(log: Path) -> Iterator[Path]:
    for pattern, folder in (("*.jsonl", log.parent), ("**/*.jsonl", log.with_suffix(""))):
        try:
            yield from (p for p in sorted(folder.glob(pattern)) if p != log)
        except OSError:
            continue


def named_blobs(path: Path) -> tuple[str, ...]:
    """Hashes of the blobs a session file names now, in order; none of a file that cannot be read."""
    try:
        stat = path.stat()
        search = _named_blobs.__wrapped__ if racy(stat.st_mtime_ns) else _named_blobs
        return search(path, (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    except OSError:
        return ()


@lru_cache(maxsize=256)
def _named_blobs(path: Path, look: tuple[int, ...]) -> tuple[str, ...]:  # noqa: ARG001 - another one is searched anew
    found: dict[str, None] = {}
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update((m.decode(), None) for m in _REF.findall(chunk))
            if len(chunk) == _CHUNK:
                file.seek(-_OVERLAP, os.SEEK_CUR)
    return tuple(found)


def _opening(start: bytes) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """The title slot and the header a file begins with, each where it is there; a slot need not end in a line."""
    lines = [line for line in start.split(b"\n", 3)[:3] if line.strip()]
    first = _object(lines[0]) if lines else None
    if _is_header(first):
        return None, first
    if first is None or first.get("type") != "title":
        return None, None
    second = _object(lines[1]) if len(lines) > 1 else None
    return first, second if _is_header(second) else None


def _object(line: bytes) -> Mapping[str, Any] | None:
    try:
        data = json_text.loads(line)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _is_header(data: Mapping[str, Any] | None) -> bool:
    return data is not None and data.get("type") == "session" and isinstance(data.get("id"), str) and bool(data["id"])
