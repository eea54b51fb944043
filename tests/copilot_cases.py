"""Copilot CLI logs for tests: the recorded case, the sample, and events put together by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import ctxscope
from ctxscope.agents import Log, at_hand, copilot
from ctxscope.model import Body, CallView, Config, Place, Record, SessionRef
from ctxscope.wire import openai_chat
from ctxscope.wire.body import make_body
from tests.conftest import CAPTURES, SAMPLES

CASES = sorted(p.parent for p in CAPTURES.glob("copilot/*/case.json"))
SAMPLE = SAMPLES / "copilot/resumed"
REF = SessionRef("copilot", "s1", (Path("events.jsonl"),), Path())


def log_file(folder: Path) -> Path:
    (found,) = (folder / "log").rglob("events.jsonl")
    return found


def log_of(lines: Iterable[bytes]) -> Log:
    """A log with one record a line, folded in one by one."""
    log = Log(REF)
    for number, line in enumerate(lines, 1):
        feed(log, number, line)
    return log


def feed(log: Log, number: int, line: bytes) -> None:
    for entry in copilot.entries(Record("session", str(number), Place(0, f"line {number}"), line)):
        log.add(entry)


def event(kind: str, number: int, data: Mapping[str, Any], **envelope: Any) -> bytes:
    """A line of the log."""
    head = {"type": kind, "data": data, "id": f"e{number}", "timestamp": f"2026-02-01T09:00:{number:02d}.000Z"}
    return json.dumps({**head, "parentId": None, **envelope}, ensure_ascii=False).encode()


def views(log: Path, wire: Path) -> dict[int, CallView]:
    """Each recorded call by number, opened beside its log."""
    inspection = ctxscope.open(log, recording=str(wire))
    try:
        return {c.exchange.n: inspection.view(c.n) for c in inspection.snapshot.calls if c.exchange}
    finally:
        inspection.close()


def copied(target: Path, lines: Iterable[bytes]) -> Path:
    """A session file of its own with other lines."""
    path = target / "log/.copilot/session-state/s/events.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


SYSTEM = event("system.message", 2, {"content": "Be brief."})


def start(number: int = 1, kind: str = "session.start", **more: Any) -> bytes:
    told = {"sessionId": "s1", "producer": "copilot-agent", "copilotVersion": "1.0.102", "selectedModel": "fern"}
    return event(kind, number, {**told, **more})


def user(number: int, text: str, **more: Any) -> bytes:
    return event("user.message", number, {"content": text, "transformedContent": f"<now>{text}", **more})


def turn(number: int, **envelope: Any) -> bytes:
    return event("assistant.turn_start", number, {"turnId": "0"}, **envelope)


def used(number: int, call: str, **more: Any) -> bytes:
    usage = {"apiCallId": call, "apiEndpoint": "/chat/completions", "inputTokens": 50, "outputTokens": 5, **more}
    return event("session.usage_record", number, {"usage": usage})


def answer(number: int, call: str, text: str, uses: tuple[str, ...] = (), **envelope: Any) -> bytes:
    asked = [{"toolCallId": u, "name": "read", "arguments": {"p": u}, "intentionSummary": f"read {u}"} for u in uses]
    said = {"content": text, "toolRequests": asked, "apiCallId": call, "model": "fern"}
    return event("assistant.message", number, said, **envelope)


def result(number: int, use: str, text: str = "ok") -> bytes:
    return event("tool.execution_complete", number, {"toolCallId": use, "success": True, "result": {"content": text}})


def body(*messages: dict[str, Any], **params: Any) -> Body:
    value = {"model": "fern", "messages": [{"role": "system", "content": "Be brief."}, *messages], **params}
    return make_body(json.dumps(value, separators=(",", ":")).encode(), openai_chat)


def live(text: str, uses: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    calls = [{"id": u, "type": "function", "function": {"name": "read", "arguments": f'{{ "p": "{u}"}}'}} for u in uses]
    message = {"role": "assistant", "content": text or None, "refusal": None}
    return {**message, **({"tool_calls": calls} if calls else {}), **more}


def tool(use: str, text: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": use, "content": text}


def made(log: Log, *bodies: Body) -> list[bool]:
    """Whether each point's request, learned in order, is the body served for it."""
    found, before = [], []
    for point, served in zip(copilot.requests(log), bodies, strict=False):
        learned = copilot.learn(log, point, served, at_hand(before))
        rebuilt = copilot.rebuild(log, point, Config(), learned)
        found.append(rebuilt is not None and rebuilt.data == served.data)
        before.append((point, served))
    return found


BASE = [start(), user(3, "hi"), SYSTEM, turn(4), used(5, "c1"), answer(6, "c1", "", ("a", "b"))]
"""A turn under way whose answer asks for two tools."""

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
"""Values that a field may hold instead of what it should."""

SOURCE = "__copilotMessageSource"
HI = {"role": "user", "content": "<now>hi"}


def anew(*uses: str) -> dict[str, Any]:
    """An answer that asks for tools, as a later run sends it."""
    spelt = [{"id": u, "type": "function", "function": {"name": "read", "arguments": f'{{"p":"{u}"}}'}} for u in uses]
    return {"role": "assistant", "content": None, "tool_calls": spelt}


def sourced(message: dict[str, Any], name: str, kind: str = "tool", **more: str) -> dict[str, Any]:
    """A result with the place it came from."""
    return {**message, SOURCE: {"kind": kind, "name": name, **more}}
