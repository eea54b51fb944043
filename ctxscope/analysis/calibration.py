"""How far the visible count lies from what providers report, by model; counts scaled to that.

A model's factor is the median of reported ÷ visible over all calls of it in a session, images by their formula
apart and calls with documents left out. A median is the same in whatever order the calls came, and one odd call (a hidden context, an edit by the
server) does not move it; prompt_caching §11 would have a moving average, whose value depends on the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import median

from ctxscope.model import Call, TokenLedger

_LEAST, _MOST = 1 / 3, 3.0
"""No two tokenizers lie further apart on one text: beyond, the total holds something else than was counted."""
_DIGITS = 3
"""Of a factor behind the point: a call more mostly changes no figure of the others."""
WHOLE = ("bytes", "parsed")
"""What a recording must have kept of a request for its count to be that of all that was sent."""

Name = tuple[str | None, str | None, str | None]
"""Session, provider and model."""


def name_of(call: Call) -> Name:
    """Whose factor holds for a call."""
    return (call.session, call.provider, call.model)


def ratio(call: Call) -> float | None:
    """Reported ÷ visible of one call; ``None`` when one of them, or an image in it, is not known, or with a document.

    What a document costs is at best known as about so much.
    """
    tokens = call.tokens
    parts = tokens.parts
    if parts is None or parts.images is None or parts.documents != 0:
        return None
    if call.exchange is None or call.exchange.fidelity not in WHOLE:
        return None
    return _plausible(tokens.visible, tokens.reported, parts.images)


def factors(calls: Iterable[Call]) -> dict[Name, float]:
    """Each model's factor, where any call of it tells one."""
    found: dict[Name, list[float]] = {}
    for call in calls:
        told = ratio(call)
        if told is not None:
            found.setdefault(name_of(call), []).append(told)
    return {name: round(median(told), _DIGITS) for name, told in found.items()}


def calibrated(tokens: TokenLedger, factor: float | None) -> TokenLedger:
    """A ledger with its visible count in the model's own tokens, as far as a factor tells."""
    if factor is None or tokens.visible is None:
        factor = scaled = None
    else:
        scaled = round(tokens.visible * factor)
    if (tokens.factor, tokens.calibrated) == (factor, scaled):
        return tokens
    return replace(tokens, factor=factor, calibrated=scaled)


def shares(counted: Mapping[str, int], images: Mapping[str, int | None], reported: int | None) -> dict[str, int]:
    """Tokens by segment so that all add up to what was reported; empty where that cannot be said.

    ``counted``: visible tokens by segment in cache order; ``images``: those of segments that hold any, by formula.
    """
    known = {path: n for path, n in images.items() if n is not None}
    if len(known) < len(images):
        return {}
    factor = _plausible(sum(counted.values()), reported, sum(known.values()))
    if factor is None:
        return {}
    out: dict[str, int] = {}
    before = 0
    for path, n in counted.items():  # rounded as a running total, so that nothing is lost or gained
        out[path] = round((before + n) * factor) - round(before * factor) + known.get(path, 0)
        before += n
    return out


def _plausible(visible: int | None, reported: int | None, images: int) -> float | None:
    if not visible or reported is None:
        return None
    found = (reported - images) / visible
    return found if _LEAST <= found <= _MOST else None
