"""The system prompt and tools a log implies: system messages folded into one another (pi.md §4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents.pi.texts import clean, quoted, string
from ctxscope.model import Piece, Place

JOIN = Piece(b"\\n\\n")
"""What stands between the parts of the prompt, as spelled inside a JSON string."""


@dataclass(frozen=True, slots=True)
class Part:
    """A text of the system prompt and the entry that set it."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool's definition as logged and the entry that added it."""

    definition: Mapping[str, Any]
    place: Place


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """System prompt and tools after the system messages of a path so far."""

    contents: tuple[Part, ...] = ()
    sections: Mapping[str, Part] = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    spelled: dict[Any, tuple[Piece, ...]] = field(default_factory=dict)
    """What was spelled from it, by form; a function of the head alone."""

    def after(self, message: Mapping[str, Any], place: Place) -> Head:
        """The head once ``message`` is folded in: contents add up, sections are patched, tools removed, then added."""
        text = string(message.get("content"))
        sections = dict(self.sections)
        for name, value in _items(message.get("sections")):
            if value is None:
                sections.pop(name, None)
            else:
                sections[name] = Part(string(value), place)
        tools = dict(self.tools)
        for name in removed(message):
            tools.pop(name, None)
        for tool in added(message):
            tools[string(tool.get("name"))] = Tool(tool, place)
        return Head((*self.contents, *((Part(text, place),) if text else ())), sections, tools)

    def same(self, other: Head) -> bool:
        """Whether both give the same prompt and tools, set by the same entries."""
        return self is other or (self.parts() == other.parts() and self.tools == other.tools)

    def parts(self) -> list[Part]:
        """The texts of the prompt in order, none empty."""
        return [p for p in (*self.contents, *self.sections.values()) if clean(p.text)]

    def text(self) -> tuple[Piece, ...]:
        """The prompt as the inside of a JSON string, each part with its entry."""
        if "text" not in self.spelled:
            pieces: list[Piece] = []
            for part in self.parts():
                pieces += [JOIN] if pieces else []
                pieces.append(Piece(quoted(part.text)[1:-1], "logged", part.place))
            self.spelled["text"] = tuple(pieces)
        return self.spelled["text"]


def _items(value: Any) -> Sequence[tuple[str, Any]]:
    return tuple(value.items()) if isinstance(value, Mapping) else ()


def added(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Definitions a system message adds."""
    tools = message.get("toolsAdded")
    return [t for t in tools if isinstance(t, Mapping)] if isinstance(tools, list) else []


def removed(message: Mapping[str, Any]) -> list[str]:
    """Names of the tools a system message removes."""
    tools = message.get("toolsRemoved")
    return [string(t.get("name")) for t in tools if isinstance(t, Mapping)] if isinstance(tools, list) else []


def native_text(message: Mapping[str, Any]) -> str:
    """The text of a system message sent in its place in the conversation instead of folded into the head."""
    parts = [string(message.get("content"))]
    for name, value in _items(message.get("sections")):
        parts.append(
            f'Removed system prompt section "{name}".'
            if value is None
            else f'Updated system prompt section "{name}":\n\n{string(value)}'
        )
    return "\n\n".join(p for p in parts if p)
