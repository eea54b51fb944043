"""A session on disk whose bodies have 5 MB in 50,000 rows: text of tools, a short line each row."""

from __future__ import annotations

import random
from pathlib import Path

from tests.benchmarks.long_session import WORDS
from tests.samples.pi_form import (
    THINKING_LOW,
    Say,
    SessionFile,
    Tokens,
    Use,
    assistant,
    body,
    recording,
    reply,
    results,
    user,
    write_home,
)
from tests.samples.pi_texts import CWD, SECTIONS, SYSTEM, TOOLS_LOGGED, TOOLS_SERVED
from tests.samples.recording import compact

LARGE, SMALL = 4, 6
"""Calls that fetch much, then calls that each add a line."""
LINES = 12_600
"""Of each large result."""


def write_session(case: Path) -> None:
    """``LARGE + SMALL`` calls under ``case``; every call after the large ones sends about 5 MB.

    The last call was served with one word other than the log holds, near its end, so that it differs.
    """
    log = SessionFile("019c186e-2e80-7a01-8c11-5b2f0e9d4c0c", CWD, "low")
    log.start(("d0000001", "d0000002", "d0000003"), SECTIONS, TOOLS_LOGGED)
    wire, rng = recording(), random.Random(11)
    ask = "Read the whole of last year's gauge records."
    log.user("d0000004", 0.5, ask)
    messages = [user(ask)]
    for n in range(LARGE + SMALL):
        last = n == LARGE + SMALL - 1
        at, response = 1.0 + 10 * n, f"msg_d{n:06d}"
        use = Use(f"toolu_d{n:06d}", "grep_log", compact({"pattern": "251", "limit": n}))
        parts: list[Say | Use] = [Say("That was all of it.")] if last else [use]
        data = body(messages, SYSTEM, TOOLS_SERVED, max_tokens=16000, thinking=THINKING_LOW)
        if last:
            data = "kelp".join(data.rsplit("keel", 1))
        tokens = Tokens(1000 * n, 100, 40, 5)
        wire.add(at, data, reply(response, list(parts), tokens, "end_turn" if last else "tool_use"))
        log.answer(f"e{n:07d}", at + 2, list(parts), tokens, response=response, stop="end_turn" if last else "tool_use")
        if not last:
            text = _lines(rng, LINES if n < LARGE else 40)
            log.result(f"f{n:07d}", at + 3, use, text)
            messages += [assistant(use), results((use.id, text))]
    wire.write(case / "wire")
    log.write(case / "home")
    write_home(case / "home", 16000, "low")


def _lines(rng: random.Random, count: int) -> str:
    """Lines of about 90 bytes."""
    return "\n".join(f"{i:06d} " + " ".join(rng.choice(WORDS) for _ in range(14)) for i in range(count)) + "\n"
