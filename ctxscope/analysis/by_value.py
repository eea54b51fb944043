"""Bodies that a recording kept as JSON values: what is rebuilt is spelt as the recording spells, so that only values differ.

Escapes, white space, the order of keys and the spelling of numbers are the recording tool's own there (``Fidelity``).
"""

from __future__ import annotations

import json
from typing import Any


def respelt(rebuilt: bytes, served: bytes) -> bytes:
    """The value of ``rebuilt`` in the spelling of ``served``; the very bytes of ``served`` where the values are equal.

    ``rebuilt`` itself when one of them is no JSON, or nests too deep to be compared.
    """
    try:
        mine, theirs = json.loads(rebuilt), json.loads(served)
        if _same(mine, theirs):
            return served
        text = json.dumps(_in_order(mine, theirs), ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return rebuilt
    return text.encode("utf-8", "surrogatepass")


def _same(one: Any, two: Any) -> bool:
    """Whether two JSON values are equal; ``true`` is not 1, as Python has it."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_same(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_same, one, two))
    return isinstance(one, bool) == isinstance(two, bool) and bool(one == two)


def _in_order(mine: Any, theirs: Any) -> Any:
    """``mine`` with its keys in the order of ``theirs``, and equal numbers spelt alike."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        keys = [*(key for key in theirs if key in mine), *(key for key in mine if key not in theirs)]
        return {key: _in_order(mine[key], theirs.get(key)) for key in keys}
    if isinstance(mine, list) and isinstance(theirs, list):
        known = len(theirs)
        return [_in_order(item, theirs[i] if i < known else None) for i, item in enumerate(mine)]
    return theirs if _same(mine, theirs) else mine
