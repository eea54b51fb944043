"""A log in another form than the body's API: compared part by part, the served messages lending their form.

A normalised log (spans, or one API's messages sent by way of another) tells what was said and by whom. How that is cut
into messages and spelled is the client's; so a served message whose parts all say what the log says is taken as it
stands, one that says something else gets the log's words in that place, and what the log does not imply is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents.messages import canonical
from ctxscope.agents.messages.conversation import CLOSE, COMMA, OPEN, SPACED_COMMA, Served
from ctxscope.agents.messages.merge import MARKS, SIGNATURES
from ctxscope.agents.messages.pieces import Pieces
from ctxscope.agents.messages.said import Part, alike, parts_of
from ctxscope.agents.messages.shapes import about
from ctxscope.agents.messages.spelling import Spelling
from ctxscope.agents.messages.trail import Trail
from ctxscope.agents.messages.tree import Node, parse
from ctxscope.model import ApiName, Piece

_BORROWED = (*MARKS, *SIGNATURES, "data", "redacted")
_FORM = frozenset(
    {
        *("role", "content", "type", "text", "tool_calls", "function", "id", "name", "arguments", "tool_call_id"),
        *(
            "tool_use_id",
            "input",
            "parts",
            "functionCall",
            "functionResponse",
            "args",
            "response",
            "thinking",
            "thought",
        ),
        *("reasoning", "reasoning_content", "reasoning_text", "reasoning_details", "refusal", "summary", "call_id"),
        *("output", "custom", "format", "index"),
    }
)
_EMPTY = ("null", "false", "[]", '""', "{}")
"""Values of other keys that say nothing."""


@dataclass(eq=False, slots=True)
class ByValue:
    """Writes the messages of one request."""

    trail: Trail
    length: int
    api: ApiName
    spelling: Spelling
    served: Served
    path: str
    thinking: bool = True
    """Reasoning is sent back."""
    index: int = 0
    found: list[Piece] = field(default_factory=list)

    def write(self, lead: Sequence[tuple[Piece, ...]]) -> tuple[Piece, ...]:
        """The whole array; ``lead`` stands before the logged messages."""
        parts = self._parts()
        for pieces in lead:
            own = self.served.item()
            self._put(pieces, own if own is not None and about(own).sort == "system" else None)
        at = 0
        seen: dict[Any, Any] = self.trail.rendered.setdefault((self.api, self.spelling, self.thinking), {})
        while at < len(parts):
            key = (at, self.index)
            known = key in seen and self.served.begins_with(seen[key][0])
            item = seen[key][0] if known else self.served.item()
            if item is None:
                break
            if not known:
                seen[key] = (item, self._like(item, parts, at))
            made = seen[key][1]
            if made is None:
                break
            self._put(made[0], item)
            at = made[1]
        for piece in canonical.messages(parts[at:], self.api, self.spelling):
            self._put((piece,), None)
        if not self.index:
            self.found.append(OPEN)
        self.found.append(CLOSE)
        return tuple(self.found)

    def _parts(self) -> list[Part]:
        """All that the log says, without the system text."""
        made: list[list[Part]] = self.trail.rendered.setdefault("parts", [])
        for number in range(len(made), self.length):
            message = self.trail.messages[number]
            made.append(
                [
                    Part(p.kind, p.words, p.id, p.name, p.sort, p.leaf, message.place, number)
                    for p in parts_of(message.text, None)
                ]
            )
        first = next((i for i in range(self.length) if self.trail.messages[i].about.sort != "system"), self.length)
        return [p for parts in made[first : self.length] for p in parts if p.kind != "thinking" or self.thinking]

    def _like(self, item: bytes, parts: Sequence[Part], at: int) -> tuple[tuple[Piece, ...], int] | None:
        """A served item with the log's words, and the number of the part behind them; ``None`` when it is another one."""
        theirs, node = parts_of(item, self.api), parse(item)
        mine = parts[at : at + len(theirs)]
        if node is None or not theirs or len(mine) < len(theirs):
            return None
        other: dict[tuple[int, int], Part] = {}
        for one, two in zip(mine, theirs, strict=True):
            same_role = (one.sort == "output") == (two.sort == "output")
            ids_part = bool(one.id and two.id and one.id != two.id) or bool(
                one.name and two.name and one.name != two.name
            )
            if one.kind != two.kind or not same_role or ids_part or two.leaf is None:
                return None
            if not alike(one, two):
                other[two.leaf.start, two.leaf.end] = one
        out = Pieces(mine[0].place)
        leaves = {(t.leaf.start, t.leaf.end) for t in theirs if t.leaf is not None}
        _Writer(out, self.spelling, leaves, other).write(node, f"{self.path}/{self.index}")
        return tuple(out.found), at + len(theirs)

    def _put(self, pieces: Sequence[Piece], served: bytes | None) -> None:
        """Write an item; the served one it stands for is passed."""
        gap = self.served.gap if served is not None else b""
        if self.index:
            self.found.append(Piece(gap) if gap.strip() else SPACED_COMMA if self.spelling.spaced else COMMA)
        else:
            self.found.append(Piece(gap) if gap else OPEN)
        self.found += pieces
        self.index += 1
        if served is not None:
            self.served.skip(len(served))
        else:
            self.served.at = None


@dataclass(eq=False, slots=True)
class _Writer:
    """Writes a served item again."""

    out: Pieces
    spelling: Spelling
    leaves: set[tuple[int, int]]
    """Values that hold words; nothing in them is looked at."""
    other: Mapping[tuple[int, int], Part]
    """By such a value, the log's part that says something else."""

    def write(self, node: Node, path: str) -> None:
        """Write a value."""
        span = (node.start, node.end)
        if span in self.other:
            part = self.other[span]
            value = canonical.words_as(part.kind, part.words, is_text=node.is_string or node.kind == "array")
            self.out.logged(self.spelling.value(value))
        elif span in self.leaves or node.kind == "value":
            self.out.logged(node.raw)
        elif node.kind == "array":
            at = node.start
            for number, item in enumerate(node.items):
                self.out.logged(node.data[at : item.start])
                self.write(item, f"{path}/{number}")
                at = item.end
            self.out.logged(node.data[at : node.end])
        else:
            self._object(node, path)

    def _object(self, node: Node, path: str) -> None:
        self.out.logged(b"{")
        at, first = node.start + 1, True
        for key, value in node.members:
            lead = node.data[at : value.start]
            at = value.end
            if key not in _FORM and key not in _BORROWED and value.raw.decode("utf-8", "replace") not in _EMPTY:
                continue
            self.out.logged(lead.lstrip(b", \t\r\n") if first else lead)
            first = False
            is_own_id = key in ("id", "status") and path.count("/") == 2 and path.startswith("/input/")  # noqa: PLR2004
            if key in _BORROWED or is_own_id:
                self.out.borrowed(value.raw, f"{path}/{key}")
            else:
                self.write(value, f"{path}/{key}")
        self.out.logged(node.data[at : node.end] if node.members else b"}")
