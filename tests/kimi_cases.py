"""Kimi CLI sessions for tests: files put where the agent keeps them, read as the session room reads them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxscope.agents import kimi
from ctxscope.model import Config, Learned, Point, SessionRef
from ctxscope.session.fold import SessionLog
from tests.conftest import CAPTURES, SAMPLES

NAME = "5e551011-0000-4000-8000-000000000001"
SAMPLE = SAMPLES / "kimi" / "compaction_rotates"
FOLDERS = [*(p.parent for p in sorted(CAPTURES.glob("kimi/*/case.json"))), SAMPLE]
"""Recorded cases, and the sample."""


def folder_in(home: Path, name: str = NAME) -> Path:
    folder = home / ".kimi" / "sessions" / "0123456789abcdef0123456789abcdef" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def put(path: Path, rows: Sequence[Any]) -> None:
    """Rows as lines; text as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows), encoding="utf-8")


def read(home: Path) -> SessionLog:
    """The one session below a home, read once."""
    (ref,) = kimi.discover(home)
    return opened(ref)


def opened(ref: SessionRef) -> SessionLog:
    session = SessionLog.open(ref)
    session.poll()
    return session


def copied(folder: Path, target: Path) -> Path:
    """A case that may be changed."""
    shutil.copytree(folder, target, copy_function=shutil.copyfile)
    return target


def contexts(folder: Path) -> list[Path]:
    return sorted(folder.rglob("context*.jsonl"), key=lambda p: (p.name == "context.jsonl", p.name))


def system(text: str = "Be brief.") -> dict[str, Any]:
    return {"role": "_system_prompt", "content": text}


def checkpoint(number: int) -> dict[str, Any]:
    return {"role": "_checkpoint", "id": number}


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str, *calls: str) -> dict[str, Any]:
    made = [{"type": "function", "id": c, "function": {"name": "Shell", "arguments": "{}"}} for c in calls]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if calls else {})}


def tool(call: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "content": [{"type": "text", "text": text}], "tool_call_id": call}


def event(kind: str, at: float = 1.0, **payload: Any) -> dict[str, Any]:
    return {"timestamp": at, "message": {"type": kind, "payload": payload}}


def answered(name: str, text: str, *calls: str, at: float = 1.0) -> list[dict[str, Any]]:
    """The events of one step."""
    seen = [event("ContentPart", type="text", text=text)] if text else []
    seen += [event("ToolCall", type="function", id=c, function={"name": "Shell", "arguments": "{}"}) for c in calls]
    usage = {"input_other": 10, "output": 2, "input_cache_read": 4, "input_cache_creation": 0}
    status = event("StatusUpdate", at, token_usage=usage, message_id=name, max_context_tokens=1000)
    return [event("StepBegin", n=1), *seen, status]


METADATA = {"type": "metadata", "protocol_version": "1.9"}
SUMMARY = [
    {"type": "text", "text": t}
    for t in ("<system>Previous context has been compacted. Here is the compaction output:</system>", "S")
]
FIRST = [
    system(),
    checkpoint(0),
    user("one"),
    checkpoint(1),
    assistant("a", "c1"),
    tool("c1", "r"),
    checkpoint(2),
    assistant("b"),
]


def messages(log: Any, point: Point) -> list[Any]:
    rebuilt = kimi.rebuild(log, point, Config(), Learned())
    assert rebuilt is not None
    return json.loads(rebuilt.data)["messages"]


def told(log: Any) -> list[tuple[str, str, int, str, bool]]:
    """All that may be compared between two readings; the numbers of files may differ."""
    return [(p.key, p.kind, p.turn, p.place.at, p.answer is None) for p in kimi.requests(log)]
