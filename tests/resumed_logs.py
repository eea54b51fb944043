"""A log gone on with as its agent says a new process would, and the request that it would send then."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ctxscope.agents import Agent, Before, Log, at_hand
from ctxscope.model import Body, Learned, Point, Resume


def gone_on(agent: Agent, log: Log, resume: Resume) -> Log:
    """The log with the records that the process would add."""
    grown = Log(log.ref)
    for entry in log.versions:
        grown.add(entry)
    for record in resume.records:
        for entry in agent.entries(record):
            grown.add(replace(entry, seq=len(grown.versions)))
    return grown


def resumed(agent: Agent, log: Log, calls: Sequence[tuple[Point, Body]] = ()) -> Resume:
    """What a new process makes of a log; it makes something of it."""
    found = agent.resume(log, at_hand(calls))
    assert found is not None
    return found


def foretold(agent: Agent, log: Log, calls: Sequence[tuple[Point, Body]] = ()) -> dict[str, Any]:
    """The body of the next request as JSON; ``calls``: those joined so far, whose last one teaches the rest."""
    resume = resumed(agent, log, calls)
    grown = gone_on(agent, log, resume)
    points = {p.key: p for p in agent.requests(grown)}
    point = next(p for p in reversed(agent.requests(grown)) if p.answer is None)
    before: Before = at_hand([(points[p.key], body) for p, body in calls])
    learned = agent.learn(grown, point, calls[-1][1], before) if calls else Learned()
    learned = replace(learned, choice={**learned.choice, **resume.choice}, values={**learned.values, **resume.values})
    rebuilt = agent.rebuild(grown, point, agent.config(grown), learned)
    assert rebuilt is not None
    found: dict[str, Any] = json.loads(rebuilt.data)
    return found
