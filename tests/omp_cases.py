"""omp sessions for tests: written by hand, or read from the captures with their exchanges joined."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxscope import wire
from ctxscope.agents import Log, at_hand, omp
from ctxscope.model import Body, Config, Learned, Place, Point, Rebuilt, Record, SessionRef
from ctxscope.wire.body import make_body
from tests.conftest import CAPTURES
from tests.pi_sessions import ANTHROPIC, CHAT, GOOGLE, RESPONSES, Script

FOLDER = CAPTURES / "omp"
CASES = sorted(p.parent.name for p in FOLDER.glob("*/case.json")) if FOLDER.is_dir() else []
Line = dict[str, Any]
__all__ = ["ANTHROPIC", "CASES", "CHAT", "FOLDER", "GOOGLE", "RESPONSES", "Capture", "Told", "capture"]


@dataclass
class Told(Script):
    """An omp session file written line by line."""

    def __post_init__(self) -> None:
        slot = {"type": "title", "v": 1, "title": "", "updatedAt": self.now(), "pad": " " * 40}
        self.rows += [slot, {"type": "session", "version": 3, "id": "0-session", "timestamp": self.now(), "cwd": "/p"}]

    def begin(self, level: str = "medium") -> Told:
        self.add("model_change", model=f"{self.target[1]}/{self.target[2]}", resolvedModelIsFallback=False)
        self.add("thinking_level_change", thinkingLevel=level, configured=None)
        return self

    def log(self, side: Mapping[str, bytes] | None = None) -> Log:
        return log_of(self.bytes(), side)

    def lines(self) -> list[bytes]:
        return self.bytes().split(b"\n")


def log_of(data: bytes, side: Mapping[str, bytes] | None = None) -> Log:
    """A log read at once; ``side``: side files by source key."""
    log = Log(SessionRef("omp", "0-session", (Path("s.jsonl"),), Path()))
    take(log, enumerate(data.split(b"\n"), 1))
    for source, value in (side or {}).items():
        for entry in omp.entries(Record(source, "file", Place(1, "file"), value)):
            log.add(entry)
    return log


def take(log: Log, lines: Iterable[tuple[int, bytes]], version: int = 0) -> None:
    """Lines as a reader tells them."""
    for number, line in lines:
        for entry in omp.entries(Record("session", str(number), Place(0, f"line {number}"), line, version)):
            log.add(entry)


def rewrite(log: Log, old: bytes, new: bytes) -> None:
    """What a reader tells of a file written anew: the lines that changed, then those that were added."""
    before, after = old.split(b"\n"), new.split(b"\n")
    changed = [(n, line) for n, line in enumerate(after, 1) if n > len(before) or before[n - 1] != line]
    take(log, changed, 1)


def rebuilt(log: Log, point: Point | None = None, learned: Learned | None = None, **choice: Any) -> Line:
    """The newest (or given) request, parsed."""
    made = omp.rebuild(log, point or omp.requests(log)[-1], Config(), learned or Learned(choice=choice))
    assert made is not None
    value: Line = json.loads(made.data)
    return value


def messages(log: Log, point: Point | None = None, **choice: Any) -> list[Line]:
    """Its conversation, without the reminder that leads it."""
    body = rebuilt(log, point, **choice)
    found: list[Line] = body.get("messages") or body.get("input") or body.get("contents") or []
    first = next((m for m in found if m["role"] == "user"), None)
    key = "parts" if first and "parts" in first else "content"
    if first is not None and isinstance(first[key], list):
        first[key] = first[key][1:]
    return found


def bare(value: Any) -> Any:
    """Without cache marks."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if k != "cache_control"}
    return [bare(v) for v in value] if isinstance(value, list) else value


@dataclass
class Call:
    """One exchange of a capture, with the point it belongs to."""

    n: int
    body: Body
    point: Point
    learned: Learned = field(default_factory=Learned)
    rebuilt: Rebuilt | None = None

    @property
    def equal(self) -> bool:
        return self.rebuilt is not None and self.rebuilt.data == self.body.data


@dataclass
class Capture:
    """One captured case: its log, its side files and its exchanges."""

    folder: Path
    case: dict[str, Any]
    data: bytes
    side: Mapping[str, bytes]

    @property
    def exact(self) -> list[int]:
        final = self.case["rebuild"].get("final_log_only", {})
        return list(final.get("exact_n", self.case["rebuild"]["exact"]))

    def log(self) -> Log:
        return log_of(self.data, self.side)

    def calls(self, log: Log | None = None) -> list[Call]:
        """Every main call that a point claims by id, learned and rebuilt in order of arrival."""
        log = log or self.log()
        before: list[tuple[Point, Body]] = []
        found = []
        for n, body, ids in self.exchanges():
            point = next((p for p in omp.requests(log) if ids & p.ids), None)
            if point is None or n not in self.case["wire"]["main"]:
                continue
            made = Call(n, body, point)
            made.learned = omp.learn(log, point, body, at_hand(before))
            made.rebuilt = omp.rebuild(log, point, omp.config(log), made.learned)
            before.append((point, body))
            found.append(made)
        return found

    def exchanges(self) -> Sequence[tuple[int, Body, frozenset[str]]]:
        """Number, request and ids of the reply of each exchange."""
        found = []
        parent = None
        for line in (self.folder / "wire" / "index.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            stem = self.folder / "wire" / f"{row['n']:04}"
            headers = {k.lower(): v for k, v in row["headers"].items()}
            request = stem.with_suffix(".req").read_bytes()
            api = wire.detect(row["path"], headers, request)
            assert api is not None, row["path"]
            parent = make_body(request, api, parent, row["path"])
            reply = api.reply(stem.with_suffix(".res").read_bytes(), headers)
            found.append((row["n"], parent, reply.ids))
        return found


def capture(name: str) -> Capture:
    folder = FOLDER / name
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    blobs = {f"blob:{p.name}": p.read_bytes() for p in folder.glob("log/.omp/agent/blobs/*")}
    return Capture(folder, case, (folder / case["log"]["paths"][0]).read_bytes(), blobs)
