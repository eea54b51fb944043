"""What a session took over from another one: lines written anew into its file, or lines of that one's own file.

Old forks, and subagents given their parent's history, copy it at once when they begin; newer forks name the file it stands
in (codex.md §2, §9; measured with 0.98 and 0.171).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ctxscope.agents.codex import ancestors
from ctxscope.agents.codex.items import is_user
from ctxscope.agents.codex.lines import BASE, type_of
from ctxscope.model import Entry

if TYPE_CHECKING:
    from ctxscope.agents.codex.fold import Fold

AT_ONCE_SECONDS = 0.25
"""A fork writes what it takes over at once; older versions do not say otherwise where it ends."""
PAUSE_SECONDS = 0.01
"""Time between two lines after which an input is no longer one that was taken over: those follow at once."""


def begin(fold: Fold, entries: Sequence[Entry]) -> None:
    """Fold in what another rollout holds of the history; the calls made there are that session's."""
    own = fold.known.copy()
    for entry in entries:
        fold.take(entry)
    fold.begun, fold.known = fold.known - own, own
    fold.calls, fold.events, fold.unclaimed = [], [], None
    fold.asks = fold.answering = None
    fold.running = fold.foreign = False
    fold.runs, fold.applied = 0, None


def begins_otherwise(fold: Fold, entries: Iterable[Entry]) -> bool:
    """Whether entries show more of what the history begins with, or other lines of it."""
    base = ancestors.base_of(fold.header)
    if base is None:
        return False
    return any(
        e.key in fold.begun or e.source != ancestors.source_of(base[0]) or ancestors.is_before(e, base[1])
        for e in entries
        if e.source.startswith(f"{BASE}:")
    )


def is_copied(fold: Fold, entry: Entry) -> bool:
    """Whether a call that ends with this line was taken over."""
    if not fold.foreign:
        return False
    if fold.records or fold.started is None or entry.time is None:
        return True
    return entry.time - fold.started < AT_ONCE_SECONDS


def settle(fold: Fold, entry: Entry, payload: Mapping[str, Any]) -> None:
    """End what was taken over: by a record that names this thread, or by time where no records tell.

    A line written later than all at once is the session's own, and so is an input after a pause.
    """
    own = payload.get("thread_id") is not None and payload.get("thread_id") == fold.header.get("id")
    if not own and (fold.records or entry.time is None):
        return
    late = _since(entry, fold.started) >= AT_ONCE_SECONDS
    asked = type_of(entry) == "response_item" and is_user(payload) and _since(entry, fold.last) >= PAUSE_SECONDS
    if own or late or asked:
        fold.foreign = fold.running = False
        fold.asks = None  # what was asked in the other session was answered there
    if own and type_of(entry) == "token_usage_record" and fold.calls:
        fold.calls[-1].copied = False
        fold.calls[-1].changes += 1


def _since(entry: Entry, earlier: float | None) -> float:
    return entry.time - earlier if entry.time is not None and earlier is not None else 0.0
