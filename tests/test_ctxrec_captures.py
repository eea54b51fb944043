"""Recorded sessions of real agents, written anew as a ``.ctxrec``: identical bytes come out."""

from __future__ import annotations

import gzip
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import brotli
import pytest

from ctxscope.capture import Recording, open_recording
from ctxscope.capture.ctxrec import CtxRec
from ctxscope.capture.events import Chunk, End, Event, Head, Meta, Request
from ctxscope.model import Exchange
from tests.conftest import CAPTURES, needs_captures
from tests.ctxrec_events import write

pytestmark = needs_captures
CASES = sorted(p.parent for p in CAPTURES.rglob("wire/index.jsonl"))
CHUNK = 700
zstd: Any = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
PACKERS = {
    "": bytes,
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zstd": zstd.compress,
    "br": lambda data: brotli.compress(data, quality=1),
}


def events(exchanges: list[Exchange], encoding: str) -> Iterator[Event]:
    """What a proxy would have told; with an encoding, had both sides used it."""
    told = (("content-encoding", encoding),) if encoding else ()
    for exchange in exchanges:
        n, time = exchange.n, exchange.time
        headers = (*((k, v) for k, v in exchange.headers.items() if k != "content-encoding"), *told)
        sent = PACKERS[encoding](exchange.request())
        yield Request(n, time, exchange.method, exchange.path, "https://api.example.com", headers, sent)
        if exchange.response_bytes is not None:
            reply = PACKERS[encoding](exchange.response())
            yield Head(n, time + 0.5, exchange.status or 200, "OK", told)
            for at in range(0, len(reply), CHUNK):
                yield Chunk(n, time + 0.5 + at / 1e5, at, reply[at : at + CHUNK])
        yield End(n, time + 9.0)


@pytest.mark.parametrize("encoding", PACKERS, ids=lambda e: e or "plain")
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.parent.name)
def test_a_case_comes_out_as_it_went_in(case: Path, encoding: str, tmp_path: Path):
    expected = open_recording(case, 0).poll()
    recording: Recording = open_recording(write(tmp_path / "a.ctxrec", events(expected, encoding), Meta(1.0)), 0)
    found = recording.poll()
    assert isinstance(recording, CtxRec)
    assert recording.notices == ()
    assert [e.n for e in found] == [e.n for e in expected]
    for before, after in zip(expected, found, strict=True):
        request, reply = before.request(), before.response()
        assert (after.request(), after.request_bytes) == (request, len(request))
        assert (after.response(), after.response_bytes or 0) == (reply, len(reply))
        assert recording.as_sent(after.n) == PACKERS[encoding](request)
        if before.response_bytes is not None:
            assert recording.reply_as_sent(after.n) == PACKERS[encoding](reply)
        assert (after.method, after.path, after.status) == (before.method, before.path, before.status or after.status)
        assert after.time == pytest.approx(before.time)
    assert [e.request() for e in reversed(open_recording(recording.path, 0).poll())] == [
        e.request() for e in reversed(expected)
    ]
