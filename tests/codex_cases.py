"""Recorded Codex sessions, and rollouts made line by line, with what tests ask of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import ctxscope
from ctxscope.agents import Log, at_hand, codex
from ctxscope.model import Body, CallView, Config, Place, Point, Record, SessionRef, Snapshot
from ctxscope.wire import openai_responses
from ctxscope.wire.body import make_body
from tests.conftest import CAPTURES

CASES = sorted(p.parent for p in CAPTURES.glob("codex/*/case.json"))


def record(number: int, line: bytes) -> Record:
    """A line as its reader gives it."""
    return Record("session", str(number), Place(0, f"line {number}"), line)


def log_of(lines: Iterable[bytes], config: bytes | None = None) -> Log:
    """A log read at once."""
    log = Log(SessionRef("codex", "thread", (Path("rollout.jsonl"),), Path("/")))
    if config is not None:
        for entry in codex.entries(Record("config", "file", Place(0, "file"), config)):
            log.add(entry)
    for number, line in enumerate(lines, 1):
        for entry in codex.entries(record(number, line)):
            log.add(entry)
    return log


def body_of(data: bytes, before: Body | None = None) -> Body:
    """A request, cut."""
    return make_body(data, openai_responses, before)


def rebuilt(log: Log, served: dict[str, bytes]) -> dict[str, tuple[Point, bytes, Any]]:
    """By point key the body the log implies, for points in order with what was served for them."""
    pairs: list[tuple[Point, Body]] = []
    made: dict[str, tuple[Point, bytes, Any]] = {}
    points = {p.key: p for p in codex.requests(log)}
    for key, data in served.items():
        body = body_of(data)
        learned = codex.learn(log, points[key], body, at_hand(pairs))
        found = codex.rebuild(log, points[key], Config(), learned)
        assert found is not None
        made[key] = (points[key], found.data, found)
        pairs.append((points[key], body))
    return made


@cache
def rollout(folder: Path) -> Path:
    """The one rollout of a case."""
    return next((folder / "log").rglob("rollout-*.jsonl"))


@cache
def lines_of(folder: Path) -> tuple[bytes, ...]:
    return tuple(rollout(folder).read_bytes().splitlines())


@cache
def about(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    return found


@cache
def exchanges(folder: Path) -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(x) for x in (folder / "wire" / "index.jsonl").read_text(encoding="utf-8").splitlines())


def copy_of(folder: Path, target: Path, lines: Iterable[bytes]) -> Path:
    """A case with another rollout."""
    shutil.copytree(folder, target)
    path = target / rollout(folder).relative_to(folder)
    path.chmod(0o644)
    path.parent.chmod(0o755)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return target


def seen(folder: Path) -> tuple[Snapshot, dict[int, CallView]]:
    """A folder opened: what is said of it, and each served call by number of its exchange."""
    inspection = ctxscope.open(folder)
    try:
        snapshot = inspection.snapshot
        return snapshot, {c.exchange.n: inspection.view(c.n) for c in snapshot.calls if c.exchange}
    finally:
        inspection.close()


def states(folder: Path) -> dict[int, Any]:
    """By number of the exchange what became of the rebuilt request."""
    inspection = ctxscope.open(folder)
    try:
        return {c.exchange.n: c.rebuilt for c in inspection.snapshot.calls if c.exchange}
    finally:
        inspection.close()


def read_here(folder: Path, n: int) -> bool:
    """Whether the API of an exchange is read: requests to ``/responses/compact`` may not be."""
    path = next(e["path"] for e in exchanges(folder) if e["n"] == n)
    return openai_responses.matches(path, {}, b"{}")
