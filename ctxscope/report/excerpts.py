"""The texts of one call that a report shows, redacted before they are cut."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ctxscope.model import Block, CallView, Difference, Snapshot
from ctxscope.report import Options, Views
from ctxscope.report.redaction import Redaction

_BEFORE, _WIDTH = 160, 480
"""Characters of a reply shown before the first difference of its sides, and in all."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The two excerpts of a difference; ``None`` where none may be shown."""

    served: str | None
    rebuilt: str | None


@dataclass(frozen=True, slots=True)
class ReplySides:
    """A reply as delivered, as stored and as the next request echoes it; ``None`` where that side is absent."""

    delivered: str | None
    stored: str | None
    echoed: str | None
    echoed_n: int | None


class Excerpts:
    """Gives the texts of calls as far as the options allow."""

    def __init__(self, snapshot: Snapshot, views: Views, options: Options) -> None:
        self.redact = Redaction(options.home, active=options.content != "full")
        self._shown = options.content != "none"
        self._calls = {call.n: call for call in snapshot.calls}
        self._view: Callable[[int], CallView] = lru_cache(maxsize=1)(views)

    def text(self, text: str | None) -> str | None:
        """A text of the log; ``None`` when no content is to be shown."""
        return self.redact(text) if text is not None and self._shown else None

    def request(self, n: int) -> Sides | None:
        """Served and rebuilt around the first difference; ``None`` when there is no difference."""
        difference = self._calls[n].rebuilt.first_difference
        if difference is None:
            return None
        if not self._shown:
            return Sides(None, None)
        if not self.redact.active:
            return Sides(difference.served, difference.rebuilt)
        view = self._view(n)
        return Sides(
            self.redact.excerpt(difference.served, view.served.data if view.served else None, difference.raw_offset),
            self.redact.excerpt(
                difference.rebuilt, view.rebuilt.data if view.rebuilt else None, difference.other_offset
            ),
        )

    def reply(self, n: int) -> Sides | None:
        """Delivered and stored around the first difference of the reply; ``None`` when there is none."""
        difference = self._calls[n].reply.first_difference
        if difference is None:
            return None
        if not self._shown:
            return Sides(None, None)
        if not self.redact.active:
            return Sides(difference.served, difference.rebuilt)
        return self._reply(difference, self._view(n))

    def _reply(self, difference: Difference, view: CallView) -> Sides:
        delivered, stored = _text(view.delivered_blocks), _text(view.stored_blocks)
        return Sides(
            self.redact.excerpt(difference.served, delivered),
            self.redact.excerpt(difference.rebuilt, stored),
        )

    def reply_sides(self, n: int) -> ReplySides | None:
        """All sides of the reply, cut alike around where they first part; ``None`` when no content is to be shown."""
        if not self._shown:
            return None
        view = self._view(n)
        texts = [_text(blocks) for blocks in (view.delivered_blocks, view.stored_blocks, view.echoed_blocks)]
        delivered, stored, echoed = _cut([None if t is None else self.redact(t) for t in texts])
        return ReplySides(delivered, stored, echoed, view.echoed_n)


def _text(blocks: Sequence[Block] | None) -> str | None:
    """Blocks as lines a person can read; ``None`` when the side is absent."""
    return None if blocks is None else "\n".join(_line(block) for block in blocks)


def _line(block: Block) -> str:
    if block.kind == "text":
        return block.text
    named = " ".join(part for part in (block.kind, block.name, block.id) if part)
    sealed = f" (envelope of {len(block.envelope)} characters)" if block.envelope else ""
    return f"[{named}{sealed}] {block.text}".rstrip()


def _cut(texts: Sequence[str | None]) -> list[str | None]:
    there = [text for text in texts if text is not None]
    start = max(len(os.path.commonprefix(there)) - _BEFORE, 0)  # noqa: RUF071 - by character is what is wanted
    return [None if text is None else _piece(text, start) for text in texts]


def _piece(text: str, start: int) -> str:
    start = min(start, max(len(text) - _BEFORE, 0))
    end = start + _WIDTH
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
