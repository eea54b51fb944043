"""Recorded cases of every agent whose log is read: their files as text that can be changed, whatever form they have."""

from __future__ import annotations

import importlib
import json
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from ctxscope import agents
from tests.conftest import CAPTURES

CASES = sorted(p.parent for name in agents.names() for p in CAPTURES.glob(f"{name}/*/case.json"))
OLDER = frozenset({"pi", "hermes"})
"""Agents with tests of their own that ask the same and more."""
NEWER = [case for case in CASES if case.parent.name not in OLDER]
PACKED = (".zst", ".zstd")
ZSTD = b"\x28\xb5\x2f\xfd"
"""A zstd frame begins so."""
_zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")

Change = Callable[[bytes], bytes]


@cache
def about(case: Path) -> dict[str, Any]:
    """What the case says of itself."""
    told: dict[str, Any] = json.loads((case / "case.json").read_text(encoding="utf-8"))
    return told


def _one_each() -> list[Path]:
    """The first case of each agent, version and API: what would hold for the others alike."""
    found: dict[tuple[str, str, str], Path] = {}
    for case in CASES:
        found.setdefault((case.parent.name, about(case)["agent_version"], about(case)["api"]), case)
    return list(found.values())


ONE_EACH = _one_each()


def copied(case: Path, to: Path) -> Path:
    """A copy of a case's log that may be written; the folder it lies in."""
    shutil.copytree(case / "log", to / "log")
    for path in (to / "log").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return to / "log"


def frames(data: bytes) -> Iterator[bytes]:
    """What each of some zstd frames holds."""
    while data:
        frame = _zstd.ZstdDecompressor()
        yield frame.decompress(data)
        data = frame.unused_data


def packed_frames(data: bytes) -> Iterator[bytes]:
    """Zstd frames one by one, packed as they are."""
    while data:
        frame = _zstd.ZstdDecompressor()
        frame.decompress(data)
        rest = frame.unused_data
        yield data[: len(data) - len(rest)]
        data = rest


def is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def texts(log: Path) -> Iterator[tuple[Path, bytes]]:
    """The text of each file below a folder; of a database each of its cells."""
    for path in sorted(p for p in log.rglob("*") if p.is_file()):
        if is_database(path):
            for _, _, _, value in _cells(path):
                yield path, value
        else:
            yield path, _read(path)


def rewrite(log: Path, change: Change) -> int:
    """Change the text of every file and cell below a folder; how many became others."""
    count = 0
    for path in sorted(p for p in log.rglob("*") if p.is_file()):
        if is_database(path):
            count += _rewrite_database(path, change)
            continue
        before = _read(path)
        after = change(before)
        if after != before:
            count += 1
            path.write_bytes(_packed(path, change) if path.suffix in PACKED else after)
    return count


def lines_of(log: Path) -> Iterator[Path]:
    """The logs below a folder that hold a record a line: what most agents write."""
    for path in sorted(log.rglob("*")):
        if path.is_file() and ".jsonl" in path.suffixes and _read(path).startswith(b"{"):
            yield path


def with_lines(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Write a log of lines anew, its lines changed."""
    lines = change(_read(path).split(b"\n"))
    data = b"\n".join(lines)
    path.write_bytes(_zstd.compress(data) if path.suffix in PACKED else data)


def _read(path: Path) -> bytes:
    data = path.read_bytes()
    return b"".join(frames(data)) if path.suffix in PACKED else data


def _packed(path: Path, change: Change) -> bytes:
    return b"".join(_zstd.compress(change(frame)) for frame in frames(path.read_bytes()))


def _cells(path: Path) -> Iterator[tuple[str, str, int, bytes]]:
    """Table, column, row and text of each text cell; the file is one that may be written, or is copied first."""
    base = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        for table in _tables(base):
            columns = [row[1] for row in base.execute(f'PRAGMA table_info("{table}")')]
            for column in columns:
                for rowid, value in base.execute(f'SELECT rowid, "{column}" FROM "{table}"'):
                    if isinstance(value, str):
                        yield table, column, rowid, value.encode()
    finally:
        base.close()


def _tables(base: sqlite3.Connection) -> list[str]:
    told = base.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    virtual = [name for name, sql in told if (sql or "").upper().startswith("CREATE VIRTUAL")]
    plain = [name for name, sql in told if name not in virtual and not name.startswith("sqlite_")]
    ours = [name for name in plain if not any(name.startswith(f"{v}_") for v in virtual)]
    return [name for name in ours if "WITHOUT ROWID" not in dict(told)[name].upper()]


def _rewrite_database(path: Path, change: Change) -> int:
    cells = [(t, c, r, change(v), v) for t, c, r, v in _cells(path)]
    changed = [cell for cell in cells if cell[3] != cell[4]]
    if changed:
        base = sqlite3.connect(path)
        for trigger in [n for (n,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]:
            base.execute(f'DROP TRIGGER "{trigger}"')  # of a search index, which no reader asks
        for table, column, row, value, _ in changed:
            base.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value.decode(), row))
        base.commit()
        base.close()
    return len(changed)
