"""Imports in the data folder as ``ctxscope recordings`` lists them, and what lies beside them."""

from __future__ import annotations

import json

import pytest

from ctxscope import resources
from ctxscope.cli.main import main
from ctxscope.cli.table import UNKNOWN, share
from tests.import_cases import flow, flows


def run(capsys, *words: str) -> str:
    """What a listing says on stdout."""
    assert main(["recordings", *words]) == 0
    return capsys.readouterr().out


@pytest.fixture
def junk(tmp_path, capsys):
    """A file that only bears the name of a recording, beside an import."""
    assert main(["import", str(flows(tmp_path / "a.mitm", flow(1795972800.0)))]) == 0
    capsys.readouterr()
    path = resources.recordings() / "junk.ctxrec"
    path.write_bytes(b"x" * 5_000)
    return path


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        (0, 0, UNKNOWN),
        (9, 0, UNKNOWN),
        (1_500, 100, UNKNOWN),
        (100, 100, UNKNOWN),
        (99_999, 100_000, "99%"),
        (1, 3, "33%"),
        (1, 11, "9.09%"),
        (43, 10_000, "0.43%"),
        (1, 10**9, "<0.01%"),
    ],
)
def test_shares_are_plain_and_below_a_hundred(part, whole, expected):
    assert share(part, whole) == expected


@pytest.mark.usefixtures("junk")
def test_what_is_stored_beside_requests_is_no_ratio(capsys):
    head, line, *_ = run(capsys).splitlines()
    assert (head.split()[-2], line.split()[-2]) == ("ratio", UNKNOWN)  # 7 bytes were sent


def test_what_cannot_be_read_is_listed_with_its_size(capsys, junk):
    _, first, last = run(capsys).splitlines()
    assert "mitmproxy" in first
    assert last.split()[2:] == ["unreadable", UNKNOWN, "4.9", "KB", UNKNOWN, UNKNOWN, str(junk)]
    listed = json.loads(run(capsys, "--format", "json"))
    assert listed["unreadable"] == [{"path": str(junk), "written": junk.stat().st_mtime, "stored": 5_000}]
    assert [each["source"] for each in listed["recordings"]] == ["mitmproxy"]


def test_what_cannot_be_read_is_listed_alone(capsys, junk):
    for path in resources.recordings().iterdir():
        if path != junk:
            path.unlink()
    assert main(["recordings"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert err == ""


def test_links_and_folders_are_not_listed(tmp_path, capsys, junk):
    (junk.parent / "link.ctxrec").symlink_to(tmp_path / "a.mitm")
    (junk.parent / "folder.ctxrec").mkdir()
    assert [each["path"] for each in json.loads(run(capsys, "--format", "json"))["unreadable"]] == [str(junk)]


@pytest.mark.parametrize("words", [["--keep", "0"], ["--older-than", "0m"]])
def test_what_cannot_be_read_is_never_removed(capsys, junk, words):
    out = run(capsys, *words, "--yes")
    assert "import" in out
    assert "junk" not in out
    assert list(resources.recordings().iterdir()) == [junk]
