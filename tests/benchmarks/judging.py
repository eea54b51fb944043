"""What judging and counting costs as a session grows: by 200 calls, segments cut and counted, and CPU for the bytes sent.

And what counting costs when the session is opened again.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.long_session import write_session
from tests.benchmarks.sessions import Row

CALLS, STEP, TEXT_BYTES = 2000, 200, 800
"""Up to bodies of 2.3 MB: 2.4 GB sent in all."""


def measure() -> Iterator[Row]:
    """Rows ``(what, measured, budget)``; the figures of each 200 calls in order."""
    with tempfile.TemporaryDirectory() as folder:
        case = Path(folder) / "case"
        write_session(case, CALLS, TEXT_BYTES)
        with _nothing_kept():
            cut, counted = new_work(case)
        with _nothing_kept():
            seconds, sent = _cpu(case)
        first, again = _counting(case)
    yield (f"segments cut, for each {STEP} of {CALLS:,} calls", _listed(cut), "flat")
    yield (f"segments counted, for each {STEP} of {CALLS:,} calls", _listed(counted), "flat")
    yield ("CPU ms for a MB of body, judged and counted", _listed(_ratios(seconds, sent)), "flat, or falling")
    yield (
        f"CPU ms to count {CALLS:,} calls; opened again",
        f"{first * 1000:.0f}; {again * 1000:.0f} ({again / first:.1%})",
        "again under 10 %",
    )


def new_work(case: Path) -> tuple[list[int], list[int]]:
    """Segments that were made, not taken over from another body, and those whose text was really counted."""
    from ctxscope.analysis.tokens import Counter  # noqa: PLC0415 - other parts start without it
    from ctxscope.wire import cutting  # noqa: PLC0415

    cut, counted = [0], [0]
    segments, texts = cutting.segments, Counter._count_texts

    def cutting_new(layout: Any, data: bytes, parent: Any) -> Any:
        found = segments(layout, data, parent)
        known = {id(s) for s in parent.segments} if parent is not None else set()
        cut[-1] += sum(id(s) not in known for s in found)
        return found

    def counting_new(self: Any, text: Any, model: Any) -> Any:
        counted[-1] += 1
        return texts(self, text, model)

    cutting.segments, Counter._count_texts = cutting_new, counting_new
    try:
        for _ in _steps(case, lambda: (cut.append(0), counted.append(0))):
            pass
    finally:
        cutting.segments, Counter._count_texts = segments, texts
    return cut[1:], counted[1:]


def _cpu(case: Path) -> tuple[list[float], list[int]]:
    """CPU seconds and bytes sent, by step."""
    marks = [0.0]
    sent = []
    for step in _steps(case, lambda: marks.append(time.process_time())):
        marks[-1] = time.process_time() - marks[-1]
        sent.append(step)
    return marks[1:], sent


def _counting(case: Path) -> tuple[float, float]:
    """CPU seconds of counting all calls, at the first opening and at the next; each with no vocabulary loaded yet."""
    import ctxscope  # noqa: PLC0415

    found: list[float] = []
    with _nothing_kept():
        for _ in range(2):
            inspection = ctxscope.open(case)
            try:
                start = time.process_time()
                inspection.count()
                found.append(time.process_time() - start)
            finally:
                inspection.close()
    return found[0], found[1]


@contextmanager
def _nothing_kept() -> Iterator[None]:
    """A data folder of its own, for a while."""
    before = os.environ.get("CTXSCOPE_DATA_DIR")
    try:
        with tempfile.TemporaryDirectory() as own:
            os.environ["CTXSCOPE_DATA_DIR"] = own
            yield
    finally:
        if before is None:
            del os.environ["CTXSCOPE_DATA_DIR"]
        else:
            os.environ["CTXSCOPE_DATA_DIR"] = before


def _steps(case: Path, begin: Callable[[], object]) -> Iterator[int]:
    """Let the recording grow, 200 calls at a time, each judged and counted; gives the bytes sent in them."""
    import ctxscope  # noqa: PLC0415

    index = case / "wire" / "index.jsonl"
    (log,) = (case / "home").rglob("*.jsonl")
    exchanges, lines = (path.read_bytes().splitlines(keepends=True) for path in (index, log))
    head = len(lines) - 2 * len(exchanges)
    index.write_bytes(b"")
    log.write_bytes(b"".join(lines[:head]))
    inspection = ctxscope.open(case)
    try:
        for first in range(0, len(exchanges), STEP):
            new = exchanges[first : first + STEP]
            _append(index, new)
            _append(log, lines[head + 2 * first : head + 2 * (first + len(new))])
            begin()
            inspection.poll()
            inspection.count()
            yield sum((case / "wire" / f"{json.loads(e)['n']:04d}.req").stat().st_size for e in new)
    finally:
        inspection.close()
        index.write_bytes(b"".join(exchanges))
        log.write_bytes(b"".join(lines))


def _append(path: Path, lines: list[bytes]) -> None:
    with path.open("ab") as file:
        file.write(b"".join(lines))


def _ratios(seconds: list[float], sent: list[int]) -> list[int]:
    return [round(1000 * spent / (size / 1e6)) for spent, size in zip(seconds, sent, strict=True)]


def _listed(figures: list[int]) -> str:
    return " ".join(f"{figure:,}" for figure in figures)
