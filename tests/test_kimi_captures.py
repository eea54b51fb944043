"""Kimi CLI's recorded session and the sample: every call is rebuilt; one letter changed in a file shows at that letter."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import ctxscope
from ctxscope.agents import kimi
from ctxscope.model import CallView, Marker
from tests.conftest import CAPTURES, needs_captures
from tests.kimi_cases import FOLDERS, SAMPLE, contexts, copied, opened
from tests.session_cases import look

LISTED = [item.path for item in kimi.learnable]

each_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


def views(folder: Path) -> dict[int, CallView]:
    inspection = ctxscope.open(folder / "log", recording=str(folder / "wire"))
    found = {c.exchange.n: inspection.view(c.n) for c in inspection.snapshot.calls if c.exchange}
    inspection.close()
    return found


@each_folder
def test_every_call_is_equal_the_request_for_a_summary_too(folder: Path):
    found = views(folder)
    assert found
    assert {n: v.call.rebuilt.state for n, v in found.items() if v.call.rebuilt.state != "equal"} == {}
    assert {v.call.rebuilt.scope for v in found.values()} == {"body"}
    assert [v.served.data for v in found.values()] == [b"".join(p.data for p in v.pieces) for v in found.values()]


@each_folder
def test_only_what_no_row_holds_is_borrowed(folder: Path):
    for view in views(folder).values():
        borrowed = {p.path for p in view.pieces if p.provenance in ("learned", "echoed")}
        assert {p for p in borrowed if not any(item.covers(p) for item in kimi.learnable)} == set()
        messages = [p for p in view.pieces if p.path.startswith("/messages")]
        assert bool(messages) == (view.call.kind == "compaction")
        assert {p.provenance for p in view.pieces if p.place} == {"logged"}
    first, *later = [v for v in views(folder).values() if v.call.kind == "main"]
    assert {p.provenance for p in first.pieces if p.path} == {"echoed"}
    assert {p.provenance for v in later for p in v.pieces if p.path} == {"learned"}


@pytest.mark.parametrize("role", ["_system_prompt", "user", "assistant", "tool"])
@each_folder
def test_one_letter_changed_in_a_row_shows_at_that_letter(folder: Path, role: str, tmp_path: Path):
    case = copied(folder, tmp_path / "case")
    chance = random.Random(f"{folder.name} {role}")
    path = contexts(case / "log")[0]
    lines = path.read_bytes().split(b"\n")
    at = next(i for i, line in enumerate(lines) if line and json.loads(line)["role"] == role and _text(line))
    text = _text(lines[at])
    spot = chance.choice([i for i, c in enumerate(text) if c.isascii() and c.isalpha()])
    old, new = text[spot].encode(), b"q" if text[spot] != "q" else b"z"
    spelled = json.dumps(text, ensure_ascii=role.startswith("_"))[1:-1].encode()
    other = json.dumps(f"{text[:spot]}{new.decode()}{text[spot + 1 :]}", ensure_ascii=role.startswith("_"))[
        1:-1
    ].encode()
    assert lines[at].count(spelled) == 1
    lines[at] = lines[at].replace(spelled, other)
    path.write_bytes(b"\n".join(lines))
    before, after = look(folder / "log", folder / "wire"), look(case / "log", case / "wire")
    assert before.keys() == after.keys()
    changed = {n for n, call in after.items() if call.rebuilt.state == "differs"}
    assert changed
    for n in changed:
        found = after[n].rebuilt.first_difference
        assert found is not None
        served = (case / "wire" / f"{n:04d}.req").read_bytes()
        assert served[found.raw_offset : found.raw_offset + 1] == old
        assert found.path.startswith("/messages")
    main = sorted(n for n, call in after.items() if call.kind == "main" and call.entry.log == 2)
    assert changed - {n for n in changed if after[n].kind == "compaction"} == {n for n in main if n > min(changed) - 1}


def _text(line: bytes) -> str:
    """The last text of a row that has letters."""
    content = json.loads(line)["content"]
    parts = [content] if isinstance(content, str) else [p.get("text") or p.get("think") or "" for p in content]
    return next((p for p in reversed(parts) if any(c.isascii() and c.isalpha() for c in p)), "")


@each_folder
def test_usage_and_ids_come_from_the_events(folder: Path):
    (ref,) = kimi.discover(folder / "log")
    points = [p for p in kimi.requests(opened(ref).log) if p.kind == "main"]
    events = [json.loads(x) for x in ref.paths[1].read_bytes().splitlines()]
    told = [e["message"]["payload"] for e in events if e.get("message", {}).get("type") == "StatusUpdate"]
    told = [t for t in told if t["message_id"]]
    assert [t["message_id"] in p.ids for t, p in zip(told, points, strict=True)] == [True] * len(points)
    sums = [sum(getattr(p.stored_usage, k) or 0 for p in points) for k in ("input", "cache_read", "output")]
    assert sums == [sum(t["token_usage"][k] for t in told) for k in ("input_other", "input_cache_read", "output")]
    assert all(p.time for p in points)


@needs_captures
def test_the_recorded_compaction_is_told():
    (ref,) = kimi.discover(CAPTURES / "kimi" / "kimi_tool3" / "log")
    log = opened(ref).log
    (marker,) = kimi.markers(log)
    assert isinstance(marker, Marker)
    points = kimi.requests(log)
    assert (marker.kind, marker.before_tokens, marker.after_tokens) == ("compaction", 13033, 70)
    assert marker.point == points[8].key
    assert [p.turn for p in points] == [1, 1, 1, 2, 2, 3, 3, 3, 4, 4]
    # what the agent decided by at the last call: the size after its answer before, and the texts since
    (estimate,) = kimi.estimates(log, points[-1])
    since = len("<system>Command executed successfully.</system>resumed\n") // 4
    assert (estimate.tokens, estimate.charged["reported"], estimate.verified) == (12581 + since, 12581, False)
    assert kimi.config(log).window == 200_000
    assert kimi.config(log).threshold == 150_000


@needs_captures
def test_discovery_finds_the_recorded_session_and_its_files():
    home = CAPTURES / "kimi" / "kimi_tool3" / "log"
    (ref,) = kimi.discover(home)
    about = json.loads((home.parent / "case.json").read_text(encoding="utf-8"))
    assert sorted(str(p.relative_to(home.parent)) for p in ref.paths) == sorted(about["log"]["paths"])
    (listed,) = json.loads((home / ".kimi" / "kimi.json").read_text(encoding="utf-8"))["work_dirs"]
    assert ref.directory == listed["path"]
    for path in ref.paths:
        assert kimi.claims(path, path.read_bytes()[:65536]) > 0.9
        assert [r.id for r in kimi.refs(path, home)] == [ref.id]


def test_no_other_agents_file_is_claimed():
    others = [p for p in (*CAPTURES.rglob("log/**/*"), *SAMPLE.parents[1].rglob("log/**/*")) if p.is_file()]
    others = [p for p in others if "kimi" not in p.parts and ".kimi" not in p.parts]
    for path in others:
        with path.open("rb") as file:
            assert kimi.claims(path, file.read(65536)) <= 0.5, path
