"""The first difference of a request that carries only what is new: judged on what the model is given."""

from __future__ import annotations

from dataclasses import replace

from ctxscope.analysis.divergence import first_difference
from ctxscope.model import Body, Difference


def continued_difference(served: Body, rebuilt: Body, effective: Body, implied: Body) -> Difference | None:
    """The first difference of a continuation and of all it continues; ``None`` when there is none.

    ``served`` and ``rebuilt`` are the bodies of the call itself, ``effective`` and ``implied`` the requests they expand
    to. A difference in what the call itself carries is told by its own bodies: raw offsets and path lead into the bytes
    that crossed the wire, and the prefix offset counts all that the model is given. One that lies before them is told
    by the effective requests, which is marked.
    """
    own, whole = first_difference(served, rebuilt), first_difference(effective, implied)
    if whole is None:
        return own
    if own is not None and not _inherited(whole.path, served, effective):
        return replace(own, prefix_offset=whole.prefix_offset)
    return replace(whole, cause=f"{whole.cause} (in what this request continues)", effective=True)


def _inherited(path: str, served: Body, effective: Body) -> bool:
    """Whether what stands at a path of the effective request comes from before the served body."""
    field, _, rest = path[1:].partition("/")
    index = rest.partition("/")[0]
    if index.isdigit():
        return int(index) < _items(effective, field) - _items(served, field)
    return _items(served, field) == 0


def _items(body: Body, field: str) -> int:
    """How many items a top-level array has, or 1 for any other value that is there."""
    last = next((s.path for s in reversed(body.segments) if s.path.split("/", 2)[1:2] == [field]), "")
    index = last.removeprefix(f"/{field}").split("/")[1:2]
    return int(index[0]) + 1 if index and index[0].isdigit() else int(bool(last))
