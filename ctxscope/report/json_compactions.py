"""Windows and compactions in the JSON report (schema 1, additions)."""

from __future__ import annotations

import dataclasses
from typing import Any

from ctxscope.model import BreakRate, Call, Compaction, Usage


def window(call: Call) -> dict[str, Any]:
    """``size_by`` and ``threshold_by`` are ``config``, ``log``, ``rule`` or ``user``; ``occupancy`` is a share of 1."""
    own = call.window
    return {
        "size": own.size,
        "size_by": own.size_by,
        "threshold": own.threshold,
        "threshold_by": own.threshold_by,
        "occupancy": None if call.occupancy is None else round(call.occupancy, 4),
    }


def compaction(found: Compaction) -> dict[str, Any]:
    """One event: indices count messages of the history it found, from 0; places are those of its rows or lines."""
    told, marker = found.told, found.told.marker
    known = told.head is not None and told.cut is not None
    return {
        "kind": marker.kind,
        "session": marker.session,
        "call": marker.call,
        "place": marker.place.at if marker.place else None,
        "automatic": told.automatic,
        "setting": told.setting or None,
        "messages": {
            "found": len(told.messages) if told.messages else None,
            "head": told.head,
            "cut": told.cut,
            "summarised": [p.at for p in told.messages[told.head : told.cut]] if known else None,
            "budget": told.budget,
            "rules": [dataclasses.asdict(rule) for rule in told.rules],
            "lost_to_envelope": [p.at for p in found.lost],
        },
        "tokens": {
            "agent": {"before": marker.before_tokens, "after": marker.after_tokens},
            "reproduced": {"before": told.reckoned_before, "after": told.reckoned_after},
            "calls": {
                "before": found.tokens_before,
                "after": found.tokens_after,
                "reported": None if found.tokens_before is None or found.tokens_after is None else not found.counted,
            },
        },
        "before_call": found.before,
        "requests": list(found.requests),
        "usage": {f.name: getattr(found.usage, f.name, None) for f in dataclasses.fields(Usage)},
        "seconds": found.seconds,
        "seconds_by": found.seconds_by or None,
        "broke": found.broke,
        "rebilled": found.rebilled,
        "rebilled_estimated": found.rebilled_estimated if found.rebilled is not None else None,
        "rebilled_at_most": found.rebilled_at_most if found.rebilled is not None else None,
        "cost": None if found.cost is None else round(found.cost, 1),
        "saving": None if found.saving is None else round(found.saving, 1),
        "break_even": found.break_even,
        "phantom": found.phantom,
        "words": list(found.words),
    }


def break_rate(rate: BreakRate) -> dict[str, Any]:
    """How often such events broke the cache under one setting."""
    return {**dataclasses.asdict(rate), "setting": rate.setting or None}
