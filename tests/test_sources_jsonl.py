from __future__ import annotations

import os
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.model import CtxscopeError, SourceSpec
from ctxscope.sources import jsonl, open_readers, reader

LINES = st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=12)
MIDDLE = 200_000
"""Bytes that put a line beyond both windows the reader hashes."""


def lines_of(path: Path, *, optional: bool = False):
    return reader(SourceSpec("session", path, "jsonl", log=2, optional=optional))


def drain(source) -> list:
    records = source.poll()
    while source.more:
        records += source.poll()
    return records


def fold(records, into=None) -> dict:
    """The last value of each key; versions must count up from 0 without a gap."""
    state = {} if into is None else into
    for record in records:
        version = state[record.key][0] + 1 if record.key in state else 0
        assert record.version == version
        assert record.place.at == f"line {record.key}"
        state[record.key] = (version, record.value)
    return state


def held(state) -> dict:
    return {key: value for key, (_, value) in state.items() if value is not None}


def expected(lines) -> dict:
    return {str(n): line for n, line in enumerate(lines, 1) if line.strip()}


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=8))
def test_any_split_into_appends_gives_what_reading_at_once_gives(content, cuts):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        edges = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
        path.touch()
        source, records = lines_of(path), []
        for start, end in pairwise(edges):
            with path.open("ab") as file:
                file.write(content[start:end])
            records += source.poll()
        assert records == lines_of(path).poll()
        assert held(fold(records)) == expected(content.split(b"\n")[:-1])
        assert source.partial == bool(content.split(b"\n")[-1])
        assert source.notices == ()


@settings(deadline=None, max_examples=80)
@given(st.lists(LINES, min_size=1, max_size=5), st.booleans())
def test_rewrites_fold_to_the_content_the_file_has_now(contents, by_rename):
    with tempfile.TemporaryDirectory() as folder:
        path, state = Path(folder) / "log.jsonl", {}
        path.touch()
        source = lines_of(path)
        for lines in contents:
            target = path.with_suffix(".tmp") if by_rename else path
            target.write_bytes(b"".join(line + b"\n" for line in lines))
            target.replace(path)
            fold(source.poll() + source.poll(), state)
            assert held(state) == expected(lines)


def test_only_the_line_that_changed_comes_again(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"one\ntwo\nthree\n")
    source = lines_of(path)
    assert [(r.key, r.value, r.version, r.place.log) for r in source.poll()] == [
        ("1", b"one", 0, 2),
        ("2", b"two", 0, 2),
        ("3", b"three", 0, 2),
    ]
    path.write_bytes(b"one\nTWO\nthree\nfour\n")
    assert [(r.key, r.value, r.version) for r in source.poll()] == [("2", b"TWO", 1), ("4", b"four", 0)]
    assert source.notices == ("log.jsonl: rewritten in place (1 times), 1 lines changed, 0 gone",)
    assert source.poll() == []


def test_a_change_far_from_both_ends_is_noticed_by_the_time_of_change(tmp_path):
    path = tmp_path / "log.jsonl"
    filler = b"x" * MIDDLE + b"\n"
    path.write_bytes(filler + b"before\n" + filler)
    source = lines_of(path)
    drain(source)
    path.write_bytes(filler + b"beyond\n" + filler)
    os.utime(path, ns=(1, 1))
    assert [(r.key, r.value, r.version) for r in drain(source)] == [("2", b"beyond", 1)]


@pytest.mark.parametrize("first", [True, False])
def test_a_change_near_either_end_is_noticed_beside_an_append(tmp_path, first):
    path = tmp_path / "log.jsonl"
    lines = [b"before", b"x" * MIDDLE, b"before"]
    path.write_bytes(b"\n".join(lines) + b"\n")
    source = lines_of(path)
    drain(source)
    lines[0 if first else 2] = b"beyond"
    path.write_bytes(b"\n".join(lines) + b"\nappended\n")
    assert [(r.value, r.version) for r in drain(source)] == [(b"beyond", 1), (b"appended", 0)]


def test_a_touched_file_is_no_rewrite(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"one\n")
    source = lines_of(path)
    source.poll()
    os.utime(path, ns=(1, 1))
    assert source.poll() == []
    assert source.notices == ()


