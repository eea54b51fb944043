"""opencode's recorded session and the sample: calls are rebuilt; one letter changed in a row shows at that letter."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope.agents import opencode
from ctxscope.model import CallView
from tests.conftest import CAPTURES, needs_captures
from tests.opencode_cases import FOLDERS, SAMPLE, changed, copied, database, opened, refs
from tests.session_cases import look

each_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@pytest.fixture(scope="module")
def case_of(tmp_path_factory: pytest.TempPathFactory):
    return cache(lambda folder: copied(folder, tmp_path_factory.mktemp("case") / folder.name))


def views(case: Path) -> dict[int, CallView]:
    inspection = ctxscope.open(case / "log", recording=str(case / "wire"))
    found = {c.exchange.n: inspection.view(c.n) for c in inspection.snapshot.calls if c.exchange}
    inspection.close()
    return found


def exact(folder: Path) -> list[int]:
    if folder == SAMPLE:
        return [2, 3, 4, 5, 6, 7]
    about: dict[str, Any] = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    return list(about["rebuild"]["exact"])


@each_folder
def test_every_call_of_the_conversation_is_equal_as_a_whole(folder: Path, case_of: Any):
    found = views(case_of(folder))
    assert [n for n in exact(folder) if found[n].call.rebuilt.state != "equal"] == []
    for n in exact(folder):
        view = found[n]
        assert view.call.rebuilt.scope == "body"
        assert view.served is not None
        assert view.served.data == b"".join(p.data for p in view.pieces)
    others = {v.call.kind: v.call.rebuilt.state for n, v in found.items() if n not in exact(folder)}
    assert others.items() <= {"side": "not_logged"}.items()


@each_folder
def test_only_what_no_row_holds_is_borrowed(folder: Path, case_of: Any):
    found = views(case_of(folder))
    for n in exact(folder):
        borrowed = {p.path for p in found[n].pieces if p.provenance in ("learned", "echoed")}
        asks = {"/messages/1/content"} if found[n].call.kind == "compaction" else {"/tools", "/tool_choice"}
        assert borrowed == {"/messages/0", "/max_tokens", *asks}
        assert all(any(item.covers(p) for item in opencode.learnable) for p in borrowed)
        assert {p.provenance for p in found[n].pieces if p.place} == {"logged"}


TEXTS = {
    "user": ("text", "user", ("text",)),
    "assistant": ("text", "assistant", ("text",)),
    "tool": ("tool", "assistant", ("state", "output")),
}


@pytest.mark.parametrize("what", TEXTS)
@each_folder
def test_one_letter_changed_in_a_part_shows_at_that_letter(folder: Path, what: str, tmp_path: Path, case_of: Any):
    case = copied(folder, tmp_path / "case")
    chance = random.Random(f"{folder.name} {what}")
    row, data, at = _part(database(case / "log"), *TEXTS[what])
    words = _at(data, at)[at[-1]]
    spot = chance.choice([i for i, c in enumerate(words) if c.isascii() and c.isalpha()])
    old, new = words[spot], "q" if words[spot] != "q" else "z"
    _at(data, at)[at[-1]] = f"{words[:spot]}{new}{words[spot + 1 :]}"
    changed(database(case / "log"), "UPDATE part SET data = ? WHERE id = ?", json.dumps(data, ensure_ascii=False), row)
    before, after = views(case_of(folder)), look(case / "log", case / "wire")
    holding = [n for n in exact(folder) if any(e.key == f"part:{row}" for e in _context(before[n], case_of(folder)))]
    assert holding
    assert [n for n in exact(folder) if after[n].rebuilt.state == "differs"] == holding
    for n in holding:
        found = after[n].rebuilt.first_difference
        assert found is not None
        served = (case / "wire" / f"{n:04d}.req").read_bytes()
        assert served[found.raw_offset : found.raw_offset + 1] == old.encode()
        assert found.path.startswith("/messages/")


def _part(path: Path, kind: str, role: str, at: tuple[str, ...]) -> tuple[str, Any, tuple[str, ...]]:
    """The first part of a kind that has letters where asked."""
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT p.id, p.data, m.data FROM part p JOIN message m ON m.id = p.message_id ORDER BY p.id"
    )
    for name, data, message in rows.fetchall():
        found = json.loads(data)
        if found["type"] == kind and json.loads(message)["role"] == role:
            text = _at(found, at).get(at[-1])
            if isinstance(text, str) and any(c.isascii() and c.isalpha() for c in text):
                connection.close()
                return name, found, at
    raise AssertionError(kind)


def _at(data: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    for key in path[:-1]:
        data = data[key]
    return data


def _context(view: CallView, case: Path) -> Any:
    for ref in refs(case / "log"):
        for point in opencode.requests(opened(ref).log):
            if point.key == view.call.point:
                return point.context
    raise AssertionError(view.call.n)


@each_folder
def test_usage_sums_to_what_the_session_row_or_the_wire_says(folder: Path, case_of: Any):
    found = views(case_of(folder))
    points = {p.key: p for ref in refs(case_of(folder) / "log") for p in opencode.requests(opened(ref).log)}
    for n in exact(folder):
        stored, served = points[found[n].call.point].stored_usage, found[n].call.usage
        assert stored is not None
        assert (stored.reported, stored.output) == (served.reported, served.output)
        assert points[found[n].call.point].stop.state == found[n].call.stop.state


@needs_captures
def test_totals_are_those_of_the_session_row(case_of: Any):
    (ref,) = refs(case_of(CAPTURES / "opencode" / "opencode_tool3") / "log")
    log = opened(ref).log
    usage = [p.stored_usage for p in opencode.requests(log)]
    row = next(e.data for e in log.entries if e.kind == "session")
    assert sum(u.input for u in usage if u) == row["tokens_input"]
    assert sum(u.cache_read or 0 for u in usage if u) == row["tokens_cache_read"]
    assert sum(u.output for u in usage if u) == row["tokens_output"] + row["tokens_reasoning"]
    assert opencode.config(log).agent_version == "1.18.33"
    assert opencode.notices(log) == ()


@needs_captures
def test_an_export_says_what_the_database_says(case_of: Any):
    path = CAPTURES / "formats" / "opencode_export" / "export.json"
    assert opencode.claims(path, path.read_bytes()[:65536]) > 0.5
    (ref,) = opencode.refs(path, path.parent)
    (other,) = refs(case_of(CAPTURES / "opencode" / "opencode_tool3") / "log")
    assert (ref.id, ref.title, ref.directory) == (other.id, other.title, other.directory)
    ours, theirs = opened(ref).log, opened(other).log
    points = opencode.requests(ours)
    assert [p.key for p in points] == [p.key for p in opencode.requests(theirs)]
    assert [p.blocks for p in points] == [p.blocks for p in opencode.requests(theirs)]
    for one, same in zip(points, opencode.requests(theirs), strict=True):
        made = [
            opencode.rebuild(x, p, opencode.config(x), ctxscope.model.Learned())
            for x, p in ((ours, one), (theirs, same))
        ]
        assert made[0].data == made[1].data
    assert opencode.config(ours).agent_version == "1.18.33"


@needs_captures
def test_discovery_finds_the_recorded_sessions():
    for about in sorted(CAPTURES.glob("opencode/*/case.json")):
        found = [str(p.relative_to(about.parent)) for ref in opencode.discover(about.parent / "log") for p in ref.paths]
        assert found == json.loads(about.read_text(encoding="utf-8"))["log"]["paths"]


def test_no_other_agents_file_is_claimed():
    others = [p for p in (*CAPTURES.rglob("log/**/*"), *SAMPLE.parents[1].rglob("log/**/*")) if p.is_file()]
    for path in others:
        if "opencode" not in path.parts:
            with path.open("rb") as file:
                assert opencode.claims(path, file.read(65536)) <= 0.5, path
