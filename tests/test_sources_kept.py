from __future__ import annotations

import random
import stat

import pytest

from ctxscope.model import Place, Record
from ctxscope.sources.kept import KeptVersions

PLACE = Place(1, "line 3")
LINE = Record("session", "3", PLACE, b"\xff\x00 not text", 0)
CHANGED = Record("session", "3", PLACE, b"changed", 1)
GONE = Record("session", "3", PLACE, None, 2)


def versions(kept: KeptVersions, key: str) -> list[Record]:
    return kept.load(key).replay([])[0]


def random_lines(count: int, size: int) -> list[Record]:
    """Records that do not compress."""
    rng = random.Random(0)
    return [Record("s", str(n), Place(0, f"line {n}"), rng.randbytes(size), 0) for n in range(count)]


def test_what_was_kept_is_found_at_the_next_opening(tmp_path):
    KeptVersions(tmp_path / "versions").keep("a", [LINE, CHANGED])
    KeptVersions(tmp_path / "versions").keep("a", [CHANGED, GONE])
    KeptVersions(tmp_path / "versions").keep("b", [LINE])
    assert versions(KeptVersions(tmp_path / "versions"), "a") == [LINE, CHANGED, GONE]
    assert not KeptVersions(tmp_path / "versions").load("c")


def test_the_data_folder_follows_its_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("CTXSCOPE_DATA_DIR", str(tmp_path / "data"))
    KeptVersions().keep("a", [LINE])
    [path] = (tmp_path / "data" / "versions").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_nothing_kept_makes_no_folder(tmp_path):
    KeptVersions(tmp_path / "versions").keep("a", [])
    assert not KeptVersions(tmp_path / "versions").load("a")
    assert not (tmp_path / "versions").exists()


def test_a_torn_tail_loses_only_itself(tmp_path):
    kept = KeptVersions(tmp_path)
    kept.keep("a", [LINE])
    kept.keep("a", [CHANGED])
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    assert versions(kept, "a") == [LINE]
    kept.keep("a", [GONE])
    assert versions(kept, "a") == [LINE, GONE]


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe\n", b"AAAA\n", b"eJwDAAAAAAE=\n", b"\n"])
def test_damage_is_passed_over(damage, tmp_path):
    kept = KeptVersions(tmp_path)
    kept.keep("a", [LINE])
    [path] = tmp_path.iterdir()
    path.write_bytes(damage + path.read_bytes() + damage)
    assert versions(kept, "a") == [LINE]


def test_the_oldest_are_dropped_beyond_the_bound(tmp_path):
    kept = KeptVersions(tmp_path, limit=4000)
    big = random_lines(2, 1200)
    kept.keep("old", big)
    kept.keep("new", big)
    assert not kept.load("old")
    assert versions(kept, "new") == big
    many = random_lines(40, 100)
    for record in many:
        kept.keep("new", [record])
    left = versions(kept, "new")
    assert left
    assert left == many[-len(left) :]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 4000


def test_more_than_the_bound_at_once_is_refused(tmp_path):
    kept = KeptVersions(tmp_path / "versions", limit=4000)
    with pytest.raises(OSError, match="too large"):
        kept.keep("a", random_lines(10, 1000))
    assert not (tmp_path / "versions").exists()


def test_versions_of_settings_kept_before_are_left_out_and_leave_the_file(tmp_path):
    kept = KeptVersions(tmp_path)
    settings = [Record("models", "file", PLACE, b'{"apiKey": "hunter2"}', version) for version in range(2)]
    kept.keep("a", [("models", "file"), LINE, settings[0], settings[1]])
    kept.keep("a", [CHANGED, settings[1]])
    assert settings[0] in versions(kept, "a")
    now = Record("models", "file", PLACE, b"{}", 0)
    assert kept.load("a", {"models"}).replay([now])[0] == [now, LINE, CHANGED]
    assert versions(kept, "a") == [LINE, CHANGED]  # as the file holds it from now on
    [path] = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    kept.load("a", {"models"})
    assert path.read_bytes() == before
