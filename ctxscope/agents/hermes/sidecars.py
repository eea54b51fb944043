"""Sidecars of the rows a call is made of (``api_content``), sent or not (hermes.md §4.2, §4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes.canonical import SIDECAR, message_of
from ctxscope.agents.hermes.repair import repaired
from ctxscope.agents.hermes.rows import any_row, content_of
from ctxscope.agents.hermes.runs import rows_among
from ctxscope.agents.reading.sidecars import no_text
from ctxscope.model import Entry, Ignored, Point, Sidecar


def sidecars(log: Log, point: Point) -> Sequence[Sidecar]:
    """What the context's rows hold as ``api_content``."""
    if not any_row(log, SIDECAR, _has_one):
        return ()
    made = shared_memo(log, "hermes.sidecars")
    found: list[Sidecar] = []
    for _, group in groupby(rows_among(point.context), attrgetter("kind")):
        rows = list(group)
        holding = [entry for entry in rows if entry.data.get(SIDECAR) is not None]
        kept = _kept(rows) if holding and len(rows) > 1 else None
        for entry in holding:
            key = (entry, kept is not None and entry not in kept)
            if key not in made:
                made[key] = _sidecar(entry, merged=key[1])
            found.append(made[key])
    return found


def _has_one(entry: Entry) -> bool:
    return entry.data.get(SIDECAR) is not None


def _sidecar(entry: Entry, *, merged: bool) -> Sidecar:
    row, role = entry.data, entry.data.get("role")
    ignored = _ignored(row.get(SIDECAR), role) or ("merged" if merged else None)
    clean, stored = _sent(content_of(row)), _sent(row.get(SIDECAR))
    return Sidecar(entry.place, role if isinstance(role, str) else entry.kind, clean, stored, ignored)


def _ignored(value: Any, role: Any) -> Ignored | None:
    """Why ``sidecar_of`` drops it."""
    if role not in ("user", "assistant"):
        return "role"
    return "empty" if value == "" else no_text(value)


def _sent(content: Any) -> Any:
    """A content as it goes out: no transport sends the white space around a text."""
    return content.strip() if isinstance(content, str) else content


def _kept(rows: Sequence[Entry]) -> set[Entry]:
    """Rows of one role, side by side, that still hold their sidecars after they were merged."""
    left = repaired(message_of(row, loaded=False) for row in rows)
    return {message.rows[0] for message in left if SIDECAR in message.data}
