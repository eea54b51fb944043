"""A recorded session in which one request carries another signature than the reply before it delivered."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import ctxscope
from tests.conftest import CAPTURES, SAMPLES, needs_captures

CASES = [CAPTURES / "gemini" / "gemini_tool3", SAMPLES / "gemini" / "resume_doubles_results"]
_SIGNATURE = re.compile(rb'"thoughtSignature":"(?!skip_)([^"]{8})')


def states(case: Path) -> dict[int, str]:
    """By number of the exchange what became of the rebuilt request."""
    inspection = ctxscope.open(case)
    try:
        return {c.exchange.n: c.rebuilt.state for c in inspection.snapshot.calls if c.exchange and c.entry}
    finally:
        inspection.close()


def signed(case: Path) -> list[tuple[int, ...]]:
    """Requests that carry a signature of the model's own; one that was sent again together with the first attempt."""
    found: dict[bytes, tuple[int, ...]] = {}
    for path in sorted((case / "wire").glob("*.req")):
        body = path.read_bytes()
        if _SIGNATURE.search(body):
            found[body] = (*found.get(body, ()), int(path.stem))
    return list(found.values())


@needs_captures
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_the_request_that_carries_another_signature_is_the_one_that_differs(case: Path, tmp_path: Path):
    before = states(case)
    assert signed(case)
    for numbers in signed(case):
        to = tmp_path / str(numbers[0])
        shutil.copytree(case, to, copy_function=shutil.copyfile)
        for n in numbers:
            changed = to / "wire" / f"{n:04d}.req"
            changed.write_bytes(_SIGNATURE.sub(b'"thoughtSignature":"b3RoZXI0', changed.read_bytes()))
        assert states(to) == {n: "differs" if n in numbers else state for n, state in before.items()}
