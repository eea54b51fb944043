"""DeepSeek Harness logs for tests: recorded ones line by line, and invented ones record by record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ctxscope import wire
from ctxscope.agents import Log, at_hand, dsh
from ctxscope.model import Body, Learned, Place, Point, Rebuilt, Record, SessionRef
from ctxscope.wire.body import make_body
from tests.agent_cases import frames
from tests.conftest import CAPTURES
from tests.samples.dsh_form import SessionLog
from tests.samples.dsh_texts import CWD, SYSTEM, TOOLS
from tests.samples.pi_form import Part, Say, Tokens

CASES = sorted(p.parent.name for p in CAPTURES.glob("dsh/*/case.json"))


def reference(name: str = "session-x", path: Path = Path("session.v4.jsonl.zstd")) -> SessionRef:
    return SessionRef("dsh", name, (path,), Path())


def grow(log: Log, line: bytes, number: int) -> None:
    """Fold one line in, as a reader would."""
    for entry in dsh.entries(Record("session", str(number), Place(0, f"line {number}"), line)):
        log.add(entry)


def log_of(lines: Iterable[bytes | str], ref: SessionRef | None = None) -> Log:
    """A log read at once."""
    log = Log(ref or reference())
    for number, line in enumerate(lines, 1):
        grow(log, line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass"), number)
    return log


@dataclass(frozen=True)
class Served:
    """One recorded exchange."""

    n: int
    headers: Mapping[str, str]
    body: Body


def folder_of(name: str) -> Path:
    return CAPTURES / "dsh" / name


@cache
def about(name: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder_of(name) / "case.json").read_text(encoding="utf-8"))
    return told


@cache
def lines_of(name: str) -> tuple[bytes, ...]:
    """The lines of a recorded case's log."""
    (path,) = (folder_of(name) / p for p in about(name)["log"]["paths"])
    return tuple(b"".join(frames(path.read_bytes())).split(b"\n"))


@cache
def exchanges(name: str) -> tuple[Served, ...]:
    """The requests of a recorded case in order of arrival."""
    found, parent = [], None
    for line in (folder_of(name) / "wire" / "index.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        data = (folder_of(name) / "wire" / f"{row['n']:04}.req").read_bytes()
        parent = make_body(data, wire.detect(row["path"], row["headers"], data), parent)
        found.append(Served(row["n"], row["headers"], parent))
    return tuple(found)


def rebuilt(log: Log, point: Point | None = None, learned: Learned | None = None) -> Rebuilt:
    """The newest request, or a given one."""
    made = dsh.rebuild(log, point or dsh.requests(log)[-1], dsh.config(log), learned or Learned())
    assert made is not None
    return made


def sent(log: Log, point: Point | None = None) -> dict[str, Any]:
    """The same, parsed."""
    value: dict[str, Any] = json.loads(rebuilt(log, point).data)
    return value


def learned_from(log: Log, point: Point, data: bytes | str, *before: tuple[Point, Body]) -> Learned:
    """What a request of its own teaches."""
    return dsh.learn(log, point, cut(data), at_hand(before))


def cut(data: bytes | str, path: str = "/v1/messages") -> Body:
    raw = data if isinstance(data, bytes) else data.encode()
    return make_body(raw, wire.detect(path, {}, raw))


def begun(version: int = 4, **more: Any) -> SessionLog:
    """A session up to its first request."""
    log = SessionLog("session-x", CWD, 0.0, more, version)
    log.turn(1.0, 1, "look")
    log.system(1.0, SYSTEM)
    log.user(1.0, "look")
    log.request(1.0, TOOLS, "initial")
    return log


def answer(log: SessionLog, *parts: Part, step: tuple[int, int] = (1, 1), **more: Any) -> int:
    return log.answer(2.0, step, list(parts or (Say("done"),)), Tokens(0, 10, 5), **more)


def read(log: SessionLog) -> Log:
    """A session's log as it stands."""
    return log_of(log.lines())


def step(log: SessionLog, number: int, turn: int = 1) -> None:
    """The next step of a turn."""
    log.ended(3.0, turn, number - 1)
    log.step(3.0, turn, number)


def three_turns(version: int = 4) -> tuple[SessionLog, list[int]]:
    """Messages one, two, three and the numbers of their events."""
    log = begun(version)
    first = len(log.records) - 2
    a = answer(log, Say("one"))
    log.ended(3.0, 1, 1, whole=True)
    log.turn(4.0, 2, "two")
    b = log.user(4.0, "two")
    return log, [first, a, b]


def texts(request: dict[str, Any]) -> list[str]:
    """The role and the texts of each message."""
    return [f"{m['role'][0]}:{'|'.join(_text(b) for b in m['content'])}" for m in request["messages"]]


def _text(block: dict[str, Any]) -> str:
    return block.get("text") or block.get("thinking") or "".join(map(_text, block.get("content", ()))) or block["type"]
