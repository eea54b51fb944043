"""Why the counts of one request part: what an agent's estimator charges beside what a model sees, in words (issue 6).

A kind is compared with the visible part of the same name, the sidecar together with the text it is sent instead of; what
a model never sees as text (envelopes, bookkeeping) is a gap by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ctxscope.model import Estimate, TokenLedger, TokenParts

_LEAST = 0.02
"""Share of the larger count below which a contributor is not worth a sentence."""
_MOST = 5
"""Contributors that are named."""


@dataclass(frozen=True, slots=True)
class Contributor:
    """One reason for a gap."""

    tokens: int
    """By which it moves the estimate up, or down."""
    words: str
    """What it is, a clause."""
    about: str = ""
    """``≈`` where it rests on an estimated count."""


def gap_words(ledger: TokenLedger) -> tuple[str, ...]:
    """Why agent, visible and reported counts of a request part, the largest reason first; empty where nothing is compared."""
    return (*_agent_words(ledger), *_visible_words(ledger))


def contributors(estimate: Estimate, parts: TokenParts, side: str = "visible", about: str = "") -> list[Contributor]:
    """What moves an estimate away from the parts of a request's text, the largest first.

    ``side``: whose parts they are; ``about``: the mark of an estimate, where they are counted with another vocabulary.
    """
    return sorted(_contributors(estimate, parts, side, about), key=lambda c: (-abs(c.tokens), c.words))


def _agent_words(ledger: TokenLedger) -> Iterator[str]:
    if not ledger.estimates:
        return
    estimate, parts = ledger.estimates[0], ledger.parts
    seen, by, about = _measure(ledger)
    if not seen or not estimate.tokens:
        return
    gap = estimate.tokens - seen
    kind = "over" if gap > 0 else "under"
    yield (
        f"{estimate.estimator} estimates {estimate.tokens:,}, {estimate.tokens / seen:.2f} × {by} ({about}{seen:,}):"
        + (f" it {kind}-counts by {about}{abs(gap):,}" if gap else " the same")
    )
    base = estimate.charged.get("reported", 0)
    if base:  # it holds parts of every kind, so none can be compared
        yield f"of it {base:,} are the usage of an earlier answer, taken over; the rest is estimated of what came since"
        return
    if parts is None:
        return
    least = _LEAST * max(estimate.tokens, seen)
    found = [c for c in contributors(estimate, parts, _side(ledger), _about(ledger)) if abs(c.tokens) >= least]
    yield from (f"{c.words}: {c.about}{c.tokens:+,}" for c in found[:_MOST])


def _measure(ledger: TokenLedger) -> tuple[int | None, str, str]:
    """What an estimate is measured by, its name, and the mark of an estimate."""
    if ledger.reported is not None:
        return ledger.reported, "reported", ""
    about = _about(ledger)
    return (ledger.visible, "visible", about) if ledger.visible is not None else (ledger.rebuilt, "rebuilt", about)


def _side(ledger: TokenLedger) -> str:
    """What the parts are of: the served request, else the rebuilt one."""
    return "visible" if ledger.visible is not None else "rebuilt"


def _about(ledger: TokenLedger) -> str:
    return "≈" if ledger.estimated else ""


def _contributors(estimate: Estimate, parts: TokenParts, side: str, about: str) -> Iterator[Contributor]:
    charged = estimate.charged
    yield from _texts(charged.get("text", 0), charged.get("sidecar", 0), parts, side, about)
    yield Contributor(
        charged.get("envelope", 0), _envelope_words(charged.get("envelope", 0), charged.get("thinking", 0))
    )
    yield Contributor(charged.get("bookkeeping", 0), "keys, roles and ids of the agent's own messages")
    if parts.images is not None:
        words = f"images at {charged.get('images', 0):,} against {parts.images:,} by the provider's formula"
        yield Contributor(charged.get("images", 0) - parts.images, words)
    kinds = ["tool_calls", "tool_results", "thinking"]
    if charged.get("head"):
        head = parts.system + parts.tools
        words = f"the head (system and tools) at {charged['head']:,} against {about}{head:,} {side}"
        yield Contributor(charged["head"] - head, words, about)
    else:
        kinds += ["system", "tools"]
    for kind in kinds:
        one, other = charged.get(kind, 0), getattr(parts, kind)
        name = {"system": "the system text", "tools": "the tools"}.get(kind, kind.replace("_", " "))
        yield Contributor(one - other, f"{name} at {one:,} against {about}{other:,} {side}", about)


def _texts(text: int, sidecar: int, parts: TokenParts, side: str, about: str) -> Iterator[Contributor]:
    """A sidecar is sent instead of the text beside it: an estimate that charges both has counted one of them too much."""
    plain = text + sidecar - parts.text - parts.sidecar
    double = max(0, min(text, sidecar, plain)) if sidecar else 0
    if double:
        yield Contributor(double, "sidecars counted beside the content they are sent instead of", about)
    words = f"text at {text + sidecar - double:,} against {about}{parts.text + parts.sidecar:,} {side}"
    yield Contributor(plain - double, words, about)


def _envelope_words(envelope: int, thinking: int) -> str:
    share = f", {100 * envelope / (envelope + thinking):.0f} % of the reasoning it charges" if envelope else ""
    return f"opaque reasoning envelopes charged as text{share}"


def _visible_words(ledger: TokenLedger) -> Iterator[str]:
    """What was reported beyond a request's text, or falls short of it."""
    reported, side, parts = ledger.reported, _side(ledger), ledger.parts
    text = ledger.visible if ledger.visible is not None else ledger.rebuilt
    if not reported or text is None or parts is None or text == reported:
        return
    about = _about(ledger)
    words = f"{side} {about}{text:,} is {text / reported:.2f} × reported"
    yield words + (f"; {_between(reported - text, parts, about, ledger.overhead_for)}" if text < reported else "")


def _between(gap: int, parts: TokenParts, about: str, overhead_for: str) -> str:
    """What lies between a request's text and a higher bill; of what no part explains, how much it is.

    What a provider says of documents and of what it adds is about so much. An envelope is no text, so its tokens explain
    nothing for sure.
    """
    told = (
        (f"images {parts.images or 0:,}", parts.images),
        (f"documents ≈{parts.documents or 0:,}", parts.documents),
        (f"≈{parts.overhead or 0:,} that the provider says it adds for {overhead_for}", parts.overhead),
    )
    why = [f"{words} (more than that)" if count > gap else words for words, count in told if count]
    if 0 < parts.envelope <= gap:  # of more tokens than that it was surely not billed as text
        why.append(f"envelopes {about}{parts.envelope:,} if taken for text")
    unsized = [name for name in ("images", "documents") if getattr(parts, name) is None]
    left = gap - sum(count or 0 for count in (parts.images, parts.documents, parts.overhead))
    if left > 0:
        rest = "≈" if parts.documents or parts.overhead else about
        more = "adds beside that" if parts.overhead else "adds"
        those = f"are {' and '.join(unsized)} of unknown size, or " if unsized else ""
        why.append(f"{rest}{left:,} that {those}the provider {more}, counts otherwise, or was given beyond this text")
    elif unsized:
        why.append(f"{' and '.join(unsized)} whose size is not known")
    return f"between them {about}{gap:,}: {', '.join(why)}"
