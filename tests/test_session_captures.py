"""Recorded sessions of real agents through the whole path, opened when they had ended: what must rebuild is equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import ctxscope
from ctxscope import agents
from ctxscope.model import CallView
from tests.conftest import needs_captures
from tests.hermes_cases import Case
from tests.session_cases import CASES, Covered, covered, rebuild_of, summed, unchanged


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    """Tokens are not asked about here; loading the vocabulary for each case would take longer than all the rest."""
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@needs_captures
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.parent.name)
def test_every_call_that_must_rebuild_is_equal(case: Path, record_property: pytest.RecordProperty):
    views = dict(joined(case.parent))
    assert [n for n in rebuild_of(case.parent)["exact"] if views[n].call.rebuilt.state != "equal"] == []
    logged = {"messages", *heads_logged(case.parent)}
    counts: Covered = Counter()
    for view in views.values():
        assert view.served is not None
        assert view.rebuilt is not None
        assert (view.served.data == view.rebuilt.data) == (view.call.rebuilt.state == "equal")
        if view.call.rebuilt.state == "equal":
            found = covered(view)
            assert sum(found.values()) == len(view.served.data)
            assert {p for part, p in found if part in logged} <= {"logged", "derived"}
            assert {part for part, p in found if p == "logged"} >= logged & {part for part, _ in found}
            counts += found
    record_property("coverage", summed(case.parent.name, counts))


def joined(folder: Path) -> Iterator[tuple[int, CallView]]:
    """Each call with both sides, by number of its exchange."""
    inspection = ctxscope.open(folder)
    for call in inspection.snapshot.calls:
        if call.exchange is not None and call.entry is not None:
            yield call.exchange.n, inspection.view(call.n)
    inspection.close()


def heads_logged(folder: Path) -> set[str]:
    """Which parts of a request's head the log of a case holds: ``system``, ``tools``."""
    if folder.parent.name == "pi":
        lines = (line for log in (folder / "log").rglob("*.jsonl") for line in log.read_bytes().splitlines())
        return {"system", "tools"} if any(b'"role":"system"' in line for line in lines) else set()
    final = Case(folder.name).final
    held = {"system"} if final.prompts or any(s.get("system_prompt") for s in final.session) else set()
    return held | ({"tools"} if any((folder / "log").rglob("session_*.json")) else set())


@needs_captures
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.parent.name)
def test_only_what_the_agent_lists_as_absent_from_its_log_is_learned(case: Path):
    inspection = ctxscope.open(case.parent)
    for call in inspection.snapshot.calls:
        if call.session is None or call.entry is None:
            continue
        agent = agents.load(next(s.agent for s in inspection.snapshot.sessions if s.id == call.session))
        listed = [item.path for item in agent.learnable]
        borrowed = {p.path for p in inspection.view(call.n).pieces if p.provenance in ("learned", "echoed")}
        assert {p for p in borrowed if not any(p == path or p.startswith(f"{path}/") for path in listed)} == set()
    inspection.close()


@needs_captures
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.parent.name)
def test_what_was_delivered_is_what_was_kept(case: Path):
    """Hermes trims an answer, pi renames a tool call whose id came twice; nothing else is said to have changed."""
    calls = unchanged(case.parent)
    last = {call.request_sha256: n for n, call in calls.items()}
    for n in rebuild_of(case.parent)["exact"]:
        found = calls[n].reply
        if last[calls[n].request_sha256] == n:  # else an attempt, whose answer no log keeps
            assert found.state == "equal" or found.first_difference.cls in {"whitespace", "id_regenerated"}
            assert found.echo != "differs"
