"""A recording while it is planted: calls follow one another, the provider's rules give each its usage."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.planted.dialects import JSON, Answer, Dialect, answer, dumps, first_words, news
from tests.planted.pieces import BYTES_PER_TOKEN, Counted, Prompt, shared
from tests.planted.rules import Rules, Times
from tests.planted.shapes import SURE, Expected, Planted, Transition
from tests.planted.texts import TOOLS, system_text

START = 1_790_000_000.0
_ROUGH = 0.25
"""Share by which an estimate from bytes may be off where the rules give no exact number."""


@dataclass(slots=True)
class Call:
    """One call that was planted."""

    n: int
    body: JSON
    prompt: Prompt
    counted: Counted
    answer: Answer


@dataclass(slots=True)
class Tape:
    """Where calls are put, one after the other."""

    provider: str
    host: str
    dialect: Dialect
    rules: Rules
    model: str
    headers: dict[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = TOOLS
    system: str = field(default_factory=system_text)
    thinking: bool = False
    stamp: Callable[[int, float], float] = lambda n, t: t  # noqa: ARG005 - the face of stamps
    """What the recorder's clock says of a time of call ``n``."""
    spell: Callable[[int, JSON], bytes] = lambda n, body: dumps(body)  # noqa: ARG005 - the face of spellings
    """How the client spells the body of call ``n``."""
    clock: float = START
    calls: list[Call] = field(default_factory=list)
    exchanges: list[Planted] = field(default_factory=list)
    expect: list[Expected] = field(default_factory=list)

    # --- asking ---
    def opening(self, seed: str = "main") -> JSON:
        """The first body of a story."""
        words = first_words(seed, self.dialect.accents)
        return self.dialect.opening(self.model, self.system, self.tools, words)

    def answer(self, turn: int, seed: str = "main") -> Answer:
        return answer(turn, seed, self.thinking)

    def ask(
        self,
        body: JSON,
        *,
        after: float = 20.0,
        wait: float = 1.5,
        takes: float = 6.0,
        turn: int | None = None,
        seed: str = "main",
        headers: dict[str, str] | None = None,
        usage: Callable[[Counted], Counted] | None = None,
        extra: JSON | None = None,
        rendered: JSON | None = None,
        path: str | None = None,
        failed: tuple[int, bytes] | None = None,
    ) -> Call:
        """A call ``after`` seconds from the last one's start; what the server shows its model may be ``rendered``."""
        n = len(self.calls) + 1
        self.clock += after if self.calls else 0.0
        sent = {"host": self.host, "content-type": "application/json"} | (self.headers | (headers or {}))
        given = self.answer(len(self.calls) if turn is None else turn, seed)
        prompt = self.dialect.prompt(rendered or body, sent)
        times = Times(self.clock, self.clock + wait, self.clock + max(wait, takes))
        if failed:
            counted = Counted(prompt.tokens)
            status, reply = failed
        else:
            counted = self.rules.count(prompt, times, self.dialect.generated(given))
            counted = usage(counted) if usage else counted
            status = 200
            number = f"{self.provider}{n:02d}{seed}".encode().hex()[:24]
            reply = self.dialect.reply(body, counted, given, number, extra or {})
        stamps = [self.stamp(n, t) for t in (times.start, times.first, times.end)]
        request = self.spell(n, body)
        self.exchanges.append(Planted(n, *stamps, path or self.dialect.path, sent, request, reply, status))
        call = Call(n, copy.deepcopy(body), prompt, counted, given)
        self.calls.append(call)
        return call

    def begin(self, calls: int = 3, body: JSON | None = None, **how: float) -> JSON:
        """An ordinary conversation, from ``body`` on; gives the body that would follow, unsent."""
        body = body or self.opening()
        for turn in range(calls):
            call = self.ask(body, **how)  # type: ignore[arg-type]
            self.note(self.cold(call) if turn == 0 else self.warm(call, call.n - 1))
            body = self.dialect.grow(body, call.answer, news(turn, "main", self.dialect.accents))
        return body

    def grown(self, call: Call, turn: int, seed: str = "main") -> JSON:
        """The body that follows a call in an append."""
        return self.dialect.grow(call.body, call.answer, news(turn, seed, self.dialect.accents))

    # --- expecting ---
    def note(self, *expected: Expected) -> None:
        self.expect += expected

    def cold(self, call: Call, cause: str | None = None) -> Expected:
        """Nothing could be read; of the very first call it is plain why."""
        cause = cause or ("first_call_cold" if call.n == 1 else None)
        return Expected(call.n, "cold", cause, (cause,) if cause else ())

    def warm(self, call: Call, parent: int | None = None) -> Expected:
        """Nothing lost: what was read is what the rules let it read."""
        return Expected(call.n, "warm", None, parent=parent, expected_read=self._may_read(call, parent))

    def _may_read(self, call: Call, parent: int | None) -> int | tuple[int, int] | None:
        if call.counted.silent or self.provider == "unknown" or parent is None:
            return None
        if self.rules.exact:
            return call.counted.read
        before = self.calls[parent - 1].counted.total
        low, high = sorted((before, call.counted.read))
        return max(0, low - max(self.rules.step, 1)), high + self.rules.step

    def broken(
        self,
        call: Call,
        cause: str | None,
        path: str | None,
        *others: str,
        parent: int | None = None,
        confidence: frozenset[str] = SURE,
        also: frozenset[str] = frozenset(),
    ) -> Expected:
        """The parent's prompt is no prefix any more."""
        return self._lossy("break", call, cause, path, others, parent, confidence, also)

    def missed(
        self,
        call: Call,
        cause: str | None,
        *others: str,
        parent: int | None = None,
        confidence: frozenset[str] = SURE,
        also: frozenset[str] = frozenset(),
    ) -> Expected:
        """The prefix is whole, but was not read."""
        return self._lossy("miss", call, cause, None, others, parent, confidence, also)

    def _lossy(
        self,
        verdict: str,
        call: Call,
        cause: str | None,
        path: str | None,
        others: tuple[str, ...],
        parent: int | None,
        confidence: frozenset[str],
        also: frozenset[str],
    ) -> Expected:
        before = self.calls[(parent or call.n - 1) - 1].counted
        whole = self.rules.exact and call.counted.total >= before.kept
        lost = max(0, before.kept - call.counted.read) if whole else None
        named = tuple(dict.fromkeys((cause, *others))) if cause else others
        read = None if verdict == "miss" else self._left(call)
        return Expected(call.n, verdict, cause, named, confidence, parent or call.n - 1, path, read, lost, also)

    def _left(self, call: Call) -> int | tuple[int, int] | None:
        """What a broken prefix lets it read: up to the difference, where no rule says how much of that.

        The end of an entry inside a prompt (a mark on the head) was never reported on its own: that is an estimate.
        """
        read = call.counted.read
        if call.counted.silent or self.provider == "unknown":
            return None
        if self.rules.exact:
            known = {0, *(c.counted.kept for c in self.calls if c.n < call.n)}
            return read if read in known else (0, int(read * (1 + _ROUGH)))
        before = [c.prompt for c in self.calls if c.n < call.n and c.prompt.key(0)[:-1] == call.prompt.key(0)[:-1]]
        if not before:
            return 0
        common = max(shared(call.prompt.body, other.body) for other in before) // BYTES_PER_TOKEN
        slack = max(self.rules.step, int(common * _ROUGH)) + 64
        return 0, common + slack

    def done(self, name: str, stands_on: str) -> Transition:
        """What was planted, under a name."""
        return Transition(name, self.provider, tuple(self.exchanges), tuple(self.expect), stands_on)
