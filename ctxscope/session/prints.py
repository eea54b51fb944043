"""Requests as hashes of their system text and messages, for the join where ids do not decide."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ctxscope.agents import at_hand
from ctxscope.model import Body, Config, Point
from ctxscope.session.fold import SessionLog
from ctxscope.session.traffic import Heard, Key, Traffic, message_print, text_print


@dataclass(eq=False, repr=False)
class PointPrints:
    """Rebuilds a context in the API of the exchange it is compared with, once per point and API."""

    session: SessionLog
    traffic: Traffic
    _known: dict[Hashable, tuple[bytes, ...]] = field(default_factory=dict)
    _systems: dict[Key, bytes] = field(default_factory=dict)

    def served(self, exchange: Heard) -> tuple[bytes, ...]:
        """Of the effective request; empty when it is not known."""
        prints = self.traffic.prints(exchange.key)
        return (self._system(exchange), *prints) if prints else ()

    def logged(self, point: Point, exchange: Heard) -> tuple[bytes, ...]:
        """Of a point's context; empty when the agent cannot rebuild for the API of the exchange."""
        if exchange.api is None:
            return ()
        key = (point, exchange.api.name, self.session.agent.basis(self.session.log, point))
        if key not in self._known:
            self._known[key] = self._rebuild(point, exchange)
        return self._known[key]

    def _system(self, exchange: Heard) -> bytes:
        if exchange.key not in self._systems:
            body = self.traffic.effective(exchange.key)
            assert body is not None
            assert exchange.api is not None
            self._systems[exchange.key] = text_print(exchange.api.system(body))
        return self._systems[exchange.key]

    def _rebuild(self, point: Point, exchange: Heard) -> tuple[bytes, ...]:
        agent, log, api = self.session.agent, self.session.log, exchange.api
        assert api is not None
        learned = agent.learn(log, point, self.traffic.body(exchange.key), at_hand())
        rebuilt = agent.rebuild(log, point, Config(), learned)
        if rebuilt is None:
            return ()
        body = Body(rebuilt.data, api.name, ())
        return (text_print(api.system(body)), *map(message_print, api.messages(body)))
