"""Requests not sent yet as a report may show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ctxscope.model import NextRequest
from ctxscope.report import Options
from ctxscope.report.redaction import Redaction


@dataclass(frozen=True, slots=True)
class Foretold:
    """Requests with no text in them that may not be shown."""

    requests: tuple[NextRequest, ...]
    excerpts: bool
    """Whether there are texts of log and wire."""
    redact: Redaction


def foretold(requests: Sequence[NextRequest], options: Options) -> Foretold:
    """What the options let be seen of them."""
    redact = Redaction(options.home, active=options.content != "full")
    excerpts = options.content != "none"
    return Foretold(tuple(_shown(r, redact, excerpts=excerpts) for r in requests), excerpts=excerpts, redact=redact)


def _shown(request: NextRequest, redact: Redaction, *, excerpts: bool) -> NextRequest:
    parts = request.difference
    if parts is not None and not excerpts:
        parts = replace(parts, served="", rebuilt="")
    elif parts is not None:
        last = redact.around(request.previous.data if request.previous else None, parts.raw_offset)
        after = redact.around(request.body.data if request.body else None, parts.other_offset)
        knowing = redact.knowing((*last.known, *after.known))
        parts = replace(
            parts, served=knowing.excerpt(parts.served, last), rebuilt=knowing.excerpt(parts.rebuilt, after)
        )
    words = redact.value(replace(request, body=None, previous=None, pieces=(), difference=None))
    return replace(words, body=request.body, previous=request.previous, difference=parts)
