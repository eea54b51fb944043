"""The system prompt as served: a message, a string or cache-marked blocks (hermes.md §4.4.1, §4.7.5, §4.8.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.hermes.envelope import PROMPTS
from ctxscope.agents.hermes.log import prompt_text
from ctxscope.agents.hermes.prompts import system_entry
from ctxscope.model import ApiName, Learned, Piece, Point
from ctxscope.wire.json_text import loads, py


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """A system prompt ready to be spelled."""

    text: str
    piece: Piece
    """Origin of its bytes; ``data`` is not used."""
    blocks: tuple[Mapping[str, Any], ...]
    """Empty: it is sent as a string."""
    role: str

    @property
    def marks(self) -> int:
        """Cache marks it carries."""
        return sum(1 for b in self.blocks if "cache_control" in b)

    def value(self) -> list[Piece]:
        """The top-level value."""
        spelled = py(list(self.blocks) if self.blocks else self.text)
        return [
            Piece(spelled.encode("utf-8", "surrogatepass"), self.piece.provenance, self.piece.place, self.piece.path)
        ]

    def message(self) -> list[Piece]:
        """The first message of a chat body; none when there is no prompt."""
        if not self.text:
            return []
        content = list(self.blocks) if self.blocks else self.text
        spelled = py({"role": self.role, "content": content})
        return [
            Piece(spelled.encode("utf-8", "surrogatepass"), self.piece.provenance, self.piece.place, self.piece.path)
        ]


def system_of(log: Log, point: Point, learned: Learned, api: ApiName) -> System:
    """The system prompt of a call: the stored one, or one learned where its row was deleted."""
    entry = system_entry(log, point)
    path = PROMPTS[api]
    value = learned.values.get(path)
    origin = Piece(b"")
    text = ""
    if entry is not None:
        text, origin = prompt_text(entry).strip(), Piece(b"", "logged", entry.place)
    elif value is not None and value.data is not None:
        found = loads(value.data)
        text = found["content"] if isinstance(found, dict) else found
        origin = Piece(b"", value.provenance, path=path)
    mark = learned.choice.get("mark")
    return System(text, origin, _blocks(text, learned, mark), learned.choice.get("system_role") or "system")


def _blocks(text: str, learned: Learned, mark: Mapping[str, Any] | None) -> tuple[Mapping[str, Any], ...]:
    split = learned.choice.get("split")
    if mark is None:
        return ({"type": "text", "text": text},) if learned.choice.get("blocks") and text else ()
    parts = [text[:split], text[split:]] if split is not None else [text]
    return tuple({"type": "text", "text": p, "cache_control": mark} for p in parts if p)
