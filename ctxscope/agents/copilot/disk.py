"""Where the Copilot CLI keeps its sessions, and how a file of one is told (copilot.md §2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ctxscope.agents.copilot.events import SESSION
from ctxscope.agents.reading.files import head as head_of
from ctxscope.model import CtxscopeError, SessionRef, SourceSpec
from ctxscope.wire import json_text
from ctxscope.wire.blocks import mapped, string

PRODUCER = "copilot-agent"
SURE, LIKELY = 0.95, 0.6


def discover(home: Path) -> Iterator[SessionRef]:
    """Sessions under ``<home>/.copilot/session-state``; files that are not the Copilot CLI's are passed over."""
    root = home / ".copilot" / "session-state"
    for path in sorted(root.glob("*/events.jsonl")):
        try:
            yield from refs(path, home)
        except CtxscopeError:
            continue


def claims(path: Path, head: bytes) -> float:
    """How surely ``head`` begins a session: its first line is the event ``session.start`` of this producer."""
    if path.suffix != ".jsonl":
        return 0.0
    started = _started(head)
    if started is None:
        return 0.0
    return SURE if started.get("producer") == PRODUCER else LIKELY


def refs(path: Path, home: Path) -> Iterator[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when its first line does not start one."""
    try:
        head, status = head_of(path), path.stat()
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read ({error.strerror}); a Copilot CLI session was expected") from None
    started = _started(head)
    if started is None:
        found = "an empty file" if not head.strip() else "a first line that is not it"
        raise CtxscopeError(f'{path}: found {found}; a Copilot CLI session begins with {{"type":"session.start",…}}')
    yield SessionRef(
        agent="copilot",
        id=string(started.get("sessionId")),
        paths=(path,),
        home=home,
        directory=string(mapped(started.get("context")).get("cwd")) or None,
        updated=status.st_mtime,
        size=status.st_size,
        started=_seconds(started.get("startTime")),
    )


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The events alone: checkpoints, rewind snapshots and the store beside them hold nothing a request is made of."""
    return (SourceSpec(SESSION, ref.paths[0], "jsonl"),)


def _started(head: bytes) -> Mapping[str, Any] | None:
    """What the first line says of the session it starts; ``None`` where it starts none."""
    try:
        data = mapped(json_text.loads(head.partition(b"\n")[0]))
    except ValueError:
        return None
    told = mapped(data.get("data"))
    return told if data.get("type") == "session.start" and string(told.get("sessionId")) else None


def _seconds(stamp: Any) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp() if isinstance(stamp, str) else None
    except (ValueError, OverflowError, OSError):
        return None
