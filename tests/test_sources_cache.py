"""Values kept between launches: private, bounded, shared, and never a reason to fail."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from ctxscope.sources.cache import LONGEST, Cache

NAMES = [n.to_bytes(16, "big") for n in range(1, 1500)]


def filled(folder: Path, names=NAMES, **bounds: int) -> Cache:
    cache = Cache("c.sqlite", folder, **bounds)
    cache.keep({name: b"v" + name for name in names})
    return cache


def test_what_is_kept_is_found_by_the_next_launch_and_by_another_that_is_open(tmp_path):
    other = Cache("c.sqlite", tmp_path)
    assert other.load(NAMES) == {}
    assert list(tmp_path.iterdir()) == []  # a look alone leaves nothing behind
    first = filled(tmp_path, NAMES[:700])
    second = filled(tmp_path, NAMES[600:])
    assert first.load(NAMES) == second.load(NAMES) == other.load(NAMES) == {n: b"v" + n for n in NAMES}
    second.keep({NAMES[0]: b"other"})
    assert first.load(NAMES[:1]) == {NAMES[0]: b"other"}
    first.close()
    assert first.load(NAMES[:2]) == {NAMES[0]: b"other", NAMES[1]: b"v" + NAMES[1]}


def test_its_folder_and_its_file_are_private(tmp_path):
    filled(tmp_path / "cache")
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    assert [stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "cache").iterdir()] == [0o600]


def test_the_oldest_are_dropped_and_what_is_long_is_not_kept(tmp_path):
    cache = Cache("c.sqlite", tmp_path, limit=100)
    for at in range(0, 1400, 50):
        cache.keep(dict.fromkeys(NAMES[at : at + 50], b"v"))
        assert 50 <= len(cache.load(NAMES)) <= 100
    assert set(NAMES[1350:1400]) <= cache.load(NAMES).keys()
    cache.keep({NAMES[0]: b"x" * (LONGEST + 1)})
    assert cache.load(NAMES[:1]) == {}


@pytest.mark.parametrize("damage", [b"", b"no database at all, but long enough to be taken for one" * 99])
def test_a_damaged_file_is_a_cold_cache_and_makes_room_for_a_new_one(tmp_path, damage):
    filled(tmp_path).close()
    (tmp_path / "c.sqlite").write_bytes(damage)
    cache = Cache("c.sqlite", tmp_path)
    assert cache.load(NAMES) == {}
    cache.keep({NAMES[0]: b"new"})
    assert Cache("c.sqlite", tmp_path).load(NAMES) == {NAMES[0]: b"new"}


def test_damage_anywhere_never_raises_and_never_gives_another_value(tmp_path):
    filled(tmp_path, NAMES[:200]).close()
    whole = (tmp_path / "c.sqlite").read_bytes()
    for at in range(0, len(whole), 211):
        (tmp_path / "c.sqlite").write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
        cache = Cache("c.sqlite", tmp_path)
        assert cache.load(NAMES).items() <= {n: b"v" + n for n in NAMES}.items()
        cache.keep({NAMES[-1]: b"v" + NAMES[-1]})
        cache.close()


def test_one_that_another_process_holds_is_a_cold_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("ctxscope.sources.cache._WAIT", 0)
    cache = filled(tmp_path, NAMES[:9])
    holder = sqlite3.connect(tmp_path / "c.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    held = Cache("c.sqlite", tmp_path)
    assert held.load(NAMES) == {}
    held.keep({NAMES[20]: b"v"})
    holder.execute("ROLLBACK")
    holder.close()
    assert len(cache.load(NAMES)) == 9


def test_a_place_that_cannot_be_written_is_a_cold_cache(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    cache = Cache("c.sqlite", tmp_path / "file")
    cache.keep({NAMES[0]: b"v"})
    assert cache.load(NAMES) == {}
    (tmp_path / "c.sqlite").mkdir()
    cache = filled(tmp_path, NAMES[:9])
    assert cache.load(NAMES) == {}


def test_a_table_of_another_form_is_left_alone(tmp_path):
    other = sqlite3.connect(tmp_path / "c.sqlite")
    other.execute("CREATE TABLE kept (something)")
    other.commit()
    other.close()
    assert filled(tmp_path).load(NAMES) == {}
