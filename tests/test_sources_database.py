"""The ladder, against a writer in another process; each test looks at the folder before and after."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager

import pytest

from ctxscope.model import CtxscopeError, SourceSpec
from ctxscope.sources import database, open_readers, reader
from ctxscope.sources.database import Database
from tests.sources_writer import Writer, listing

WAL, ROLLBACK = "PRAGMA journal_mode=WAL", "PRAGMA journal_mode=DELETE"
CREATE = "CREATE TABLE messages (id INTEGER PRIMARY KEY, content TEXT)"
INSERT = "INSERT INTO messages (content) VALUES (?)"


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return folder / "state.db"


@pytest.fixture
def writer(path):
    with Writer(path) as writer:
        yield writer


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(Database, "patience", 0.05)


def fill(writer, mode, rows=3, width=0):
    writer.run(mode)
    writer.run(CREATE)
    for n in range(rows):
        writer.run(INSERT, f"row {n}".ljust(width))


def spill(writer):
    """A transaction that has written pages to the file already: its journal is hot."""
    writer.run("PRAGMA cache_size=1")
    writer.run("BEGIN IMMEDIATE")
    writer.run("UPDATE messages SET content = replace(content, 'row', 'bad')")
    for _ in range(40):
        writer.run(INSERT, "uncommitted " * 500)


def table(path, **more):
    return SourceSpec("messages", path, "sqlite", table="messages", key_column="id", **more)


def rows(connection):
    return [row["content"] for row in connection.execute("SELECT content FROM messages ORDER BY id")]


def contents(source):
    return [record.value["content"] for record in source.poll()]


def everything(folder):
    return {name: (folder / name).read_bytes() for name in listing(folder)}


@pytest.mark.parametrize("mode", [WAL, ROLLBACK, "PRAGMA journal_mode=TRUNCATE", "PRAGMA journal_mode=PERSIST"])
def test_polling_beside_a_writer_makes_no_file_and_delays_no_commit(path, mode):
    with Writer(path) as writer:
        fill(writer, mode)
        source = reader(table(path))
        assert len(contents(source)) == 3
        for n in range(20):
            writer.run(INSERT, f"more {n}")
            before = everything(path.parent)
            assert contents(source) == [f"more {n}"]
            assert not source.partial
            assert everything(path.parent) == before
    after = listing(path.parent)
    assert not any(name.endswith(("-wal", "-shm")) for name in after)
    assert source.poll() == []
    assert listing(path.parent) == after


def test_a_cleanly_closed_wal_database_gets_no_companions(path):
    with Writer(path) as writer:
        fill(writer, WAL)
    before = everything(path.parent)
    assert list(before) == ["state.db"]
    assert len(contents(reader(table(path)))) == 3
    assert everything(path.parent) == before


def test_a_killed_writer_leaves_rows_in_the_wal(path):
    writer = Writer(path)
    fill(writer, WAL)
    writer.kill()
    before = everything(path.parent)
    assert list(before) == ["state.db", "state.db-shm", "state.db-wal"]
    assert len(contents(reader(table(path)))) == 3
    assert everything(path.parent) == before


def test_a_reader_of_a_wal_that_is_checkpointed_and_begun_anew_sees_every_row_and_changes_no_byte(path, writer):
    fill(writer, WAL)
    writer.run("PRAGMA wal_autocheckpoint=0")
    source = reader(table(path))
    assert len(contents(source)) == 3
    for mode in ("PASSIVE", "FULL", "RESTART", "PASSIVE"):
        writer.run(f"PRAGMA wal_checkpoint({mode})")
        writer.run(INSERT, mode)
        before = everything(path.parent)
        assert contents(source) == [mode]
        assert len(contents(reader(table(path)))) > 3
        assert everything(path.parent) == before


def test_a_wal_without_its_shm_is_read_from_a_copy(path, tmp_path, writer, monkeypatch):
    fill(writer, WAL)
    alone = tmp_path / "alone"
    alone.mkdir()
    (tmp_path / "private").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "private"))
    for name in ("state.db", "state.db-wal"):
        shutil.copy(path.with_name(name), alone)
    before = everything(alone)
    assert len(contents(reader(table(alone / "state.db")))) == 3
    assert everything(alone) == before
    assert listing(tmp_path / "private") == []


@pytest.mark.usefixtures("hasty")
def test_a_hot_journal_left_behind_is_rolled_back_in_a_copy(path, tmp_path, writer):
    fill(writer, ROLLBACK, rows=60, width=2000)
    spill(writer)
    crashed = tmp_path / "crashed"
    shutil.copytree(path.parent, crashed)
    before = everything(crashed)
    assert list(before) == ["state.db", "state.db-journal"]
    assert b"bad 30" in before["state.db"]
    assert [text.rstrip() for text in contents(reader(table(crashed / "state.db")))] == [f"row {n}" for n in range(60)]
    assert everything(crashed) == before


def test_a_commit_under_way_is_held_back_until_it_is_done(path, writer):
    fill(writer, ROLLBACK)
    source = reader(table(path))
    source.poll()
    spill(writer)
    assert source.poll() == []
    assert source.partial
    writer.run("COMMIT")
    assert len(contents(source)) == 40
    assert not source.partial


@pytest.mark.usefixtures("hasty")
def test_a_journal_that_keeps_being_written_is_an_error(path, writer, monkeypatch):
    fill(writer, ROLLBACK)
    spill(writer)
    journal = path.with_name("state.db-journal")
    clock = [0.0]

    def written_meanwhile(seconds):
        clock[0] += seconds
        os.utime(journal, ns=(0, int(clock[0] * 1e9)))

    monkeypatch.setattr(database.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(database.time, "sleep", written_meanwhile)
    with pytest.raises(
        CtxscopeError, match=r"state\.db: found locked for 0\.05 s by another process, expected a SQLite"
    ):
        reader(table(path)).poll()


@pytest.mark.usefixtures("hasty")
def test_an_exclusive_lock_is_an_error(path, writer):
    fill(writer, WAL)
    writer.run("PRAGMA locking_mode=EXCLUSIVE")
    writer.run(INSERT, "locked")
    assert "state.db-shm" in listing(path.parent)
    with pytest.raises(CtxscopeError, match=r"locked for 0\.05 s"):
        reader(table(path)).poll()
    source = reader(table(path, optional=True))
    assert source.poll() == []
    assert "locked for 0.05 s" in source.notices[0]


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("written", [False, True])
def test_a_process_that_has_the_database_for_itself_is_waited_for(path, writer, written):
    fill(writer, ROLLBACK)
    source = reader(table(path))
    writer.run("BEGIN EXCLUSIVE")
    if written:
        writer.run(INSERT, "not committed")
    before = everything(path.parent)
    with pytest.raises(CtxscopeError, match=r"state\.db: found locked for 0\.05 s by another process"):
        source.poll()
    assert everything(path.parent) == before
    writer.run("COMMIT")
    assert len(contents(source)) == 3 + written
    writer.run("BEGIN EXCLUSIVE")
    writer.run(INSERT, "more")
    assert source.poll() == []
    writer.run("COMMIT")
    assert contents(source) == ["more"]
    assert not source.partial


@pytest.mark.parametrize("mode", [WAL, ROLLBACK])
def test_a_commit_while_we_read_succeeds_and_is_seen_whole_or_not_at_all(path, writer, mode):
    fill(writer, mode)
    runs = []

    def query(connection):
        found = rows(connection)
        if not runs:
            writer.run("UPDATE messages SET content = 'new'")
        runs.append([*found, *rows(connection)])
        return runs[-1]

    found = Database(path).read(query)
    assert found in (["row 0", "row 1", "row 2"] * 2, ["new"] * 6)
    assert len(runs) == (1 if mode == WAL else 2)


def test_the_last_writer_leaving_as_we_open_makes_no_file_stay(path, monkeypatch):
    writer = Writer(path)
    fill(writer, WAL)
    locked = Database._shared_lock

    @contextmanager
    def late(self):
        writer.close()
        with locked(self):
            yield

    monkeypatch.setattr(Database, "_shared_lock", late)
    assert Database(path).read(rows) == ["row 0", "row 1", "row 2"]
    assert listing(path.parent) == ["state.db"]


def test_the_last_writer_leaving_once_we_hold_on_makes_no_new_file(path, monkeypatch):
    writer = Writer(path)
    fill(writer, WAL)
    before = everything(path.parent)
    opened = database._connection

    @contextmanager
    def late(*arguments):
        writer.close()
        with opened(*arguments) as connection:
            yield connection

    monkeypatch.setattr(database, "_connection", late)
    assert Database(path).read(rows) == ["row 0", "row 1", "row 2"]
    after = everything(path.parent)
    assert after.keys() == before.keys()
    assert after["state.db-wal"] == before["state.db-wal"]


def test_two_tables_are_read_in_one_transaction(path, writer, monkeypatch):
    fill(writer, WAL, rows=1)
    writer.run("CREATE TABLE notes (id INTEGER PRIMARY KEY)")
    first, second = open_readers([table(path), SourceSpec("notes", path, "sqlite", table="notes", key_column="id")])
    read = first.read

    def then_both_grow(connection, **how):
        found = read(connection, **how)
        for sql in (
            "BEGIN",
            "INSERT INTO messages (content) VALUES ('late')",
            "INSERT INTO notes VALUES (1)",
            "COMMIT",
        ):
            writer.run(sql)
        monkeypatch.setattr(first, "read", read)
        return found

    monkeypatch.setattr(first, "read", then_both_grow)
    assert [len(first.poll()), len(second.poll())] == [1, 0]
    assert [len(first.poll()), len(second.poll())] == [1, 1]


def test_a_table_polled_late_misses_nothing(path, writer):
    fill(writer, ROLLBACK)
    early, late = open_readers([table(path), table(path)])
    early.poll()
    writer.run(INSERT, "after")
    early.poll()
    assert contents(late) == ["row 0", "row 1", "row 2", "after"]


def test_a_commit_within_one_tick_of_the_clock_is_not_missed(path, writer):
    fill(writer, ROLLBACK)
    source = reader(table(path, mutable=("content",)))
    source.poll()
    status = path.stat()
    writer.run("UPDATE messages SET content = 'row 9' WHERE id = 1")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert contents(source) == ["row 9"]


def test_a_link_to_a_database_finds_the_companions_of_its_target(path, tmp_path, writer):
    fill(writer, WAL)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    assert len(contents(reader(table(link)))) == 3
    assert listing(tmp_path) == ["home", "link.db"]


def test_waiting_is_bounded(path, writer, monkeypatch):
    fill(writer, ROLLBACK)
    spill(writer)
    slept = []
    monkeypatch.setattr(database.time, "sleep", slept.append)
    monkeypatch.setattr(database.time, "monotonic", lambda: 0.0)
    with pytest.raises(CtxscopeError, match="locked for 1 s"):
        reader(table(path)).poll()
    assert sum(slept) == pytest.approx(Database.patience)