def test_a_truncated_file_gives_up_its_last_lines(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"one\ntwo\nthree\n")
    source = lines_of(path)
    source.poll()
    os.truncate(path, 4)
    assert [(r.key, r.value, r.version) for r in source.poll()] == [("2", None, 1), ("3", None, 1)]
    assert source.notices == ("log.jsonl: truncated (1 times), 0 lines changed, 2 gone",)
    with path.open("ab") as file:
        file.write(b"again\n")
    assert [(r.key, r.value, r.version) for r in source.poll()] == [("2", b"again", 2)]


@pytest.mark.parametrize("midway", [b"", b"on"])
def test_a_file_in_the_middle_of_a_rewrite_has_lost_nothing_yet(tmp_path, midway):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"one\ntwo\n")
    source = lines_of(path)
    source.poll()
    path.write_bytes(midway)
    assert source.poll() == []
    assert source.partial
    path.write_bytes(b"one\nTWO\n")
    assert [(r.key, r.value, r.version) for r in source.poll()] == [("2", b"TWO", 1)]
    assert not source.partial


@pytest.mark.parametrize("left", [b"", b"on"])
def test_lines_that_stay_away_are_gone(tmp_path, left):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"one\ntwo\n")
    source = lines_of(path)
    source.poll()
    path.write_bytes(left)
    os.utime(path, ns=(1, 1))
    assert source.poll() == []
    assert [(r.key, r.value) for r in source.poll()] == [("1", None), ("2", None)]


def test_a_file_replaced_by_rename_is_read_again(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"one\ntwo\n")
    source = lines_of(path)
    source.poll()
    (tmp_path / "new").write_bytes(b"one\n2\n")
    (tmp_path / "new").replace(path)
    assert [(r.key, r.value, r.version) for r in source.poll()] == [("2", b"2", 1)]
    assert "replaced by another file" in source.notices[0]


def test_half_a_line_is_held_back_until_its_newline_comes(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a":1}\n{"b"')
    source = lines_of(path)
    assert [r.value for r in source.poll()] == [b'{"a":1}']
    assert source.partial
    with path.open("ab") as file:
        file.write(b":2")
    assert source.poll() == []
    assert source.partial
    with path.open("ab") as file:
        file.write(b"}\n")
    assert [r.value for r in source.poll()] == [b'{"b":2}']
    assert not source.partial


def test_half_a_line_may_be_cut_off_and_written_anew(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"one\nhalf a line")
    source = lines_of(path)
    source.poll()
    os.truncate(path, 4)
    with path.open("ab") as file:
        file.write(b"two\n3")
    assert [(r.key, r.value, r.version) for r in source.poll()] == [("2", b"two", 0)]


def test_nothing_but_a_newline_ends_a_line(tmp_path):
    path = tmp_path / "log.jsonl"
    line = "a\u2028b\u2029c\u0085d\r\x0b\x0c\x1c\0e\r".encode()
    path.write_bytes(line + b"\n\n \r\n" + line + b"\n")
    assert [(r.key, r.value) for r in lines_of(path).poll()] == [("1", line), ("4", line)]


def test_a_line_longer_than_a_poll_and_the_rest_after_it(tmp_path):
    path = tmp_path / "log.jsonl"
    long = b"x" * (jsonl.POLL_BYTES + jsonl.CHUNK + 7)
    path.write_bytes(long + b"\nshort\n")
    source = lines_of(path)
    assert [r.value for r in source.poll()] == [long]
    assert source.more
    assert [(r.key, r.value) for r in source.poll()] == [("2", b"short")]
    assert not source.more


def test_a_rewrite_that_takes_several_polls_still_tells_only_changes(tmp_path):
    path = tmp_path / "log.jsonl"
    long = b"x" * jsonl.POLL_BYTES + b"\n"
    path.write_bytes(b"one\n" + long + b"three\n" + long + b"five\n")
    source = lines_of(path)
    state = fold(drain(source))
    path.write_bytes(b"ONE\n" + long + b"3\n" + long)
    found = drain(source)
    assert [(r.key, r.value) for r in found] == [("1", b"ONE"), ("3", b"3"), ("5", None)]
    fold(found, state)
    source.close()


def test_an_unchanged_file_is_not_opened(tmp_path, monkeypatch):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"one\n")
    os.utime(path, ns=(1, 1))
    source = lines_of(path)
    source.poll()
    monkeypatch.setattr(jsonl.io, "FileIO", None)
    assert source.poll() == []


