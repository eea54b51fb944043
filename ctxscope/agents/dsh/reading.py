"""What requests name, causes of differences, and what a log says went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ctxscope.agents import Log
from ctxscope.agents.dsh import delivery
from ctxscope.agents.dsh.learning import PACKAGES, learned_by
from ctxscope.agents.dsh.lines import DIALECT
from ctxscope.agents.dsh.story import Story, story
from ctxscope.agents.dsh.texts import mapped, string, whole
from ctxscope.agents.reading import drift
from ctxscope.model import Body, Config, Difference, Learned, Named, quoted

SESSION_HEADER = "x-deepseek-harness-session-id"


def named(headers: Mapping[str, str], body: Body) -> Named:
    """The session of a header every request has; where the log stood, from the log a request carries (v4)."""
    served = delivery.stated(body)
    ids = frozenset({f"seq:{served.through}"} if served else ())
    return Named(headers.get(SESSION_HEADER) or None, ids)


def config(log: Log) -> Config:
    """The window the newest ``request/context`` names."""
    told = story(log)
    window = whole(mapped(told.context.data.get("data")).get("contextWindow")) if told.context else None
    return Config(window=window, values={"format": told.format}, window_by=None if window is None else "log")


def explain(difference: Difference, learned: Learned) -> str | None:
    """Causes the harness is known for; ``None`` where it is not."""
    if difference.path.startswith(PACKAGES):
        place = learned_by(learned).get(PACKAGES)
        since = f" the call answered at {place}" if place else " before"
        return f"the packages loaded are constant while a process runs, and not those of{since}"
    if difference.path.startswith(delivery.PATH):
        return (
            "the part of the log that was sent along is not what the log holds: it was changed since, or is not whole"
        )
    return None


def notices(log: Log) -> Sequence[str]:
    """What the harness writes of failures, what voids a log, and what was not expected in it."""
    told = story(log)
    return (*drift.notices(log, DIALECT), *_void(told), *told.troubles, *_failures(told))


def _void(told: Story) -> Iterator[str]:
    entry = told.void
    if entry is None:
        return
    if entry.kind == "unknown":
        kind = string(entry.data.get("type"))
        what = f"record of the unknown type {quoted(kind[:80])}" if kind else "line that is no record"
        why = f"a {what} without ignorable:true"
    else:
        why = "a replacement of what is not there"
    yield f"{entry.place}: {why}; the harness would refuse the log, and no later call is rebuilt"


def _failures(told: Story) -> Iterator[str]:
    for entry in told.given_up:
        error = string(mapped(entry.data.get("data")).get("error"))
        yield f"{entry.place}: a compaction was given up, and what the model sees is unchanged: {quoted(error)}"
