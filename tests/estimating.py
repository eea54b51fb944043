"""Texts, and looks at what was charged, for the tests of the agents' own estimators."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from ctxscope.agents.reading.charges import Charge

texts = st.text(max_size=40)
envelopes = st.builds(
    lambda text, times: text * times, st.text("AZaz09+/=", min_size=1, max_size=9), st.integers(1, 500)
)


def without(charges: Charge, *names: str) -> dict[str, int]:
    return {k: v for k, v in charges.items() if v and k not in names}


def shuffled(value: Any, order: random.Random) -> Any:
    """The same with the keys of every object in another order."""
    if isinstance(value, Mapping):
        pairs = [(k, shuffled(v, order)) for k, v in value.items()]
        order.shuffle(pairs)
        return dict(pairs)
    return [shuffled(v, order) for v in value] if isinstance(value, list) else value
