"""pi sessions for tests: written by hand, or read from the captures with their exchanges joined."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxscope import wire
from ctxscope.agents import Log, at_hand, pi
from ctxscope.model import Body, Learned, Place, Point, Rebuilt, Record, Reply, SessionRef
from ctxscope.wire.body import make_body
from tests.conftest import CAPTURES

CASES = sorted(p.name for p in (CAPTURES / "pi").glob("*") if (p / "case.json").is_file()) if CAPTURES.is_dir() else []
ANTHROPIC = ("anthropic-messages", "acme", "sonnet-x")
CHAT = ("openai-completions", "acme", "talk-1")
RESPONSES = ("openai-responses", "acme", "reason-1")
GOOGLE = ("google-generative-ai", "acme", "gemini-x")


@dataclass
class Script:
    """A session file written line by line; each entry follows the one before unless told otherwise."""

    target: tuple[str, str, str] = ANTHROPIC
    rows: list[dict[str, Any]] = field(default_factory=list)
    last: str | None = None
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.rows.append({"type": "session", "version": 3, "id": "0-session", "timestamp": self.now(), "cwd": "/p"})

    def now(self) -> str:
        self.seconds += 2
        minutes, seconds = divmod(int(self.seconds), 60)
        return f"2026-01-01T10:{minutes:02}:{seconds:02}.000Z"

    @property
    def milliseconds(self) -> int:
        return 1767261600000 + int(self.seconds * 1000)

    def add(self, kind: str, *, after: str | None = None, **data: Any) -> str:
        name = f"{len(self.rows):08x}"
        parent = self.last if after is None else after
        self.rows.append({"type": kind, "id": name, "parentId": parent, "timestamp": self.now(), **data})
        self.last = name
        return name

    def say(self, role: str, *, after: str | None = None, **message: Any) -> str:
        name = self.add("message", after=after)
        self.rows[-1]["message"] = {"role": role, **message, "timestamp": self.milliseconds}
        return name

    def user(self, text: str, **more: Any) -> str:
        return self.say("user", content=[{"type": "text", "text": text}], **more)

    def system(self, tools: Sequence[str] = ("read",), removed: Sequence[str] = (), **sections: str | None) -> str:
        added = [
            {
                "name": n,
                "description": f"does {n}",
                "parameters": {"type": "object", "required": ["p"], "properties": {"p": {"type": "string"}}},
            }
            for n in tools
        ]
        gone = {"toolsRemoved": [{"name": n} for n in removed]} if removed else {}
        return self.say("system", content="", sections=sections, toolsAdded=added, **gone)

    def assistant(
        self, *content: Mapping[str, Any], stop: str = "stop", target: tuple[str, str, str] | None = None, **more: Any
    ) -> str:
        api, provider, model = target or self.target
        total = more.pop("total", 100)
        usage = {"input": total, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": total}
        fields = {"responseId": f"r{len(self.rows)}", "rawStopReason": stop, **more}
        return self.say(
            "assistant",
            content=list(content),
            api=api,
            provider=provider,
            model=model,
            usage=usage,
            stopReason=stop,
            **fields,
        )

    def result(self, call: str, text: str = "done", **more: Any) -> str:
        content = more.pop("content", [{"type": "text", "text": text}])
        return self.say("toolResult", toolCallId=call, toolName="read", content=content, isError=False, **more)

    def begin(self, level: str = "medium") -> Script:
        self.add("model_change", provider=self.target[1], modelId=self.target[2])
        self.add("thinking_level_change", thinkingLevel=level)
        return self

    def bytes(self) -> bytes:
        return b"".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for r in self.rows)

    def log(self) -> Log:
        return log_of(self.bytes())


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": name, "name": "read", "arguments": arguments}


def log_of(
    data: bytes, path: Path = Path("s.jsonl"), home: Path = Path(), side: Mapping[str, bytes] | None = None
) -> Log:
    log = Log(SessionRef("pi", "0-session", (path,), home))
    for source, value in (side or {}).items():
        for entry in pi.entries(Record(source, "file", Place(0, "file"), value)):
            log.add(entry)
    for number, line in enumerate(data.split(b"\n"), 1):
        for entry in pi.entries(Record("session", str(number), Place(0, f"line {number}"), line)):
            log.add(entry)
    return log


def rebuilt(log: Log, point: Point | None = None, **choice: Any) -> dict[str, Any]:
    """The newest (or given) request, parsed."""
    made = pi.rebuild(log, point or pi.requests(log)[-1], pi.config(log), Learned(choice=choice))
    assert made is not None
    value: dict[str, Any] = json.loads(made.data)
    return value


@dataclass
class Call:
    """One exchange of a capture, with the point it belongs to."""

    n: int
    body: Body
    log: Log
    point: Point
    learned: Learned = field(default_factory=Learned)
    rebuilt: Rebuilt | None = None

    @property
    def equal(self) -> bool:
        return self.rebuilt is not None and self.rebuilt.data == self.body.data


@dataclass
class Capture:
    """One captured case: its logs and its exchanges."""

    folder: Path
    case: dict[str, Any]
    logs: list[bytes]
    side: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def exact(self) -> list[int]:
        return list(self.case["rebuild"]["exact"])

    def calls(self) -> list[Call]:
        """Every main call that a point claims, learned and rebuilt in order of arrival."""
        logs = [log_of(data, Path(str(i)), side=self.side) for i, data in enumerate(self.logs)]
        before: dict[int, list[tuple[Point, Body]]] = {}
        calls = self.joined(logs)
        for made in calls:
            earlier = before.setdefault(id(made.log), [])
            made.learned = pi.learn(made.log, made.point, made.body, at_hand(earlier))
            made.rebuilt = pi.rebuild(made.log, made.point, pi.config(made.log), made.learned)
            earlier.append((made.point, made.body))
        return calls

    def joined(self, logs: Sequence[Log]) -> list[Call]:
        points = [(log, p) for log in reversed(logs) for p in pi.requests(log)]
        found: list[Call] = []
        for row, body, reply in self.exchanges():
            known = [c.point.key for c in found]
            open_points = [(log, p) for log, p in points if p.key not in known]
            mine = [(log, p) for log, p in open_points if reply.ids & p.ids]
            mine = mine or [(log, p) for log, p in open_points if self._failed(row, p)]
            if mine and row["n"] in self.case["wire"]["main"]:
                found.append(Call(row["n"], body, *mine[0]))
        return found

    @staticmethod
    def _failed(row: Mapping[str, Any], point: Point) -> bool:
        if point.ids or point.answer is None or point.time is None or row["status"] == 200:
            return False
        return point.answer.data["message"]["stopReason"] == "error" and abs(point.time - row["t"]) < 1

    def exchanges(self) -> list[tuple[dict[str, Any], Body, Reply]]:
        found = []
        parent = None
        for line in (self.folder / "wire" / "index.jsonl").read_text().splitlines():
            row = json.loads(line)
            stem = self.folder / "wire" / f"{row['n']:04}"
            headers = {k.lower(): v for k, v in row["headers"].items()}
            request = stem.with_suffix(".req").read_bytes()
            answer = stem.with_suffix(".res")
            response = answer.read_bytes() if answer.exists() else b""
            api = wire.detect(row["path"], headers, request)
            assert api is not None, row["path"]
            parent = make_body(request, api, parent, row["path"])
            found.append((row, parent, api.reply(response, headers)))
        return found


def capture(name: str) -> Capture:
    folder = CAPTURES / "pi" / name
    case = json.loads((folder / "case.json").read_text())
    return Capture(folder, case, [(folder / p).read_bytes() for p in case["log"]["paths"]])
