"""A session that grows without compaction: what each further call is looked at for, and what is made for it, stays the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ctxscope.agents import Before, codex
from ctxscope.agents.codex import base, body, history
from ctxscope.model import Body, Piece, Point
from tests.codex_cases import body_of, log_of
from tests.codex_lines import SMALL
from tests.samples.codex_form import Session, use, uuid7

CALLS, SETTLED = 90, 20
"""Calls of the session, and how many of them it may take until only what is new is looked at."""


@dataclass
class Work:
    """What was looked at, by kind."""

    done: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, amount: int) -> None:
        self.done[kind] = self.done.get(kind, 0) + amount


WORK = Work()


class Text(bytes):
    """Bytes that count how many of them are copied or searched."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        WORK.add("bytes", len(found) if isinstance(found, bytes) else 1)
        return found

    def __contains__(self, mark: Any) -> bool:
        return self.find(mark) >= 0

    def find(self, mark: Any, start: Any = 0, end: Any = None) -> int:
        end = len(self) if end is None else end
        at = super().find(mark, start, end)
        WORK.add("bytes", (end if at < 0 else at) - start)
        return at

    def rfind(self, mark: Any, start: Any = 0, end: Any = None) -> int:
        end = len(self) if end is None else end
        at = super().rfind(mark, start, end)
        WORK.add("bytes", end - max(at, start))
        return at


class Segments(tuple[Any, ...]):
    """Segments that count how many of them are visited."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            WORK.add("segments", 1)
            yield tuple.__getitem__(self, index)

    def __reversed__(self) -> Iterator[Any]:
        for index in reversed(range(len(self))):
            WORK.add("segments", 1)
            yield tuple.__getitem__(self, index)


class Calls(list[tuple[Point, str]]):
    """Joined calls that count how often one is compared."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        WORK.add("calls", len(found) if isinstance(found, list) else 1)
        return found

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]


def session() -> tuple[list[bytes], list[bytes]]:
    """One turn of many tool calls: the lines of its log, and what each call was sent."""
    made, served = Session(uuid7(0, 1)), []
    made.meta(0.0)
    made.begin(0.1, uuid7(0.1, 2))
    made.settings(0.2)
    made.user(0.3, "Read the gauge until it falls.")
    for number in range(CALLS):
        at = 1.0 + number
        call = use(0x1000 + number, "exec_command", "{}")
        served.append(made.body().encode())
        made.answer(at, f"resp_{number:04d}", [call], SMALL)
        made.output(at + 0.5, call, f"gauge {number:04d}: 251 cm, and it rains")
    return [line.encode() for line in made.lines], served


def watched(data: bytes, before: Body | None) -> tuple[Body, Body]:
    """A request, and the same one whose parts count."""
    plain = body_of(data, before)
    return plain, replace(plain, data=Text(data), segments=Segments(plain.segments))


def test_each_further_call_costs_what_it_adds(monkeypatch: pytest.MonkeyPatch):
    def piece(*args: Any, **more: Any) -> Piece:
        WORK.add("pieces", 1)
        return Piece(*args, **more)

    for module in (base, body, history):
        monkeypatch.setattr(module, "Piece", piece)
    lines, served = session()
    log, joined, plain = log_of(lines), Calls(), None
    points = codex.requests(log)
    bodies: list[Body] = []
    spent: list[dict[str, int]] = []
    last: tuple[Piece, ...] = ()
    for point, data in zip(points, served, strict=False):
        plain, own = watched(data, plain)
        WORK.done.clear()
        before = Before(joined, len(bodies), bodies.__getitem__)
        learned = codex.learn(log, point, own, before)
        found = codex.rebuild(log, point, codex.config(log), learned)
        spent.append(dict(WORK.done))
        assert found is not None
        assert found.data == data
        shared = {id(p) for p in last} & {id(p) for p in found.pieces}
        last = found.pieces
        assert len(shared) >= 2 * (len(spent) - 1)  # a call and its output of each call before
        bodies.append(own)
        joined.append((point, own.sha256))
    assert len(spent) == CALLS
    assert all(spent[-1][kind] for kind in ("bytes", "segments", "calls", "pieces"))
    for kind in spent[-1]:
        settled = max(done.get(kind, 0) for done in spent[SETTLED : 2 * SETTLED])
        assert max(done.get(kind, 0) for done in spent[-SETTLED:]) <= settled, kind


def test_another_list_of_calls_is_compared_anew():
    lines, served = session()
    log = log_of(lines)
    points = codex.requests(log)
    data = [body_of(one) for one in served[:4]]
    other = body_of(served[0].replace(b'"parallel_tool_calls":true', b'"parallel_tool_calls":false'))

    def options(bodies: list[Body]) -> list[bytes | None]:
        joined = [(point, one.sha256) for point, one in zip(points, bodies, strict=False)]
        known = (
            codex.learn(log, point, one, Before(joined, at, bodies.__getitem__)).values["/parallel_tool_calls"]
            for at, (point, one) in enumerate(zip(points, bodies, strict=False))
        )
        return [value.data for value in known]

    assert options(data) == [b"true"] * 4
    assert options([other, *data[1:]]) == [b"false"] * 4
    assert options(data) == [b"true"] * 4
