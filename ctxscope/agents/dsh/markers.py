"""Events of a log that rewrite or restore what the model sees, or what it is called with (dsh.md §5)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.dsh import disk, estimate
from ctxscope.agents.dsh.points import config_of, header_of, request_of, requests
from ctxscope.agents.dsh.story import Event, Story, story
from ctxscope.agents.dsh.texts import listed, mapped, string, whole
from ctxscope.model import Compacted, Marker, Point, quoted


def markers(log: Log) -> Sequence[Marker]:
    """Markers in the order of the log."""
    told = story(log)
    return [m for event, after in _events(log, told) for m in _made(told, event, after)]


def compactions(log: Log) -> Sequence[Compacted]:
    """What each prune and compaction found and left, by the estimator reproduced: the log does not tell it."""
    told = story(log)
    replaced = [(event, after) for event, after in _events(log, told) if event.kind == "replace"]
    head = sum(estimate.of_head(told.heads[-1][1] if told.heads else None).values()) if replaced else 0
    return [
        Compacted(
            _replaced(event, after),
            reckoned_before=head + estimate.of_surface(event.before),
            reckoned_after=head + estimate.of_surface(event.after),
        )
        for event, after in replaced
    ]


def _events(log: Log, told: Story) -> Iterator[tuple[Event, str | None]]:
    """Each event that is the session's own, with the key of the first request after it."""
    points = [p for p in requests(log) if p.kind not in ("compaction", "side")]
    beside = _parent_is_there(log)
    return ((e, _after(points, e.at)) for e in told.events if not (beside and told.copied(e.entry)))


def _parent_is_there(log: Log) -> bool:
    """Whether the session that this one was forked from lies beside it: what was copied is told there."""
    memo = log.memo.get("dsh.parent")
    if memo is None:
        folder = disk.folder_of(log.ref.parent, log.ref.paths[0]) if log.ref.parent else None
        log.memo["dsh.parent"] = memo = (folder is not None and folder.is_dir(),)
    return bool(memo[0])


def _after(points: Sequence[Point], number: int) -> str | None:
    """Key of the first request of the conversation that was made after a record."""
    at = bisect_left(points, number, key=lambda p: request_of(p).through)
    return points[at].key if at < len(points) else None


def _made(told: Story, event: Event, after: str | None) -> Iterator[Marker]:
    if event.kind == "replace":
        yield _replaced(event, after)
    elif event.kind == "header":
        yield from _header(event, after)
    elif event.kind == "reopen":
        yield _reopened(told, event, after)
    elif event.kind == "steer":
        where = "a message of the user's came while the agent was working"
        yield Marker("steer", after, logged=True, where=where, place=event.entry.place)


def _replaced(event: Event, after: str | None) -> Marker:
    cause = event.cause.kind if event.cause else ""
    left = {id(n) for n in event.after.nodes}
    dropped = tuple(n.place for n in event.before.nodes if id(n) not in left)
    pruned = cause == "compaction/prune" or (cause != "compaction/summary" and event.entry.kind == "tool/result")
    tokens = whole(mapped(event.cause.data.get("data")).get("shadowedTokenCount")) if event.cause else None
    size = f" ({tokens} tokens by the harness's own count)" if tokens is not None else ""
    many = f"{len(dropped)} {'event' if len(dropped) == 1 else 'events'}"
    return Marker(
        "prune" if pruned else "compaction",
        after,
        logged=True,
        where=f"shortened a tool result{size}" if pruned else f"replaced {many}{size} by a checkpoint",
        place=event.entry.place,
        dropped=dropped,
    )


def _header(event: Event, after: str | None) -> Iterator[Marker]:
    assert event.cause is not None
    place = event.entry.place
    old, new = config_of(event.cause), config_of(event.entry)
    names = [f"{string(c.get('provider'))}/{string(c.get('model'))}" for c in (old, new)]
    if names[0] != names[1]:
        yield Marker("model_switch", after, logged=True, where=f"{names[0]} to {names[1]}", place=place)
    before, now = (_tools(header_of(e).get("tools")) for e in (event.cause, event.entry))
    if list(before.items()) != list(now.items()):
        added, removed = [n for n in now if n not in before], [n for n in before if n not in now]
        changed = [n for n in now if n in before and now[n] != before[n]]
        said = (("added", added), ("removed", removed), ("changed", changed))
        words = "; ".join(f"{verb} {', '.join(map(quoted, some))}" for verb, some in said if some)
        yield Marker("tools_changed", after, logged=True, where=words or "in another order", place=place)


def _tools(given: Any) -> Mapping[str, Any]:
    return {string(t.get("name")): t for t in map(mapped, listed(given))}


def _reopened(told: Story, event: Event, after: str | None) -> Marker:
    header = told.header.data if told.header else {}
    parent = string(header.get("parentSession"))
    first = next(e for e in told.events if e.kind == "reopen" and not told.copied(e.entry)) is event
    where = f"goes on from session {parent}" if parent and first else "a new process went on with the session"
    return Marker("resume", after, logged=True, where=where, place=event.entry.place)
