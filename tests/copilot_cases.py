"""Copilot CLI logs for tests: the recorded case, the sample, and events put together by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import ctxscope
from ctxscope.agents import Log, copilot
from ctxscope.model import CallView, Place, Record, SessionRef
from tests.conftest import CAPTURES, SAMPLES

CASES = sorted(p.parent for p in CAPTURES.glob("copilot/*/case.json"))
SAMPLE = SAMPLES / "copilot/resumed"
REF = SessionRef("copilot", "s1", (Path("events.jsonl"),), Path())


def log_file(folder: Path) -> Path:
    (found,) = (folder / "log").rglob("events.jsonl")
    return found


def log_of(lines: Iterable[bytes]) -> Log:
    """A log with one record a line, folded in one by one."""
    log = Log(REF)
    for number, line in enumerate(lines, 1):
        feed(log, number, line)
    return log


def feed(log: Log, number: int, line: bytes) -> None:
    for entry in copilot.entries(Record("session", str(number), Place(0, f"line {number}"), line)):
        log.add(entry)


def event(kind: str, number: int, data: Mapping[str, Any], **envelope: Any) -> bytes:
    """A line of the log."""
    head = {"type": kind, "data": data, "id": f"e{number}", "timestamp": f"2026-02-01T09:00:{number:02d}.000Z"}
    return json.dumps({**head, "parentId": None, **envelope}, ensure_ascii=False).encode()


def views(log: Path, wire: Path) -> dict[int, CallView]:
    """Each recorded call by number, opened beside its log."""
    inspection = ctxscope.open(log, recording=str(wire))
    try:
        return {c.exchange.n: inspection.view(c.n) for c in inspection.snapshot.calls if c.exchange}
    finally:
        inspection.close()


def copied(target: Path, lines: Iterable[bytes]) -> Path:
    """A session file of its own with other lines."""
    path = target / "log/.copilot/session-state/s/events.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path
