"""Breaks over recorded sessions: exactly where consecutive main calls part, and nowhere else."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from ctxscope.analysis.parents import Found, ParentIndex
from ctxscope.analysis.prompts import Prompt, prompt_of
from ctxscope.analysis.providers import UNKNOWN
from ctxscope.model import Body
from ctxscope.wire import detect
from ctxscope.wire.body import make_body
from tests.analysis_judging import judge_cache
from tests.conftest import CAPTURES, needs_captures

CASES = (
    []
    if not CAPTURES.is_dir()
    else sorted(p.parent for a in ("pi", "hermes") for p in CAPTURES.glob(f"{a}/*/case.json"))
)


def main_calls(case: Path) -> tuple[dict, dict[int, Body]]:
    """``case.json`` and the main calls' effective bodies by number; a continuation is expanded over its predecessor."""
    told = json.loads((case / "case.json").read_bytes())
    bodies: dict[int, Body] = {}
    earlier, last = None, 0
    for line in (case / "wire" / "index.jsonl").read_bytes().splitlines():
        row = json.loads(line)
        n = row["n"]
        if n not in told["wire"]["main"]:
            continue
        data = (case / "wire" / f"{n:04d}.req").read_bytes()
        headers = {k.lower(): v for k, v in row["headers"].items()}
        api = detect(row["path"], headers, data)
        assert api is not None
        made = make_body(data, api, earlier, row["path"])
        if api.is_continuation(made):
            assert earlier is not None
            response = (case / "wire" / f"{last:04d}.res").read_bytes()
            expanded = api.expand(made, earlier, api.reply(response, {}), response)
            assert expanded is not None
            made = expanded
        bodies[n] = earlier = made
        last = n
    return told, bodies


def item(path: str) -> str:
    """``/messages/3/content/0`` as ``case.json`` writes places: ``messages[3]``."""
    match = re.match(r"/(\w+)/(\d+)", path)
    return f"{match[1]}[{match[2]}]" if match else path.lstrip("/") + "[0]"


@needs_captures
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_breaks_stand_where_consecutive_main_calls_part(case):
    told, bodies = main_calls(case)
    expected = {e["n"]: e["at"] for e in told["events"] if e["type"] == "prefix_break"}
    numbers = list(bodies)
    found = {}
    for before, n in pairwise(numbers):
        markers = tuple(e["type"] for e in told["events"] if e.get("n") == n and e["type"] == "compaction")
        verdict = judge_cache(bodies[n], bodies[before], markers=markers, provider=UNKNOWN)
        if verdict.verdict == "break":
            found[n] = item(verdict.path or "")
            assert verdict.cause in verdict.candidates
            assert verdict.why
    for n in set(found) & set(expected):
        if found[n] != expected[n] and respelled(bodies[numbers[numbers.index(n) - 1]], bodies[n], expected[n]):
            found[n] = expected[n]
    assert found == expected


def respelled(parent: Body, call: Body, at: str) -> bool:
    """Whether the item differs as bytes and is the same prompt: ``case.json`` compares values, key order included."""
    pieces = [[s for s in b.segments if item(s.path) == at] for b in (parent, call)]
    spelled = [b"".join(b.data[s.start : s.end] for s in p) for b, p in zip((parent, call), pieces, strict=True)]
    return spelled[0] != spelled[1] and [s.digest for s in pieces[0]] == [s.digest for s in pieces[1]]


@needs_captures
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_parent_of_an_appending_call_is_the_call_before_it(case):
    told, bodies = main_calls(case)
    broken = {e["n"] for e in told["events"] if e["type"] == "prefix_break"}
    prompts: dict[int, Prompt] = {}
    index = ParentIndex(prompts.__getitem__)
    previous = None
    for n, made in bodies.items():
        prompts[n] = prompt_of(made, prompts.get(previous or 0))
        found = index.take(n, prompts[n])
        if previous is not None and n not in broken:
            assert found == Found(previous, len(prompts[previous].segments))
        previous = n
