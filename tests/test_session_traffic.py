"""What is read of exchanges in part, from where the one before it ended, is what reading all of them gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxscope import capture
from ctxscope.session.traffic import Traffic, message_print
from tests.conftest import CAPTURES, SAMPLES, needs_captures

RECORDINGS = sorted(p.parent for p in SAMPLES.rglob("index.jsonl"))
CAPTURED = sorted(p.parent for p in CAPTURES.rglob("wire/index.jsonl"))


def check(folder: Path) -> None:
    traffic = Traffic()
    for exchange in capture.open_recording(folder, 0).poll():
        traffic.take(exchange)
    for heard in traffic:
        body = traffic.effective(heard.key)
        if heard.api is None or body is None:
            continue
        whole = heard.api.messages(body)
        assert traffic.prints(heard.key) == tuple(map(message_print, whole))
        for n, message in enumerate(whole[:-1]):
            item = "/".join(whole[n + 1].path.split("/")[:2]) + f"/{int(whole[n + 1].path.split('/')[2]) - 1}"
            assert heard.api.messages(body, item) == whole[n + 1 :], (heard.key, message.path)


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda p: "/".join(p.parts[-3:-1]))
def test_messages_behind_one_are_the_rest_of_all_in_the_samples(folder: Path):
    check(folder)


@needs_captures
@pytest.mark.parametrize("folder", CAPTURED, ids=lambda p: "/".join(p.parts[-3:-1]))
def test_messages_behind_one_are_the_rest_of_all_in_captures(folder: Path):
    check(folder)


def test_an_exchange_taken_again_with_its_reply_stands_once_and_in_its_place():
    (folder,) = [p for p in RECORDINGS if "clean_append" in p.parts and "pi" in p.parts]
    exchanges = list(capture.open_recording(folder, 0).poll())
    traffic = Traffic()
    for exchange in (*exchanges, exchanges[1], exchanges[0]):
        traffic.take(exchange)
    assert [h.exchange.n for h in traffic] == [e.n for e in exchanges]
    assert [len(traffic.prints(h.key)) for h in traffic] == sorted(len(traffic.prints(h.key)) for h in traffic)
