"""The samples are what their script writes, the script knows nothing of ctxscope, and expectations name what exists."""

from __future__ import annotations

import ast
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, SAMPLES

CASES = sorted(p.parent for p in SAMPLES.glob("*/*/expected.json"))
REQUIRED = {
    "claude_code": {"hooks_around_compaction", "request_records"},
    "codex": {"local_compaction"},
    "copilot": {"resumed"},
    "dsh": {"compaction_and_resume", "retry_and_subagent"},
    "gemini": {"resume_doubles_results"},
    "hermes": {
        "batch_compaction",
        "batch_marker_destroyed",
        "compacted_on_phantom_bytes",
        "micro_stale_after_resume",
        "rotation",
        "sidecar_differs",
        "tail_tool_call_lost",
    },
    "kimi": {"compaction_rotates"},
    "messages": {"anthropic_trimmed", "openai_lines"},
    "omp": {"pruned_in_place", "shaken_then_archived"},
    "opencode": {"child_and_summary"},
    "pi": {
        "clean_append",
        "clock_in_system",
        "refused_for_length",
        "reply_cut_4096",
        "tool_keys_reordered",
        "two_recordings",
        "two_sessions_one_recording",
    },
    "pydantic_ai": {"silent_4096"},
    "qwen": {"compression_read_twice"},
}
KEYS = {
    "exchange",
    "session",
    "turn",
    "kind",
    "joined_by",
    "rebuilt",
    "first_difference",
    "reply",
    "break",
    "stop",
    "requested_max",
    "at_cap",
}
WRITTEN_BY_PEOPLE = {"expected.json", "README.md"}

each_case = pytest.mark.parametrize("case", CASES, ids=lambda p: f"{p.parent.name}-{p.name}")


def expected(case: Path) -> dict:
    return json.loads((case / "expected.json").read_text(encoding="utf-8"))


def recordings(case: Path) -> list[Path]:
    return sorted(p.parent for p in case.rglob("index.jsonl"))


def index(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "index.jsonl").read_text(encoding="utf-8").splitlines()]


def tables(database: Path) -> dict[str, list]:
    with sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True) as connection:
        names = [r[0] for r in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        found = {name: connection.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall() for name in names}
        found["schema"] = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    connection.close()
    return found


def written(folder: Path) -> dict[str, object]:
    """Content by path, databases by their tables: a newer SQLite may lay out its pages otherwise."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name not in WRITTEN_BY_PEOPLE]
    return {p.relative_to(folder).as_posix(): tables(p) if p.suffix == ".db" else p.read_bytes() for p in files}


def run_script(target: Path) -> None:
    subprocess.run([sys.executable, "-m", "tests.samples.make_samples", str(target)], cwd=ROOT, check=True)


def test_all_required_cases_are_there():
    found: dict[str, set[str]] = {}
    for case in CASES:
        found.setdefault(case.parent.name, set()).add(case.name)
    assert found == REQUIRED


def test_the_script_writes_the_committed_samples_again_and_again(tmp_path):
    run_script(tmp_path / "a")
    run_script(tmp_path / "b")
    run_script(tmp_path / "b")
    again = {p: (tmp_path / "b" / p).read_bytes() for p in written(tmp_path / "a")}
    assert {p: (tmp_path / "a" / p).read_bytes() for p in again} == again
    assert written(tmp_path / "a") == written(SAMPLES)


def test_the_script_imports_nothing_of_ctxscope():
    for path in (ROOT / "tests" / "samples").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [n for n in names if n.split(".")[0] == "ctxscope"], path.name


@each_case
def test_expectations_cover_every_exchange_in_the_order_of_arrival(case):
    arrived = sorted(
        (line["t"], number, line["n"]) for number, folder in enumerate(recordings(case)) for line in index(folder)
    )
    calls = expected(case)["calls"]
    assert [(c["exchange"]["recording"], c["exchange"]["n"]) for c in calls] == [(r, n) for _, r, n in arrived]
    assert all(set(c) <= KEYS for c in calls)
    assert all(1 <= m["call"] <= len(calls) for m in expected(case)["markers"])


@each_case
def test_expected_sessions_are_the_ones_logged(case):
    logged = {p.stem.rpartition("_")[2] for p in case.glob("log/.pi/agent/sessions/*/*.jsonl")}
    for database in case.glob("log/.hermes/state.db"):
        with sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True) as connection:
            logged |= {r[0] for r in connection.execute("SELECT id FROM sessions")}
        connection.close()
    sessions = {s["id"] for s in expected(case)["sessions"]}
    if logged:
        assert sessions == logged
    names = [p.relative_to(case).as_posix() for p in case.glob("log/**/*") if p.is_file()]
    texts = [p.read_bytes() for p in case.glob("log/**/*") if p.is_file()]
    assert all(any(i in n for n in names) or any(i.encode() in t for t in texts) for i in sessions)
    assert {c["session"] for c in expected(case)["calls"] if "session" in c} == sessions


@each_case
def test_bodies_match_their_index(case):
    for folder in recordings(case):
        for line in index(folder):
            assert len((folder / f"{line['n']:04d}.req").read_bytes()) == line["req_bytes"]
            assert (folder / f"{line['n']:04d}.res").stat().st_size


@each_case
def test_a_case_is_small_and_holds_no_side_file_of_sqlite(case):
    files = [p for p in case.rglob("*") if p.is_file()]
    assert sum(p.stat().st_size for p in files) < 70_000
    assert not [p for p in files if p.name.endswith(("-wal", "-shm", "-journal"))]
    for database in case.rglob("*.db"):
        assert database.read_bytes()[18:20] == b"\x01\x01", "a rollback journal, not WAL"


@pytest.mark.parametrize(
    ("case", "n", "there"),
    [
        ("pi/tool_keys_reordered", 3, b'limit":{"type":"number"'),
        ("pi/clock_in_system", 2, b"2. Ask before"),
        ("pi/clock_in_system", 3, b"30. Ask before"),
    ],
)
def test_expected_offsets_point_at_the_bytes_that_changed(case, n, there):
    call = expected(SAMPLES / case)["calls"][n - 1]
    body = (SAMPLES / case / "wire" / f"{n:04d}.req").read_bytes()
    assert body[call["first_difference"]["raw_offset"] :].startswith(there)
