"""Exchanges of several captures become one stream of events in order of arrival."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.capture.events import Chunk, End, Head, Message, Request
from ctxscope.capture.importers.imported import Answer, Ending, Imported, Said, item
from ctxscope.capture.importers.ordering import events
from ctxscope.model import CtxscopeError

TIMES = st.floats(0, 100, allow_nan=False)


def exchange(
    time: float, *, answered: float | None = None, ended: float | None = None, body: bytes = b"q", **more
) -> Imported:
    return Imported(
        time=time,
        method="POST",
        target="/v1/messages",
        upstream="https://h",
        headers=(),
        body=body,
        fidelity="bytes",
        answer=None if answered is None else Answer(answered, 200, body=b"reply"),
        ending=None if ended is None else Ending(ended),
        **more,
    )


def told(*exchanges: Imported, numbers: list[int | None] | None = None):
    numbers = numbers or [None] * len(exchanges)
    items = [item(e, lambda e=e: e, Path("x"), n) for e, n in zip(exchanges, numbers, strict=True)]
    return list(events(items))


def test_events_come_as_they_happened():
    found = told(exchange(2, answered=3, ended=4), exchange(1, answered=5, ended=6, body=b"first"))
    assert [(type(e), e.n, e.time) for e in found] == [
        (Request, 1, 1),
        (Request, 2, 2),
        (Head, 2, 3),
        (Chunk, 2, 3),
        (Chunk, 2, 4),
        (End, 2, 4),
        (Head, 1, 5),
        (Chunk, 1, 5),
        (Chunk, 1, 6),
        (End, 1, 6),
    ]
    assert found[0].body == b"first"


def test_equal_times_keep_the_order_given():
    assert [e.body for e in told(*(exchange(1, body=b"%d" % n) for n in range(4)))] == [b"0", b"1", b"2", b"3"]


@given(st.lists(st.tuples(TIMES, TIMES, TIMES), max_size=12))
def test_whatever_the_times_nothing_is_lost_and_time_never_steps_back(times):
    found = told(*(exchange(t, answered=a, ended=e, body=b"%d" % i) for i, (t, a, e) in enumerate(times)))
    assert [e.time for e in found] == sorted(e.time for e in found)
    requests = [e for e in found if isinstance(e, Request)]
    assert [e.n for e in requests] == list(range(1, len(times) + 1))
    assert {e.body: e.time for e in requests} == {b"%d" % i: t for i, (t, _, _) in enumerate(times)}
    for request in requests:
        own = [e for e in found if e.n == request.n]
        assert [type(e) for e in own][:2] == [Request, Head]
        assert isinstance(own[-1], End)
        chunks = [e for e in own if isinstance(e, Chunk)]
        assert b"".join(c.data for c in chunks) == b"reply"
        assert [c.offset for c in chunks] == [0, 1][: len(chunks)]


def test_numbers_of_a_capture_stay_where_all_have_one():
    assert [e.n for e in told(exchange(2), exchange(1), numbers=[3, 7])] == [7, 3]
    for numbers in ([3, None], [3, 3], [0, 1]):
        assert [e.n for e in told(exchange(2), exchange(1), numbers=numbers)] == [1, 2]


def test_clients_messages_are_numbered_among_the_exchanges():
    said = (
        Said(1.5, "server", "text", b"hello"),
        Said(2.0, "client", "text", b"a"),
        Said(2.5, "server", "text", b"b"),
        Said(4.0, "client", "text", b"c"),
        Said(5.0, "server", "close", b""),
    )
    found = told(exchange(1, messages=said), exchange(3))
    assert [(e.n, e.connection, e.data) for e in found if isinstance(e, Message)] == [
        (1, 1, b"hello"),
        (2, 1, b"a"),
        (2, 1, b"b"),
        (4, 1, b"c"),
        (4, 1, b""),
    ]
    assert [e.n for e in found if isinstance(e, Request)] == [1, 3]
    assert {e.target for e in found if isinstance(e, Message)} == {"/v1/messages"}


def test_a_reply_without_status_or_without_a_body():
    only_bytes = exchange(1, answered=2)
    assert [type(e) for e in told(only_bytes)] == [Request, Head, Chunk]
    no_status = Imported(1, "POST", "/", "", (), b"", "bytes", Answer(2, None, body=b"x"))
    assert [type(e) for e in told(no_status)] == [Request, Chunk]
    no_body = Imported(1, "POST", "/", "", (), b"", "bytes", Answer(2, 200, body=None))
    assert [type(e) for e in told(no_body)] == [Request, Head]


@pytest.mark.parametrize("error", [OSError("gone"), ValueError("other")])
def test_a_capture_that_changed_meanwhile_is_told(error):
    def load():
        raise error

    with pytest.raises(CtxscopeError, match="/c/x: found it changed while it was read"):
        list(events([item(exchange(1), load, Path("/c/x"))]))
