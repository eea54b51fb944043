"""A session's files put together in order, and what they tell beside its calls (kimi.md §2, §6)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.kimi.chapter import CHARACTERS, Chapter
from ctxscope.agents.kimi.events import Events
from ctxscope.agents.kimi.rows import agent_of, parts, rotation_of, text_of
from ctxscope.agents.reading.charges import Charge, estimated, rounded
from ctxscope.model import Config, Entry, Estimate, Point
from ctxscope.wire.blocks import integer

RESERVED, RATIO = 50_000, 0.85
"""Tokens kept free, and the share of the window filled, before the agent compacts by itself (defaults of 1.40)."""


@dataclass(eq=False, repr=False)
class Story:
    """Chapters and events by source, folded as far as the log goes."""

    read: int = 0
    """Observations taken in."""
    lines: dict[str, dict[int, Entry]] = field(default_factory=dict)
    """By source, what each line holds now."""
    chapters: dict[str, Chapter] = field(default_factory=dict)
    events: dict[str, Events] = field(default_factory=dict)

    def take(self, entries: Iterable[Entry]) -> None:
        """Add the next observations; a file of which a line changed is folded anew."""
        changed: set[str] = set()
        for entry in entries:
            if not entry.source.startswith(("context", "wire")):
                continue
            lines = self.lines.setdefault(entry.source, {})
            last, number = next(reversed(lines), 0), entry.place.number
            lines[number] = entry
            if number <= last or entry.kind == "gone":
                changed.add(entry.source)
            elif entry.source not in changed:
                self._file(entry.source).take(entry)
        for source in changed:
            self.lines[source] = {n: e for n, e in sorted(self.lines[source].items()) if e.kind != "gone"}
            (self.chapters if source.startswith("context") else self.events).pop(source, None)
            for entry in self.lines[source].values():
                self._file(source).take(entry)

    def order(self, agent: str = "") -> list[Chapter]:
        """The context files of the session itself or of a subagent, in the order they were written."""
        own = sorted((s for s in self.chapters if agent_of(s) == agent), key=rotation_of)
        return [self.chapters[source] for source in own]

    def agents(self) -> list[str]:
        """The subagents."""
        return sorted({agent_of(source) for source in self.chapters} - {""})

    def told(self, agent: str = "") -> Events:
        """The events of the session itself or of a subagent."""
        return self.events.get(f"wire:{agent}" if agent else "wire") or Events()

    def _file(self, source: str) -> Chapter | Events:
        if source.startswith("context"):
            return self.chapters.setdefault(source, Chapter())
        return self.events.setdefault(source, Events())


def story_of(log: Log) -> Story:
    """The story of a log, continued with what is new."""
    story: Story = shared_memo(log, "kimi.story").setdefault("story", Story())
    if story.read < len(log.versions):
        story.take(log.versions[story.read :])
        story.read = len(log.versions)
    return story


def config(log: Log) -> Config:
    """The window as the events tell it, and the size at which the agent compacts, by its settings."""
    at = log.index.get("config")
    loop = log.entries[at].data.get("loop_control") if at is not None else None
    loop = loop if isinstance(loop, dict) else {}
    window, ratio = story_of(log).told().window, loop.get("compaction_trigger_ratio")
    ratio = float(ratio) if isinstance(ratio, int | float) and math.isfinite(ratio) else RATIO
    if window is None:
        return Config()
    reserved = integer(loop.get("reserved_context_size")) or RESERVED
    threshold = max(0, min(int(window * ratio), window - reserved))
    return Config(window=window, threshold=threshold, window_by="log", threshold_by="rule")


def estimates(log: Log, point: Point) -> tuple[Estimate, ...]:  # noqa: ARG001 - the face's signature
    """The agent's own: the size last noted, and ``floor(characters / 4)`` of the texts since."""
    chapter: Chapter = point.data["chapter"]
    length = len(point.context)
    if not length:
        return ()
    noted, since = chapter.noted[length - 1]
    later = chapter.charges.upto(chapter.messages, length, _texts, since)
    charged = {**rounded(later, CHARACTERS, math.floor), "reported": noted}
    return (estimated("Kimi CLI", charged, frozenset()),)


def _texts(message: Entry) -> Charge:
    """Characters of a message's texts; of the prompt none."""
    kind = "tool_results" if message.kind == "tool" else "text"
    texts = map(text_of, parts(message.data.get("content")))
    return {} if message.kind == "prompt" else {kind: sum(map(len, texts))}


def naive(log: Log, point: Point) -> int | None:  # noqa: ARG001 - the face's signature
    """ceil(characters / 4) of the context's rows as logged."""
    chapter: Chapter = point.data["chapter"]
    return math.ceil(chapter.characters[len(point.context) - 1] / CHARACTERS) if point.context else None
