"""opencode sessions for tests: databases written where the agent keeps them, read as the session room reads them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from ctxscope.agents import opencode
from ctxscope.model import Config, Learned, Point, SessionRef
from ctxscope.session.fold import SessionLog
from ctxscope.sources import reader
from tests.conftest import CAPTURES, SAMPLES
from tests.samples.opencode_form import Database, Use, text

SESSION = "ses_00a0f00d1ffeTestTestTestTest"
SAMPLE = SAMPLES / "opencode" / "child_and_summary"
FOLDERS = [*(p.parent for p in sorted(CAPTURES.glob("opencode/*/case.json"))), SAMPLE]
"""Recorded cases, and the sample."""
LOOK = Use("call_1", "look", '{"b": 1, "a": "é"}', "seen")


def copied(folder: Path, target: Path) -> Path:
    """A case that may be opened: SQLite leaves files beside a database in WAL mode, even where it only reads."""
    shutil.copytree(folder, target, copy_function=shutil.copyfile)
    return target


def database(home: Path) -> Path:
    return home / ".local" / "share" / "opencode" / "opencode.db"


def refs(home: Path) -> list[SessionRef]:
    found = []
    for ref in opencode.discover(home):
        one = reader(opencode.container(ref))
        found += opencode.members(ref, one.poll())
        one.close()
    return found


def read(home: Path, name: str = SESSION) -> SessionLog:
    """A session of the database below a home, read once."""
    return opened(next(r for r in refs(home) if r.id == name))


def opened(ref: SessionRef) -> SessionLog:
    session = SessionLog.open(ref)
    session.poll()
    return session


def fresh() -> Database:
    rows = Database()
    rows.session(SESSION, "Test", 0.0)
    return rows


def changed(path: Path, statement: str, *values: Any) -> None:
    """Run a statement on a database, as the agent would."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement, values)
    connection.close()


def messages(log: Any, point: Point, api: str = "openai-chat", form: str = "interleaved") -> list[Any]:
    """What the log implies was sent, parsed."""
    rebuilt = opencode.rebuild(log, point, Config(), Learned(choice={"api": api, "form": form}))
    assert rebuilt is not None
    found: list[Any] = json.loads(rebuilt.data)["input" if api == "openai-responses" else "messages"]
    return found


def full(tail: bool) -> Database:
    """Two turns, a summary with or without the second kept, and a call after it."""
    rows = fresh()
    one = rows.user(SESSION, 1, text("one"))
    rows.answer(SESSION, 2, one, text("first"))
    two = rows.user(SESSION, 4, text("two"))
    rows.answer(SESSION, 5, two, text("second"), tokens=(9000, 0, 5))
    ask = {"type": "compaction", "auto": False, **({"tail_start_id": two} if tail else {})}
    full = rows.user(SESSION, 7, ask)
    rows.answer(SESSION, 8, full, text("SUM"), summary=True, agent="compaction")
    on = rows.user(SESSION, 10, text("three"))
    rows.answer(SESSION, 11, on, text("third"))
    return rows
