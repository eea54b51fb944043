"""A writer killed at any moment has lost nothing that it acknowledged."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ctxscope.model import Exchange
from tests.conftest import ROOT
from tests.ctxrec_events import body, read

ROUNDS = 50
TURNS = 40
EVENTS = 5
"""Of an exchange: the request, the head of its reply, two chunks, the end."""
_WRITE = """
import os, sys
from pathlib import Path
from ctxscope.capture.events import Meta
from ctxscope.capture.writer import Writer
from tests.ctxrec_events import body, reply, request
writer = Writer(Path(sys.argv[1]), Meta(float(sys.argv[2])))
for n in range(1, 10_000):
    for event in (request(n, body(1 + n % int(sys.argv[3]))), *reply(n, b"data: %d" % n, os.urandom(3000))):
        writer.write(event)
        os.write(1, b"%d\\n" % writer.settled)
"""


def kill_one(path: Path, run: int, after: int) -> int:
    """Let a writer go on with a recording, and kill it after some acknowledgements; gives how many events are settled."""
    command = [sys.executable, "-c", _WRITE, str(path), str(float(run)), str(TURNS)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(after)]
        writer.send_signal(signal.SIGKILL)
        lines += writer.stdout.read().splitlines(keepends=True)
    acknowledged = [int(line) for line in lines if line.endswith(b"\n")]
    assert len(acknowledged) >= after
    return acknowledged[-1]


@pytest.mark.parametrize("seed", range(5))
def test_what_was_acknowledged_is_there_however_often_its_writer_is_killed(tmp_path: Path, seed: int):
    rng, path, first = random.Random(seed), tmp_path / "a.ctxrec", 0
    for run in range(1, ROUNDS // 5 + 1):
        settled = kill_one(path, run, rng.randint(EVENTS, 300))
        recording, found = read(path)
        for n in range(1, settled // EVENTS + 1):
            assert seen(found[first + n]) == (body(1 + n % TURNS), 200, len(b"data: %d" % n) + 3000, True)
        last, rest = found.get(first + settled // EVENTS + 1), settled % EVENTS
        assert last is not None or not rest
        assert rest < 2 or seen(last)[1] == 200
        assert rest < 3 or seen(last)[2] >= len(b"data: 1")
        assert not any(": found damage" in notice for notice in recording.notices)
        first = max(found)


def seen(exchange: Exchange | None) -> tuple[bytes, int | None, int, bool]:
    assert exchange is not None
    assert len(exchange.response()) == (exchange.response_bytes or 0)
    return exchange.request(), exchange.status, exchange.response_bytes or 0, exchange.end is not None
