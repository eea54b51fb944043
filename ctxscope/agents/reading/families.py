"""Which sessions belong together: those that continue one another, and sessions of subagents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ctxscope.model import SessionRef


def kin(ref: SessionRef, among: Iterable[SessionRef]) -> Iterator[SessionRef]:
    """All that is linked to a session by parents, over any number of steps; not the session itself."""
    others = [other for other in among if other.agent == ref.agent and other.id != ref.id]
    found, grown = {ref.id: ref.parent}, True
    while grown:
        grown = False
        parents = {parent for parent in found.values() if parent}
        for other in others:
            if other.id not in found and (other.parent in found or other.id in parents):
                found[other.id] = other.parent
                grown = True
    yield from (other for other in others if other.id in found)
