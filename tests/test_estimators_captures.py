"""The estimators against every figure that an agent itself wrote down: to the token, and "verified" for just what these held."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import ctxscope
from ctxscope.agents import codex, hermes, omp, pi
from ctxscope.agents.codex import points as codex_points
from ctxscope.agents.codex.estimate import MEASURED, rule_of
from ctxscope.agents.dsh.estimate import of_message
from ctxscope.agents.hermes.estimate import charges
from ctxscope.agents.hermes.estimators import RULES
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.runs import loaded_before
from ctxscope.agents.omp.estimate import fragment
from ctxscope.agents.pi.estimate import COMPACTION
from ctxscope.agents.pi.points import tree
from ctxscope.agents.reading.charges import Charge, added
from tests import codex_cases, dsh_cases, hermes_cases, omp_cases, pi_sessions
from tests.conftest import needs_captures

pytestmark = needs_captures
Figure = tuple[int, int, Charge]
"""What the agent wrote, what is reckoned, and what that charges."""


def hermes_figures() -> Iterator[Figure]:
    """Telemetry of micro passes (the message list before and after) and of compactions (the whole next request)."""
    for name in ("d_micro_N", "c_compact_inplace_N"):
        case = hermes_cases.Case(name)
        *_, (_, _, _, log, point, _) = hermes_cases.cold(case)
        told = [e.data for e in log.entries if e.data.get("event") in {"micro", "compression_done"}]
        noted = [e for e in case.about["events"] if "tokens_before" in e]
        head = {k: hermes.estimates(log, point)[0].charged[k] for k in ("system", "tools")}
        for number, (line, (before, after)) in enumerate(zip(told, pairwise(reading_of(log).generations), strict=True)):
            last = next(p for p in reversed(hermes.requests(log)) if p.data["generation"] == number)
            lists = [[r.entry for r in rows] for rows in (before.rows, after.rows[: after.carried])]
            found = [charges(log, rows, loaded_before(log, last, {}), RULES["0.20"]) for rows in lists]
            if line["event"] == "compression_done":
                yield line["tokens"], sum(head.values()) + sum(found[1].values()), {**head, **found[1]}
                continue
            for key, charged in zip(("tokens_before", "tokens_after"), found, strict=True):
                assert line["fields"][key] == noted[number][key]
                yield line["fields"][key], sum(charged.values()), charged


def codex_figures(version: str) -> Iterator[Figure]:
    """The total that a count behind a compaction holds: the history that the compaction left."""
    rule = rule_of(f"{version}.0")
    assert rule is not None
    for case in codex_cases.CASES:
        log = codex_cases.log_of(codex_cases.lines_of(case))
        if not str(codex.config(log).agent_version).startswith(f"{version}."):
            continue
        points = {p.key: p for p in codex.requests(log)}
        for marker in codex.markers(log):
            if marker.kind != "compaction" or marker.point is None or marker.place is None:
                continue
            point, line = points[marker.point], marker.place.number
            call = codex_points.call_of(point)
            assert call is not None
            left = sum(i.place.number <= line for i in call.history.items)
            own = codex.estimates(log, point)[0]
            charged = {**call.history.charged(left, rule), "system": own.charged["system"]}
            assert own.estimator == f"Codex {version}"
            yield marker.after_tokens or 0, sum(charged.values()), charged


def omp_figures() -> Iterator[Figure]:
    """``tokensAfter`` of each compaction: the head it noted and what is left, before the next input."""
    log = omp_cases.capture("omp_d_compact_resp").log()
    answers = [p for p in omp.requests(log) if p.answer is not None]
    for entry in log.entries:
        if entry.kind == "compaction":
            point = next(p for p in answers if p.place.number > entry.place.number)
            asked = point.context[-1].data["message"]["content"][0]["text"]
            own = omp.estimates(log, point)[0]
            charged = {**own.charged, "text": own.charged["text"] - fragment(asked)}
            yield entry.data["tokensAfter"], sum(charged.values()), charged


def dsh_figures() -> Iterator[Figure]:
    """``shadowedTokenCount``: the messages that a prune or a compaction replaced."""
    rows = [json.loads(line) for line in dsh_cases.lines_of("dsh_v4_compact") if line]
    log = dsh_cases.log_of(dsh_cases.lines_of("dsh_v4_compact"))
    by_seq = {e.data.get("seq"): e for e in log.entries}
    for row in rows:
        data = row.get("data", {})
        if "shadowedTokenCount" in data:
            charged = added(of_message(by_seq[seq]) for seq in data["shadowedSeqs"])
            yield data["shadowedTokenCount"], sum(charged.values()), charged


def pi_figures() -> Iterator[Figure]:
    """``tokensBefore`` of each compaction, asked right behind an answer."""
    for name in pi_sessions.CASES:
        if "compact" in name:
            log = pi_sessions.log_of(pi_sessions.capture(name).logs[-1])
            for entry in log.entries:
                if entry.kind == "compaction":
                    node = tree(log).nodes[entry.data["parentId"]]
                    charged = node.trail.charged(node.length, COMPACTION)
                    yield entry.data["tokensBefore"], sum(charged.values()), charged


FIGURES = {
    "Hermes 0.20": (hermes_figures, 20, {"system", "tools", "text", "tool_calls", "tool_results", "bookkeeping"}),
    "Codex 0.98": (lambda: codex_figures("0.98"), 4, {"system", "text", "bookkeeping", "envelope"}),
    "Codex 0.171": (lambda: codex_figures("0.171"), 2, {"system", "text"}),
    "omp": (omp_figures, 2, {"head", "text", "thinking"}),
    "DeepSeek Harness": (dsh_figures, 2, {"text", "thinking", "tool_calls", "tool_results", "bookkeeping"}),
    "pi compaction": (pi_figures, 6, {"reported"}),
}
"""By estimator: its figures, how many there are, and the kinds that they hold."""


@pytest.mark.parametrize("name", FIGURES)
def test_the_estimator_meets_every_figure_to_the_token(name: str) -> None:
    figures, many, held = FIGURES[name]
    found = list(figures())
    assert [reckoned for _, reckoned, _ in found] == [told for told, *_ in found]
    assert len(found) == many
    assert {kind for *_, charged in found for kind, n in charged.items() if n} == held


@pytest.mark.parametrize("case", codex_cases.CASES, ids=lambda p: p.name)
def test_codex_s_own_estimate_comes_first_and_one_of_a_version_not_measured_is_not_called_verified(case: Path) -> None:
    lines = codex_cases.lines_of(case)
    log = codex_cases.log_of(lines)
    release = str(codex.config(log).agent_version).rpartition(".")[0]
    between = codex_cases.log_of(
        [line.replace(f'"cli_version":"{release}.'.encode(), b'"cli_version":"0.137.') for line in lines]
    )
    for (point, own), (other, moved) in zip(
        *([(p, codex.estimates(some, p)) for p in codex.requests(some)] for some in (log, between)), strict=True
    ):
        assert point.key == other.key
        assert [e.estimator for e in (own[0], moved[0])] == [f"Codex {release}", "Codex 0.137"]
        assert {e.verified for e in own} == {True}
        assert [e.verified for e in moved] == [False, *[True] * (len(moved) - 1)]
        charged = [tuple(e.charged.items()) for e in own]
        assert len(set(charged)) == len(charged) > 1


def test_an_estimate_of_codex_is_verified_where_the_version_it_is_named_by_was_measured() -> None:
    lines = codex_cases.lines_of(codex_cases.CASES[0])
    release = str(codex.config(codex_cases.log_of(lines)).agent_version).rpartition(".")[0].encode()
    told: dict[str, set[bool]] = {}
    for version in (*MEASURED, "0.80", "0.87", "0.105", "0.122", "0.147", "0.156", "0.163"):
        named = f'"cli_version":"{version}.'.encode()
        log = codex_cases.log_of([line.replace(b'"cli_version":"%s.' % release, named) for line in lines])
        for estimate in (e for point in codex.requests(log) for e in codex.estimates(log, point)):
            told.setdefault(estimate.estimator.removeprefix("Codex "), set()).add(estimate.verified)
    assert told == {version: {version in MEASURED} for version in told}
    assert {*MEASURED, "0.80", "0.87", "0.147"} <= told.keys()


@pytest.mark.parametrize("name", hermes_cases.CASES)
def test_each_version_says_of_a_recorded_history_what_it_charges_for(name: str) -> None:
    *_, (*_, log, point, _) = hermes_cases.cold(hermes_cases.Case(name))
    found = {e.estimator: e for e in hermes.estimates(log, point)}
    assert next(iter(found)) == ("Hermes 0.19" if name.endswith("_O") else "Hermes 0.20")
    for estimate in found.values():
        charged = {kind for kind, n in estimate.charged.items() if n}
        assert estimate.tokens == sum(estimate.charged.values())
        assert estimate.verified is (charged <= FIGURES.get(estimate.estimator, (None, 0, set()))[2])
    old, new = found["Hermes 0.19"].charged, found["Hermes 0.20"].charged
    assert (old["envelope"] > new["envelope"]) is (name in {"b_reasondet_N", "h_anthropic_N", "h_anthropic_native_N"})
    if name == "f_apicontent_N":  # counted beside the content, and instead of it
        assert abs(old["sidecar"] - new["sidecar"]) <= 2
        assert old["text"] - new["text"] > 40


def test_a_call_s_ledger_has_the_estimate_of_the_version_that_wrote_the_log_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)
    inspection = ctxscope.open(hermes_cases.Case("b_reasondet_N").folder)
    inspection.count()
    tokens = [c for c in inspection.snapshot.calls if c.kind == "main"][-1].tokens
    inspection.close()
    assert [e.estimator for e in tokens.estimates] == [
        "Hermes 0.20",
        "Hermes 0.19",
    ]  # stale thinking: 0.21 may do either
    assert tokens.agent == tokens.estimates[0].tokens
    assert tokens.estimates[1].charged["envelope"] > 1000


@pytest.mark.parametrize("name", [c for c in pi_sessions.CASES if "compact" in c or "tree" in c])
def test_what_pi_takes_over_is_what_an_answer_reported(name: str) -> None:
    log = pi_sessions.log_of(pi_sessions.capture(name).logs[-1])
    messages = [e.data["message"] for e in log.entries if e.kind == "assistant"]
    totals = {m["usage"]["totalTokens"] for m in messages}
    taken = [e.charged["reported"] for p in pi.requests(log) for e in pi.estimates(log, p)]
    assert set(taken) <= {0, *totals}
    assert any(taken)
