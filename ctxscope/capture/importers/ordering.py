"""Exchanges of any captures into the one stream of events that a recorder would have seen, in order of arrival."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count

from ctxscope.capture.events import Chunk, End, Event, Head, Message, Request
from ctxscope.capture.importers.imported import Imported, Item
from ctxscope.model import CtxscopeError

_APART = 1e-6
"""Seconds between messages of a connection that are told to be of one moment."""
Told = Request | Head | Chunk | End | Message
"""What an exchange consists of."""


def events(items: Sequence[Item]) -> Iterator[Event]:
    """What happened, by time; of equal times in the order given. An exchange is read when it is its turn.

    Exchanges and messages of clients are numbered as they arrive; where all items have numbers of their own these stay.
    Raises ``CtxscopeError`` when a capture is no longer what it was.
    """
    queue = _Queue(_kept_numbers(items))
    for item in sorted(items, key=lambda item: item.time):
        yield from queue.before(item.time)
        queue.take(item)
    yield from queue.before(None)


def _kept_numbers(items: Iterable[Item]) -> bool:
    numbers = [item.n for item in items]
    return None not in numbers and len(set(numbers)) == len(numbers) and all(n is not None and n >= 1 for n in numbers)


@dataclass(slots=True)
class _Numbers:
    """Of one exchange, once its request was given out."""

    n: int = 0
    said: int = 0
    """Of the client's last message, or of the upgrade."""


@dataclass(slots=True)
class _Queue:
    """Events of exchanges that have begun, not given out yet."""

    keeps: bool
    _heap: list[tuple[float, int, Told, _Numbers]] = field(default_factory=list)
    _serial: Iterator[int] = field(default_factory=count)
    _next: Iterator[int] = field(default_factory=lambda: count(1))

    def take(self, item: Item) -> None:
        """Read an exchange."""
        numbers = _Numbers(item.n or 0 if self.keeps else 0)
        moment = item.time
        try:
            exchange = item.load()
        except (OSError, ValueError) as error:
            raise CtxscopeError(
                f"{item.path}: found it changed while it was read, expected a finished capture"
            ) from error
        for event in _told(exchange):
            # Clocks step back, an exchange does not; and a recording tells messages of one moment apart by their times.
            moment = max(moment + (_APART if isinstance(event, Message) else 0), event.time)
            heappush(self._heap, (moment, next(self._serial), replace(event, time=moment), numbers))

    def before(self, time: float | None) -> Iterator[Event]:
        """What happened up to a time; ``None``: all of it."""
        while self._heap and (time is None or self._heap[0][0] <= time):
            _, _, event, numbers = heappop(self._heap)
            yield self._numbered(event, numbers)

    def _numbered(self, event: Told, numbers: _Numbers) -> Told:
        if isinstance(event, Request):
            numbers.n = numbers.said = numbers.n or next(self._next)
        if not isinstance(event, Message):
            return replace(event, n=numbers.n)
        if event.sender == "client":
            numbers.said = next(self._next)
        return replace(event, n=numbers.said, connection=numbers.n)


def _told(exchange: Imported) -> Iterator[Told]:
    """One exchange as its recorder would have told it, numbers left out."""
    yield Request(
        n=0,
        time=exchange.time,
        method=exchange.method,
        target=exchange.target,
        upstream=exchange.upstream,
        headers=exchange.headers,
        body=exchange.body,
        fidelity=exchange.fidelity,
    )
    answer = exchange.answer
    if answer is not None and answer.status is not None:
        yield Head(0, answer.time, answer.status, answer.reason, answer.headers)
    if answer is not None and answer.body:
        yield from _chunks(answer.time, answer.body, exchange.ending.time if exchange.ending else None)
    for said in exchange.messages:
        yield Message(0, 0, said.time, said.sender, said.kind, said.data, exchange.target, exchange.upstream)
    if exchange.ending is not None:
        yield End(0, exchange.ending.time, exchange.ending.how, exchange.ending.detail)


def _chunks(first: float, body: bytes, end: float | None) -> Iterator[Chunk]:
    """A reply of which two moments are told: when its first byte came, and its last."""
    head = len(body) if end is None or end <= first else 1
    yield Chunk(0, first, 0, body[:head])
    if end is not None and head < len(body):
        yield Chunk(0, end, head, body[head:])
