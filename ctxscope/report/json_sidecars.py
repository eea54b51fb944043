"""Sidecars in the JSON report (schema 1, additions): numbers and places, no text."""

from __future__ import annotations

import dataclasses
from typing import Any

from ctxscope.model import SidecarSum, Substitution


def in_sum(found: SidecarSum | None) -> dict[str, Any]:
    """How many sidecars a call's context holds by their relation to the clean content, and what was sent for what."""
    return {f.name: getattr(found, f.name, None) for f in dataclasses.fields(SidecarSum)}


def sidecar(found: Substitution) -> dict[str, Any]:
    """One sidecar; ``call`` is the first that carries it, ``difference`` the sidecar less the clean content."""
    clean, sent = dataclasses.asdict(found.clean), dataclasses.asdict(found.sidecar)
    return {
        "session": found.session,
        "call": found.call,
        "entry": {"log": found.place.log, "place": found.place.at},
        "role": found.role,
        "sent": found.ignored is None,
        "ignored": found.ignored,
        "relation": found.relation,
        "clean": clean,
        "sidecar": sent,
        "difference": {name: sent[name] - clean[name] for name in ("characters", "bytes", "tokens")},
        "differs_at": found.differs_at,
        "estimated": found.estimated,
    }
