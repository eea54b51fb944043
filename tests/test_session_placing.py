"""Where an agent's logs stand, noted while it writes them."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from ctxscope import agents
from ctxscope.capture.events import Meta
from ctxscope.session.placing import Places, placing
from tests.conftest import SAMPLES


def home_of(agent: str, tmp_path: Path) -> Path:
    case = next(p.parent for p in sorted((SAMPLES / agent).glob("*/expected.json")))
    home = tmp_path / "home"
    shutil.copytree(case / "log", home)
    return home


def test_a_log_of_lines_stands_at_its_last_line_as_it_grows(tmp_path):
    home = home_of("pi", tmp_path)
    (log,) = home.rglob("*.jsonl")
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:3]))
    places = Places(agents.load("pi"), home, 0.0)
    assert places() == ((str(log.resolve()), "line 3"),)
    with log.open("ab") as file:
        file.write(lines[3] + lines[4][:7])
    assert places() == ((str(log.resolve()), "line 4"),)


def test_a_table_stands_at_its_last_row(tmp_path):
    home = home_of("hermes", tmp_path)
    database = home / ".hermes" / "state.db"
    places = Places(agents.load("hermes"), home, 0.0)
    (before,) = places()
    assert before[0] == str(database.resolve())
    with sqlite3.connect(database) as connection:
        session, last = connection.execute("SELECT session_id, max(id) FROM messages").fetchone()
        assert before[1] == f"row {last}"
        connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'more', 1)", (session,)
        )
        (newest,) = connection.execute("SELECT max(id) FROM messages").fetchone()
    connection.close()
    assert places() == ((before[0], f"row {newest}"),)


def test_sessions_of_one_table_stand_at_its_newest_row(tmp_path):
    home = tmp_path / "home"
    shutil.copytree(SAMPLES / "hermes" / "rotation" / "log", home)
    with sqlite3.connect(home / ".hermes" / "state.db") as connection:
        (newest,) = connection.execute("SELECT max(id) FROM messages").fetchone()
        assert len(connection.execute("SELECT DISTINCT session_id FROM messages").fetchall()) > 1
    connection.close()
    places = Places(agents.load("hermes"), home, 0.0)()
    assert places == ((str((home / ".hermes" / "state.db").resolve()), f"row {newest}"),)


def test_a_log_not_written_to_since_is_left_alone(tmp_path):
    home = home_of("pi", tmp_path)
    (log,) = home.rglob("*.jsonl")
    assert Places(agents.load("pi"), home, log.stat().st_mtime + 10)() == ()


def test_an_agent_whose_logs_cannot_be_read_has_none():
    assert placing(Meta(0.0, agent="any", home="/nowhere"))() == ()
    assert placing(Meta(0.0, agent="pi"))() == ()
