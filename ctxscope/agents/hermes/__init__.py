"""Hermes Agent (NousResearch): SQLite rows, three transports; rules per version in the project's reference."""

from __future__ import annotations

from collections.abc import Sequence

from ctxscope.agents import Log
from ctxscope.agents.hermes.basis import basis_of as basis
from ctxscope.agents.hermes.classify import classify
from ctxscope.agents.hermes.compactions import compactions
from ctxscope.agents.hermes.envelope import LEARNABLE as learnable  # noqa: N811 - the face names it so
from ctxscope.agents.hermes.estimate import estimates, naive
from ctxscope.agents.hermes.explain import explain
from ctxscope.agents.hermes.home import claims, container, discover, members, refs, sources
from ctxscope.agents.hermes.learn import learn_from as learn
from ctxscope.agents.hermes.log import entries_of as entries
from ctxscope.agents.hermes.markers import markers
from ctxscope.agents.hermes.notices import error_line, notices
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.prompts import endpoint_of as endpoint
from ctxscope.agents.hermes.rebuild import rebuild_at
from ctxscope.agents.hermes.resume import resume
from ctxscope.agents.hermes.rows import spoken
from ctxscope.agents.hermes.settings import config_of as config
from ctxscope.agents.hermes.settings import due
from ctxscope.agents.hermes.sidecars import sidecars
from ctxscope.model import Config, Learned, Point, Rebuilt

name = "hermes"
title = "Hermes Agent"

__all__ = [
    "basis",
    "claims",
    "classify",
    "compactions",
    "config",
    "container",
    "discover",
    "due",
    "endpoint",
    "entries",
    "error_line",
    "estimates",
    "explain",
    "learn",
    "learnable",
    "markers",
    "members",
    "naive",
    "name",
    "notices",
    "rebuild",
    "refs",
    "requests",
    "resume",
    "sidecars",
    "sources",
    "spoken",
    "title",
]


def requests(log: Log) -> Sequence[Point]:
    """Points where a model call must have happened; see ``Agent.requests``."""
    return reading_of(log).points


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:  # noqa: ARG001 - the face
    """The request at a point; no rule of this agent's bytes depends on ``config``."""
    return rebuild_at(log, point, learned)
