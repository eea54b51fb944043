"""Caches as providers describe them, small enough to be read beside the reference; they give planted replies their usage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tests.planted.pieces import BYTES_PER_TOKEN, Counted, Prompt, shared


@dataclass(frozen=True, slots=True)
class Times:
    """Of one exchange, in seconds: request, first byte of the reply, its end."""

    start: float
    first: float
    end: float


class Rules(Protocol):
    """A provider's cache."""

    step: int
    """Granularity of what is reported (§12, tolerance)."""
    exact: bool
    """Writes are reported, so that the next read is known to the token (§0.1)."""

    def count(self, prompt: Prompt, times: Times, output: bytes) -> Counted:
        """Usage of a call, whose prefix is kept from then on."""

    def forget(self) -> None:
        """Evict everything."""


@dataclass(slots=True)
class _Entry:
    tokens: int
    life: int
    used: float
    ready: float


@dataclass(slots=True)
class Marks:
    """Cache marks with a lookback (§2.3, §2.4): Anthropic, and Qwen's explicit mode (§1)."""

    minimum: int = 512
    lookback: int = 20
    ready_at_end: bool = False
    """An entry exists once the reply has ended, not once it has begun (Qwen)."""
    grace: float = 0.0
    """Seconds by which the deletion of what is over is late."""
    step: int = 0
    exact: bool = True
    entries: dict[tuple[str, ...], _Entry] = field(default_factory=dict)

    def count(self, prompt: Prompt, times: Times, output: bytes) -> Counted:
        marks = [i for i, piece in enumerate(prompt.pieces) if piece.mark]
        hit = self._hit(prompt, marks, times.start)
        read = prompt.at(hit) if hit is not None else 0
        write = long = 0
        for index in marks:
            tokens = prompt.at(index)
            if tokens < self.minimum or (hit is not None and index < hit):
                continue
            life = prompt.pieces[index].mark or 0
            if index != hit:
                long = tokens - read if life > 300 else long
                write = tokens - read
            ready = times.end if self.ready_at_end else times.first
            known = self.entries.get(prompt.key(index))
            ready = min(ready, known.ready) if known and index == hit else ready
            self.entries[prompt.key(index)] = _Entry(tokens, life, times.start, ready)
        return Counted(prompt.tokens, read, write, long, len(output) // BYTES_PER_TOKEN)

    def _hit(self, prompt: Prompt, marks: list[int], start: float) -> int | None:
        for mark in reversed(marks):
            for index in range(mark, max(-1, mark - self.lookback), -1):
                entry = self.entries.get(prompt.key(index))
                if entry and entry.ready <= start <= entry.used + entry.life + self.grace:
                    return index
        return None

    def forget(self) -> None:
        self.entries.clear()


@dataclass(slots=True)
class Ends:
    """Message ends and explicit marks, exact (§3.2: gpt-5.6 and later)."""

    minimum: int = 1024
    life: int = 1800
    lookup: int = 20
    step: int = 0
    exact: bool = True
    entries: dict[tuple[str, ...], _Entry] = field(default_factory=dict)

    def count(self, prompt: Prompt, times: Times, output: bytes) -> Counted:
        marks = [i for i, piece in enumerate(prompt.pieces) if piece.mark]
        ends = [] if prompt.explicit else [i for i, piece in enumerate(prompt.pieces) if piece.end]
        written = sorted({*marks[-4:], *ends[-1:]})
        looked = sorted({*marks[:2], *marks[-50:], *ends[-1 - self.lookup :], *ends[:1]})
        hit = max((i for i in looked if self._alive(prompt.key(i), times.start)), default=None)
        read = prompt.at(hit) if hit is not None else 0
        write = 0
        for index in written:
            tokens = prompt.at(index)
            if tokens < self.minimum or (hit is not None and index < hit):
                continue
            write = max(write, tokens - read)
            self.entries[prompt.key(index)] = _Entry(tokens, self.life, times.start, times.first)
        return Counted(prompt.tokens, read, write, 0, len(output) // BYTES_PER_TOKEN)

    def _alive(self, key: tuple[str, ...], start: float) -> bool:
        entry = self.entries.get(key)
        return entry is not None and entry.ready <= start <= entry.used + entry.life

    def forget(self) -> None:
        self.entries.clear()


@dataclass(slots=True)
class Longest:
    """The longest common prefix with anything kept, in steps; with ``output`` what was generated is kept, too."""

    step: int
    minimum: int = 0
    life: float = 10 * 86_400.0
    interval: int = 0
    """Distance of the marks from which a prefix counts, hidden tokens included (§3.1: 2048 for gpt-5.5)."""
    hidden: int = 0
    keeps_output: bool = False
    spares_last: bool = False
    """At most all tokens but the last are read (engines)."""
    writes: bool = False
    """What it keeps is reported (Kimi)."""
    silent: bool = False
    exact: bool = False
    kept: list[tuple[tuple[str, ...], bytes, float]] = field(default_factory=list)

    def count(self, prompt: Prompt, times: Times, output: bytes) -> Counted:
        scope = (prompt.isolation, *prompt.settings)
        best = 0
        for index, (other, text, used) in enumerate(self.kept):
            if other == scope and times.start <= used + self.life:
                length = shared(text, prompt.body)
                best = max(best, length)
                self.kept[index] = (other, text, times.start) if length else (other, text, used)
        self.kept.append((scope, prompt.body + (output if self.keeps_output else b""), times.start))
        read = self._stepped(best // BYTES_PER_TOKEN, prompt.tokens)
        write = prompt.tokens - read if self.writes else 0
        return Counted(prompt.tokens, read, write, 0, len(output) // BYTES_PER_TOKEN, self.silent)

    def _stepped(self, tokens: int, total: int) -> int:
        if self.spares_last:
            tokens = min(tokens, total - 1)
        if self.interval:
            tokens = (tokens + self.hidden) // self.interval * self.interval - self.hidden
        return max(0, tokens) // self.step * self.step if tokens >= self.minimum else 0

    def forget(self) -> None:
        self.kept.clear()


@dataclass(slots=True)
class Units:
    """Units that a later prompt must hold whole: the end of the user's input and of the model's output (§4 DeepSeek)."""

    step: int = 64
    exact: bool = False
    kept: dict[tuple[str, ...], set[bytes]] = field(default_factory=dict)
    prompts: dict[tuple[str, ...], list[bytes]] = field(default_factory=dict)

    def count(self, prompt: Prompt, times: Times, output: bytes) -> Counted:  # noqa: ARG002 - one face
        scope = (prompt.isolation, *prompt.settings)
        units = self.kept.setdefault(scope, set())
        best = max((len(unit) for unit in units if prompt.body.startswith(unit)), default=0)
        units |= {prompt.body, prompt.body + output}
        earlier = self.prompts.setdefault(scope, [])
        units |= {prompt.body[: shared(prompt.body, other)] for other in earlier}
        earlier.append(prompt.body)
        read = best // BYTES_PER_TOKEN // self.step * self.step
        return Counted(prompt.tokens, read, 0, 0, len(output) // BYTES_PER_TOKEN)

    def forget(self) -> None:
        self.kept.clear()
        self.prompts.clear()


@dataclass(slots=True)
class Slots:
    """Slots of a local server, chosen by likeness, else by age; nothing is kept beside them (§5 llama.cpp)."""

    count_of: int = 4
    step: int = 1
    exact: bool = False
    whole: bool = False
    """Without token reuse (sliding windows, no checkpoint): a prompt is processed anew."""
    slots: list[tuple[tuple[str, ...], bytes, float]] = field(default_factory=list)

    def count(self, prompt: Prompt, times: Times, output: bytes) -> Counted:
        scope = (prompt.isolation, *prompt.settings)
        likeness = [shared(text, prompt.body) if other == scope else 0 for other, text, _ in self.slots]
        best = max(range(len(likeness)), key=likeness.__getitem__, default=None)
        if best is None or likeness[best] <= 0.1 * len(prompt.body):
            if len(self.slots) < self.count_of:
                self.slots.append((scope, b"", 0.0))
                best = len(self.slots) - 1
            else:
                best = min(range(len(self.slots)), key=lambda i: self.slots[i][2])
        text = self.slots[best][1]
        read = 0 if self.whole else min(shared(text, prompt.body) // BYTES_PER_TOKEN, prompt.tokens - 1)
        self.slots[best] = (scope, prompt.body + output, times.start)
        return Counted(prompt.tokens, read, 0, 0, len(output) // BYTES_PER_TOKEN)

    def forget(self) -> None:
        self.slots.clear()
