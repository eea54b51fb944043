"""What is known of two calls beside their prompts: of one conversation, kept in one place, the first ready for the second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxscope.analysis.miss_causes import kept_apart
from ctxscope.analysis.providers.rules import Rules
from ctxscope.session.calls import Slot
from ctxscope.session.traffic import Heard, seen_of

_SUBAGENT = "sub:"


def hosts_of(heard: Heard, other: Heard) -> tuple[str | None, str | None]:
    """The hosts two calls were sent to; ``None`` for a loopback address, behind which anyone may be."""
    return seen_of(heard).host or None, seen_of(other).host or None


def one_store(heard: Heard, other: Heard, rules: Rules) -> bool:
    """Whether what one of two calls had kept can be read by the other, as far as hosts, keys and settings tell."""
    return not any(True for _ in _apart(heard, other, rules))


def is_apart(heard: Heard, other: Heard, rules: Rules) -> bool:
    """Whether what one of two calls had kept can surely not be read by the other; another key alone does not tell."""
    return any(_apart(heard, other, rules))


def _apart(heard: Heard, other: Heard, rules: Rules) -> Iterator[bool]:
    """For each thing that keeps two calls apart, whether it surely does."""
    params = heard.settings.params, other.settings.params
    headers = heard.exchange.headers, other.exchange.headers
    return (sure for _, sure in kept_apart(rules, params, headers, hosts_of(heard, other)))


def is_ready(parent: Heard, heard: Heard, rules: Rules) -> bool:
    """Whether what a parent writes could be read when a call began; where no times were recorded, it is taken so."""
    if rules.ready is None:
        return True
    known = parent.exchange.first_byte if rules.ready == "first_byte" else parent.exchange.end
    return known is None or known <= heard.exchange.time


def engine_of(heard: Heard) -> str | None:
    """Where a call went, as an address."""
    return heard.exchange.upstream or heard.exchange.headers.get("host")


def are_foreign(slot: Slot, other: Slot | None, calls: Sequence[Slot]) -> bool:
    """Whether two calls are of sessions of which neither goes on from the other, or one is a subagent's alone."""
    lineages = {slot.lineage, other.lineage if other is not None else slot.lineage}
    if len(lineages) > 1 and any(name.startswith(_SUBAGENT) for name in lineages):
        return True
    if other is None or slot.session is None or other.session is None or slot.session is other.session:
        return False
    names = {slot.session.ref.id, other.session.ref.id}
    parents = {s.session.ref.id: s.session.ref.parent for s in calls if s.session is not None}
    for name in names:
        above = parents.get(name)
        while above is not None and above not in names:
            above = parents.get(above)
        if above is not None:
            return False
    return True
