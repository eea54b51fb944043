"""The append-only rule as the recorded vectors of the original have it, and as omp's recorded calls show it."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from ctxscope.agents import omp
from ctxscope.agents.omp import append_only
from ctxscope.agents.omp.sync import sync
from tests.conftest import needs_captures
from tests.omp_cases import CASES, FOLDER, Told, capture, rewrite
from tests.pi_sessions import call, text

ORACLE = FOLDER / "oracle" / "append_only_vectors.json"
VECTORS: dict[str, list[dict[str, Any]]] = (
    json.loads(ORACLE.read_text(encoding="utf-8"))
    if ORACLE.is_file()
    else {"sync": [], "digests": [], "stablePrefix": []}
)
STABLE = FOLDER / "oracle" / "wire_stable_prefix.json"


@pytest.mark.parametrize("vector", VECTORS["digests"], ids=lambda v: str(v["digest"]))
def test_a_message_digests_as_recorded(vector: dict[str, Any]) -> None:
    assert append_only.digest(vector["message"]) == vector["digest"]


@pytest.mark.parametrize("vector", VECTORS["stablePrefix"], ids=lambda v: v["name"])
def test_a_head_has_the_recorded_fingerprint(vector: dict[str, Any]) -> None:
    options = vector["input"]["options"]
    found = append_only.fingerprint(
        vector["input"]["systemPrompt"],
        vector["normalizedTools"],
        intent=options["intentTracing"],
        prune=options.get("pruneToolDescriptions"),
    )
    assert found == vector["fingerprint"]


@pytest.mark.parametrize("vector", VECTORS["sync"], ids=lambda v: v["name"])
def test_each_sync_does_what_was_recorded(vector: dict[str, Any]) -> None:
    """omp remembers a message's digest by the object: one changed in place keeps it until it is told."""
    held: list[int] = []
    sent: list[int] = []
    for step in vector["steps"]:
        if step["op"] != "sync":
            held = sent = []
            assert step["logLength"] == 0
            continue
        said = [append_only.digest(m) for m in step["messages"]]
        digests = [*said]
        mutated = step["mutate"]
        if mutated and step["keepIdentity"] and not mutated["invalidate"]:
            digests[mutated["index"]] = held[mutated["index"]]
        done = append_only.step(held, digests)
        assert step["calls"] == {
            "cleared": done.case == "shrink",
            "truncatedTo": done.kept if done.case == "rewrite" else None,
            "appended": done.appended,
        }
        if step["logEqualsInput"]:
            assert append_only.longest_prefix(sent, said) == step["byteStablePrefixVsPreviousLog"]
        assert done.kept + done.appended == step["logLength"]
        held, sent = digests, said


def test_a_long_text_is_hashed_like_a_short_one() -> None:
    words = "漢字 🙂 and more; " * 900
    slow = 0
    units = words.encode("utf-16-le")
    for i in range(0, len(units), 2):
        slow = (slow * 31 + units[i] + (units[i + 1] << 8)) & 0xFFFFFFFF
    assert append_only.h32(words) == slow


@needs_captures
@pytest.mark.parametrize("name", [c for c in CASES if c not in {"omp_i_shake_on", "omp_p_poll"}])
def test_what_the_log_says_stays_is_what_stayed_on_the_wire(name: str) -> None:
    """Where messages broke on the wire the log says where; one message there may be several items of Responses."""
    case = capture(name)
    log = case.log()
    rows = {row["n"]: row for row in json.loads(STABLE.read_text(encoding="utf-8"))[name]}
    calls = case.calls(log)
    for before, made in itertools.pairwise(calls):
        row, done = rows[made.n], sync(log, made.point, before.point, made.learned)
        assert done is not None
        if name == "omp_g_maxtok" and row["break"]:
            # The signature of an abandoned turn is dropped behind the context: to omp itself nothing changed.
            assert done.case == "append"
            continue
        assert (done.stable < len(list(before.point.context))) == row["break"], (made.n, done, row)
        assert done.case == ("append" if not row["break"] else "shrink" if done.kept == 0 else "rewrite")
        if case.case["api"] == "openai-chat":
            assert done.stable == row["stable_messages"] - len(("two", "system messages"))
        first = sync(log, before.point, None, before.learned)
        assert first is not None
        assert done.fingerprint == first.fingerprint is not None
        assert (done.resent_tokens > 0) is (done.kept > 0)


def test_a_pruned_result_cuts_the_log_at_its_message() -> None:
    script = Told().begin()
    script.user("read it")
    script.assistant(call("t1", path="a"), stop="toolUse")
    result = script.result("t1", "long " * 200)
    script.assistant(text("done"))
    script.user("again")
    script.assistant(text("yes"))
    old = script.bytes()
    log = script.log()
    row = next(r for r in script.rows if r.get("id") == result)
    pruned = {"content": [text("[Superseded by a newer read of this file]")], "prunedAt": script.milliseconds + 1}
    row["message"] = {**row["message"], **pruned}
    script.user("and now")
    script.assistant(text("fine"))
    rewrite(log, old, script.bytes())
    points = omp.requests(log)
    kept = [sync(log, p, q) for q, p in itertools.pairwise(points)]
    assert [(s.case, s.kept, s.first_rewritten, s.appended) for s in kept if s] == [
        ("append", 1, None, 2),
        ("append", 3, None, 2),
        ("rewrite", 2, 2, 5),
    ]
    first, last = sync(log, points[0], None), sync(log, points[-1], points[-2])
    assert first is not None
    assert last is not None
    assert (first.case, first.kept, first.resent_tokens) == ("append", 0, 0)
    assert last.resent_tokens == (len("read it") + 3) // 4 + (len("read") + 3) // 4 + (len('{"path":"a"}') + 3) // 4


def test_a_shorter_context_is_replayed_and_another_model_starts_anew() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(text("1"))
    script.user("two")
    script.assistant(text("2"))
    script.add("compaction", summary="s", firstKeptEntryId="none", tokensBefore=9, method="soft")
    script.user("three")
    script.assistant(text("3"))
    script.add("model_change", model="other/m")
    script.user("four")
    script.assistant(text("4"), target=("anthropic-messages", "other", "m"))
    log = script.log()
    points = omp.requests(log)
    shrunk, switched = sync(log, points[2], points[1]), sync(log, points[3], points[2])
    assert shrunk is not None
    assert switched is not None
    assert (shrunk.case, shrunk.kept, shrunk.first_rewritten, shrunk.appended) == ("shrink", 0, 0, 2)
    assert (switched.case, switched.kept, switched.appended) == ("append", 0, 4)
