"""Spells a raw folder: ``index.jsonl`` beside ``NNNN.req`` and ``NNNN.res``."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

T0 = 1769936400.0
"""2026-02-01T09:00:00Z; every time in the samples is so many seconds after it."""


def compact(value: Any) -> str:
    """JSON as ``json.dumps(separators=(",", ":"), ensure_ascii=False)`` of Python and JSON.stringify both write it.

    They agree on the values used here: no floats, no integer-like keys, no control characters beyond \\n and \\t.
    """
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@dataclass
class Recording:
    """Exchanges in the order they arrived, numbered from 1."""

    path: str
    headers: dict[str, str]
    lines: list[str] = field(default_factory=list)
    bodies: list[tuple[bytes, bytes]] = field(default_factory=list)

    def add(self, at: float, body: str, reply: str, took: float = 1.5, status: int = 200) -> int:
        """Appends an exchange that arrived ``at`` seconds after T0; gives its number."""
        request, response = body.encode(), reply.encode()
        n = len(self.lines) + 1
        line = {
            "n": n,
            "t": T0 + at,
            "t_first": T0 + at + took / 2,
            "t_end": T0 + at + took,
            "method": "POST",
            "path": self.path,
            "headers": {**self.headers, "content-length": str(len(request))},
            "req_bytes": len(request),
            "status": status,
        }
        self.lines.append(json.dumps(line))
        self.bodies.append((request, response))
        return n

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.jsonl").write_bytes("".join(line + "\n" for line in self.lines).encode())
        for n, (request, response) in enumerate(self.bodies, 1):
            (folder / f"{n:04d}.req").write_bytes(request)
            (folder / f"{n:04d}.res").write_bytes(response)


def pieces(text: str) -> list[str]:
    """A streamed text in two halves, as deltas carry it."""
    half = len(text) // 2
    return [part for part in (text[:half], text[half:]) if part]
