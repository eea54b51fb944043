"""No line, no value in one and no body is too much for the reader of Codex."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from ctxscope.agents import Before, at_hand, codex
from ctxscope.model import Learned, Point
from tests.codex_cases import body_of, log_of
from tests.codex_lines import (
    Row,
    call,
    context,
    count,
    message,
    old,
    output,
    short_session,
)

ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=True) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "id", "text", "role"]), inner, max_size=3)
    ),
    max_leaves=4,
)


def whole() -> list[Row]:
    session, _ = short_session()
    session.compacted(3.1, "", session.history[:2], "resp_3")
    session.event(3.2, "thread_rolled_back", num_turns=1)
    session.end(3.3, "")
    rows = [json.loads(line) for line in session.lines]
    return [
        *rows,
        *(json.loads(line) for line in old(message("user", "one"), call("c"), output("c"), context(), count(4))),
    ]


WHOLE = whole()


@settings(max_examples=150, deadline=None)
@drawn(st.data())
def test_no_value_in_any_place_is_too_much(data: st.DataObject):
    rows = json.loads(json.dumps(WHOLE))
    for _ in range(data.draw(st.integers(1, 6))):
        target: Any = data.draw(st.sampled_from(rows))
        while True:
            keys = list(target) if isinstance(target, dict) else list(range(len(target)))
            key = data.draw(st.sampled_from(keys))
            if isinstance(target[key], dict | list) and target[key] and data.draw(st.booleans()):
                target = target[key]
                continue
            target[key] = data.draw(ANY)
            break
    log = log_of(json.dumps(row).encode() for row in rows)
    ask_all(log)


@settings(max_examples=100, deadline=None)
@drawn(
    st.lists(
        st.binary(max_size=60) | st.sampled_from([json.dumps(r).encode()[:n] for r in WHOLE for n in (9, 60, 400)])
    )
)
def test_no_bytes_are_too_much(lines: list[bytes]):
    ask_all(log_of(lines))


def ask_all(log: Any) -> None:
    """Everything the face offers."""
    codex.notices(log)
    codex.markers(log)
    before: list[tuple[Point, Any]] = []
    body = body_of(b'{"model":"m","stream":true,"input":[{"type":"x"}],"reasoning":null,"client_metadata":{"a":"b"}}')
    for point in codex.requests(log):
        codex.endpoint(log, point)
        codex.estimates(log, point)
        codex.naive(log, point)
        codex.error_line(log, point)
        seen_before: Before = at_hand(before)
        learned = codex.learn(log, point, body, seen_before)
        codex.rebuild(log, point, codex.config(log), learned)
        codex.rebuild(log, point, codex.config(log), Learned())
        before.append((point, body))


@settings(max_examples=60, deadline=None)
@drawn(
    st.binary(max_size=200)
    | st.sampled_from([b'{"input":[{"type":"message","content":[{"text":', b'{"input":"text"}', b"[]"])
)
def test_a_body_that_cannot_be_read_teaches_nothing(data: bytes):
    session, served = short_session()
    log = log_of(line.encode() for line in session.lines)
    first, second = codex.requests(log)
    broken = body_of(data)
    codex.classify(broken)
    codex.named({}, broken)
    codex.learn(log, first, broken, at_hand())
    learned = codex.learn(log, second, body_of(served[second.key]), at_hand([(first, broken)]))
    assert codex.rebuild(log, second, codex.config(log), learned).data == served[second.key]
