"""A log of a gigabyte: by hand only (``python -m tests.benchmarks.run large``), it takes gigabytes of disk and memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.long_claude import write_log
from tests.benchmarks.sessions import Row, logged, measured

CALLS, TEXT_BYTES = 20_000, 50_000
RESULT_BYTES = (20_000, 50_000, 91_000)
"""Of each tool result in the Claude Code logs: many calls; as many a megabyte as in the log above; 17.9 kB a line, as in
the log of a gigabyte that engineering.md §3 was measured on."""


def measure() -> Iterator[Row]:
    """Rows ``(what, measured, budget)``."""
    with tempfile.TemporaryDirectory() as folder:
        yield from logged(Path(folder) / "case", CALLS, TEXT_BYTES, "10 s CPU, 200 MB")
    for size, budget in ((100_000_000, "1.5 s CPU, 100 MB"), (1_000_000_000, "10 s CPU, 200 MB")):
        for result in RESULT_BYTES:
            with tempfile.TemporaryDirectory() as folder:
                yield from _claude_code(Path(folder) / "home", size, result, budget)


def _claude_code(home: Path, size: int, result: int, budget: str) -> Iterator[Row]:
    write_log(home, size, result)
    taken, peak, _, _, calls = measured(home)
    yield (
        f"a Claude Code log of {size / 1e6:,.0f} MB, {calls:,.0f} calls, {result // 1000} kB a result: full index",
        f"{taken:.1f} s CPU, {peak:,.0f} MB",
        budget,
    )
