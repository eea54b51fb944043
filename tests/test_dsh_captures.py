"""The harness's recorded sessions: rebuilt byte for byte, and nothing the model saw has to be taken from the wire."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import ctxscope
from ctxscope.agents import dsh
from ctxscope.model import Call, Usage
from tests.agent_cases import copied, with_lines
from tests.agent_cases import lines_of as logs_below
from tests.conftest import needs_captures
from tests.dsh_cases import CASES, about, exchanges, folder_of, grow, lines_of, log_of, reference
from tests.session_cases import covered, look, parts_of, unchanged

pytestmark = needs_captures
SEEN = {"model", "messages", "system", "tools", "thinking", "output_config", "reasoning_effort", "max_tokens"}
"""What a model is given, or its sampling depends on."""
BESIDE = {"dsh_session_log", "dsh_plugin_packages"}
"""What a client of the API cannot see the model use."""


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@pytest.mark.parametrize("name", CASES)
def test_every_exact_call_is_equal_and_keeps_its_kind(name: str) -> None:
    calls, wire = unchanged(folder_of(name)), about(name)["wire"]
    assert [n for n in about(name)["rebuild"]["exact"] if calls[n].rebuilt.state != "equal"] == []
    assert {c.rebuilt.scope for c in calls.values()} == {"body"}
    assert {c.entry is not None for c in calls.values()} == {True}
    kinds = {"main": wire["main"], "side": wire["side"], "compaction": wire["summary"]}
    assert {k: [n for n, c in calls.items() if c.kind == k] for k in kinds} == kinds


@pytest.mark.parametrize("name", CASES)
def test_all_the_model_sees_is_logged_or_punctuation(name: str) -> None:
    """The harness's own claim, measured on the wire: only a compaction's instruction, a constant of the code, is not."""
    inspection = ctxscope.open(folder_of(name))
    for call in inspection.snapshot.calls:
        view = inspection.view(call.n)
        counts = covered(view)
        assert {part for part, p in counts if p in ("learned", "echoed")} <= {
            *BESIDE,
            *(["messages"] if call.kind == "compaction" else []),
        }
        borrowed = [p for p in view.pieces if p.provenance in ("learned", "echoed") and p.path.startswith("/messages")]
        assert len(borrowed) == (call.kind == "compaction")
        assert all(p.data.startswith(b'"You are now acting as a compaction engine') for p in borrowed)
        logged = {part for part, p in counts if p == "logged"}
        present = {part for _, part in parts_of(view.served)} & SEEN - {"thinking"}
        assert logged >= present - ({"max_tokens"} if call.kind == "compaction" else set())
    inspection.close()


@pytest.mark.parametrize("name", CASES)
def test_every_text_of_a_request_stands_at_the_entry_its_bytes_name(name: str) -> None:
    inspection = ctxscope.open(folder_of(name))
    lines = lines_of(name)
    for call in inspection.snapshot.calls:
        for piece in inspection.view(call.n).pieces:
            if piece.provenance == "logged" and piece.data.startswith(b'"') and len(piece.data) > 40:
                assert piece.place is not None
                words = json.loads(piece.data)
                assert words in _strings(json.loads(lines[piece.place.number - 1]))
    inspection.close()


def _strings(value: object) -> str:
    """All strings of a value behind one another: a prompt or an answer may be several blocks of one entry."""
    if isinstance(value, str):
        return value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return "".join(map(_strings, parts))


@pytest.mark.parametrize("name", [c for c in CASES if "_v4_" in c])
def test_a_request_names_its_session_and_its_place_in_the_log(name: str) -> None:
    log = log_of(lines_of(name), reference())
    points = dsh.requests(log)
    for one in exchanges(name):
        named = dsh.named(one.headers, one.body)
        (where,) = named.ids
        assert named.session == json.loads(lines_of(name)[0])["id"]
        kind = dsh.classify(one.body)
        assert [p.kind for p in points if where in p.ids and p.kind == kind] == [kind]


@pytest.mark.parametrize("name", [c for c in CASES if "_v4_" not in c])
def test_a_request_that_carries_no_log_names_its_session_alone(name: str) -> None:
    for one in exchanges(name):
        assert dsh.named(one.headers, one.body) == dsh.Named("ctx-1")


@pytest.mark.parametrize("name", CASES)
def test_usage_is_what_was_reported_in_disjoint_parts(name: str) -> None:
    """What the log keeps of each answer is what its reply reported; reasoning is a part of the output."""
    log = log_of(lines_of(name))
    stored = {p.key: p.stored_usage for p in dsh.requests(log)}
    inspection = ctxscope.open(folder_of(name))
    for call in inspection.snapshot.calls:
        kept = stored[call.point]
        if kept is not None:
            assert call.usage is not None
            assert (kept.reported, kept.output) == (call.usage.reported, call.usage.output)
        else:
            assert call.kind == "side" or call.reply.state == "missing"
    inspection.close()


def test_reasoning_is_counted_where_a_format_has_it() -> None:
    log = log_of(lines_of("dsh_v0_tool3_resume"))
    assert dsh.requests(log)[0].stored_usage == Usage(1159, 0, None, 18, 13)


@pytest.mark.parametrize("name", CASES)
def test_a_cut_answer_says_so(name: str) -> None:
    wanted = [e["n"] for e in about(name)["events"] if e["type"] == "truncated_answer"]
    log = log_of(lines_of(name))
    calls = unchanged(folder_of(name))
    stops = {p.key: p.stop for p in dsh.requests(log)}
    cut = [n for n, c in calls.items() if (stop := stops[c.point]) is not None and stop.state == "truncated"]
    assert cut == wanted


@pytest.mark.parametrize("name", CASES)
def test_markers_stand_where_the_case_has_them(name: str) -> None:
    inspection = ctxscope.open(folder_of(name))
    found = Counter((m.kind, m.call) for m in inspection.snapshot.markers)
    inspection.close()
    told = {"prune", "compaction", "resume"}
    assert found == Counter((e["type"], e["n"]) for e in about(name)["events"] if e["type"] in told)


def test_the_estimate_is_the_harness_s_own() -> None:
    """Its log counts what a prune and a compaction replaced, and what a checkpoint comes to."""
    inspection = ctxscope.open(folder_of("dsh_v4_compact"))
    inspection.count()
    prune, compaction = (c.told for c in inspection.snapshot.compactions)
    notices = inspection.snapshot.notices
    inspection.close()
    rows = [json.loads(line) for line in lines_of("dsh_v4_compact") if line]
    counted = [r["data"]["shadowedTokenCount"] for r in rows if "shadowedTokenCount" in r.get("data", {})]
    checkpoint = 138
    assert any(f"({checkpoint} estimated framed tokens >= {checkpoint})" in n for n in notices)
    assert (compaction.marker.before_tokens, compaction.marker.after_tokens) == (None, None)  # it tells neither
    assert compaction.reckoned_before - compaction.reckoned_after == counted[1] - checkpoint
    short = prune.reckoned_before - prune.reckoned_after
    assert 0 < short < counted[0]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["user/message", "assistant/message", "tool/result", "system/message"])
def test_one_letter_changed_in_the_log_shows_at_that_letter(name: str, kind: str, tmp_path: Path) -> None:
    rng = random.Random(f"{name} {kind}")
    rows = [json.loads(line) if line else {} for line in lines_of(name)]
    found = [(i, t) for i, r in enumerate(rows) if r.get("type") == kind for t in _texts(r) if _letters(t)]
    found = [(i, t) for i, t in found if _holding(name, i + 1)]
    if not found:
        pytest.skip(f"no {kind} with a text that was sent")
    at, text = rng.choice(found)
    spot = rng.choice(_letters(text))
    letter = rng.choice([c for c in "abcdefghijklmnopqrstuvwxyz" if c != text[spot]])
    other = text[:spot] + letter + text[spot + 1 :]
    log = copied(folder_of(name), tmp_path)
    (path,) = logs_below(log)
    old, new = (json.dumps(t, ensure_ascii=False).encode() for t in (text, other))
    with_lines(path, lambda lines: [line.replace(old, new, 1) if i == at else line for i, line in enumerate(lines)])
    before, after = unchanged(folder_of(name)), look(log, folder_of(name) / "wire")
    holding = _holding(name, at + 1)
    assert {n for n, c in after.items() if c.rebuilt.state == "differs"} == holding
    for n in holding:
        _differs_at(after[n], before[n], exchanges(name)[n - 1].body.data, (text[spot].encode(), letter.encode()))


def _texts(row: dict) -> list[str]:
    data = row["data"]
    message = data if row["type"] == "user/message" else data["message"]
    blocks = [b for b in message["content"] if isinstance(b, dict)]
    inner = [c for b in blocks if b["type"] == "tool-result" for c in b["content"]]
    return [b["text"] for b in (*blocks, *inner) if isinstance(b.get("text"), str)]


def _letters(text: str) -> list[int]:
    return [i for i, c in enumerate(text) if c.isascii() and c.isalpha() and c.islower()]


def _holding(name: str, line: int) -> set[int]:
    """Calls that carry an entry: as a message, in the log sent along, or as the prompt."""
    return {n for n, lines in _carried(name).items() if line in lines}


@cache
def _carried(name: str) -> dict[int, set[int]]:
    inspection = ctxscope.open(folder_of(name))
    found = {
        c.exchange.n: {p.place.number for p in inspection.view(c.n).pieces if p.place is not None}
        for c in inspection.snapshot.calls
    }
    inspection.close()
    return found


def _differs_at(call: Call, before: Call, served: bytes, letters: tuple[bytes, bytes]) -> None:
    difference = call.rebuilt.first_difference
    assert difference is not None
    assert difference.raw_offset == difference.other_offset
    assert served[difference.raw_offset : difference.raw_offset + 1] == letters[0]
    assert difference.path.startswith(("/messages/", "/system", "/dsh_session_log"))
    assert call.joined_by is not None
    assert before.rebuilt.state == "equal"


@pytest.mark.parametrize("name", CASES)
def test_any_prefix_reads_without_error_and_the_whole_says_the_same(name: str) -> None:
    grown, whole = log_of(()), log_of(lines_of(name))
    for number, line in enumerate(lines_of(name), 1):
        grow(grown, line, number)
        for point in dsh.requests(grown)[-1:]:
            dsh.rebuild(grown, point, dsh.config(grown), dsh.Learned())
        dsh.markers(grown)
        dsh.notices(grown)
    ours, theirs = dsh.requests(grown), dsh.requests(whole)
    assert [_told(p) for p in ours] == [_told(p) for p in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert (
            dsh.rebuild(grown, mine, dsh.config(grown), dsh.Learned()).data
            == dsh.rebuild(whole, other, dsh.config(whole), dsh.Learned()).data
        )
    assert dsh.markers(grown) == dsh.markers(whole)


def _told(point: dsh.Point) -> tuple:
    return point.key, point.kind, point.lineage, point.turn, point.ids, point.place, point.stop, point.stored_usage


@pytest.mark.parametrize("name", [c for c in CASES if "_v4_" in c])
def test_when_a_request_left_the_log_held_all_it_says(name: str) -> None:
    """Live: as soon as the log stands where a body says it stood, a request with that place waits to be joined."""
    log = log_of(())
    rows = [json.loads(line) if line else {} for line in lines_of(name)]
    asked = {(dsh.classify(e.body), next(iter(dsh.named(e.headers, e.body).ids))) for e in exchanges(name)}
    for number, (line, row) in enumerate(zip(lines_of(name), rows, strict=True), 1):
        grow(log, line, number)
        for kind, where in [a for a in asked if a[1] == f"seq:{row.get('seq')}"]:
            assert [p.answer for p in dsh.requests(log) if where in p.ids and p.kind == kind] == [None]
