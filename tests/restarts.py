"""Recorded sessions as they stood before a new process took them up: logs and recordings cut in the gap before its first call."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from backports import zstd

from tests.conftest import CAPTURES
from tests.hermes_cases import Case
from tests.test_hermes_replay import GrowingHome

GAP_SHARE = 0.25
"""Of the time between two requests, after which what follows in a log is the new process's: the answer is written at once,
and a process takes most of the gap to start."""
STARTING_SECONDS = 1.0
"""No process starts in less."""
_STAMPS = ("timestamp", "time", "createdAt", "startTime", "resumeTime", "lastUpdated")
_MILLISECONDS = 1e11
ROTATED = ("context_1.jsonl", "context.jsonl")
"""Kimi's contexts, the older first."""
_WITHIN = ("data", "payload", "$set")


def restarts() -> list[tuple[Path, int]]:
    """Each recorded case with the number of a first request after a resume."""
    found = []
    for about in sorted(CAPTURES.glob("*/*/case.json")):
        case = json.loads(about.read_text(encoding="utf-8"))
        main = case["wire"]["main"]
        numbers = [e["n"] for e in case["events"] if e["type"] == "resume" and e["n"] in main]
        found += [(about.parent, _first(about.parent, case["wire"], n)) for n in numbers]
    return found


def _first(case: Path, calls: dict[str, Any], n: int) -> int:
    """The compaction that a new process asked for before its first request, if it did: right before that one."""
    last = max(m for m in (*calls["main"], *calls["summary"]) if m < n)
    if last not in calls["summary"]:
        return n
    lines = (case / "wire" / "index.jsonl").read_text(encoding="utf-8").splitlines()
    started = {e["n"]: e["t"] for e in map(json.loads, lines)}
    return last if started[n] - started[last] < STARTING_SECONDS else n


def stood(case: Path, n: int, folder: Path) -> Path:
    """Write the case as it stood before request ``n`` below a folder: ``log`` and ``wire``; gives the folder."""
    index = [json.loads(line) for line in (case / "wire" / "index.jsonl").read_text(encoding="utf-8").splitlines()]
    started = {e["n"]: e["t"] for e in index}
    calls = json.loads((case / "case.json").read_text(encoding="utf-8"))["wire"]
    before = max(m for m in (*calls["main"], *calls["summary"]) if m < n)
    limit = started[before] + GAP_SHARE * (started[n] - started[before])
    _recording(case, [e for e in index if e["n"] < n and e["t"] is not None and e["t"] <= limit], folder / "wire")
    if case.parent.name == "hermes":
        _hermes(Case(case.name), n, limit, folder)
        return folder
    shutil.copytree(case / "log", folder / "log")
    for path in [p for p in (folder / "log").rglob("*") if p.is_file()]:
        if path.suffix == ".jsonl":
            _rewrite(path, b"".join(_lines_until(path.read_bytes(), limit)))
        elif path.suffix in (".zst", ".zstd"):
            _rewrite(path, zstd.compress(b"".join(_lines_until(zstd.decompress(path.read_bytes()), limit))))
        elif path.suffix == ".db":
            _rows_until(path, limit)
    if case.parent.name == "kimi":
        _contexts(case, folder, limit)
    return folder


def _recording(case: Path, index: list[dict[str, Any]], wire: Path) -> None:
    wire.mkdir(parents=True)
    (wire / "index.jsonl").write_text("".join(json.dumps(e) + "\n" for e in index), encoding="utf-8")
    for exchange in index:
        for path in (case / "wire").glob(f"{exchange['n']:04d}.*"):
            shutil.copy(path, wire)


def _rewrite(path: Path, data: bytes) -> None:
    """Replace a file by its beginning; one of which nothing stood yet is not there."""
    path.chmod(0o600)
    if data:
        path.write_bytes(data)
    else:
        path.unlink()


def _lines_until(data: bytes, limit: float) -> Iterator[bytes]:
    """Lines up to the first that was written later; one without a time was written with the line before it."""
    for line in data.splitlines(keepends=True) if b"\r" not in data else _split(data):
        written = _written(line)
        if written is not None and written > limit:
            return
        yield line


def _split(data: bytes) -> list[bytes]:
    return [line + b"\n" for line in data.split(b"\n") if line]


def _written(line: bytes) -> float | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    first = next((m for m in (record.get("$set") or {}).get("messages", ()) if isinstance(m, dict)), {})
    for told in (record, *(v for k in _WITHIN if isinstance(v := record.get(k), dict)), first):
        for name in _STAMPS:
            found = _seconds(told.get(name))
            if found is not None:
                return found
    return None


def _seconds(stamp: Any) -> float | None:
    if isinstance(stamp, int | float) and not isinstance(stamp, bool):
        return stamp / 1000 if stamp > _MILLISECONDS else float(stamp)
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (TypeError, ValueError):
        return None


def _rows_until(path: Path, limit: float) -> None:
    """Drop rows of an opencode database that were made later."""
    path.chmod(0o600)
    base = sqlite3.connect(path)
    for table in ("message", "part", "session_message"):
        columns = {row[1] for row in base.execute(f"PRAGMA table_info({table})")}
        if "time_created" in columns:
            base.execute(f"DELETE FROM {table} WHERE time_created > ?", (limit * 1000,))
    base.commit()
    base.close()


def _contexts(case: Path, folder: Path, limit: float) -> None:
    """Kimi's contexts have no times: cut before the input of the first turn that began later."""
    (wire,) = (case / "log").rglob("wire.jsonl")
    turns = [json.loads(line) for line in wire.read_bytes().split(b"\n") if line]
    begun = [t for t in turns if t.get("message", {}).get("type") == "TurnBegin" and t["timestamp"] > limit]
    wanted = begun[0]["message"]["payload"]["user_input"]
    home = folder / wire.parent.relative_to(case)
    for name in ROTATED:
        lines = (wire.parent / name).read_bytes().split(b"\n")
        at = next((i for i, line in enumerate(lines) if _is_input(line, wanted)), None)
        if at is not None:
            for stale in ROTATED[ROTATED.index(name) :]:
                (home / stale).unlink(missing_ok=True)
            (home / "context.jsonl").write_bytes(b"".join(line + b"\n" for line in lines[:at]))
            return


def _is_input(line: bytes, wanted: Any) -> bool:
    record = json.loads(line) if line else {}
    content = record.get("content")
    texts = [content] if isinstance(content, str) else [b.get("text") for b in content or ()]
    return record.get("role") == "user" and wanted in (content, *texts)


def _hermes(case: Case, n: int, limit: float, folder: Path) -> None:
    """The rows as of the request, without those written since the gap."""
    rows = case.as_of(n)
    rows.messages = [row for row in rows.messages if row["timestamp"] <= limit]
    kept = folder / "kept"
    (folder / "wire").rename(kept)
    home = GrowingHome(case, folder, "DELETE", side_files=True)
    home.become(rows)
    home.said_until(limit)
    home.close()
    shutil.rmtree(folder / "wire")
    kept.rename(folder / "wire")
