"""Which messages of a request are led by the reminder of date and folder, and with which date (omp.md §4.4).

omp attaches it in memory: to the first user message of a history when a process first sends it, and, when the local
date has changed since, to the newest user message not sent before. Neither the reminder nor the time zone is logged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.omp.items import Item
from ctxscope.agents.omp.lines import stamp
from ctxscope.agents.omp.points import context_of, node_of
from ctxscope.agents.omp.trail import Trail
from ctxscope.agents.omp.tree import tree
from ctxscope.model import Point

SERVED = re.compile(rb'"<system-reminder>\\nToday: (\d{4}-\d{2}-\d{2}); current working directory: \'')
QUARTER = 15
FARTHEST = 14 * 60
"""Minutes that a time zone may lie from UTC."""


@dataclass(frozen=True, slots=True)
class Zone:
    """What served reminders say of the machine's time zone: minutes east of UTC, from ``least`` to below ``most``."""

    least: int = -FARTHEST
    most: int = FARTHEST + 1

    @property
    def minutes(self) -> int:
        """The zone nearest to UTC that fits."""
        if self.least <= 0 < self.most:
            return 0
        return -(-self.least // QUARTER) * QUARTER if self.least > 0 else (self.most - 1) // QUARTER * QUARTER

    def told(self, moment: float, date: bytes) -> Zone:
        """What holds once a request at ``moment`` (seconds) carried ``date``; one that no zone explains tells nothing."""
        try:
            midnight = datetime.strptime(date.decode(), "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
        except ValueError:
            return self
        least = max(self.least, int(-(-(midnight - moment) // 60)))
        most = min(self.most, int(-(-(midnight + 86400 - moment) // 60)))
        return Zone(least, most) if least < most else self

    def date(self, moment: float) -> bytes:
        """The local date at a moment (seconds since the epoch)."""
        try:
            local = datetime.fromtimestamp(moment, UTC) + timedelta(minutes=self.minutes)
        except (OverflowError, OSError, ValueError):
            return b""
        return local.strftime("%Y-%m-%d").encode()


@dataclass(frozen=True, slots=True)
class Attached:
    """A reminder on a message: the item, its date, and the point whose request first carried it."""

    item: Item
    date: bytes
    point: str


@dataclass(eq=False, slots=True)
class _History:
    """What one process remembers of one history, which its first user message stands for."""

    attached: list[Attached] = field(default_factory=list)
    sent: int = 0
    """How many items of ``trail`` were sent."""
    trail: Trail | None = None


@dataclass(eq=False, slots=True)
class _Followed:
    """Reminders of the calls followed so far, for one reading of the time zone."""

    points: list[Point] = field(default_factory=list)
    histories: dict[Any, _History] = field(default_factory=dict)
    by_point: dict[str, tuple[Attached, ...]] = field(default_factory=dict)


def reminders(log: Log, point: Point, points: list[Point], zone: Zone) -> tuple[Attached, ...]:
    """The reminders a point's request carries, in order; ``points`` are all of the session's."""
    memo, key = tree(log).memo, ("reminders", zone.minutes)
    followed: _Followed = memo.setdefault(key, _Followed())
    same = min(len(followed.points), len(points))
    if followed.points[:same] != points[:same]:
        memo[key] = followed = _Followed()
    for later in points[len(followed.points) :]:
        followed.by_point[later.key] = _attach(log, later, followed, zone)
        followed.points.append(later)
    return followed.by_point.get(point.key, ())


def moment_of(point: Point) -> float:
    """When a request was sent, in seconds since the epoch: the stamp of its answer is that of its start."""
    if point.answer is not None:
        return stamp(point.answer) / 1000
    return point.time or 0.0


def _attach(log: Log, point: Point, followed: _Followed, zone: Zone) -> tuple[Attached, ...]:
    context, node = context_of(log, point), node_of(log, point)
    if context is None or node is None:
        return ()
    trail, length = context
    first = first_user(trail, length)
    if first is None or trail.items[first].message.get("providerPayload") is not None:
        return ()
    date, lead = zone.date(moment_of(point)), trail.items[first]
    owner = (node.run, bool(point.data.get("copied")), lead)
    history = followed.histories.get(owner)
    if history is None:
        history = followed.histories[owner] = _History([Attached(lead, date, point.key)])
    on_path = [a for a in history.attached if _holds(trail, length, a.item)]
    if on_path and on_path[-1].date != date:
        newest = _newest_unsent(trail, length, history)
        if newest is not None:
            history.attached.append(Attached(newest, date, point.key))
            on_path.append(history.attached[-1])
    history.trail, history.sent = trail, length
    return tuple(on_path)


def first_user(trail: Trail, length: int) -> int | None:
    """Index of the first user message of a context."""
    return next((i for i, item in enumerate(trail.items[:length]) if item.role == "user"), None)


def _holds(trail: Trail, length: int, item: Item) -> bool:
    return position(trail, length, item) is not None


def position(trail: Trail, length: int, item: Item) -> int | None:
    """Index of an item in a context."""
    return next((i for i in range(length) if trail.items[i] is item), None)


def _newest_unsent(trail: Trail, length: int, history: _History) -> Item | None:
    before = history.sent if history.trail is trail else 0
    sent = set(map(id, history.trail.items[: history.sent])) if history.trail is not None and not before else set()
    for i in range(length - 1, before - 1, -1):
        item = trail.items[i]
        if item.role == "user" and id(item) not in sent:
            return item
    return None


def served_date(data: bytes, start: int) -> bytes | None:
    """The date of the reminder that leads the first message at or after an offset; ``None`` where there is none."""
    found = SERVED.search(data, start, start + 400)
    return found[1] if found else None


def zone_words(zone: Zone) -> str:
    """A time zone for a person."""
    hours, minutes = divmod(abs(zone.minutes), 60)
    return f"UTC{'-' if zone.minutes < 0 else '+'}{hours:02}:{minutes:02}"
