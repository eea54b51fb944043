from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.wire import by_name, detect
from ctxscope.wire.blocks import param, params
from ctxscope.wire.body import make_body
from ctxscope.wire.json_text import loads, loads_leniently
from ctxscope.wire.overlap import common_suffix, lcp
from ctxscope.wire.spans import DEPTH_LIMIT, value_end
from tests.wire_bodies import APIS, bodies

WHOLE = json.dumps(
    {
        "model": "m",
        "messages": [{"role": "user", "content": "lorem ipsum " * 400}, {"role": "assistant", "content": "dolor"}],
        "contents": [{"role": "user", "parts": [{"text": "sit amet " * 200}]}],
        "input": [{"role": "user", "content": "consectetur"}],
    }
).encode()


def is_opaque(api, data):
    body = make_body(data, api)
    assert api.messages(body) == ()
    assert api.system(body) == ""
    assert not api.is_continuation(body)
    assert api.requested_max(body) is None
    (segment,) = body.segments
    assert api.prompt(data, segment) == data
    return (segment.path, segment.kind, segment.start, segment.end) == ("", "opaque", 0, len(data))


@pytest.mark.parametrize("api", APIS, ids=lambda a: a.name)
def test_a_torn_body_is_one_opaque_segment(api):
    parent = make_body(WHOLE, api)
    for end in range(1, len(WHOLE), 100):
        assert is_opaque(api, WHOLE[:end])
        assert api.segments(WHOLE[:end], parent)[0].kind == "opaque"


@pytest.mark.parametrize("api", APIS, ids=lambda a: a.name)
@pytest.mark.parametrize(
    "data",
    [
        b"hello",
        b"[1]",
        b"{}{}",
        b'{"a":1} x',
        b'{"a" 1}',
        b'{"a":1,}',
        b"{1:2}",
        b'"s"',
        b"\xff\xfe",
        b'{"a":tru}',
        b'{"messages":[1,]}',
        b'{"messages":[1 2]}',
        b'\xef\xbb\xbf{"a":1}',
        b'{"input":"\\x"}',
    ],
)
def test_what_is_not_a_json_object_is_one_opaque_segment(api, data):
    assert is_opaque(api, data)


@pytest.mark.parametrize("api", APIS, ids=lambda a: a.name)
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"content":', "}"), ('[{"content":', "}]")])
@pytest.mark.parametrize("key", ["messages", "model", "system", "input", "contents", "tools"])
def test_nesting_100000_deep_is_one_opaque_segment(api, opening, closing, key):
    data = f'{{"{key}":[{{"content":{opening * 100_000}1{closing * 100_000}}}]}}'.encode()
    assert is_opaque(api, data)
    assert is_opaque(api, data[:200_000])


@pytest.mark.parametrize("api", APIS, ids=lambda a: a.name)
def test_random_bytes_are_one_opaque_segment(api):
    noise = random.Random(1).randbytes(1_000_000)
    assert is_opaque(api, noise)
    assert is_opaque(api, b'{"messages":[' + noise)
    assert api.reply(noise, {}).complete is False


@pytest.mark.parametrize("api", APIS, ids=lambda a: a.name)
def test_an_empty_body_has_no_segments(api):
    assert make_body(b"", api).segments == ()


def test_how_deep_a_value_may_nest_does_not_depend_on_the_callers_stack():
    def far_down(depth, text):
        return value_end(text, 0) if not depth else far_down(depth - 1, text)

    deep = (
        "[" * (DEPTH_LIMIT - 200)
        + ' {"k\\u00e9": [1e3, -0.5, true, null, "a\\"]", {}, []]} '
        + "]" * (DEPTH_LIMIT - 200)
    )
    assert value_end(deep, 0) == far_down(300, deep) == len(deep)
    with pytest.raises(ValueError, match="deeper"):
        value_end("[" * (DEPTH_LIMIT + 1) + "]" * (DEPTH_LIMIT + 1), 0)


@pytest.mark.parametrize("text", ["{,}", "{1:2}", '{"a"}', '{"a":}', "[1,]", "[,1]", "[1 2]", "[}", "{]", ",", ":"])
def test_the_deep_scanner_refuses_what_the_fast_one_refuses(text):
    padding = DEPTH_LIMIT - 10
    with pytest.raises(ValueError, match=r"not JSON|Expecting|deeper"):
        value_end("[" * padding + text + "]" * padding, 0)


@given(bodies)
def test_the_deep_scanner_finds_the_ends_the_fast_one_finds(data):
    text = data.decode("latin-1").strip()
    padding = DEPTH_LIMIT - 20
    assert value_end("[" * padding + text + "]" * padding, 0) == len(text) + 2 * padding
    assert value_end(text, 0) == len(text)


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40), st.integers(0, 300_000))
def test_common_prefix_and_suffix_are_the_longest(head, one, other, size):
    head = b"h" * size + head
    a, b = head + one, head + other
    shared = lcp(a, b)
    assert a[:shared] == b[:shared]
    assert shared == min(len(a), len(b)) or a[shared] != b[shared]
    a, b = a[::-1], b[::-1]
    assert common_suffix(a, b) == shared
    assert common_suffix(a, b, 5) == min(5, shared)
    assert lcp(b"xy" + a, b"z" + b, 2, 1) == lcp(a, b)


