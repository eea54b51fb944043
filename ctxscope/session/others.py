"""What is said of the sessions that lie beside the newest one, where that alone is shown."""

from __future__ import annotations

from collections.abc import Sequence

from ctxscope.agents.reading.families import kin
from ctxscope.model import SessionRef

NAMED = 4
"""Sessions whose ids are told."""


class Others:
    """The sessions of a folder, or of a file of many, that are not shown."""

    def __init__(self, found: Sequence[SessionRef]) -> None:
        self._found = sorted(found, key=lambda ref: ref.updated or 0.0, reverse=True)
        self._since: list[SessionRef] = []
        self._told: str | None = None
        """The notice, asked for at every poll; ``None`` once another session is to be told of."""

    def add(self, ref: SessionRef) -> None:
        """A session appeared; one that continues what is shown is shown, too."""
        self._since.append(ref)
        self._told = None

    def failed(self, ref: SessionRef) -> None:
        """A session cannot be read, so that the next one is shown in its place; another notice says why."""
        self._found = [other for other in self._found if other != ref]
        self._told = None

    @property
    def notice(self) -> str:
        """How many there are and how to see them; empty where there are none."""
        if self._told is None:
            self._told = self._tell()
        return self._told

    def _tell(self) -> str:
        every = [*self._found, *self._since]
        shown = {(ref.agent, ref.id) for one in self._found[:1] for ref in (one, *kin(one, every))}
        ids = [ref.id for ref in every if (ref.agent, ref.id) not in shown]
        if not ids:
            return ""
        more = f" and {len(ids) - NAMED:,} more" if len(ids) > NAMED else ""
        count = f"{len(ids):,} other session{'' if len(ids) == 1 else 's'}"
        named = ", ".join(ids[:NAMED])
        return f"only the session last written to is shown; {count} found here: --session ID shows one of them ({named}{more})"
