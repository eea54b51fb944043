"""Claude Code transcripts made line by line, recorded ones opened, and what tests ask of both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import ctxscope
from ctxscope.agents import Log, at_hand, claude_code
from ctxscope.model import Body, CallView, Config, Place, Point, Rebuilt, Record, SessionRef, Snapshot
from ctxscope.wire import anthropic_messages
from ctxscope.wire.body import make_body
from tests.conftest import CAPTURES

CASES = sorted(p.parent for p in CAPTURES.glob("claude_code/*/case.json"))
PUBLIC = sorted(CAPTURES.glob("public_logs/claude_*.jsonl"))
SESSION = "5e55a00f-0000-4000-8000-00000000c0de"
MARK = {"type": "ephemeral"}
SYSTEM = [{"type": "text", "text": "You sort seeds.", "cache_control": MARK}]
TOOLS = [{"name": "Sift", "input_schema": {"type": "object"}}]


def record(number: int, line: bytes, source: str = "session", log: int = 0) -> Record:
    """A line as its reader gives it."""
    return Record(source, str(number), Place(log, f"line {number}"), line)


def log_of(
    lines: Iterable[bytes],
    more: Mapping[str, Sequence[bytes]] | None = None,
    settings: bytes | None = None,
    parent: str | None = None,
) -> Log:
    """A log read at once; ``more``: lines of further sources."""
    log = Log(SessionRef("claude_code", SESSION, (Path("main.jsonl"),), Path("/"), parent=parent))
    if settings is not None:
        for entry in claude_code.entries(Record("settings", "file", Place(0, "file"), settings)):
            log.add(entry)
    for name, own in {"session": list(lines), **(more or {})}.items():
        for number, line in enumerate(own, 1):
            for entry in claude_code.entries(record(number, line, name, int(name != "session"))):
                log.add(entry)
    return log


@dataclass
class Lines:
    """Lines of a transcript, chained as they come unless told otherwise."""

    version: str = "2.1.112"
    model: str = "claude-seed-1"
    rows: list[dict[str, Any]] = field(default_factory=list)
    last: str | None = None
    tag: str = "a"

    def add(self, kind: str, parent: str | None = "", **fields: Any) -> str:
        """A line of the chain; its uuid."""
        number = len(self.rows) + 1
        name = f"c1a0de0{self.tag}-0000-4000-8000-{number:012d}"
        self.rows.append(
            {
                "parentUuid": self.last if parent == "" else parent,
                "isSidechain": False,
                "type": kind,
                "uuid": name,
                "timestamp": f"2026-02-01T09:{number // 60:02d}:{number % 60:02d}.000Z",
                "sessionId": SESSION,
                "version": self.version,
                "cwd": "/srv/seeds",
                **fields,
            }
        )
        self.last = name
        return name

    def user(self, content: Any, parent: str | None = "", **fields: Any) -> str:
        """A prompt or results."""
        return self.add("user", parent, message={"role": "user", "content": content}, **fields)

    def result(self, use: str, content: Any, parent: str | None = "") -> str:
        """One tool's result."""
        return self.user([{"tool_use_id": use, "type": "tool_result", "content": content}], parent)

    def answer(self, name: str, *blocks: dict[str, Any], parent: str | None = "", **fields: Any) -> list[str]:
        """A line a block; uuids of the lines."""
        stop = "tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn"
        message = {"id": name, "type": "message", "role": "assistant", "model": self.model, "stop_reason": stop}
        found = []
        for block in blocks:
            spent = {"input_tokens": 4, "cache_read_input_tokens": 7, "output_tokens": 9}
            own = {**message, "content": [block], "usage": spent}
            found.append(self.add("assistant", parent, message=own, requestId=f"req_{name}", **fields))
            parent = ""
        return found

    def attach(self, kind: str, **fields: Any) -> str:
        """An attachment."""
        return self.add("attachment", attachment={"type": kind, **fields})

    def compact(self, kept: Sequence[str] = (), trigger: str = "auto", summary: str = "This session goes on.") -> str:
        """A compaction that preserved some lines; uuid of its summary."""
        told: dict[str, Any] = {"trigger": trigger, "preTokens": 900, "postTokens": 90}
        at = len(self.rows) + 2
        anchor = f"c1a0de0{self.tag}-0000-4000-8000-{at:012d}"
        if kept:
            told["preservedMessages"] = {"anchorUuid": anchor, "uuids": list(kept), "allUuids": list(kept)}
        self.add("system", None, subtype="compact_boundary", logicalParentUuid=self.last, compactMetadata=told)
        return self.user(summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)

    @property
    def lines(self) -> list[bytes]:
        """As they stand in the file."""
        return [spelled(row) for row in self.rows]

    @property
    def log(self) -> Log:
        """Read at once."""
        return log_of(self.lines)


