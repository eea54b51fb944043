"""A sidecar beside the clean content it stands for: which is longer, by how much, and what that comes to in a call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ctxscope.analysis.prefixes import common_prefix
from ctxscope.analysis.tokens import Counter
from ctxscope.analysis.visible_text import VisibleText, visible_content
from ctxscope.model import ApiName, Sidecar, SidecarSum, Substitution

_WIDTH = 4
"""Bytes of a character in UTF-32."""


def judged(sidecar: Sidecar, counter: Counter, model: str | None, api: ApiName | None) -> Substitution:
    """The sidecar against its clean content, in tokens of the model they go to. Whether it substitutes, its agent says."""
    clean, stored = content_of(sidecar.clean), content_of(sidecar.stored)
    sizes = counter.size(clean, model, api), counter.size(stored, model, api)
    more = sizes[1].characters - sizes[0].characters
    at = None if clean.text == stored.text else _parting(clean.text, stored.text)
    is_equal = at is None and (clean.images, clean.documents) == (stored.images, stored.documents)
    return Substitution(
        place=sidecar.place,
        role=sidecar.role,
        relation="equal" if is_equal else "longer" if more > 0 else "shorter" if more < 0 else "as_long",
        ignored=sidecar.ignored,
        clean=sizes[0],
        sidecar=sizes[1],
        differs_at=at,
        estimated=counter.is_estimate(model),
    )


def in_sum(found: Iterable[Substitution]) -> SidecarSum | None:
    """What the sidecars of a call's context come to; ``None`` without any."""
    counts = dict.fromkeys(("equal", "shorter", "longer", "as_long", "ignored"), 0)
    clean = sent = 0
    for each in found:
        counts["ignored" if each.ignored else each.relation] += 1
        if not each.ignored:
            clean, sent = clean + each.clean.tokens, sent + each.sidecar.tokens
    return SidecarSum(**counts, clean_tokens=clean, sent_tokens=sent) if any(counts.values()) else None


def content_of(value: Any) -> VisibleText:
    """What a person, or a model, reads of a content; a number and bytes, which no rule sends, as they would be written."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    elif isinstance(value, int | float):
        value = str(value)
    return visible_content(value)


def _parting(one: str, other: str) -> int:
    """Characters both texts begin with."""
    both = [text.encode("utf-32-le", "surrogatepass") for text in (one, other)]
    return common_prefix(both[0], both[1]) // _WIDTH
