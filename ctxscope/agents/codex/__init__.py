"""Codex CLI: a rollout of JSON lines a session, its items those of the Responses API (0.98 and 0.171; codex.md).

The face every agent has; what it does stands in the files beside it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path

from ctxscope.agents import Before, Log
from ctxscope.agents.codex import body as bodies
from ctxscope.agents.codex import disk, learning, lines, points, reading, settings
from ctxscope.agents.codex import markers as events
from ctxscope.agents.codex import resume as resuming
from ctxscope.agents.codex.estimate import MEASURED, RULES, UNSIZED, release_of, rule_of, text_tokens
from ctxscope.agents.codex.taught import base_text
from ctxscope.agents.reading.charges import Charge, estimated
from ctxscope.model import (
    Body,
    CallKind,
    Config,
    Difference,
    Endpoint,
    Entry,
    Estimate,
    Learned,
    Marker,
    Named,
    Point,
    Rebuilt,
    Record,
    Resume,
    SessionRef,
    SourceSpec,
)

name = "codex"
title = "Codex CLI"
learnable = learning.LEARNABLE
CHARACTERS_A_TOKEN = 4


def discover(home: Path) -> Iterable[SessionRef]:
    """Sessions under ``<home>/.codex/sessions`` and ``archived_sessions``."""
    return disk.discover(home)


def claims(path: Path, head: bytes) -> float:
    """How surely a file is a rollout, by its first line."""
    return disk.claims(path, head)


def refs(path: Path, home: Path) -> Iterable[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when its first line is not Codex's."""
    return tuple(disk.refs(path, home))


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The rollout, and config.toml of its Codex home."""
    return disk.sources(ref)


def family(ref: SessionRef) -> Iterable[SessionRef]:
    """The session it was forked from, and forks and subagents that went on from it."""
    return tuple(disk.family(ref))


def named(headers: Mapping[str, str], body: Body) -> Named:
    """The thread a request names in a header or in ``prompt_cache_key``."""
    return reading.named(headers, body)


def entries(record: Record) -> Iterable[Entry]:
    """One entry a line; what is not understood is ``unknown``. Never raises."""
    return lines.entries(record)


def config(log: Log) -> Config:
    """Window and compaction limit, as rollout and settings say."""
    return settings.config(log)


def due(log: Log, config: Config, window: int) -> int | None:
    """Nine tenths of a window."""
    return settings.due(log, config, window)


def requests(log: Log) -> Sequence[Point]:
    """One point per answer, one per compaction, and one for an input still waiting, in file order."""
    return points.requests(log)


def endpoint(log: Log, point: Point) -> Endpoint:
    """Provider and model as the rollout names them."""
    return reading.endpoint(log, point)


def basis(log: Log, point: Point) -> Hashable:  # noqa: ARG001 - the face's signature
    """Nothing: beside what came before it a request depends on no entry."""
    return ()


def classify(body: Body) -> CallKind | None:
    """``probe`` for a request that only warms a connection, else ``None``."""
    return reading.classify(body)


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Values and forms the log does not hold; where an earlier call showed one, the earlier one holds."""
    return learning.learn(log, point, body, before)


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:  # noqa: ARG001 - the face's signature
    """The whole body the log implies; ``None`` for another API than Responses."""
    return bodies.rebuild(log, point, learned)


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:  # noqa: ARG001 - the face's signature
    """Why served and rebuilt part there, where Codex is known for it."""
    return reading.explain(point, difference, learned)


def error_line(log: Log, point: Point) -> str | None:  # noqa: ARG001 - the face's signature
    """What Codex wrote of why a turn ended without an answer, or with a broken one."""
    return points.error_line(point)


def markers(log: Log) -> Sequence[Marker]:
    """Compactions, rollbacks, processes that went on with the session, model switches, what it was forked from."""
    return events.markers(log)


def resume(log: Log, before: Before) -> Resume | None:
    """The context given again (0.98) or the settings stated again (0.171), and the next input."""
    return resuming.resume(log, before)


def estimates(log: Log, point: Point) -> tuple[Estimate, ...]:
    """Codex's own estimates of the context (codex.md §6), by the version that wrote the log, then by the others measured that differ.

    Empty for versions whose rule is not known, and where an image stands of which it is not known what it counts.
    """
    call, text = points.call_of(point), base_text(log)
    version = settings.config(log).agent_version
    own = rule_of(version) if version is not None else None
    if call is None or text is None or own is None or version is None:
        return ()
    found: list[Estimate] = []
    told: list[Charge] = []
    for rule in (own, *(r for r in RULES if r is not own and r.held)):
        charged = {**call.history.charged(call.length, rule), "system": text_tokens(text)}
        if charged.get(UNSIZED) or charged in told:
            if rule is own:
                return ()
            continue
        told.append(charged)
        name = release_of(version) if rule is own else rule.title
        found.append(estimated(f"Codex {name}", charged, rule.held if name in MEASURED else frozenset()))
    return tuple(found)


def naive(log: Log, point: Point) -> int | None:  # noqa: ARG001 - the face's signature
    """ceil(characters / 4) of the context's lines as logged, every field."""
    call = points.call_of(point)
    if call is None:
        return None
    return math.ceil(call.history.characters[call.history.counts[call.length]] / CHARACTERS_A_TOKEN)


def notices(log: Log) -> Sequence[str]:
    """Lines that could not be read, records that are not known, turns that failed."""
    return reading.notices(log)
