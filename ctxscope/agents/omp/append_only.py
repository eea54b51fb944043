"""omp's append-only context: what of a message array it keeps from the last call, and its name for a head (omp.md §4.9).

Pure arithmetic over parsed values, as ``AppendOnlyContext`` and ``StablePrefix`` of 18.2.3 do it (recorded vectors).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ctxscope.wire.json_text import js

SyncCase = Literal["append", "shrink", "rewrite"]
MASK = 0xFFFFFFFF
_POWERS = tuple(pow(31, n, 1 << 32) for n in range(4096))
_CHUNK = len(_POWERS)


@dataclass(frozen=True, slots=True)
class Step:
    """What one call did to the log of messages that the last one left."""

    case: SyncCase
    """``append``: all kept; ``shrink``: cleared and replayed; ``rewrite``: cut down to ``kept``, then appended to."""
    kept: int
    """Messages of the earlier log that stay as they are."""
    appended: int

    @property
    def first_rewritten(self) -> int | None:
        """Index of the first message of the earlier log that is not kept; ``None`` where all are."""
        return None if self.case == "append" else self.kept


def h32(text: str) -> int:
    """A string hashed as omp does: ``h = 31·h + unit`` over UTF-16 units, in 32 bits, unsigned."""
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    found = 0
    for at in range(0, len(units), _CHUNK):
        chunk = units[at : at + _CHUNK].tolist()
        rest = sum(map(int.__mul__, chunk, reversed(_POWERS[: len(chunk)])))
        found = (found * pow(31, len(chunk), 1 << 32) + rest) & MASK
    return found


def digest(message: Any) -> int:
    """The digest of one message: all that a provider may be sent of it. What is no object digests to 0."""
    if not isinstance(message, Mapping):
        return 0
    return h32(
        js(
            {
                "r": message.get("role"),
                "c": message.get("content"),
                "pp": message.get("providerPayload"),
                "tc": _either(message, "toolCalls", "tool_calls"),
                "tcid": _either(message, "toolCallId", "tool_call_id"),
                "tn": _either(message, "toolName", "name"),
                "err": message.get("isError"),
                "id": message.get("id"),
            }
        )
    )


def _either(message: Mapping[str, Any], *names: str) -> Any:
    return next((message[name] for name in names if message.get(name) is not None), None)


def longest_prefix(old: Sequence[int], new: Sequence[int]) -> int:
    """Digests that two rows begin with in common."""
    bound = min(len(old), len(new))
    return next((i for i in range(bound) if old[i] != new[i]), bound)


def step(old: Sequence[int], new: Sequence[int], stable: int | None = None) -> Step:
    """What a call with the digests ``new`` does to a log with ``old``; ``stable`` where their common prefix is known.

    A shorter row clears the log even where it is a pure prefix.
    """
    if len(new) < len(old):
        return Step("shrink", 0, len(new))
    kept = longest_prefix(old, new) if stable is None else stable
    return Step("append" if kept == len(old) else "rewrite", kept, len(new) - kept)


def fingerprint(
    system: Sequence[str], tools: Sequence[Mapping[str, Any]], *, intent: bool, prune: bool | None = None
) -> str:
    """Omp's name for a head. ``tools`` as normalised for the loop: with the intent argument, without pruned descriptions.

    ``intent`` and ``prune`` are the options it was built with (``None``: not given).
    """
    keys = {
        "n": "name",
        "d": "description",
        "p": "parameters",
        "s": "strict",
        "cf": "customFormat",
        "cw": "customWireName",
    }
    named = [{short: tool[key] for short, key in keys.items() if key in tool} for tool in tools]
    options = {"i": intent} | ({} if prune is None else {"pd": prune})
    return base36(h32(js({"s": list(system), "t": named, **options})))


def base36(value: int) -> str:
    """A number as ``toString(36)`` writes it."""
    digits = ""
    while value:
        value, rest = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits or "0"
