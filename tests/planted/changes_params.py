"""Settings that are part of a rendered prefix, or are not, each changed in the fourth call of an ordinary conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tests.planted.changes import Family
from tests.planted.dialects import JSON
from tests.planted.shapes import SURE, Transition


@dataclass(frozen=True, slots=True)
class Setting:
    """``before`` is laid over the first three bodies, ``after`` over the fourth; ``cause`` ``None``: the prefix stays."""

    name: str
    cause: str | None
    before: JSON
    after: JSON
    stands_on: str
    others: tuple[str, ...] = ()
    headers: tuple[dict[str, str], dict[str, str]] = field(default=({}, {}))
    confidence: frozenset[str] = SURE
    also: frozenset[str] = frozenset()
    open_read: bool = False
    """The reference leaves open whether tools and system stay readable (§2.2: M, U)."""
    change: Callable[[JSON], None] | None = None
    """Where laying over is not enough; made to the fourth body."""


def settings(prefix: str, family: Family, table: tuple[Setting, ...]) -> Iterator[Transition]:
    """A transition for each row."""
    for row in table:
        tape = family()
        tape.headers = tape.headers | row.headers[0]
        body = tape.opening() | row.before
        for turn in range(3):
            call = tape.ask(body)
            tape.note(tape.cold(call) if turn == 0 else tape.warm(call, turn))
            body = tape.grown(call, turn)
        body |= row.after
        for key in [k for k, v in body.items() if v is None]:
            del body[key]
        if row.change:
            row.change(body)
        call = tape.ask(body, headers=row.headers[1])
        if row.cause is None:
            tape.note(tape.warm(call, 3))
        else:
            how = {"confidence": row.confidence, "also": row.also}
            told = tape.broken(call, row.cause, None, *row.others, **how)
            tape.note(replace(told, expected_read=(0, call.counted.read), lost=None) if row.open_read else told)
        yield tape.done(f"{prefix}/{row.name}", row.stands_on)
