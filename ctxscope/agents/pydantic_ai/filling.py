"""The empty reasoning that Chat Completions are sent with an answer that calls a tool and has none.

Providers refuse such an answer while the model reasons. Which answers get the empty field depends on the version and on
the provider's profile, neither of which a history holds (read in the library's source, 2.51.0 and 2.68.0, and recorded).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ctxscope.agents.pydantic_ai.files import returned
from ctxscope.agents.pydantic_ai.transcript import Transcript, Unit, Written
from ctxscope.agents.pydantic_ai.writing import spelled, thinking_field
from ctxscope.model import Piece
from ctxscope.wire.blocks import string

Rule = Literal["none", "tail", "since", "if_any", "all"]
RULES: Mapping[Rule, str] = {
    "none": "",
    "tail": "answers behind the newest user message that call a tool and have no reasoning are sent with an empty one",
    "since": "answers that call a tool and have no reasoning are sent with an empty one from the first reasoning on",
    "if_any": "answers that call a tool and have no reasoning are sent with an empty one once there is any reasoning",
    "all": "all answers that call a tool and have no reasoning are sent with an empty one",
}
"""Which answers get it, in words; ``tail`` is what 2.68 does where nothing is said of a provider."""
USUAL = "reasoning_content"


@dataclass(slots=True)
class Needs:
    """What a file's units have, as far as it matters here. Numbers are those of units."""

    lacking: list[int] = field(default_factory=list)
    """Answers that call a tool and are sent without reasoning."""
    said: list[int] = field(default_factory=list)
    """Units with a message of the role ``user``."""
    thinks: int | None = None
    """The first answer with reasoning."""
    fields: list[tuple[int, str]] = field(default_factory=list)
    """Keys that reasoning is sent under, each with the first unit that has it."""


def needs(told: Transcript) -> Needs:
    """The same for a file; looked at once."""
    if "needs" not in told.notes:
        told.notes["needs"] = found = Needs()
        for at, unit in enumerate(told.units):
            _look(found, at, unit)
    made: Needs = told.notes["needs"]
    return made


def _look(found: Needs, at: int, unit: Unit) -> None:
    if unit.role == "request":
        if any(_is_user(part.kind, part.data.get("tool_name")) or returned(part) for part in unit.parts):
            found.said.append(at)
        return
    thoughts = [part for part in unit.parts if part.kind == "thinking"]
    calls = any(part.kind == "tool-call" for part in unit.parts)
    names = {name for part in thoughts if (name := thinking_field(part))}
    if thoughts and found.thinks is None:
        found.thinks = at
    if calls and not names:
        found.lacking.append(at)
    if calls or any(part.kind == "text" for part in unit.parts):
        found.fields += [(at, name) for name in sorted(names - {known for _, known in found.fields})]


def _is_user(kind: str, tool: object) -> bool:
    return kind in ("user-prompt", "retry-feedback") or (kind == "retry-prompt" and tool is None)


def chosen(told: Transcript, units: int, rule: Rule) -> tuple[int, int]:
    """Of the answers among the first units that have no reasoning (``Needs.lacking``) those that get it, as a slice."""
    held = needs(told)
    end = bisect_left(held.lacking, units)
    thinks = held.thinks if held.thinks is not None and held.thinks < units else None
    if rule == "all":
        return 0, end
    if rule == "none" or thinks is None:
        return end, end
    if rule == "since":
        return min(bisect_left(held.lacking, thinks), end), end
    if rule == "if_any":
        return 0, end
    names = [name for at, name in held.fields if at < units]
    newest = bisect_left(held.said, units)
    start = bisect_left(held.lacking, held.said[newest - 1]) if newest else 0
    return (min(start, end), end) if len(names) == 1 else (end, end)


def name_of(told: Transcript, units: int) -> str:
    """The key it is sent under: the one that other answers have, those before first."""
    fields = needs(told).fields
    return next((name for at, name in fields if at < units), fields[0][1] if fields else USUAL)


def filled(told: Transcript, written: Written, pieces: list[Piece], units: int, rule: Rule) -> list[Piece]:
    """The pieces of the first units, those that need it with an empty reasoning at their end."""
    first, end = chosen(told, units, rule)
    if first == end:
        return pieces
    addition = b"," + spelled(name_of(told, units)) + b':""}'
    made: dict[object, Piece] = told.notes.setdefault("filled", {})
    for unit in needs(told).lacking[first:end]:
        at = written.starts[unit]
        if at < written.starts[unit + 1]:
            old = pieces[at]
            key = id(old), addition
            if key not in made:
                made[key] = Piece(old.data[:-1] + addition, old.provenance, old.place)
            pieces[at] = made[key]
    return pieces


def shown(data: bytes, told: Transcript, units: int) -> int:
    """How many answers of a served body have an empty reasoning."""
    return data.count(b"," + spelled(name_of(told, units)) + b':""}')


def consistent(data: bytes, told: Transcript, units: int, among: frozenset[Rule]) -> frozenset[Rule]:
    """The rules a served body agrees with; all of them where none does: the body then differs."""
    count = shown(data, told, units)
    kept = frozenset(r for r in among if (s := chosen(told, units, r))[1] - s[0] == count)
    return kept or among


def tells(told: Transcript, units: int, among: frozenset[Rule]) -> bool:
    """Whether a request of so many units tells rules apart."""
    return len({chosen(told, units, rule) for rule in among if string(rule)}) > 1
