"""Opening, judging, counting and following long sessions."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from tests.benchmarks.long_session import write_hermes_session, write_session

Row = tuple[str, str, str]
CALLS, TEXT_BYTES = 2000, 800
"""A session of 2,000 calls whose last body is 2.3 MB: 2.4 GB sent in all."""
CLOCK_CALLS = HERMES_CALLS = 1000
LOG_CALLS, LOG_TEXT_BYTES = 10_000, 9500
"""A log of 99 MB."""
APPENDED = 40

_OPEN = """
import sys, time
from pathlib import Path
def memory(name):  # of this program alone: what getrusage calls the peak begins with that of the one that started it
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name)) * 1024 / 1e6
import ctxscope, ctxscope.session.inspection
empty, start = memory("VmRSS"), time.process_time()
inspection = ctxscope.open(Path(sys.argv[1]))
opened = time.process_time() - start
equal = sum(c.rebuilt.state == "equal" for c in inspection.snapshot.calls)
peak = memory("VmHWM") - empty
start = time.process_time()
inspection.count()
print(opened, peak, time.process_time() - start, equal, len(inspection.snapshot.calls))
"""


def measure() -> Iterator[Row]:
    """Rows ``(what, measured, budget)``, each figure from a process of its own."""
    for clock in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            yield from _served(Path(folder) / "case", clock=clock)
    with tempfile.TemporaryDirectory() as folder:
        yield from _hermes(Path(folder) / "case")
    with tempfile.TemporaryDirectory() as folder:
        yield from logged(Path(folder) / "case", LOG_CALLS, LOG_TEXT_BYTES, "1.5 s CPU, 100 MB")
    with tempfile.TemporaryDirectory() as folder:
        yield from _starts(Path(folder) / "case")


def _served(case: Path, *, clock: bool) -> Iterator[Row]:
    sent = write_session(case, CLOCK_CALLS if clock else CALLS, TEXT_BYTES, clock=clock)
    opened, peak, counted, equal, calls = measured(case)
    what = f"{calls:,.0f} calls, {sent / 1e9:.1f} GB sent" + (", a clock in the system prompt" if clock else "")
    budget = "in proportion" if clock else "10 s CPU, 400 MB"
    yield (f"{what}: opened and judged", f"{opened:.1f} s CPU, {peak:.0f} MB, {equal:,.0f} equal", budget)
    yield (f"{what}: every call counted", f"{counted:.1f} s CPU", "follows the rows")
    if not clock:
        yield ("one more call and its entries, judged", _appended(case), "150 ms p95, from disk to screen")


def _hermes(case: Path) -> Iterator[Row]:
    sent = write_hermes_session(case, HERMES_CALLS, TEXT_BYTES)
    opened, peak, counted, equal, calls = measured(case)
    what = f"{calls:,.0f} calls of Hermes, {sent / 1e9:.1f} GB sent"
    yield (f"{what}: opened and judged", f"{opened:.1f} s CPU, {peak:.0f} MB, {equal:,.0f} equal", "in proportion")
    yield (f"{what}: every call counted", f"{counted:.1f} s CPU", "follows the rows")


def logged(case: Path, calls: int, text_bytes: int, budget: str) -> Iterator[Row]:
    """A log without a recording, compacted each time its history reaches about half a megabyte."""
    write_session(case, calls, text_bytes, wire=False, compact_every=max(2, 600_000 // text_bytes))
    (log,) = (case / "home").rglob("*.jsonl")
    opened, peak, counted, _, _ = measured(case)
    what = f"a log of {log.stat().st_size / 1e6:,.0f} MB, {calls:,.0f} calls"
    yield (f"{what}: full index", f"{opened:.1f} s CPU, {peak:,.0f} MB", budget)
    yield (f"{what}: every call counted", f"{counted:.1f} s CPU", "follows the rows")


def _starts(case: Path) -> Iterator[Row]:
    write_session(case, 1, 60)
    work = [sys.executable, "-m", "ctxscope", "report", str(case), "--format", "json", "--content", "none"]
    nothing = [sys.executable, "-m", "ctxscope", "--version"]
    yield ("report on one call, work included", f"{_cpu(work):.0f} ms CPU", "80 ms CPU before work")
    yield ("--version", f"{_cpu(nothing):.0f} ms CPU", "")


def measured(case: Path) -> tuple[float, ...]:
    """CPU seconds to open, MB above the empty program, CPU seconds to count, calls that are equal, calls."""
    done = subprocess.run([sys.executable, "-c", _OPEN, str(case)], check=True, capture_output=True, text=True)
    return tuple(map(float, done.stdout.split()))


def _appended(case: Path) -> str:
    """Milliseconds of CPU from an append to the snapshot that shows it, of the last calls written one by one."""
    import ctxscope  # noqa: PLC0415 - the other rows start from a process without it

    index = case / "wire" / "index.jsonl"
    (log,) = (case / "home").rglob("*.jsonl")
    lines, exchanges = (path.read_bytes().splitlines(keepends=True) for path in (log, index))
    index.write_bytes(b"".join(exchanges[:-APPENDED]))
    log.write_bytes(b"".join(lines[: -2 * APPENDED]))
    inspection = ctxscope.open(case)
    taken = []
    for number, exchange in enumerate(exchanges[-APPENDED:]):
        first = len(lines) - 2 * APPENDED + 2 * number
        _append(index, exchange)
        _append(log, b"".join(lines[first : first + 2]))
        taken.append(_timed(inspection.poll) * 1000)
    inspection.close()
    taken.sort()
    return f"{median(taken):.0f} ms p50, {taken[int(len(taken) * 0.95)]:.0f} ms p95 (CPU)"


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _cpu(command: list[str]) -> float:
    """Milliseconds of CPU, the least of five runs."""
    import resource  # noqa: PLC0415 - POSIX only

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    runs = []
    for _ in range(5):
        start = spent()
        subprocess.run(command, check=True, capture_output=True)
        runs.append((spent() - start) * 1000)
    return min(runs)
