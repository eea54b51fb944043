"""pydantic-ai histories for tests: the recorded cases, the sample, and messages put together by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctxscope
from ctxscope.agents import Log, at_hand, pydantic_ai
from ctxscope.model import ApiName, Body, CallView, Config, Learned, Place, Point, Rebuilt, Record, SessionRef
from ctxscope.wire import anthropic_messages, openai_chat
from ctxscope.wire.body import make_body
from tests.conftest import CAPTURES, SAMPLES

CASES = sorted(p.parent for p in CAPTURES.glob("pydantic_ai/*/case.json"))
SAMPLE = SAMPLES / "pydantic_ai/silent_4096"
REF = SessionRef("pydantic_ai", "c1", (Path("history.json"),), Path())


def log_of(*files: bytes) -> Log:
    """A log of some files, the first the fullest."""
    log = Log(REF)
    for number, data in enumerate(files):
        feed(log, data, number)
    return log


def feed(log: Log, data: bytes, number: int = 0) -> None:
    """A version of a file."""
    source = "history" if number == 0 else f"history:{number}"
    for entry in pydantic_ai.entries(Record(source, "file", Place(number, "file"), data)):
        log.add(entry)


def stored(*messages: dict[str, Any]) -> bytes:
    return json.dumps(messages, ensure_ascii=False).encode()


def asked(*parts: dict[str, Any], instructions: str | None = "Be brief.") -> dict[str, Any]:
    return {"kind": "request", "parts": list(parts), "instructions": instructions, "timestamp": "2026-02-01T09:00:00Z"}


def said(name: str, *parts: dict[str, Any], provider: str = "anthropic", **more: Any) -> dict[str, Any]:
    head = {"kind": "response", "parts": list(parts), "model_name": "fern", "provider_name": provider}
    return {**head, "provider_response_id": name, "finish_reason": "stop", "state": "complete", **more}


def prompt(content: Any) -> dict[str, Any]:
    return {"part_kind": "user-prompt", "content": content}


def text(content: str) -> dict[str, Any]:
    return {"part_kind": "text", "content": content}


def call(name: str, args: Any) -> dict[str, Any]:
    return {"part_kind": "tool-call", "tool_name": "look", "args": args, "tool_call_id": name}


def returned(name: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"part_kind": "tool-return", "tool_name": "look", "content": content, "tool_call_id": name, **more}


def body(value: dict[str, Any], api: ApiName = "openai-chat") -> Body:
    module = openai_chat if api == "openai-chat" else anthropic_messages
    return make_body(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), module)


def alone(log: Log, point: Point, api: ApiName) -> dict[str, Any]:
    """What the history alone implies for a point."""
    made = pydantic_ai.rebuild(log, point, Config(), Learned(choice={"api": api}))
    assert made is not None
    value: dict[str, Any] = json.loads(made.data)
    return value


def rebuilt(log: Log, *bodies: Body) -> list[Rebuilt]:
    """Each point's request, learned in order from the bodies served."""
    before: list[tuple[Point, Body]] = []
    found = []
    for point, served in zip(pydantic_ai.requests(log), bodies, strict=False):
        learned = pydantic_ai.learn(log, point, served, at_hand(before))
        made = pydantic_ai.rebuild(log, point, Config(), learned)
        assert made is not None
        found.append(made)
        before.append((point, served))
    return found


def views(log: Path, wire: Path) -> tuple[dict[int, CallView], Sequence[str]]:
    """Each recorded call by number, opened beside its log, and what is told."""
    inspection = ctxscope.open(log, recording=str(wire))
    try:
        found = {c.exchange.n: inspection.view(c.n) for c in inspection.snapshot.calls if c.exchange}
        return found, inspection.snapshot.notices
    finally:
        inspection.close()
