"""A gateway tapped on both sides: what it was given tells whose change a break is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import ctxscope
from ctxscope.analysis.evidence import heeded
from ctxscope.capture.events import Chunk, End, Head, Meta, Request
from ctxscope.capture.writer import Writer
from ctxscope.model import CacheVerdict, Exchange
from tests.conftest import SAMPLES
from tests.test_session_recorded import exchanges_of

CASE = SAMPLES / "pi" / "clean_append"
SPENT = 0.5
"""Seconds a gateway takes on either side of the call it makes."""


def side(path: Path, name: str, exchanges: list[Exchange], *, around: float = 0.0, rewritten: bytes = b"") -> None:
    """One side's recording; from the third request on, a text of the first message, or of a tool, is another."""
    writer = Writer(path / f"{name}.ctxrec", Meta(1.0, side=name, pair="p"))
    for at, exchange in enumerate(exchanges):
        body, n = exchange.request(), exchange.n
        if at >= 2 and rewritten:
            assert rewritten in body
            body = body.replace(rewritten, rewritten[:-1] + b"X", 1)
        headers = tuple(exchange.headers.items())
        start, end = exchange.time - around, exchange.time + 1.0 + around
        writer.write(Request(n, start, exchange.method, exchange.path, "https://models.example", headers, body))
        writer.write(Head(n, end - 0.1, exchange.status or 200))
        writer.write(Chunk(n, end - 0.1, 0, exchange.response()))
        writer.write(End(n, end))
    writer.close()


def spread() -> list[Exchange]:
    """The sample's exchanges, ten seconds apart, so that no two are under way at once."""
    return [replace(e, time=1_770_000_000.0 + 10 * at) for at, e in enumerate(exchanges_of(CASE))]


def third(folder: Path) -> CacheVerdict:
    inspection = ctxscope.open(folder)
    try:
        return [c for c in inspection.snapshot.calls if c.exchange][2].cache
    finally:
        inspection.close()


def texts() -> tuple[bytes, bytes]:
    """A piece of the first message's text and one of a tool's description, as they stand in the body."""
    first = spread()[0]
    body = first.request()
    at = body.index(b'"content"')
    words = body[at : at + 60].rpartition(b" ")[0]
    tool = body.index(b'"description"')
    return words[-6:], body[tool + 15 : tool + 25]


@pytest.mark.parametrize(("which", "cause"), [(0, "redecided"), (1, "router_or_gateway_rewrite")])
def test_a_change_behind_an_unchanged_inbound_side_is_the_gateways_own(which, cause, tmp_path):
    side(tmp_path, "in", spread(), around=SPENT)
    side(tmp_path, "out", spread(), rewritten=texts()[which])
    found = third(tmp_path)
    assert (found.verdict, found.cause, found.candidates) == ("break", cause, (cause,))
    assert "goes on unchanged" in found.why


def test_a_change_that_came_in_is_not_the_gateways(tmp_path):
    changed = texts()[0]
    side(tmp_path, "in", spread(), around=SPENT, rewritten=changed)
    side(tmp_path, "out", spread(), rewritten=changed)
    assert third(tmp_path).cause == "history_rewritten"


def test_without_the_inbound_side_nobody_is_accused(tmp_path):
    side(tmp_path, "out", spread(), rewritten=texts()[0])
    assert third(tmp_path).cause == "history_rewritten"


def test_of_two_requests_under_way_at_once_neither_is_taken_for_what_was_sent_on(tmp_path):
    doubled = [e for one in spread() for e in (one, replace(one, n=one.n + 100))]
    side(tmp_path, "in", doubled, around=SPENT)
    side(tmp_path, "out", spread(), rewritten=texts()[0])
    assert third(tmp_path).cause == "history_rewritten"


def test_an_intact_prefix_stays_what_it_is(tmp_path):
    side(tmp_path, "in", spread(), around=SPENT)
    side(tmp_path, "out", spread())
    assert third(tmp_path).verdict == "warm"


def test_the_providers_word_agrees_with_a_break_of_the_gateways():
    for reason, cause in (("messages_changed", "redecided"), ("tools_changed", "router_or_gateway_rewrite")):
        told = heeded(CacheVerdict("break", cause, (cause,), "consistent"), reason)
        assert (told.confidence, told.candidates) == ("confirmed", (cause,))


def test_an_inbound_request_without_an_end_accuses_nobody(tmp_path):
    broken_off = [replace(spread()[0], n=900)]
    writer = Writer(tmp_path / "in.ctxrec", Meta(1.0, side="in", pair="p"))
    for e in broken_off:
        writer.write(Request(e.n, e.time - SPENT, e.method, e.path, "https://models.example", (), e.request()))
    writer.close()
    side(tmp_path, "out", spread(), rewritten=texts()[0])
    assert third(tmp_path).cause == "history_rewritten"
