"""Kimi CLI (MoonshotAI): a file of rows per session, rotated at each compaction, beside a file of events (1.40; kimi.md).

The face every agent has. ``disk`` finds the files, ``rows`` turns their lines into entries, ``story`` the entries into
calls and markers, ``body`` the calls into request bodies.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from ctxscope.agents import Log
from ctxscope.agents.kimi.body import LEARNABLE as learnable  # noqa: N811 - the face names it so
from ctxscope.agents.kimi.body import classify, explain, learn, named, rebuild
from ctxscope.agents.kimi.disk import claims, discover, family, refs, sources
from ctxscope.agents.kimi.points import markers, requests
from ctxscope.agents.kimi.rows import entries, notices
from ctxscope.agents.kimi.story import config, estimate, naive
from ctxscope.model import CtxscopeError, Endpoint, Point, Record, SessionRef, SourceSpec

name = "kimi"
title = "Kimi CLI"
rereads = False

__all__ = [
    "basis",
    "claims",
    "classify",
    "config",
    "container",
    "discover",
    "endpoint",
    "entries",
    "error_line",
    "estimate",
    "explain",
    "family",
    "learn",
    "learnable",
    "markers",
    "members",
    "naive",
    "name",
    "named",
    "notices",
    "rebuild",
    "refs",
    "requests",
    "rereads",
    "sidecars",
    "sources",
    "title",
]


def container(ref: SessionRef) -> SourceSpec:
    """Never asked for: a session has files of its own, and its reference an id."""
    raise CtxscopeError(f"{ref.paths[0]}: one session's file, found a request for a list of sessions")


def members(ref: SessionRef, records: Iterable[Record]) -> Iterable[SessionRef]:  # noqa: ARG001 - the face's signature
    """The session itself."""
    return (ref,)


def endpoint(log: Log, point: Point) -> Endpoint:  # noqa: ARG001 - the face's signature
    """Not told: the log names neither API nor provider nor model."""
    return Endpoint()


def basis(log: Log, point: Point) -> Hashable:  # noqa: ARG001 - the face's signature
    """Nothing beside the point: it holds the rows of its own file, which only grows."""
    return ()


def error_line(log: Log, point: Point) -> str | None:  # noqa: ARG001 - the face's signature
    """Nothing: a step that failed is only said to be interrupted."""
    return None


def sidecars(log: Log, point: Point) -> Sequence[str]:  # noqa: ARG001 - the face's signature
    """None: nothing is stored beside a message and sent instead of it."""
    return ()