def test_an_empty_file_has_no_records(tmp_path):
    (tmp_path / "log.jsonl").touch()
    source = lines_of(tmp_path / "log.jsonl")
    assert source.poll() == []
    assert not source.partial


def test_a_missing_file_is_an_error_or_waited_for(tmp_path):
    path = tmp_path / "later" / "log.jsonl"
    with pytest.raises(CtxscopeError, match=r"log\.jsonl: found no such file, expected the agent's session log"):
        lines_of(path).poll()
    source = lines_of(path, optional=True)
    assert source.poll() == []
    path.parent.mkdir()
    path.write_bytes(b"one\n")
    assert [r.value for r in source.poll()] == [b"one"]


def test_a_folder_is_no_log(tmp_path):
    with pytest.raises(CtxscopeError, match="found a folder, expected a file"):
        lines_of(tmp_path).poll()


def test_a_log_deleted_later_is_a_notice_and_found_when_it_is_back(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"one\n")
    source = lines_of(path)
    source.poll()
    path.rename(tmp_path / "away")
    assert source.poll() == []
    assert source.notices == ("log.jsonl: the file is gone",)
    (tmp_path / "away").rename(path)
    assert source.poll() == []
    assert source.notices == ()


def test_a_whole_file_is_one_record_per_content(tmp_path):
    path = tmp_path / "settings.json"
    [source] = open_readers([SourceSpec("settings", path, "whole", optional=True)])
    assert source.poll() == []
    path.write_bytes(b"{}")
    assert [(r.key, r.place.at, r.value, r.version) for r in source.poll()] == [("file", "file", b"{}", 0)]
    path.write_bytes(b"{}")
    assert source.poll() == []
    path.write_bytes(b"[]")
    assert [(r.value, r.version) for r in source.poll()] == [(b"[]", 1)]
    path.unlink()
    assert [(r.value, r.version) for r in source.poll()] == [(None, 2)]
    assert source.poll() == []
    path.write_bytes(b"[]")
    assert [(r.value, r.version) for r in source.poll()] == [(b"[]", 3)]


def test_a_required_whole_file_must_be_there(tmp_path):
    with pytest.raises(CtxscopeError, match="no such file"):
        reader(SourceSpec("settings", tmp_path / "settings.json", "whole")).poll()


def test_a_whole_object_without_its_newline_is_taken_once(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":2}')
    source = lines_of(path)
    state = fold(drain(source))
    assert held(state) == {"1": b'{"a":1}', "2": b'{"b":2}'}
    assert not source.partial
    assert source.poll() == []
    with path.open("ab") as file:
        file.write(b'\n{"c":')
    assert fold(drain(source), state).keys() == {"1", "2"}
    assert source.partial
    with path.open("ab") as file:
        file.write(b"3}")
    assert held(fold(drain(source), state))["3"] == b'{"c":3}'
    assert source.notices == ()


def test_a_last_line_that_goes_on_after_all_is_told_again(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":2}')
    source = lines_of(path)
    state = fold(drain(source))
    with path.open("ab") as file:
        file.write(b" \n")
    assert held(fold(drain(source), state)) == {"1": b'{"a":1}', "2": b'{"b":2} '}
    path.write_bytes(b'{"a":1}\n{"b"')
    fold(drain(source) + drain(source) + drain(source), state)
    assert source.partial
    path.write_bytes(b'{"a":1}\n')
    assert held(fold(drain(source) + drain(source), state)) == {"1": b'{"a":1}'}


@pytest.mark.parametrize("end", [b"{", b'{"a":', b"[1]", b'"text"', b"{1}", b'{"a":1'])
def test_what_is_no_whole_object_waits_for_its_newline(tmp_path, end):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"{}\n" + end)
    source = lines_of(path)
    assert held(fold(drain(source))) == {"1": b"{}"}
    assert source.partial
