"""opencode (SST): rows of messages and of their parts in one SQLite database (1.18; opencode.md).

The face every agent has; what it leaves out here, ``reading/plain.py`` says for it. ``disk`` finds the database and its
sessions, ``rows`` turns rows into entries, ``history`` puts them together as the agent reads them, ``points`` says where
it called a model, ``body`` writes the requests.
"""

from __future__ import annotations

from collections.abc import Hashable

from ctxscope.agents import Log
from ctxscope.agents.opencode.body import LEARNABLE as learnable  # noqa: N811 - the face names it so
from ctxscope.agents.opencode.body import classify, explain, learn, named, rebuild
from ctxscope.agents.opencode.disk import claims, container, discover, members, refs, sources
from ctxscope.agents.opencode.history import spoken
from ctxscope.agents.opencode.markers import markers
from ctxscope.agents.opencode.points import config, endpoint, error_line, naive, requests
from ctxscope.agents.opencode.resume import resume
from ctxscope.agents.opencode.rows import entries, notices
from ctxscope.model import Point

name = "opencode"
title = "opencode"
always = {
    "anthropic-messages": ("model", "messages", "stream"),
    "openai-chat": ("model", "messages", "stream", "stream_options"),
    "openai-responses": ("model", "input", "stream"),
    "gemini": ("contents",),
}

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
    "explain",
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
    "resume",
    "sources",
    "spoken",
    "title",
]


def basis(log: Log, point: Point) -> Hashable:  # noqa: ARG001 - the face's signature
    """Nothing beside the point: it is made anew when a message it was made of changes."""
    return ()
