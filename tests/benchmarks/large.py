"""A log of a gigabyte: by hand only (``python -m tests.benchmarks.run large``), it takes gigabytes of disk and memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.sessions import Row, logged

CALLS, TEXT_BYTES = 20_000, 50_000


def measure() -> Iterator[Row]:
    """Rows ``(what, measured, budget)``."""
    with tempfile.TemporaryDirectory() as folder:
        yield from logged(Path(folder) / "case", CALLS, TEXT_BYTES, "10 s CPU, 200 MB")
