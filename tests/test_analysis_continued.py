"""A request that carries only what is new is judged on all it continues; offsets lead to the bytes where they stand."""

from __future__ import annotations

import pytest

from ctxscope.analysis.continued import continued_difference
from ctxscope.model import Block, Body
from ctxscope.wire import by_name
from ctxscope.wire.body import make_body

API = by_name("anthropic-messages")
FIRST = (
    '{"model":"m","max_tokens":5,"system":"s","messages":[{"role":"user","content":"a"}],"thread":{"type":"create"}}'
)
NEXT = (
    '{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},'
    '{"role":"user","content":"three"}],"max_tokens":5,"thread":{"type":"continue","previous_message_id":"msg_1"}}'
)
REPLY = b'{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"text","text":"yes"}]}'
STORED = (Block("text", "yes"),)


def judged(first: str = FIRST, now: str = NEXT, stored: tuple[Block, ...] = STORED):
    """What is said when the log implies these bodies and keeps this answer."""
    reply = API.reply(REPLY, {})

    def expanded(first: str, now: str, answer: tuple[Block, ...] | None) -> tuple[Body, Body]:
        own = make_body(now.encode(), API)
        whole = API.expand(own, make_body(first.encode(), API), reply, REPLY, answer)
        assert whole is not None
        return own, whole

    (served, effective), (rebuilt, implied) = expanded(FIRST, NEXT, None), expanded(first, now, stored)
    found = continued_difference(served, rebuilt, effective, implied)
    if found is not None:
        one, two = (effective, implied) if found.effective else (served, rebuilt)
        assert one.data[: found.raw_offset] == two.data[: found.other_offset]
        assert one.data[found.raw_offset] != two.data[found.other_offset]
    return found


def test_the_same_bodies_and_answers_do_not_differ():
    assert judged() is None


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ('"one"', '"oie"', "/messages/0/content/0/text"),
        ('"two"', '"tow"', "/messages/0/content/1/text"),
        ('"three"', '"tree"', "/messages/1/content"),
        ('"role":"user","content":"three"', '"role":"system","content":"three"', "/messages/1/role"),
        ('"max_tokens":5', '"max_tokens":6', "/max_tokens"),
        ('"model":"m"', '"model":"n"', "/model"),
        ('"type":"continue"', '"type":"continue","x":1', "/thread/x"),
    ],
)
def test_what_the_call_itself_carries_is_told_by_its_own_bytes(old, new, path):
    found = judged(now=NEXT.replace(old, new))
    assert (found.path, found.effective) == (path, False)
    assert NEXT.encode()[: found.raw_offset] == NEXT.replace(old, new).encode()[: found.raw_offset]
    assert "continues" not in found.cause


@pytest.mark.parametrize("now", [NEXT, NEXT.replace('"two"', '"tow"')])
@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ('"content":"a"', '"content":"b"', "/messages/0/content"),
        ('"system":"s"', '"system":"t"', "/system"),
        (
            '{"role":"user","content":"a"}',
            '{"role":"user","content":"z"},{"role":"user","content":"a"}',
            "/messages/0/content",
        ),
    ],
)
def test_what_it_continues_is_told_by_the_effective_request(old, new, path, now):
    found = judged(FIRST.replace(old, new), now)
    assert (found.path, found.effective) == (path, True)
    assert found.cause.endswith("(in what this request continues)")


def test_an_answer_kept_otherwise_lies_in_what_the_request_continues():
    found = judged(stored=(Block("text", "yet"),))
    assert (found.path, found.cls, found.effective) == ("/messages/1/content/0/text", "content", True)


def test_the_prefix_offset_counts_all_that_the_model_is_given():
    found = judged(now=NEXT.replace('"three"', '"tree"'))
    before = sum(s.prompt_bytes for s in API.segments(FIRST.encode(), None) if s.kind != "param")
    answered = len('{"role":"assistant"}{"text":"yes","type":"text"}')
    blocks = len('{"role":"user"}{"text":"one","type":"text"}{"text":"two","type":"text"}')
    assert found.prefix_offset == before + answered + blocks + len('"t')
