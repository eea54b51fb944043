"""A Claude Code log of any size: the turns of the sample again and again, their tool results grown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conftest import SAMPLES

SAMPLE = SAMPLES / "claude_code" / "hooks_around_compaction" / "log"
COUNTER, UUID_DASHES = 8, 4
"""Digits at the front of the ids of one round by which they differ from those of another."""


def write_log(home: Path, size: int, text_bytes: int) -> Path:
    """Write a transcript of about ``size`` bytes below a home, each tool result ``text_bytes`` long; gives its path."""
    (source,) = (p for p in SAMPLE.rglob("*.jsonl") if "subagents" not in p.parts)
    records = [json.loads(line) for line in source.read_bytes().splitlines()]
    log = home / source.relative_to(SAMPLE)
    log.parent.mkdir(parents=True)
    written, last, number = 0, None, 0
    with log.open("wb") as file:
        while written < size:
            for record in _round(records, number, last, text_bytes):
                line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
                written += file.write(line)
                last = record.get("uuid") or last
            number += 1
    return log


def _round(records: list[dict[str, Any]], number: int, last: str | None, text_bytes: int) -> Iterator[dict[str, Any]]:
    """The sample's records with ids of their own, chained behind ``last``, and long tool results."""
    for at, record in enumerate(records):
        if record.get("isSidechain") or record["type"] == "file-history-snapshot":
            continue
        new = _renamed(record, number)
        if at == 0:
            new["parentUuid"] = last
        for block in _blocks(new):
            if block.get("type") == "tool_result":
                block["content"] = _text(text_bytes, f"{number} {at}")
        yield new


def _renamed(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {
            k: _id(v, number) if _names(k) and isinstance(v, str) else _renamed(v, number) for k, v in value.items()
        }
    return [_renamed(v, number) for v in value] if isinstance(value, list) else value


def _names(key: str) -> bool:
    return key in ("id", "requestId", "tool_use_id") or (key.lower().endswith("uuid") and key != "sessionId")


def _id(name: str, number: int) -> str:
    """An id of one round: a uuid stays as long as it is, since lines are known by uuids of that form alone."""
    return f"{number:0{COUNTER}x}{name[COUNTER:] if name.count('-') == UUID_DASHES else name}"


def _blocks(record: dict[str, Any]) -> list[dict[str, Any]]:
    content = record.get("message", {}).get("content")
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _text(size: int, seed: str) -> str:
    words = f"line {seed} of a long listing that a tool gave, with numbers 1234 and a path src/module/part.py\n"
    return (words * (size // len(words) + 1))[:size]
