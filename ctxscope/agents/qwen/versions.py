"""What differs between the versions of Qwen Code that were run: 0.15.10, and 0.21.2 to 0.24.4 (none between was at hand).

The version that a line states decides how the requests around it were written; nothing of it is chosen by what was served.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Rules:
    """How a version writes its requests."""

    since: str
    """The first version that was seen to."""
    summarize: str
    """What asks for a summary, at the end of the last message."""
    reminds: bool = False
    """What a process begins with stands before the user's first words and not in two messages of its own; the date stands
    before the first words said in a process. What the user's side says in a row is one message; of answers side by side both
    thoughts stay; a tool call that has no result gets one that says so."""
    shares: bool = False
    """A summary is asked for with the conversation's own head and tools, and without them only where that fails."""
    reserve: int = 0
    """Tokens of the window that are kept free."""
    share: float = 0.7
    """Share of the window at which it compresses, where the settings have no other."""


_DIRECTIVE = "First, reason in your <analysis> block. Then, produce the <state_snapshot> XML."
RULES = (
    Rules("0.15.10", "First, reason in your scratchpad. Then, generate the <state_snapshot>."),
    Rules("0.21.2", _DIRECTIVE, reminds=True, reserve=33_000, share=0.85),
    Rules("0.21.10", _DIRECTIVE, reminds=True, shares=True, reserve=33_000, share=0.85),
)
"""Oldest first."""
VERSIONS = ("0.15.10", "0.21.2", "0.21.10", "0.23.0", "0.24.4")
"""Those that were run, oldest first."""


@lru_cache(maxsize=256)
def rules_of(version: str | None) -> Rules:
    """The rules of a version: those of the newest one run that is no newer; of the first one where all are."""
    if version is None:
        return RULES[0]
    number = _number(version)
    return next((rules for rules in reversed(RULES) if _number(rules.since) <= number), RULES[0])


def between(versions: Iterable[str]) -> list[str]:
    """A sentence for each version between two that were run and differ: which of the two it follows is not known."""
    found = []
    for version in sorted(set(versions), key=_number):
        number, rules = _number(version), rules_of(version)
        after = next((v for v in VERSIONS if _number(v) > number), None)
        if version not in VERSIONS and after is not None and rules_of(after) != rules:
            found.append(
                f"written by Qwen Code {version[:40]}, older than {after} and not known here; read like {rules.since}"
            )
    return found


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"[0-9]{1,9}", version.partition("-")[0])[:4])
