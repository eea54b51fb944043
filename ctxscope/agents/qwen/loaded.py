"""A chat file as a process reads it that takes the session up, where that is not what the process before it held.

A cut answer that was asked for again is read back with the answer that took its place. Some versions of Node end a line at
U+2028 and U+2029 too: a record that holds one is lost to them, and with it all that it follows (seen with 0.15.10).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ctxscope.agents.qwen.contents import parts_of
from ctxscope.agents.qwen.history import Turn
from ctxscope.agents.qwen.lines import COMPRESSION
from ctxscope.model import Entry

_ENDS = ("\u2028".encode(), "\u2029".encode())
_HEADLESS = re.compile(r"[0-9a-f]{6,}")
"""Id of a prompt whose process answers that one alone; an interactive one counts its prompts behind the session's id."""


def is_broken(entry: Entry) -> bool:
    """Whether a line is more than one to some versions of Node."""
    return any(end in entry.raw for end in _ENDS)


def is_headless(told: Mapping[str, object]) -> bool:
    """Whether the telemetry of a reply says that its prompt had a process of its own."""
    name = told.get("prompt_id")
    return isinstance(name, str) and _HEADLESS.fullmatch(name) is not None


@dataclass(eq=False, slots=True, repr=False)
class Chain:
    """Lines by what they follow."""

    lines: dict[str, tuple[Entry, str | None]] = field(default_factory=dict)
    breaks: bool = False
    """Whether the log shows that a process did not read a line with such an end back."""
    _read: dict[str, tuple[list[Entry], tuple[Turn, ...]]] = field(default_factory=dict)
    """What was read up to a line, and from which lines: every call of a process asks for it."""

    def add(self, entry: Entry, newest: Entry | None, parent: str | None) -> None:
        """Add the next line."""
        self.lines[entry.key] = (entry, parent)
        if entry.kind == "user" and newest is not None and is_broken(newest):
            self.breaks = parent != newest.key

    def read(self, key: str) -> tuple[Entry | None, tuple[Turn, ...]]:
        """The contents up to a line, as read back; from the last compression on, which is read as it was held."""
        found: list[Entry] = []
        compression: Entry | None = None
        step: str | None = key
        while step is not None and step in self.lines:
            entry, step = self.lines[step]
            if self.breaks and is_broken(entry):
                break
            if entry.kind == COMPRESSION:
                compression = entry
                break
            found.append(entry)
        if key not in self._read or self._read[key][0] != found:
            self._read[key] = found, _contents(found[::-1])
        return compression, self._read[key][1]


def _contents(entries: Sequence[Entry]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    results = False
    for entry in entries:
        if entry.kind not in {"user", "assistant", "tool_result"}:
            continue
        parts, length = parts_of(entry.data.get("message")), len(entry.raw.decode("utf-8", "replace"))
        if entry.kind == "tool_result" and results:
            turns[-1] = turns[-1].with_more(parts, entry, length)
        elif parts or entry.kind != "assistant":
            turns.append(Turn("model" if entry.kind == "assistant" else "user", parts, entry, length))
        results = entry.kind == "tool_result"
    return tuple(turns)
