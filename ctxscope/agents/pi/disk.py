"""Where pi keeps its sessions: finding them, naming them, and the files a session consists of (pi.md §2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ctxscope.agents.pi import lines
from ctxscope.model import CtxscopeError, SessionRef, SourceSpec
from ctxscope.wire import json_text

HEAD_BYTES = 65536
SURE, SHARED_FORM = 0.9, 0.4
"""A fork of pi writes the same header after a line for the title; its own module should win that file."""


def discover(home: Path) -> Iterator[SessionRef]:
    """Sessions under ``<home>/.pi/agent/sessions``; files that are not pi's are passed over."""
    root = home / ".pi" / "agent" / "sessions"
    for path in sorted(root.glob("--*--/*.jsonl")):
        try:
            yield from refs(path, home)
        except CtxscopeError:
            continue


def claims(path: Path, head: bytes) -> float:
    """How surely ``head`` begins a pi session: its first line is the header of pi's form."""
    if path.suffix != ".jsonl":
        return 0.0
    first, _, rest = head.partition(b"\n")
    if _header(first) is not None:
        return SHARED_FORM if ".omp" in path.parts else SURE
    second = _object(rest.partition(b"\n")[0])
    return SHARED_FORM if _object(first) is not None and _is_header(second) else 0.0


def refs(path: Path, home: Path) -> Iterator[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when its first line is not pi's header."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        stat = path.stat()
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read ({error.strerror}); a pi session file was expected") from None
    first = head.partition(b"\n")[0]
    header = _header(first)
    if header is None:
        found = "an empty file" if not first.strip() else "a first line that is not it"
        raise CtxscopeError(f'{path}: found {found}; a pi session begins with {{"type":"session","id":…}}')
    parent = header.get("parentSession")
    cwd = header.get("cwd")
    yield SessionRef(
        agent="pi",
        id=header["id"],
        paths=(path,),
        home=home,
        directory=cwd if isinstance(cwd, str) else None,
        updated=stat.st_mtime,
        size=stat.st_size,
        parent=session_id(parent) if isinstance(parent, str) else None,
    )


def beside(ref: SessionRef) -> Iterator[SessionRef]:
    """The sessions in the folder of one."""
    for path in sorted(ref.paths[0].parent.glob("*.jsonl")):
        with suppress(CtxscopeError):
            yield from refs(path, ref.home)


def session_id(path: str) -> str:
    """The id in a session file's name, ``<time>_<uuid>.jsonl``."""
    name = path.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl")
    return name.rpartition("_")[2]


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The session file, and the settings and model table of the agent folder where they exist."""
    agent = ref.home / ".pi" / "agent"
    return (
        SourceSpec(lines.SESSION, ref.paths[0], "jsonl"),
        SourceSpec(lines.SETTINGS, agent / "settings.json", "whole", optional=True, kept=False),
        SourceSpec(lines.MODELS, agent / "models.json", "whole", optional=True, kept=False),
    )


def _object(line: bytes) -> Mapping[str, Any] | None:
    try:
        data = json_text.loads(line)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _is_header(data: Mapping[str, Any] | None) -> bool:
    return data is not None and data.get("type") == "session" and isinstance(data.get("id"), str) and bool(data["id"])


def _header(line: bytes) -> Mapping[str, Any] | None:
    data = _object(line)
    return data if _is_header(data) else None