def spelled(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Sift", "input": arguments}


def reminder(words: str) -> dict[str, Any]:
    return text(f"<system-reminder>\n{words}\n</system-reminder>")


def served(messages: Sequence[Mapping[str, Any]], marks: int = 1, **fields: Any) -> Body:
    """A request as 2.1.112 sends it, its last messages marked."""
    out = list(messages)
    for at in range(max(len(out) - marks, 0), len(out)):
        content = out[at]["content"]
        blocks = [text(content)] if isinstance(content, str) else [dict(b) for b in content]
        blocks[-1] = {**blocks[-1], "cache_control": MARK}
        out[at] = {**out[at], "content": blocks}
    body = {
        "model": "claude-seed-1",
        "messages": out,
        "system": SYSTEM,
        "tools": TOOLS,
        "max_tokens": 9,
        "stream": True,
    }
    return make_body(spelled({**body, **fields}), anthropic_messages, None)


def asked(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(*blocks: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def beside(log: Log, point: Point, body: Body, before: Sequence[tuple[Point, Body]] = ()) -> Rebuilt:
    """What the log implies for a call beside what was served."""
    learned = claude_code.learn(log, point, body, at_hand(before))
    found = claude_code.rebuild(log, point, Config(), learned)
    assert found is not None
    return found


def messages_of(log: Log, point: Point) -> list[Any]:
    """The messages the log implies for a call that nobody served."""
    learned = ctxscope.model.Learned()
    made = claude_code.rebuild(log, point, Config(), learned)
    assert made is not None
    found: list[Any] = json.loads(made.data)["messages"]
    return found


@cache
def opened(folder: Path) -> tuple[Snapshot, dict[int, CallView]]:
    """A recorded case through the whole path: snapshot, and views by number of the exchange."""
    inspection = ctxscope.open(folder)
    try:
        calls = [c for c in inspection.snapshot.calls if c.exchange]
        return inspection.snapshot, {c.exchange.n: inspection.view(c.n) for c in calls if c.exchange}
    finally:
        inspection.close()


def transcripts(folder: Path) -> list[Path]:
    """All transcripts of a case."""
    return sorted(folder.rglob("log/.claude/projects/**/*.jsonl"))


def points(lines: Lines) -> list[Any]:
    return list(claude_code.requests(lines.log))


def last_messages(lines: Lines) -> list[Any]:
    """Messages of the last call, cache marks left out."""
    log = lines.log
    found = messages_of(log, claude_code.requests(log)[-1])
    for message in found:
        for block in message["content"] if isinstance(message["content"], list) else ():
            block.pop("cache_control", None)
    return found


def result(name: str, content: Any) -> dict[str, Any]:
    return {"tool_use_id": name, "type": "tool_result", "content": content}


def parallel() -> Lines:
    lines = Lines()
    lines.user("Sort both trays.")
    _, one, two = lines.answer("m1", text("Both at once."), use("t1", tray=1), use("t2", tray=2))
    lines.result("t2", "rye", parent=two)
    lines.result("t1", "oats", parent=one)
    lines.answer("m2", text("Oats and rye."))
    return lines


def simple(*more: dict[str, Any]) -> Lines:
    lines = Lines()
    lines.user("Sort the tray.")
    lines.answer("m1", use("t1", tray=1))
    for row in more:
        lines.add(**row)
    lines.result("t1", "  oats\nrye\n")
    lines.answer("m2", text("Oats and rye."))
    return lines
