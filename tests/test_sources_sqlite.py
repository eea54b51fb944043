from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctxscope.model import CtxscopeError, SourceSpec
from ctxscope.sources import open_readers, reader
from tests.conftest import CAPTURES, needs_captures
from tests.sources_writer import listing

SCHEMA = """
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, content TEXT, blob BLOB, timestamp REAL, active INTEGER);
CREATE TABLE sessions (id TEXT PRIMARY KEY, title TEXT);
INSERT INTO messages VALUES (1, 's', 'one', x'00ff', 1.5, 1), (2, 's', 'two', NULL, 2.5, 1), (3, 't', 'three', NULL, 3.5, 1);
INSERT INTO sessions VALUES ('s', 'first'), ('t', 'second');
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "home" / "state.db"
    path.parent.mkdir()
    change(path, SCHEMA)
    return path


def change(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def messages(path: Path, **more) -> SourceSpec:
    fields = {"table": "messages", "key_column": "id", "order_by": "id", "mutable": ("active", "content"), **more}
    return SourceSpec("messages", path, "sqlite", log=1, **fields)


def sessions(path: Path, **more) -> SourceSpec:
    return SourceSpec("sessions", path, "sqlite", table="sessions", key_column="id", mutable=("title",), **more)


def told(records, *columns) -> list:
    return [(r.key, r.version, r.value and tuple(r.value[c] for c in columns)) for r in records]


def test_rows_come_by_name_and_in_order(path):
    source = reader(messages(path, order_by="timestamp"))
    records = source.poll()
    assert told(records, "content") == [("1", 0, ("one",)), ("2", 0, ("two",)), ("3", 0, ("three",))]
    first = {"id": 1, "session_id": "s", "content": "one", "blob": b"\x00\xff", "timestamp": 1.5, "active": 1}
    assert records[0].value == first
    assert (records[0].source, records[0].place.log, records[0].place.at) == ("messages", 1, "row 1")
    assert source.poll() == []


def test_only_the_rows_of_one_session(path):
    change(path, "INSERT INTO messages (id, session_id) VALUES (4, 's'' OR 1 --')")
    assert told(reader(messages(path, where=("session_id", "t"))).poll()) == [("3", 0, ())]
    assert told(reader(messages(path, where=("session_id", "s' OR 1 --"))).poll()) == [("4", 0, ())]


def test_new_changed_and_deleted_rows(path):
    source = reader(messages(path))
    source.poll()
    change(path, "UPDATE messages SET active = 0 WHERE id = 2; INSERT INTO messages (id, content) VALUES (4, 'four')")
    assert told(source.poll(), "content", "active") == [("2", 1, ("two", 0)), ("4", 0, ("four", None))]
    change(path, "DELETE FROM messages WHERE id = 2")
    assert told(source.poll()) == [("2", 2, None)]
    change(path, "INSERT INTO messages (id, content) VALUES (2, 'back')")
    assert told(source.poll(), "content") == [("2", 3, ("back",))]
    assert source.poll() == []


def test_an_id_used_again_is_told_by_its_time(path):
    source = reader(messages(path, mutable=()))
    source.poll()
    change(
        path, "DELETE FROM messages WHERE id = 3; INSERT INTO messages (id, content, timestamp) VALUES (3, 'new', 9)"
    )
    assert told(source.poll(), "content") == [("3", 1, ("new",))]


def test_more_changed_rows_than_one_query_holds_keep_their_order(path):
    source = reader(messages(path))
    source.poll()
    change(
        path,
        "WITH n(i) AS (SELECT 4 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) INSERT INTO messages (id) SELECT i FROM n",
    )
    assert [int(r.key) for r in source.poll()] == list(range(4, 1501))


def test_text_keys_need_no_order(path):
    source = reader(sessions(path))
    assert told(source.poll(), "title") == [("s", 0, ("first",)), ("t", 0, ("second",))]
    change(path, "INSERT INTO sessions VALUES ('a', 'third'); UPDATE sessions SET title = 'renamed' WHERE id = 's'")
    assert told(source.poll(), "title") == [("a", 0, ("third",)), ("s", 1, ("renamed",))]


def test_a_column_an_upgrade_adds_makes_no_new_versions(path):
    source = reader(messages(path, mutable=("active", "content", "api_content")))
    source.poll()
    change(path, "ALTER TABLE messages ADD COLUMN api_content TEXT")
    assert source.poll() == []
    change(path, "UPDATE messages SET api_content = 'sent instead' WHERE id = 1")
    assert told(source.poll(), "api_content") == [("1", 1, ("sent instead",))]


def test_another_file_under_the_same_name_is_compared_whole(path):
    source = reader(messages(path, mutable=()))
    source.poll()
    other = path.with_name("other.db")
    change(other, SCHEMA.replace("'two'", "'2'"))
    other.replace(path)
    assert told(source.poll(), "content") == [("2", 1, ("2",))]
    assert source.notices == ("state.db: replaced by another file (1 times)",)


def test_a_missing_table_is_a_notice_unless_it_is_optional(path):
    wanted = [messages(path), messages(path, table="notes"), messages(path, table="extras", optional=True)]
    first, second, third = open_readers(wanted)
    assert [len(source.poll()) for source in (first, second, third)] == [3, 0, 0]
    assert second.notices == (f"{path}: found no table notes, expected one",)
    assert third.notices == first.notices == ()


@pytest.mark.parametrize("spec", [{"key_column": "uuid"}, {"where": ("session", "s")}])
def test_a_missing_column_that_tells_rows_apart_is_a_notice(path, spec):
    source = reader(messages(path, **spec))
    assert source.poll() == []
    assert "has no column" in source.notices[0]


def test_text_that_is_not_utf8_keeps_its_bytes(path):
    change(path, "UPDATE messages SET content = CAST(x'61ff62' AS TEXT) WHERE id = 1")
    assert reader(messages(path)).poll()[0].value["content"].encode("utf-8", "surrogateescape") == b"a\xffb"


def test_rows_are_found_by_keys_and_sessions_that_are_no_utf8(path):
    change(path, "UPDATE messages SET session_id = CAST(x'73ff' AS TEXT) WHERE id = 1")
    change(path, "UPDATE sessions SET id = CAST(x'73ff' AS TEXT) WHERE id = 's'")
    name = b"s\xff".decode("utf-8", "surrogateescape")
    source, rows = reader(sessions(path)), reader(messages(path, where=("session_id", name)))
    assert told(source.poll(), "title") == [(name, 0, ("first",)), ("t", 0, ("second",))]
    assert told(rows.poll(), "content") == [("1", 0, ("one",))]
    change(path, "UPDATE sessions SET title = 'renamed'")
    assert told(source.poll(), "title") == [(name, 1, ("renamed",)), ("t", 1, ("renamed",))]
    assert (source.notices, rows.notices) == ((), ())


def test_a_column_whose_name_is_no_text_is_left_out(path):
    content = path.read_bytes()
    assert content.count(b"timestamp REAL") == 1
    path.write_bytes(content.replace(b"timestamp REAL", b"timest\xffmp REAL"))
    records = reader(messages(path)).poll()
    assert [r.value["content"] for r in records] == ["one", "two", "three"]
    assert list(records[0].value) == ["id", "session_id", "content", "blob", "active"]


PAGE, LAST = 512, 200


@pytest.fixture
def pages(path):
    """The database again, with rows on many small pages."""
    path.unlink()
    change(path, f"PRAGMA page_size={PAGE};{SCHEMA}")
    change(
        path,
        f"WITH n(i) AS (SELECT 4 UNION ALL SELECT i + 1 FROM n WHERE i < {LAST}) "
        "INSERT INTO messages SELECT i, 's', printf('row %d ', i) || hex(zeroblob(30)), NULL, i, 1 FROM n",
    )
    return path


def damage(path: Path, row: int, to: bytes = b"\x77") -> None:
    """Spoil the page that holds a row: its first byte says what kind of page it is."""
    content = bytearray(path.read_bytes())
    page = content.index(b"row %d " % row) // PAGE
    content[page * PAGE : page * PAGE + len(to)] = to
    path.write_bytes(content)


@pytest.mark.parametrize("order", ["id", "timestamp"])
def test_of_a_damaged_table_the_rows_around_the_bad_page_are_read(pages, order):
    damage(pages, 100)
    source = reader(messages(pages, order_by=order))
    keys = [int(record.key) for record in source.poll()]
    missing = sorted(set(range(1, LAST + 1)) - set(keys))
    assert keys == sorted(keys)
    assert 100 in missing
    assert len(missing) < 10
    assert source.notices == (
        f"{pages}: found table messages damaged (database disk image is malformed); rows may be missing",
    )
    assert source.poll() == []


def test_a_table_damaged_while_it_is_followed_loses_no_row_that_was_read(pages):
    source = reader(messages(pages))
    assert len(source.poll()) == LAST
    good = pages.read_bytes()
    damage(pages, 100)
    assert source.poll() == []
    assert "found table messages damaged" in source.notices[0]
    pages.write_bytes(good)
    change(pages, "UPDATE messages SET active = 0 WHERE id = 100")
    assert told(source.poll(), "active") == [("100", 1, (0,))]
    assert source.notices == ()


@pytest.mark.parametrize("to", [b"CREATE \xffABLE", b"\xff\xfe\xfd E TABLE", b"SELECT TABLE"])
def test_a_schema_that_cannot_be_read_is_an_error_that_says_so(path, to):
    content = path.read_bytes()
    path.write_bytes(content.replace(b"CREATE TABLE", to, 1))
    with pytest.raises(CtxscopeError, match=r"state\.db: found unreadable rows \(.+\), expected a SQLite 3 database"):
        reader(messages(path)).poll()


def test_a_path_with_every_awkward_character(tmp_path):
    path = tmp_path / "a?b#c%20d é" / "state.db"
    path.parent.mkdir()
    change(path, SCHEMA)
    assert len(reader(messages(path)).poll()) == 3
    assert listing(path.parent) == ["state.db"]


@pytest.mark.parametrize("content", [b"not a database " * 70_000, b"SQLite format 3\0" + b"\xff" * 4096])
def test_what_is_not_a_database_is_an_error_that_says_so(tmp_path, content):
    path = tmp_path / "state.db"
    path.write_bytes(content)
    with pytest.raises(CtxscopeError, match=r"state.db: found .*, expected a SQLite 3 database") as caught:
        reader(messages(path)).poll()
    assert ("1.05 MB of something that is not SQLite" in str(caught.value)) == content.startswith(b"not")


def test_a_missing_database_is_an_error_or_waited_for(tmp_path):
    path = tmp_path / "state.db"
    with pytest.raises(CtxscopeError, match="found no such file"):
        reader(messages(path)).poll()
    source = reader(messages(path, optional=True))
    assert source.poll() == []
    change(path, SCHEMA)
    assert len(source.poll()) == 3


def test_a_database_that_breaks_later_is_a_notice(path):
    source = reader(messages(path))
    source.poll()
    path.write_bytes(b"gone wrong")
    assert source.poll() == []
    assert "10 B of something that is not SQLite" in source.notices[0]


def test_an_unchanged_database_is_not_queried(path, monkeypatch):
    os.utime(path, ns=(1, 1))
    source = reader(messages(path))
    source.poll()
    monkeypatch.setattr(sqlite3, "connect", None)
    assert source.poll() == []


@needs_captures
def test_captured_databases_are_read_whole_and_left_alone():
    for path in sorted(CAPTURES.glob("hermes/*/log/.hermes/state.db")):
        before = listing(path.parent)
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
            ids = [str(row[0]) for row in connection.execute("SELECT id FROM messages ORDER BY id")]
        assert [r.key for r in reader(messages(path)).poll()] == ids
        assert ids
        assert listing(path.parent) == before
