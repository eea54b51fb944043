"""Kimi CLI (MoonshotAI): a file of rows per session, rotated at each compaction, beside a file of events (1.40; kimi.md).

The face every agent has; what it leaves out here, ``reading/plain.py`` says for it. ``disk`` finds the files, ``rows``
turns their lines into entries, ``story`` puts these together, ``points`` says where a model was called, ``body`` writes
the requests, ``learning`` says what of them no row holds, ``gaps`` what of the files is missing.
"""

from __future__ import annotations

from collections.abc import Hashable

from ctxscope.agents import Log
from ctxscope.agents.kimi.body import rebuild
from ctxscope.agents.kimi.disk import claims, discover, family, refs, sources
from ctxscope.agents.kimi.gaps import notices
from ctxscope.agents.kimi.learning import LEARNABLE as learnable  # noqa: N811 - the face names it so
from ctxscope.agents.kimi.learning import classify, explain, learn, named
from ctxscope.agents.kimi.points import markers, requests
from ctxscope.agents.kimi.resume import resume
from ctxscope.agents.kimi.rows import entries
from ctxscope.agents.kimi.story import config, estimates, naive
from ctxscope.model import Endpoint, Point

name = "kimi"
title = "Kimi CLI"
always = {"openai-chat": ("model", "messages", "stream", "stream_options")}

__all__ = [
    "basis",
    "claims",
    "classify",
    "config",
    "discover",
    "endpoint",
    "entries",
    "estimates",
    "explain",
    "family",
    "learn",
    "learnable",
    "markers",
    "naive",
    "name",
    "named",
    "notices",
    "rebuild",
    "refs",
    "requests",
    "resume",
    "sources",
    "title",
]


def endpoint(log: Log, point: Point) -> Endpoint:  # noqa: ARG001 - the face's signature
    """Not told: the log names neither API nor provider nor model."""
    return Endpoint()


def basis(log: Log, point: Point) -> Hashable:  # noqa: ARG001 - the face's signature
    """Nothing beside the point: it holds the rows of its own file, which only grows."""
    return ()
