"""When Python looks for garbage: while nobody waits for a frame.

A full collection walks every object there is, tens of milliseconds for a long session, at any moment. Instead, what lives
is set aside ("frozen") once it is loaded, and what came since is looked through when no key has been pressed for a while.
"""

from __future__ import annotations

import gc

_OLD_ROUNDS = 1_000
"""Rounds over the middle generation before a full collection comes by itself; Python's own 10 come within seconds."""
_WORTH_IT = 10
"""Rounds over the middle generation that make a full collection at leisure worth its time."""


class Leisure:
    """The collector's settings while an app runs."""

    def __init__(self) -> None:
        self._before = gc.get_threshold()

    def begin(self) -> None:
        """Put full collections off."""
        self._before = gc.get_threshold()
        gc.set_threshold(*self._before[:2], _OLD_ROUNDS)

    def settle(self) -> None:
        """Set aside what is loaded by now: it lives as long as the app, and need not be walked again."""
        gc.freeze()

    def tidy(self) -> None:
        """Collect what came since, at a moment when nobody waits."""
        if gc.get_count()[2] >= _WORTH_IT:
            gc.collect()
            gc.freeze()

    def end(self) -> None:
        """As it was before."""
        gc.set_threshold(*self._before)
        gc.unfreeze()
