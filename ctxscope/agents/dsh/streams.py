"""What a log keeps of an answer as it came in, piece by piece (dsh.md §3): in v0 events, from v3 on in the answer's record.

An answer that was cut keeps less than came: a tool call that is not whole is dropped. The stream beside it still has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents.dsh.lines import PACKED
from ctxscope.agents.dsh.texts import listed, mapped, string, whole
from ctxscope.model import Entry

_KINDS = {"text": "text", "reasoning": "reasoning", "tool-call": "tool-call"}


@dataclass(slots=True)
class _Open:
    """A block as far as it came."""

    kind: str
    texts: list[str] = field(default_factory=list)
    id: str = ""
    name: str = ""
    closed: Mapping[str, Any] | None = None

    def block(self) -> Mapping[str, Any]:
        if self.closed is not None:
            return self.closed
        text = "".join(self.texts)
        if self.kind == "tool-call":
            return {"type": "tool-call", "id": self.id, "name": self.name, "arguments": text}
        return {"type": self.kind, "text": text}


def rows(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows of the stream a record keeps (v3, v4)."""
    return [mapped(row) for row in listed(data.get("stream"))]


def rows_of(entries: Iterable[Entry]) -> list[Mapping[str, Any]]:
    """The same out of v0's events, a row each."""
    found: list[Mapping[str, Any]] = []
    for entry in entries:
        data = mapped(entry.data.get("data"))
        found.append({"type": "chunk", **data} if entry.kind == "assistant/chunk" else {**data, "type": entry.kind})
    return found


def assembled(given: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The blocks a stream brought, whole or not, in the form of a message's content."""
    found: dict[int, _Open] = {}
    for index, kind, text, row in _deltas(given):
        one = found.setdefault(index, _Open(kind))
        one.texts.append(text)
        one.id, one.name = string(row.get("id")) or one.id, string(row.get("name")) or one.name
        if row.get("type") == "block-end" and mapped(row.get("block")):
            one.closed = one.closed or mapped(row["block"])
    return [found[index].block() for index in sorted(found)]


def _deltas(given: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, str, str, Mapping[str, Any]]]:
    """Block number, kind, what is added to it, and the row that says so."""
    for row in given:
        packed = string(row.get("type"))
        if packed in PACKED:
            texts = listed(row.get(PACKED[packed]))
            yield whole(row.get("index")) or 0, packed.removesuffix("-chunks"), "".join(map(string, texts)), row
            continue
        chunk = mapped(row.get("chunk"))
        kind = _kind(chunk)
        if kind:
            text = string(chunk.get("text")) or string(chunk.get("argumentsDelta"))
            yield whole(chunk.get("index")) or 0, kind, text, chunk


def _kind(chunk: Mapping[str, Any]) -> str:
    """The kind of block a chunk begins, adds to or ends; empty for other chunks (usage, the end)."""
    kind = string(chunk.get("type"))
    if kind == "block-start":
        return _KINDS.get(string(chunk.get("blockType")), "")
    if kind == "block-end":
        return _KINDS.get(string(mapped(chunk.get("block")).get("type")), "")
    return kind.removesuffix("-delta") if kind in _DELTAS else ""


_DELTAS = ("text-delta", "reasoning-delta", "tool-call-delta")


def finish(given: Sequence[Mapping[str, Any]]) -> str | None:
    """Why a stream ended, as its last row that says so does."""
    kind = _reason(given).get("kind")
    return kind if isinstance(kind, str) else None


def failure(given: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What went wrong (``code``, ``status``, ``message``), where a stream ended so."""
    return mapped(_reason(given).get("failure"))


def _reason(given: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    told = [c for c in (mapped(row.get("chunk")) for row in given) if c.get("type") == "finish"]
    return mapped(told[-1].get("reason")) if told else {}
