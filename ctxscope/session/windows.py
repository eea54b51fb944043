"""The window of each call, as its agent or the user says."""

from __future__ import annotations

from functools import lru_cache

from ctxscope.model import NO_WINDOW, Config, LimitSource, Window
from ctxscope.session.calls import Slot


def window_at(slot: Slot, config: Config, named: int | None) -> Window:
    """Window and threshold of a call; ``named``: the size that the user names, which goes before what the agent says.

    Nothing for a call of which its log tells nothing, a summary or a title, unless the user names it: its model may be
    another one.
    """
    if slot.session is None or slot.point is None:
        return _shared(named, "user", None, None) if named is not None else NO_WINDOW
    module, log = slot.session.agent, slot.session.log
    own = module.window(log, slot.point, config)
    if named is None or named == own.size:
        return _shared(own.size, own.size_by, own.threshold, own.threshold_by)
    if own.threshold_by in ("config", "log"):
        return _shared(named, "user", own.threshold, own.threshold_by)
    threshold = module.due(log, config, named)
    return _shared(named, "user", threshold, None if threshold is None else "rule")


@lru_cache(maxsize=256)
def _shared(
    size: int | None, size_by: LimitSource | None, threshold: int | None, threshold_by: LimitSource | None
) -> Window:
    """One object for all calls of which the same holds."""
    return Window(size, size_by, threshold, threshold_by)
