"""Where a byte stands in a JSON text: stepping over segments and leaping over whole items never changes the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxscope import wire
from ctxscope.analysis.json_place import JsonPlace, place_of
from ctxscope.model import Body
from ctxscope.wire.body import make_body
from tests.conftest import CAPTURES, SAMPLES, needs_captures

RECORDINGS = sorted(SAMPLES.rglob("index.jsonl"))
CAPTURED = sorted(CAPTURES.rglob("wire/index.jsonl"))
OFFSETS = 60
"""Bytes looked at in a body, spread over it."""


def told(place: JsonPlace) -> tuple[Any, ...]:
    stack = [(o.start, o.is_object, o.key, o.index, o.wants) for o in place.stack]
    return stack, place.token, place.role, place.path


def check(body: Body) -> None:
    step = max(1, len(body.data) // OFFSETS)
    for offset in (*range(0, len(body.data), step), len(body.data)):
        assert told(place_of(body.data, body.segments, offset)) == told(place_of(body.data, (), offset)), offset


def bodies(index: Path) -> list[Body]:
    found = []
    for exchange in map(json.loads, index.read_text(encoding="utf-8").splitlines()):
        request = index.with_name(f"{exchange['n']:04d}.req")
        if request.exists() and exchange["path"]:
            data = request.read_bytes()
            found.append(make_body(data, wire.detect(exchange["path"], exchange["headers"], data)))
    return [max(found, key=lambda b: len(b.segments))] if found else []


@pytest.mark.parametrize("index", RECORDINGS, ids=lambda p: "/".join(p.parts[-4:-2]))
def test_a_place_in_a_sample(index: Path):
    for body in bodies(index):
        check(body)


@needs_captures
@pytest.mark.parametrize("index", CAPTURED, ids=lambda p: "/".join(p.parts[-4:-2]))
def test_a_place_in_a_capture(index: Path):
    for body in bodies(index):
        check(body)


def test_every_byte_of_a_long_array_in_any_key_order():
    items = [
        {"role": "user", "content": [{"type": "text", "text": f"<{n}>"}, {"type": "text", "text": "["}]}
        for n in range(9)
    ]
    items[4] = {"role": "user", "content": "bare ]}"}
    tools = [{"name": f"t{n}", "input_schema": {"a/b": [n, {}]}} for n in range(5)]
    for order in (("messages", "system", "tools"), ("tools", "messages", "system"), ("system", "tools", "messages")):
        whole = {"messages": items, "system": [{"type": "text", "text": "s"}], "tools": tools}
        data = json.dumps({"model": "m", **{key: whole[key] for key in order}, "stream": True}).encode()
        body = make_body(data, wire.by_name("anthropic-messages"))
        for offset in range(len(data) + 1):
            assert told(place_of(data, body.segments, offset)) == told(place_of(data, (), offset)), (order, offset)
