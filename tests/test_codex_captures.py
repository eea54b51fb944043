"""Codex's recorded sessions: what must rebuild is equal, and one letter changed in the log shows where it was sent."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ctxscope import agents
from ctxscope.agents import codex
from ctxscope.model import Learned
from tests.codex_cases import (
    CASES,
    about,
    body_of,
    copy_of,
    exchanges,
    lines_of,
    log_of,
    read_here,
    rebuilt,
    seen,
    states,
)
from tests.conftest import CAPTURES, needs_captures
from tests.session_cases import covered

pytestmark = needs_captures
IDS = [p.name for p in CASES]


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    """Tokens are not asked about here."""
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_every_exact_call_is_equal(case: Path):
    _, views = seen(case)
    exact = [n for n in about(case)["rebuild"]["exact"] if read_here(case, n)]
    assert len(exact) >= len(about(case)["wire"]["main"])
    assert [n for n in exact if views[n].call.rebuilt.state != "equal"] == []
    for n in exact:
        view = views[n]
        found = covered(view)
        assert sum(found.values()) == len(view.served.data)
        assert {v for _, v in found} <= {"logged", "derived", "learned", "echoed"}
        # of the input nothing but the base item's id and a compaction's prompt comes from elsewhere
        borrowed = {
            p.path for p in view.pieces if p.provenance in ("learned", "echoed") and p.path.startswith("/input")
        }
        summary = n in about(case)["wire"]["summary"]
        last = f"/input/{len(json.loads(view.served.data)['input']) - 1}/content/0/text"
        assert borrowed <= {"/input/0/id", *([last] if summary else [])}


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_only_what_is_listed_is_borrowed_and_only_the_first_of_a_kind_echoes_it(case: Path):
    snapshot, views = seen(case)
    kinds: set[str] = set()
    for call in snapshot.calls:
        if call.point is None or call.exchange is None:
            continue
        view = views[call.exchange.n]
        for piece in view.pieces:
            if piece.provenance in ("learned", "echoed"):
                assert any(item.covers(piece.path) for item in codex.learnable), piece.path
                changing = piece.path.startswith(("/client_metadata", "/input"))
                assert changing or piece.provenance == ("learned" if call.kind in kinds else "echoed")
        kinds.add(call.kind)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_what_was_delivered_is_what_was_kept(case: Path):
    snapshot, _ = seen(case)
    assert {c.reply.state for c in snapshot.calls if c.point and c.exchange} == {"equal"}
    assert {c.reply.echo for c in snapshot.calls} <= {"equal", None}


def test_a_request_to_compact_is_rebuilt_whole():
    """Remote compaction by 0.98: model, input and instructions, all of them logged."""
    case = CAPTURES / "codex" / "cx98_compact_remote"
    log = log_of(lines_of(case))
    points = [p for p in codex.requests(log) if p.kind == "compaction"]
    summaries = about(case)["wire"]["summary"]
    assert len(points) == len(summaries) == 2
    served = {p.key: (case / f"wire/{n:04d}.req").read_bytes() for p, n in zip(points, summaries, strict=True)}
    for key, (_, data, found) in rebuilt(log, served).items():
        assert data == served[key]
        assert {p.provenance for p in found.pieces} == {"logged", "derived"}


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_markers_stand_before_the_calls_that_show_them(case: Path):
    snapshot, _ = seen(case)
    number = {c.n: c.exchange.n for c in snapshot.calls if c.exchange}
    marked = {(m.kind, number[m.call]) for m in snapshot.markers if m.call in number}
    events = {(e["type"], e["n"]) for e in about(case)["events"] if e["type"] in ("resume", "compaction")}
    summaries = about(case)["wire"]["summary"]
    # a process whose first call is a compaction shows there, not at the call after it
    moved = {(k, n - 1) if k == "resume" and n - 1 in summaries else (k, n) for k, n in events}
    assert marked == {(k, n) for k, n in moved if read_here(case, n)}


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_usage_comes_to_the_total_of_the_last_count(case: Path):
    counts = [json.loads(x)["payload"] for x in lines_of(case) if b'"token_count"' in x]
    total = [p["info"]["total_token_usage"] for p in counts if p["info"]][-1]
    used = [p.stored_usage for p in codex.requests(log_of(lines_of(case))) if p.stored_usage]
    assert sum(u.reported for u in used) == total["input_tokens"]
    assert sum(u.cache_read for u in used) == total["cached_input_tokens"]
    assert sum(u.output for u in used) == total["output_tokens"]


@pytest.mark.parametrize("case", [p for p in CASES if "98_compact" in p.name], ids=lambda p: p.name)
def test_the_estimate_is_the_one_logged_after_a_compaction(case: Path):
    log = log_of(lines_of(case))
    points = list(codex.requests(log))
    after = {m.point: m.after_tokens for m in codex.markers(log) if m.kind == "compaction"}
    assert len(after) == 2
    inside = next(p for p in points if p.key in after)
    assert codex.estimates(log, inside)[0].tokens == after[inside.key]  # in the turn: nothing came between


# --- the control -----------------------------------------------------------------------------------------------------


def text_at(line: bytes, role: str) -> tuple[dict[str, Any], dict[str, Any], str] | None:
    """A line, the object in it that holds a text of that role, and under which key."""
    row = json.loads(line)
    item = row["payload"]
    if row["type"] != "response_item":
        return None
    if role == "tool":
        return (row, item, "output") if item["type"].endswith("_output") and isinstance(item["output"], str) else None
    if item.get("role") != role or item["type"] != "message":
        return None
    part = item["content"][0]
    return (row, part, "text") if "text" in part else None


@pytest.mark.parametrize("role", ["user", "assistant", "tool", "developer"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_one_letter_shows_in_the_calls_behind_it_and_nowhere_else(case: Path, role: str, tmp_path: Path):
    chance = random.Random(f"{case.name} {role}")
    lines, log = list(lines_of(case)), log_of(lines_of(case))
    sent = {e.place.number for p in codex.requests(log) for e in p.context}
    fit = [n for n, line in enumerate(lines) if n + 1 in sent and text_at(line, role)]
    number = chance.choice(fit)
    row, part, key = text_at(lines[number], role)
    text = part[key]
    at = chance.choice([i for i, c in enumerate(text) if c.isascii() and c.isalpha()])
    new = chance.choice([c for c in "abcdefghijklmnopqrstuvwxyz" if c != text[at]])
    part[key] = text[:at] + new + text[at + 1 :]
    lines[number] = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()
    found = states(copy_of(case, tmp_path / "copy", lines))
    points = list(codex.requests(log))
    holding = {p.key for p in points if any(e.place.number == number + 1 for e in p.context)}
    served = {e["n"]: p.key for e, p in zip(exchanges(case), points, strict=True)}
    assert holding
    for n in about(case)["rebuild"]["exact"]:
        if not read_here(case, n):
            continue
        assert (found[n].state == "differs") == (served[n] in holding), n
        if found[n].state == "differs":
            difference = found[n].first_difference
            data = (case / f"wire/{n:04d}.req").read_bytes()
            assert data[difference.raw_offset : difference.raw_offset + 1] == text[at].encode()
            assert difference.path.startswith("/input/")


# --- growth ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_log_read_line_by_line_says_what_it_says_at_once(case: Path):
    whole, grown = log_of(lines_of(case)), log_of(())
    for entry in whole.entries:
        grown.add(entry)
        codex.markers(grown)
        codex.notices(grown)
        for point in codex.requests(grown)[-2:]:
            codex.estimates(grown, point)
            codex.rebuild(grown, point, codex.config(grown), Learned())

    def told(log: agents.Log) -> list[Any]:
        points = [
            (p.key, p.kind, p.turn, p.ids, p.stored_usage, p.stop, p.blocks, len(p.context))
            for p in codex.requests(log)
        ]
        bodies = [codex.rebuild(log, p, codex.config(log), Learned()).data for p in codex.requests(log)]
        return [points, bodies, list(codex.markers(log)), codex.notices(log), codex.config(log)]

    assert told(grown) == told(whole)


# --- finding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_home_has_exactly_its_sessions(case: Path):
    found = list(codex.discover(case / "log"))
    assert [str(p.relative_to(case)) for r in found for p in r.paths] == about(case)["log"]["paths"]
    assert found[0].id in found[0].paths[0].name
    assert found[0].directory
    assert list(codex.family(found[0])) == []


def test_no_other_agents_file_is_claimed():
    claimed: Counter[str] = Counter()
    for path in sorted(CAPTURES.rglob("*")):
        if path.is_file() and path.stat().st_size:
            with path.open("rb") as file:
                claim = codex.claims(path, file.read(65536))
            mine = path.name.startswith(("rollout-", "codex_"))
            assert (claim > 0.5) == (mine and path.suffix == ".jsonl"), path
            claimed[path.parent.name] += claim > 0.5
    assert claimed["public_logs"] == 3


@pytest.mark.parametrize("path", sorted((CAPTURES / "public_logs").glob("codex_*")), ids=lambda p: p.name)
def test_a_public_log_opens(path: Path):
    snapshot, _ = seen(path)
    assert snapshot.sessions[0].agent == "codex"
    answers = sum(json.loads(x)["type"] in ("response_item", "compacted") for x in path.read_bytes().splitlines())
    assert len(snapshot.calls) <= answers
    kinds = Counter(json.loads(x)["type"] for x in path.read_bytes().splitlines())
    assert sum(m.kind == "compaction" for m in snapshot.markers) == kinds["compacted"]


# --- drift -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_what_is_not_known_is_counted_and_changes_nothing(case: Path, tmp_path: Path):
    lines = []
    for number, line in enumerate(lines_of(case)):
        row = json.loads(line)
        lines.append(json.dumps({**dict(reversed(row.items())), "shard": number}, ensure_ascii=False).encode())
        if number % 7 == 3:
            lines.append(
                json.dumps({"type": "night_watch", "timestamp": row["timestamp"], "payload": {"n": number}}).encode()
            )
    copy = copy_of(case, tmp_path / "copy", lines)
    snapshot, views = seen(copy)
    assert [
        n for n in about(case)["rebuild"]["exact"] if read_here(case, n) and views[n].call.rebuilt.state != "equal"
    ] == []
    assert any("night_watch" in n for n in snapshot.notices)
    assert any("shard" in n for n in snapshot.notices)


def test_a_newer_version_is_named(tmp_path: Path):
    case = CAPTURES / "codex" / "cx171_a"
    lines = [line.replace(b'"cli_version":"0.171.0"', b'"cli_version":"0.404.1"') for line in lines_of(case)]
    snapshot, views = seen(copy_of(case, tmp_path / "copy", lines))
    assert any("0.404.1" in n and "0.171.0" in n for n in snapshot.notices)
    assert {v.call.rebuilt.state for v in views.values()} == {"equal"}


def test_order_in_what_is_logged_is_content():
    case = CAPTURES / "codex" / "cx171_a"
    lines = list(lines_of(case))
    number = next(n for n, line in enumerate(lines) if b'"function_call"' in line and b'"response_item"' in line)
    row = json.loads(lines[number])
    row["payload"] = dict(reversed(row["payload"].items()))
    lines[number] = json.dumps(row, ensure_ascii=False).encode()
    log = log_of(lines)
    point = next(p for p in codex.requests(log) if any(e.place.number == number + 1 for e in p.context))
    data = (case / "wire" / "0002.req").read_bytes()
    learned = codex.learn(log, point, body_of(data), agents.at_hand())
    assert codex.rebuild(log, point, codex.config(log), learned).data != data
