"""Message hashes of a point's context, for the join where ids do not decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ctxscope.model import Config, Point
from ctxscope.session.fold import SessionLog
from ctxscope.session.traffic import Heard, Traffic, message_print
from ctxscope.wire.body import make_body


@dataclass(eq=False)
class PointPrints:
    """Rebuilds a context in the API of the exchange it is compared with, once per point and API."""

    session: SessionLog
    traffic: Traffic
    _known: dict[tuple[str, str], Sequence[bytes]] = field(default_factory=dict)

    def __call__(self, point: Point, heard: Heard) -> Sequence[bytes]:
        """Hashes in message order; empty when the agent cannot rebuild for that API."""
        if point.messages is not None:
            return [message_print(m) for m in point.messages]
        if heard.api is None:
            return ()
        key = (point.key, heard.api.name)
        if key not in self._known:
            self._known[key] = self._rebuild(point, heard)
        return self._known[key]

    def _rebuild(self, point: Point, heard: Heard) -> Sequence[bytes]:
        agent, log = self.session.agent, self.session.log
        assert heard.api is not None
        learned = agent.learn(log, point, self.traffic.body(heard.key), ())
        rebuilt = agent.rebuild(log, point, Config(), learned)
        if rebuilt is None:
            return ()
        body = make_body(rebuilt.data, heard.api, None)
        return [message_print(m) for m in heard.api.messages(body)]
