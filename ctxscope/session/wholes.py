"""Where a log lies in an agent's layout, and from a file that is part of a session (a subagent's) to the session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ctxscope import agents
from ctxscope.model import CtxscopeError, SessionRef

MOST_ANCESTORS = 10


def place_of(path: Path, agent: agents.Agent) -> tuple[Path, SessionRef | None]:
    """The folder that stands for the home a log lies in, and the session of which the file is only a part, if of any.

    The log's own folder stands for a home when it lies outside any layout.
    """
    real = path.resolve()
    above = list(real.parents)[:MOST_ANCESTORS]
    near: list[SessionRef] = []
    for home in above:
        for ref in agent.discover(home):
            if any(real == p.resolve() for p in ref.paths):
                return home, None
            if ref.id and ref.paths[0].resolve().parent in above:
                near.append(ref)
    for ref in (*near, *_named_as(above, real.suffix, agent)):
        if any(spec.path.resolve() == real for spec in agent.sources(ref)):
            return ref.home, ref
    return path.parent, None


def without_parts(refs: Sequence[SessionRef]) -> list[SessionRef]:
    """Sessions but for those whose file another one reads as a further source."""
    if len(refs) == 1:
        return list(refs)
    specs = ((ref, spec) for ref in refs for spec in agents.load(ref.agent).sources(ref))
    parts = {(ref.agent, spec.path) for ref, spec in specs if spec.path != ref.paths[0]}
    return [ref for ref in refs if (ref.agent, ref.paths[0]) not in parts]


def _named_as(above: Sequence[Path], ending: str, agent: agents.Agent) -> Iterator[SessionRef]:
    """The sessions of logs that are named as one of some folders and lie beside it."""
    for folder in above[:-1]:
        log = folder.with_name(folder.name + ending)
        if log.is_file():
            with suppress(CtxscopeError):
                yield from agent.refs(log, log.parent)
