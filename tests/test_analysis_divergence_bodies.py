"""The first difference of bodies as the APIs' own modules cut them: damaged, spelled otherwise, put in another order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis.divergence import first_difference
from ctxscope.wire import WireApi, by_name
from ctxscope.wire.body import make_body
from tests.wire_bodies import APIS, bodies

CLASSES = {
    *("content", "missing", "extra", "order", "key_order", "number_spelling", "null_vs_missing", "escape"),
    *("whitespace", "line_ending", "unicode_form", "id_regenerated", "form", "breakpoint", "opaque"),
}
"""All that a report may say."""
junk = st.sampled_from(
    [b"", b"q", b"7", b" ", b'"', b"}", b"]", b",", b"\\", b"\x00", b"\xff", b"\r\n", b"[" * 1500, b"null"]
)


@st.composite
def damaged(draw: st.DrawFn) -> tuple[WireApi, bytes, bytes]:
    """An API, a body and what became of it: bytes replaced by others, cut out, or put in."""
    api, whole = draw(st.sampled_from(APIS)), draw(bodies)
    start = draw(st.integers(0, len(whole)))
    end = draw(st.one_of(st.just(start), st.integers(start, min(start + 40, len(whole))), st.just(len(whole))))
    put = draw(st.one_of(junk, st.just(whole[max(start - 30, 0) : start])))
    return api, whole, whole[:start] + put + whole[end:]


@given(damaged(), st.booleans())
def test_the_first_differing_byte_is_found_whatever_became_of_a_body(damage, swap):
    api, *sides = damage
    served, rebuilt = (make_body(data, api) for data in (sides[::-1] if swap else sides))
    found = first_difference(served, rebuilt)
    if served.data == rebuilt.data:
        assert found is None
        return
    assert found is not None
    at, other = found.raw_offset, found.other_offset
    assert served.data[:at] == rebuilt.data[:other]
    assert served.data[at : at + 1] != rebuilt.data[other : other + 1]
    assert found.cls in CLASSES
    assert found.cause
    assert found.path == "" or found.path[0] == "/"
    assert found.prefix_offset is None or found.prefix_offset <= sum(s.prompt_bytes for s in served.segments)


ANTHROPIC, CHAT, RESPONSES, GEMINI = (
    by_name(name) for name in ("anthropic-messages", "openai-chat", "openai-responses", "gemini")
)
BEFORE = '{"model":"m-1","messages":[{"role":"user","content":[{"type":"text","text":"First."}]}],'
"""Long enough for a difference behind it to be told from one before it."""
ANSWER = '{"role":"assistant","content":[{"type":"text","text":"Look."},{"type":"thinking","thinking":"hm"}]}'
QUESTION = '{"role":"user","content":[{"type":"text","text":"And then?"}]}'


@pytest.mark.parametrize("api", APIS, ids=lambda a: a.name)
@pytest.mark.parametrize(
    ("value", "cls", "at"),
    [
        ("16000.0", "number_spelling", 5),
        ("1.6e4", "number_spelling", 1),
        ('"16000"', "content", 0),
        ("NaN", "content", 0),
        ("160000", "content", 5),
        ("9" * 5000, "content", 0),
        ("[" * 2000 + "]" * 2000, "content", 0),
        ('{"a":' * 2000 + "1" + "}" * 2000, "content", 0),
    ],
    ids=lambda v: str(v)[:8],
)
def test_a_number_spelled_otherwise_differs_at_its_first_other_byte(api, value, cls, at):
    served, rebuilt = (f'{BEFORE}"max_tokens":{number},"stream":true}}'.encode() for number in (value, 16000))
    found = first_difference(make_body(served, api), make_body(rebuilt, api))
    assert found is not None
    assert (found.cls, found.path) == (cls, "/max_tokens")
    assert found.raw_offset == rebuilt.index(b"16000") + at


@pytest.mark.parametrize("api", APIS, ids=lambda a: a.name)
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"max_tokens":1', '"max_tokens"1', "the two part in the request"),
        ('"First."', '"Fir\\st."', "the two part in message 0, block 0, text"),
        ('"First."}]}],"max_tokens":16000}', '"Fir', "the served one ends in message 0, block 0, text"),
    ],
    ids=["a colon left out", "an escape that is none", "torn"],
)
def test_a_body_that_is_no_json_differs_at_its_first_other_byte(api, old, new, words):
    whole = f'{BEFORE}"max_tokens":16000}}'
    served, rebuilt = whole.replace(old, new).encode(), whole.encode()
    found = first_difference(make_body(served, api), make_body(rebuilt, api))
    assert found is not None
    assert found.raw_offset == len(whole.partition(old)[0]) + next(
        i for i, pair in enumerate(zip(old, new + " ", strict=False)) if pair[0] != pair[1]
    )
    assert (found.cls, found.path) == ("opaque", "")
    assert found.cause == f"the served body cannot be read as a JSON object; {words}"


@pytest.mark.parametrize("depth", [600, 5000])
def test_what_nests_deep_is_compared_as_far_as_it_goes(depth):
    deep = f'{BEFORE}"metadata":{"[" * depth}1{"]" * depth}}}'
    found = first_difference(make_body(deep.encode(), CHAT), make_body(deep.replace("[1]", "[2]").encode(), CHAT))
    assert found is not None
    assert (found.cls, found.raw_offset) == ("content", deep.index("[1]") + 1)
    assert found.path == "/metadata" + "/0" * 63


def differing(api: WireApi, served: str, rebuilt: str) -> tuple[str, str, str]:
    """Class, path and cause of the first difference of two bodies."""
    found = first_difference(make_body(served.encode(), api), make_body(rebuilt.encode(), api))
    assert found is not None
    assert served.encode()[: found.raw_offset] == rebuilt.encode()[: found.other_offset]
    return found.cls, found.path, found.cause


def test_an_object_of_another_kind_has_no_other_key_order():
    reasoning = '{"id":"rs_1","type":"reasoning","summary":[]}'
    message = '{"type":"message","role":"assistant","content":[],"id":"msg_1"}'
    cls, path, cause = differing(RESPONSES, f'{{"input":[{reasoning}]}}', f'{{"input":[{message}]}}')
    assert (cls, path) == ("content", "/input/0")
    assert cause == "input item 0 is another one: reasoning served, message rebuilt"


def test_another_block_type_is_named():
    served = '{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"a"}]}]}'
    cls, path, cause = differing(ANTHROPIC, served, served.replace("thinking", "text"))
    assert (cls, path) == ("content", "/messages/0/content/0/type")
    assert cause.endswith("thinking served, text rebuilt")


def test_keys_in_another_order_are_told_from_keys_that_differ_too():
    one = '{"tools":[{"name":"read","description":"Reads.","input_schema":{}}]}'
    turned = '{"tools":[{"description":"Reads.","name":"read","input_schema":{}}]}'
    assert differing(ANTHROPIC, one, turned) == ("key_order", "/tools/0", "the keys of tool 0 stand in another order")
    cls, path, cause = differing(ANTHROPIC, one, turned.replace("Reads.", "Writes."))
    assert (cls, path) == ("key_order", "/tools/0")
    assert cause.endswith("not only their order differs")


@pytest.mark.parametrize("swap", [False, True])
def test_a_key_that_stands_twice_is_not_another_order(swap):
    once = '{"messages":[{"role":"user","content":"a"}]}'
    twice = once.replace('"role":"user",', '"role":"user","role":"user",')
    cls, path, cause = differing(ANTHROPIC, *((once, twice) if swap else (twice, once)))
    assert (cls, path) == ("missing" if swap else "extra", "/messages/0/role")
    assert cause == f"message 0, role stands twice in the {'rebuilt' if swap else 'served'} request"


@pytest.mark.parametrize("more", ["", f",{QUESTION}", f",{ANSWER},{QUESTION}"])
def test_messages_that_changed_places_are_in_another_order_whatever_blocks_they_have(more):
    first = '{"role":"user","content":[{"type":"text","text":"First."}]}'
    served, rebuilt = (
        f'{{"messages":[{first},{pair}{more}]}}' for pair in (f"{ANSWER},{QUESTION}", f"{QUESTION},{ANSWER}")
    )
    assert differing(ANTHROPIC, served, rebuilt) == ("order", "/messages/1", "the messages stand in another order")
    edited = served.replace("then?", "now?", 1) if more else served
    assert (differing(ANTHROPIC, served, edited)[0] if more else "content") == "content"


def test_blocks_of_one_message_that_changed_places_are_in_another_order_there():
    blocks = ['{"type":"text","text":"Look."}', '{"type":"thinking","thinking":"hm","signature":"c2ln"}']
    served, rebuilt = (
        f'{{"messages":[{QUESTION},{{"role":"assistant","content":[{{"type":"text","text":"So."}},{",".join(order)}]}}]}}'
        for order in (blocks, blocks[::-1])
    )
    cls, path, cause = differing(ANTHROPIC, served, rebuilt)
    assert (cls, path) == ("order", "/messages/1/content/1")
    assert cause == "the items of message 1, content stand in another order"


def test_a_message_put_before_one_like_it_is_no_change_of_places():
    same, other = '{"role":"user","content":"Again."}', '{"role":"user","content":"No."}'
    rebuilt = f'{{"messages":[{other},{same},{QUESTION}]}}'
    served = rebuilt.replace(f"[{other}", f"[{same},{other}")
    assert differing(ANTHROPIC, served, rebuilt)[:2] == ("extra", "/messages/0/content")
