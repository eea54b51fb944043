"""The system prompt of a subagent, which its log holds (``session_init``; omp.md §3): served parts are told to be logged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.omp.points import node_of
from ctxscope.agents.omp.spelling import quoted
from ctxscope.agents.omp.tree import path
from ctxscope.agents.pi.texts import blocks, string
from ctxscope.model import Piece, Place, Point
from ctxscope.wire import json_text

_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt as logged."""

    text: str
    place: Place

    def marked(self, values: Sequence[Piece]) -> list[list[Piece]] | None:
        """Learned values that carry the prompt, cut so that its text is logged; ``None`` where they carry another one."""
        texts = [_texts(v.data) for v in values]
        flat = [t for some in texts for t in some]
        skipped = next((n for n in range(len(flat)) if _BETWEEN.join(flat[n:]) == self.text), None)
        if skipped is None:
            return None
        found = []
        for value, some in zip(values, texts, strict=True):
            found.append(self._cut(value, some[skipped:]))
            skipped = max(0, skipped - len(some))
        return found

    def alone(self, api: str) -> list[Piece]:
        """The prompt as it would stand where no served body shows how it is cut."""
        ends = (b'[{"type":"text","text":', b"}]") if api == "anthropic-messages" else (b"", b"")
        return [Piece(e) for e in ends[:1] if e] + [self._logged(self.text)] + [Piece(e) for e in ends[1:] if e]

    def _cut(self, value: Piece, texts: Sequence[str]) -> list[Piece]:
        found: list[Piece] = []
        rest = value.data
        for text in texts:
            before, spelled, rest = rest.partition(quoted(text))
            found += [replace(value, data=before), self._logged(text)] if spelled else []
        return [p for p in (*found, replace(value, data=rest)) if p.data]

    def _logged(self, text: str) -> Piece:
        return Piece(quoted(text), "logged", self.place)


def prompt_of(log: Log, point: Point) -> Prompt | None:
    """The prompt that holds for a call; ``None`` in a session of a user, of which the log has none."""
    for node in path(node_of(log, point)):
        text = node.entry.data.get("systemPrompt") if node.entry.kind == "session_init" else None
        if isinstance(text, str) and text:
            return Prompt(text, node.entry.place)
    return None


def _texts(value: bytes) -> list[str]:
    """The texts of a prompt in any API's form."""
    try:
        data: Any = json_text.loads(value)
    except ValueError:
        return []
    if isinstance(data, dict):
        data = data.get("content", data.get("parts"))
    return [data] if isinstance(data, str) else [string(b.get("text")) for b in blocks(data)]
