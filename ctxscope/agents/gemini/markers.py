"""Events of a chat that rewrite, leave or restore its history (gemini.md §5)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxscope.agents import Log
from ctxscope.agents.gemini.points import requests
from ctxscope.agents.gemini.replay import Replay, replays
from ctxscope.model import Marker


def markers(log: Log) -> Sequence[Marker]:
    """Markers in log order, those of subagents behind the session's own."""
    requests(log)
    return [marker for replay in replays(log) for marker in _of(replay)]


def _of(replay: Replay) -> Sequence[Marker]:
    keys = [c.answer.key if c.answer else f"after:{c.last.key}" for c in replay.calls]
    waiting = replay.waiting
    if waiting is not None:
        keys.append(f"after:{waiting.last.key}")
    return [
        Marker(
            event.kind,
            keys[event.before] if event.before < len(keys) else None,
            logged=True,
            where=event.where,
            place=event.place,
            before_tokens=event.tokens,
            dropped=event.dropped,
        )
        for event in replay.happened
    ]
