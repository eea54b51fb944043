"""Prints what was measured beside the budget: ``python -m tests.benchmarks.run [frames] [sessions] [proxy] [storage] [judging] [large]``.

Each part runs in a process of its own, so that no figure holds another's memory. Nothing here can fail a build.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile

PARTS = ("frames", "sessions", "proxy", "storage", "judging")
"""Modules beside this one with ``measure()``, which yields rows ``(what, measured, budget)``; ``large`` when it is asked for."""


def main(arguments: list[str]) -> None:
    """Run the parts named, or all."""
    if arguments[:1] == ["--part"]:
        for what, measured, budget in importlib.import_module(f"tests.benchmarks.{arguments[1]}").measure():
            print(f"{what:<66} {measured:<44} {budget}", flush=True)
        return
    print(f"{'what':<66} {'measured':<44} at most", flush=True)
    for part in arguments or PARTS:
        with tempfile.TemporaryDirectory() as own:  # what was counted before must not make it faster
            env = {**os.environ, "CTXSCOPE_DATA_DIR": own}
            done = subprocess.run([sys.executable, "-m", "tests.benchmarks.run", "--part", part], check=False, env=env)
        if done.returncode:
            print(f"{part}: did not finish (exit {done.returncode})", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
