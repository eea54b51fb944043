"""What a curator or gateway was given, for each request it sent on: the inbound side of a pair of recordings."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field

from ctxscope import wire
from ctxscope.analysis.prompts import prompt_of
from ctxscope.analysis.providers.rules import Rules
from ctxscope.analysis.respelling import depth_of
from ctxscope.model import Body, Exchange
from ctxscope.wire.body import make_body

_AT_ONCE = 64
"""Exchanges that may be under way at one time."""
_AT_HAND = 4
"""Bodies kept: a call's, its parent's, and those of the call before."""


@dataclass(eq=False, repr=False)
class Inbound:
    """Exchanges of the inbound side, in order of arrival."""

    _exchanges: dict[tuple[int, int], Exchange] = field(default_factory=dict)
    _order: list[Exchange] | None = None
    """By time; made when asked for after news."""
    _bodies: OrderedDict[tuple[int, int], Body] = field(default_factory=OrderedDict)

    def take(self, exchange: Exchange) -> None:
        """Fold an exchange in, or its longer reply."""
        self._exchanges[exchange.recording, exchange.n] = exchange
        self._order = None

    def of(self, sent: Exchange) -> Exchange | None:
        """The exchange that was under way when a request was sent on; ``None`` where none was, or more than one.

        One without an end is no evidence: it may have been broken off long before.
        """
        if not self._exchanges:
            return None
        if self._order is None:
            self._order = sorted(self._exchanges.values(), key=lambda e: (e.time, e.recording, e.n))
        end = bisect_right(self._order, sent.time, key=lambda e: e.time)
        open_then = [e for e in self._order[max(end - _AT_ONCE, 0) : end] if e.end is not None and e.end > sent.time]
        return open_then[0] if len(open_then) == 1 else None

    def goes_on(self, sent: Exchange, parent: Exchange, rules: Rules) -> bool | None:
        """Whether what was given for a request goes on from what was given for its parent; ``None``: not recorded."""
        now, before = self.of(sent), self.of(parent)
        if now is None or before is None:
            return None
        theirs = prompt_of(self._body(before))
        return depth_of(prompt_of(self._body(now), theirs), theirs, rules) == len(theirs.segments)

    def _body(self, exchange: Exchange) -> Body:
        key = (exchange.recording, exchange.n)
        body = self._bodies.pop(key, None)
        if body is None:
            data = exchange.request()
            near = next(reversed(self._bodies.values()), None)
            body = make_body(data, wire.detect(exchange.path, exchange.headers, data), near, exchange.path)
        self._bodies[key] = body
        while len(self._bodies) > _AT_HAND:
            self._bodies.popitem(last=False)
        return body
