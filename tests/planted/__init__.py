"""Planted prompt-cache transitions: recordings whose every verdict follows from the facts on caching, and from nothing of ours.

``TRANSITIONS`` hold a change each, ``APPENDS`` none. They are built from the rules that providers publish and what was
measured of them (the sections named in ``Transition.stands_on``), by code that imports nothing of ctxscope: a judge that
agrees with them agrees with a second reading of those rules, not with itself.
"""

from __future__ import annotations

from itertools import chain

from tests.planted import (
    anthropic_misses,
    anthropic_prefix,
    anthropic_server,
    deepseek_calls,
    engines,
    openai_misses,
    openai_prefix,
    others,
    respellings,
    strangers,
)
from tests.planted.appends import appends
from tests.planted.shapes import SPELLINGS, Expected, Planted, Transition, write

TRANSITIONS: tuple[Transition, ...] = tuple(
    chain.from_iterable(
        module.transitions()
        for module in (
            anthropic_prefix,
            anthropic_misses,
            anthropic_server,
            openai_prefix,
            openai_misses,
            deepseek_calls,
            engines,
            others,
            respellings,
            strangers,
        )
    )
)
APPENDS: tuple[Transition, ...] = tuple(appends())

__all__ = ["APPENDS", "SPELLINGS", "TRANSITIONS", "Expected", "Planted", "Transition", "write"]
