"""What agents would send next if they were started anew, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxscope.model import NEXT_INPUT, NextRequest
from ctxscope.report import Options
from ctxscope.report.foretold import Foretold, foretold
from ctxscope.report.md_call import cache_lines
from ctxscope.report.text import code, fenced, number, prose

_INPUT = NEXT_INPUT.encode()
_MINUTE = 60


def render_next(requests: Sequence[NextRequest], options: Options) -> str:
    """See ``Format.render_next``."""
    safe = foretold(requests, options)
    title = prose(safe.redact(options.title)) if options.title else "session"
    parts = [f"# The next request after a restart: {title}"]
    parts += [part for request in safe.requests for part in _section(request, safe)] or ["No session."]
    if options.command:
        parts += ["## Reproduce", fenced(safe.redact(options.command), "sh")]
    return "\n\n".join(parts) + "\n"


def _section(request: NextRequest, safe: Foretold) -> Iterator[str]:
    yield f"## {prose(request.title)}, session {code(request.session)}"
    if request.body is None:
        yield f"Not known: {prose(request.why)}."
        yield from _listed(request)
        return
    yield _sizes(request)
    yield cache_lines(request.cache, request.previous_n)
    if request.difference is not None:
        parts = request.difference
        yield (
            f"The two part at byte {number(parts.raw_offset)} of the last request and byte "
            f"{number(parts.other_offset)} of the next, {code(parts.path)}: {prose(parts.cause)}."
        )
        if safe.excerpts:
            yield from ("last", fenced(parts.served), "next", fenced(parts.rebuilt))
    yield from _listed(request)


def _sizes(request: NextRequest) -> str:
    """How large both are, and for how long that holds."""
    assert request.body is not None
    size, at = len(request.body.data), request.body.data.rfind(_INPUT)
    words = f"It would be {number(size)} bytes (rebuilt: {request.scope}), the next input standing at byte {number(at)}"
    if request.previous is None:
        return f"{words}; no earlier request is known to compare it with."
    side = "served" if request.previous_served else "rebuilt"
    words += f"; the last one, call {request.previous_n}, was {number(len(request.previous.data))} bytes ({side})."
    if request.ttl is not None:
        words += f" Judged as if it were sent at once: {_lifetime(request.ttl)} after the last request its provider may keep nothing."
    return words


def _lifetime(seconds: float) -> str:
    return f"{seconds / _MINUTE:g} min" if seconds >= _MINUTE else f"{seconds:g} s"


def _listed(request: NextRequest) -> Iterator[str]:
    lines = [f"- a new process: {prose(change)}" for change in request.changes]
    lines += [f"- not known: {prose(doubt)}" for doubt in request.unknown]
    lines += [f"- assumed of the process that ran last: {prose(choice)}" for choice in request.hypotheses]
    if lines:
        yield "\n".join(lines)
