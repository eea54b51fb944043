"""A SQLite writer in a process of its own, as an agent is, driven statement by statement."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Self

SCRIPT = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
for line in sys.stdin:
    try:
        rows = connection.execute(*json.loads(line)).fetchall()
        print(json.dumps(["ok", rows]), flush=True)
    except sqlite3.Error as error:
        print(json.dumps(["error", str(error)]), flush=True)
connection.close()
"""


class Writer:
    """Waits for nothing: a statement that a reader would delay fails instead."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-c", SCRIPT, str(path)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, sql: str, *values: object) -> list[list[object]]:
        self._process.stdin.write(json.dumps([sql, values]) + "\n")
        self._process.stdin.flush()
        state, answer = json.loads(self._process.stdout.readline())
        assert state == "ok", answer
        return answer

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def kill(self) -> None:
        self._process.kill()
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
