"""pi files that are not plainly appended to: rewritten, cut, torn inside a character, forked; and calls that never came."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope.agents import Log, pi
from ctxscope.model import Place, Record
from tests.conftest import SAMPLES
from tests.pi_sessions import ANTHROPIC, CHAT, GOOGLE, RESPONSES, Script, log_of, rebuilt, text
from tests.session_growth import difference, told


def begun() -> Script:
    script = Script().begin()
    script.system(preamble="help")
    return script


def rewrite(log: Log, old: bytes, new: bytes) -> None:
    """What a reader tells of a file rewritten: lines that changed, lines that left."""
    before, after = old.splitlines(), new.splitlines()
    for number in range(1, max(len(before), len(after)) + 1):
        was, now = ((lines[number - 1] if number <= len(lines) else None) for lines in (before, after))
        if was != now:
            record = Record("session", str(number), Place(0, f"line {number}"), now, int(was is not None))
            for entry in pi.entries(record):
                log.add(entry)


def said(log: Log) -> list[tuple[Any, ...]]:
    """All that a log tells of its calls."""
    return [
        (p.key, p.place, p.lineage, p.branched_from, p.turn, p.data, p.answer is None, [e.raw for e in p.context])
        for p in pi.requests(log)
    ]


def two_turns() -> Script:
    script = begun()
    for words in ("a", "b"):
        script.user(words)
        script.assistant(text(words.upper()), total=10)
    return script


def as_version_1(script: Script) -> bytes:
    old = Script()
    old.rows = [{k: v for k, v in row.items() if k not in {"id", "parentId"}} for row in script.rows]
    old.rows[0] = {k: v for k, v in script.rows[0].items() if k != "version"}
    return old.bytes()


def test_a_file_migrated_in_place_says_what_it_says_when_read_anew() -> None:
    script = two_turns()
    first, second = as_version_1(script), script.bytes()
    log = log_of(first)
    assert [p.key for p in pi.requests(log)] == ["line:6", "line:8"]
    rewrite(log, first, second)
    cold = log_of(second)
    assert said(log) == said(cold)
    assert len(pi.requests(log)) == 2
    assert [m.kind for m in pi.markers(log)] == [m.kind for m in pi.markers(cold)] == []
    assert rebuilt(log) == rebuilt(cold)


def test_a_followed_session_migrated_in_place_says_what_one_opened_then_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXSCOPE_DATA_DIR", str(tmp_path / "data"))
    case = shutil.copytree(SAMPLES / "pi/clean_append", tmp_path / "case")
    (path,) = case.rglob("sessions/*/*.jsonl")
    whole = path.read_bytes()
    rows = [json.loads(line) for line in whole.splitlines()]
    old = [{k: v for k, v in row.items() if row is rows[0] or k not in {"id", "parentId"}} for row in rows]
    path.write_bytes(b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in old))
    followed = ctxscope.open(case)
    first = [c.point for c in followed.snapshot.calls if c.entry][:1]
    assert str(first).startswith("['line:")
    path.write_bytes(whole)
    changed = followed.poll()
    assert changed
    monkeypatch.setenv("CTXSCOPE_DATA_DIR", str(tmp_path / "nothing"))
    cold = ctxscope.open(case)
    parted = difference(told(followed.snapshot.calls), told(cold.snapshot.calls))
    states = {c.rebuilt.state for c in cold.snapshot.calls if c.exchange}
    followed.close()
    cold.close()
    assert (parted, states) == (None, {"equal"})


def test_lines_that_were_put_in_stand_where_they_stand_in_the_file() -> None:
    script = two_turns()
    old = script.bytes()
    log = log_of(old)
    lines = old.splitlines(keepends=True)
    note = b'{"type":"label","id":"note","parentId":null,"timestamp":"2026-01-01T10:00:01.000Z","label":"x"}\n'
    new = b"".join([*lines[:1], note, *lines[1:]])
    rewrite(log, old, new)
    assert said(log) == said(log_of(new))


def test_what_was_cut_off_stays_a_call_but_the_file_goes_on_without_it() -> None:
    script = two_turns()
    old = script.bytes()
    log = log_of(old)
    cut = b"".join(old.splitlines(keepends=True)[:-1])
    rewrite(log, old, cut)
    lost, waiting = pi.requests(log)[-1], pi.requests(log)[-2]
    assert (lost.answer is not None, waiting.answer, waiting.lineage) == (True, None, "main")
    script.last = script.rows[-2]["id"]
    script.assistant(text("B again"), total=10)
    new = cut + script.bytes().splitlines(keepends=True)[-1]
    rewrite(log, cut, new)
    here = [s for s in said(log) if s[0] != lost.key]
    assert here == said(log_of(new))
    assert not [m for m in pi.markers(log) if m.kind == "rewind"]


def test_a_line_cut_in_the_middle_is_no_rewinding() -> None:
    script = two_turns()
    old = script.bytes()
    log = log_of(old)
    lines = old.splitlines(keepends=True)
    rewrite(log, old, b"".join(lines[:5] + lines[6:]))
    assert [m.kind for m in pi.markers(log)] == []
    assert [e.kind for e in pi.requests(log)[-1].context] == ["system", "user", "assistant", "user"]


def test_a_parent_further_down_in_the_file_is_found_however_it_is_read() -> None:
    script = two_turns()
    lines = script.bytes().splitlines(keepends=True)
    moved = b"".join([*lines[:5], *lines[6:], lines[5]])
    log, grown = log_of(moved), log_of(b"")
    for entry in log_of(moved).entries:
        grown.add(entry)
        pi.requests(grown)
    assert said(log) == said(grown)
    assert [e.kind for e in pi.requests(log)[-1].context] == ["system", "user", "assistant", "user"]
    assert not pi.notices(log)


def test_bytes_that_are_no_utf_8_are_read_as_node_reads_them() -> None:
    script = begun()
    script.user("aTORNb CUT")
    script.assistant(text("A"))
    data = script.bytes().replace(b"TORN", b"\xff").replace(b"CUT", b"\xe2\x82 \xed\xa0\x80 \xf0\x9f\x98")
    log = log_of(data)
    assert rebuilt(log)["messages"][0]["content"][0]["text"] == "a�b � ��� �"
    assert pi.notices(log) == ("line 5: holds bytes that are no UTF-8; each is read as U+FFFD, as pi does",)
    assert pi.markers(log) == []


def test_a_missing_parent_is_said_and_is_no_rewinding() -> None:
    script = two_turns()
    lines = script.bytes().splitlines(keepends=True)
    log = log_of(b"".join([*lines[:5], b"{torn\n", *lines[6:]]))
    assert pi.markers(log) == []
    assert "line 7: its parent entry is not in the file" in pi.notices(log)
    script.user("c", after="")
    script.rows[-1]["parentId"] = None
    (marker,) = pi.markers(script.log())
    assert marker.where == "went back to the start in the session tree"


def test_a_forks_first_own_call_left_the_last_one_copied() -> None:
    script = Script(CHAT).begin()
    script.user("a")
    copied = script.assistant(text("A"))
    script.rows[0] |= {"timestamp": script.now(), "parentSession": "/x/2026_parent-id.jsonl"}
    script.user("b")
    assert [(p.data["copied"], p.branched_from) for p in pi.requests(script.log())] == [(True, None), (False, copied)]
    own = script.assistant(text("B"))
    script.user("c")
    script.assistant(text("C"))
    script.user("d", after=own)
    script.assistant(text("D"))
    assert [p.branched_from for p in pi.requests(script.log())] == [None, copied, None, own]


def test_an_input_the_session_left_behind_is_dead_and_one_at_its_end_is_not() -> None:
    script = begun()
    script.user("a")
    root = script.assistant(text("A"))
    lost = script.user("lost")
    assert [bool(p.data.get("dead")) for p in pi.requests(script.log()) if p.answer is None] == [False]
    script.user("other", after=root)
    script.assistant(text("B"))
    log = script.log()
    (dead,) = [p for p in pi.requests(log) if p.data.get("dead")]
    assert dead.key == f"after:{lost}"
    assert pi.error_line(log, dead) is None


def test_an_abort_before_the_request_and_a_failed_call_tell_why() -> None:
    script = begun()
    script.user("lost")
    script.assistant(stop="aborted", responseId=None, errorMessage="Request was aborted.")
    script.user("again")
    script.assistant(stop="error", responseId=None, errorMessage="529 overloaded")
    log = script.log()
    dead, failed = pi.requests(log)
    assert (dead.data["dead"], pi.error_line(log, dead)) == (True, "Request was aborted.")
    assert pi.error_line(log, failed) == "529 overloaded"


@pytest.mark.parametrize(
    ("target", "read", "written"),
    [(ANTHROPIC, 0, 0), (RESPONSES, 0, None), (CHAT, None, None), (GOOGLE, None, None)],
)
def test_a_zero_that_an_api_may_not_have_said_is_unknown(
    target: tuple[str, str, str], read: int | None, written: int | None
) -> None:
    script = Script(target).begin()
    script.user("a")
    script.assistant(text("A"))
    (point,) = pi.requests(script.log())
    assert point.stored_usage is not None
    found: Sequence[int | None] = (point.stored_usage.cache_read, point.stored_usage.cache_write)
    assert found == (read, written)
