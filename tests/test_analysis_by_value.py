"""What is rebuilt, spelt as a recording of values spells it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis.by_value import respelt
from ctxscope.analysis.divergence import first_difference
from ctxscope.wire import anthropic_messages
from ctxscope.wire.body import make_body

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def spelt(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


@given(VALUES)
def test_equal_values_become_the_very_bytes_of_the_recording(value):
    served = spelt(value)
    assert respelt(json.dumps(value, indent=1, sort_keys=True).encode(), served) is served


@given(VALUES, VALUES)
def test_a_value_stays_what_it_is(mine, theirs):
    assert json.loads(respelt(spelt(mine), spelt(theirs))) == json.loads(spelt(mine))


def test_true_is_not_one():
    assert respelt(b'{"stream":true}', b'{"stream":1}') == b'{"stream":true}'


def test_only_the_changed_leaf_differs_whatever_the_order_of_keys():
    served = b'{"model":"m","messages":[{"role":"user","content":"caf\xc3\xa9"}],"max_tokens":10}'
    rebuilt = b'{"max_tokens": 1e1, "messages": [{"content": "caf\\u00e8", "role": "user"}], "model": "m"}'
    bodies = [make_body(b, anthropic_messages, None, "/v1/messages") for b in (served, respelt(rebuilt, served))]
    difference = first_difference(*bodies)
    assert difference is not None
    assert difference.path == "/messages/0/content"
    assert served[difference.raw_offset : difference.raw_offset + 1] == b"\xa9"


def test_what_nests_too_deep_is_left_as_it_is():
    deep = b"[" * 900 + b"]" * 900
    other = b"[" * 901 + b"]" * 901
    assert respelt(deep, other) == deep


def test_what_is_no_json_is_left_as_it_is():
    assert respelt(b"\xff{", b"{}") == b"\xff{"
