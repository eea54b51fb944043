"""A pseudo-terminal with a program in it, read until something shows; and programs that stand for an agent."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Self

CAP_SECONDS = 30.0
"""How long anything may take on a machine that is busy with other things."""

_IN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)
UNDER_US = (
    "import os, sys; from ctxscope.cli.foreground import *\n"
    "with Foreground() as foreground: ending = foreground.run(sys.argv[1:], os.environ)\n"
    "sys.exit(end_like(ending))"
)
"""A program that runs its arguments in the foreground and ends as they do."""

LIKE_MACOS = "import signal; del signal.sigwaitinfo\n"
"""Before it: Python has no way to ask where a signal comes from."""

AGENT = """
import os, select, signal, sys
counts, (ready, wake) = {}, os.pipe()
os.set_blocking(wake, False)
signal.set_wakeup_fd(wake)
def count(number, frame):
    name = signal.Signals(number).name
    counts[name] = counts.get(name, 0) + 1
    print(f"{name} {counts[name]}", flush=True)
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), count)
print(f"ready {os.getpid()}", flush=True)
text = b""
while b"quit\\n" not in text:
    if ready in select.select([0, ready], [], [])[0]:
        os.read(ready, 100)
        continue
    data = os.read(0, 1000)
    if not data:
        break
    text += data
    if data == b"group\\n":
        os.kill(0, signal.SIGUSR1)
    print(f"got {data.decode().strip()}", flush=True)
print(f"counted {counts}", flush=True)
sys.exit(5)
"""
"""Counts signals, repeats lines, and ends with code 5 at ``quit``; ``group`` has it signal its own group."""


def under_us(*command: str) -> list[str]:
    """A command line that runs another one in our foreground."""
    return [sys.executable, "-c", UNDER_US, *command]


def agent(*signals: str) -> list[str]:
    """The command line of the agent that counts signals."""
    return [sys.executable, "-c", AGENT, *signals]


class Terminal:
    """A program that has a terminal of its own; what it printed is in ``seen``."""

    def __init__(self, command: Sequence[str], **env: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_TERMINAL, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "TERM": "dumb", **env},
        )
        os.close(slave)
        self.seen = ""
        self._from = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)

    def send(self, text: str) -> None:
        """Type."""
        os.write(self.master, text.encode())

    def until(self, pattern: str) -> re.Match[str]:
        """Read until a pattern shows behind what was found before."""
        deadline = time.monotonic() + CAP_SECONDS
        while not (found := re.compile(pattern).search(self.seen, self._from)):
            assert self._read(deadline), f"no {pattern!r} in {self.seen!r}"
        self._from = found.end()
        return found

    def end(self) -> int:
        """Read to the end, and what the program ended with."""
        deadline = time.monotonic() + CAP_SECONDS
        while self._read(deadline):
            pass
        return self.process.wait(CAP_SECONDS)

    def _read(self, deadline: float) -> bool:
        assert select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))[0], f"only {self.seen!r}"
        try:
            data = os.read(self.master, 65536)
        except OSError:  # nobody has the other side open any more
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)
