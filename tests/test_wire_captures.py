"""Over every recorded exchange of every agent."""

from __future__ import annotations

import hashlib
import json
from functools import cache

import pytest

from ctxscope.wire import detect
from ctxscope.wire.body import make_body
from tests.conftest import CAPTURES, needs_captures

pytestmark = needs_captures
CASES = sorted(p.parents[1] for p in CAPTURES.glob("*/*/wire/index.jsonl"))


@cache
def exchanges(case):
    """Index line, API, request and reply of each exchange of a case."""
    found = []
    for text in (case / "wire" / "index.jsonl").read_text().splitlines():
        line = json.loads(text)
        stem = case / "wire" / f"{line['n']:04d}"
        request = stem.with_suffix(".req").read_bytes()
        answer = stem.with_suffix(".res")
        api = detect(line["path"] or "", {}, request)
        found.append((line, api, request, answer.read_bytes() if answer.exists() else None))
    return found


def prompt_digests(body):
    found = (s for s in body.segments if s.kind != "param")
    return [s.digest for s in sorted(found, key=lambda s: s.order)]


def test_there_are_cases():
    assert CASES


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_every_body_is_tiled_with_and_without_its_predecessor(case):
    parents = {}
    for _, api, request, _ in exchanges(case):
        if api is None:
            continue
        body = make_body(request, api, parents.get(api.name))
        parents[api.name] = body
        assert body.segments == api.segments(request, None)
        at = 0
        for segment in body.segments:
            assert segment.kind != "opaque"
            assert at <= segment.start < segment.end <= len(request)
            at = segment.end
            form = api.prompt(request, segment)
            assert hashlib.blake2b(form, digest_size=16).digest() == segment.digest
        assert api.messages(body)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_every_answered_call_yields_the_usage_of_its_index_line(case):
    for line, api, _, answer in exchanges(case):
        if api is None or line.get("status") != 200 or answer is None:
            continue
        reply = api.reply(answer, {})
        assert reply.complete
        assert reply.stop.state in ("complete", "truncated")
        assert reply.blocks
        # the index line of a compaction pass counts otherwise than the reply it was sent with
        if line.get("usage") and not line["path"].endswith("/compact"):
            assert (reply.usage.output, reply.usage.cache_read) == (line["usage"]["out"], line["usage"]["cached"])


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_only_probes_are_no_model_calls(case):
    unknown = {(line["path"] or "").rpartition("/")[2] for line, api, _, _ in exchanges(case) if api is None}
    assert unknown <= {"", "show"}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_every_error_answer_gives_its_message(case):
    for line, api, _, answer in exchanges(case):
        if api is not None and (line.get("status") or 0) >= 400 and answer is not None:
            reply = api.reply(answer, {})
            assert reply.error
            assert reply.stop.state == "error"


def test_threads_expand_to_bodies_that_only_grow():
    """Each effective request begins with the prompt of the one before."""
    expanded = 0
    for case in CASES:
        before = None
        for _, api, request, answer in exchanges(case):
            if api is None or answer is None:
                continue
            body = make_body(request, api)
            if api.is_continuation(body):
                assert before is not None
                body = api.expand(body, before[0], *before[1:])
                assert body is not None
                old, new = (prompt_digests(b) for b in (before[0], body))
                assert len(old) < len(new)
                assert new[: len(old)] == old
                assert api.system(body) == api.system(before[0])
                expanded += 1
            before = (body, api.reply(answer, {}), answer)
    assert expanded