def test_which_api_a_request_speaks():
    def named(path, body=b"{"):
        api = detect(path, {}, body)
        return api and api.name

    assert named("/v1/messages") == named("/proxy/x/v1/messages?beta=true") == "anthropic-messages"
    assert named("/chat/completions") == named("/v1/chat/completions") == "openai-chat"
    assert named("/backend-api/codex/responses") == named("/v1/responses") == "openai-responses"
    assert (
        named("/v1beta/models/g:streamGenerateContent?alt=sse") == named("/v1beta/models/g:generateContent") == "gemini"
    )
    others = ("/v1/messages/count_tokens", "/v1/responses/compacted", "/api/show", "/v1/models", "/", "")
    assert not any(named(path) for path in (*others, "/v1beta/models/g:countTokens", "/v1/messages/batches"))
    assert named("/v1/messages", b"") is None


def test_the_model_is_the_one_the_body_or_the_path_names():
    chat, gemini = (detect(p, {}, b"{") for p in ("/chat/completions", "/models/g:generateContent"))
    assert make_body(b'{"model":"m\\u00e9"}', chat).model == "mé"
    assert make_body(b'{"model":5}', chat).model is None
    assert make_body(b"{}", gemini, None, "/v1beta/models/g-2.5%20x:generateContent?alt=sse").model == "g-2.5 x"
    assert make_body(b"{}", None).segments == ()


def test_loads_names_nothing_it_cannot_read():
    with pytest.raises(ValueError, match="deep"):
        loads("[" * 100_000 + "]" * 100_000)


ODD = {
    "a control character": b"a\x01b",
    "a line end": b"a\nb",
    "bytes that are no UTF-8": b"a\xffb",
    "half a character": "aé".encode()[:-1],
    "a lone surrogate": b"a\\ud83d",
}
"""Texts that clients do send, which a strict reader refuses."""


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_body_that_can_be_cut_is_read_whatever_its_texts_hold(odd):
    api, message = by_name("openai-chat"), b'{"role":"user","content":"%s"}'
    data = b'{"model":"m%s","messages":[{"role":"system","content":"%s"},%s,%s]}' % (
        odd,
        odd,
        message % b"x",
        message % odd,
    )
    body = make_body(data, api)
    assert [s.kind for s in body.segments] == ["param", "system", "message", "message"]
    first, last = api.messages(body)
    assert (first.blocks[0].text, last.blocks[0].text[0]) == ("x", "a")
    assert api.messages(body, "/messages/1") == (last,)
    assert api.system(body)[0] == "a"
    assert body.model[:2] == "ma"


@pytest.mark.parametrize("api", APIS, ids=lambda a: a.name)
@pytest.mark.parametrize(
    "deep", ["[" * 4000 + "]" * 4000, '{"a":' * 4000 + "1" + "}" * 4000, "9" * 5000], ids=["[", "{", "9"]
)
def test_one_value_out_of_all_measure_hides_no_other(api, deep):
    key, parts, text = {
        "gemini": ("contents", "parts", '{"text":"x"}'),
        "openai-responses": ("input", "content", '{"type":"input_text","text":"x"}'),
    }.get(api.name, ("messages", "content", '{"type":"text","text":"x"}'))
    odd = f'{{"role":"assistant","x":{deep},"{parts}":[]}}'
    data = f'{{"model":"m","y":{deep},"{key}":[{{"role":"user","{parts}":[{text}]}},{odd}]}}'
    body = make_body(data.encode(), api)
    assert body.segments[0].kind == "param"
    assert [b.text for b in api.messages(body)[0].blocks] == ["x"]
    assert param(body, "model") == "m"
    assert api.system(body) == ""


def test_what_is_no_json_at_all_is_not_read_leniently():
    for data in (b"", b"{", b'{"a":"\xff}', b"[1,]", b"\xff", b"{} x", b"[" * 100_000):
        with pytest.raises(ValueError, match=r"."):
            loads_leniently(data)
    assert loads_leniently(b'{"a":"\xff\x00"}') == {"a": "\ufffd\0"}


@pytest.mark.parametrize("api", APIS, ids=lambda a: a.name)
@given(data=bodies)
def test_parameters_are_found_once_and_are_all_there_is(api, data):
    body = make_body(data, api)
    assert params(body) is body.params
    assert list(body.params) == [s for s in body.segments if s.kind == "param"]
    assert params(replace(body, params=None)) == body.params
    keys = [key for key, _ in json.loads(data, object_pairs_hook=list)]
    for segment in body.params:
        key = segment.path[1:].replace("~1", "/").replace("~0", "~")
        if keys.count(key) == 1:
            assert in_64_bits(param(body, segment.path[1:])) == in_64_bits(loads(data)[key])


def in_64_bits(value: Any) -> Any:
    """A value whose longer integers are floats: a parser may have either, as what stands beside them has it choose."""
    if isinstance(value, dict):
        return {k: in_64_bits(v) for k, v in value.items()}
    if isinstance(value, list):
        return [in_64_bits(v) for v in value]
    return float(str(value)) if type(value) is int and not -(2**63) <= value < 2**64 else value


def test_of_equal_keys_the_last_holds():
    body = make_body(b'{"model":"a","messages":[],"model":"b"}', by_name("openai-chat"))
    assert body.model == "b"
