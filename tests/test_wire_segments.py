from __future__ import annotations

import hashlib
import json
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctxscope.wire import by_name
from ctxscope.wire.body import make_body
from tests.wire_bodies import APIS, bodies, objects, spell, values, words

ANTHROPIC, CHAT, GEMINI, RESPONSES = (
    by_name(n) for n in ("anthropic-messages", "openai-chat", "gemini", "openai-responses")
)


def tile(data, segments):
    at = 0
    for segment in segments:
        assert at <= segment.start < segment.end <= len(data)
        at = segment.end
    paths = [s.path for s in segments]
    orders = [s.order for s in segments]
    assert len(orders) == len(set(orders))
    return paths


def cut(api, value):
    return api.segments(json.dumps(value).encode(), None)


def digests(api, data):
    return [s.digest for s in api.segments(data, None)]


@given(bodies)
def test_segments_tile_any_body_and_each_is_one_json_value(data):
    for api in APIS:
        segments = api.segments(data, None)
        tile(data, segments)
        assert not any(s.kind == "opaque" for s in segments)
        for segment in segments:
            json.loads(data[segment.start : segment.end])


@given(bodies)
def test_the_prompt_form_is_what_the_digest_is_of(data):
    for api in APIS:
        for segment in api.segments(data, None):
            form = api.prompt(data, segment)
            assert len(form) == segment.prompt_bytes
            assert hashlib.blake2b(form, digest_size=16).digest() == segment.digest
            json.JSONDecoder().raw_decode(form.decode())


@settings(max_examples=300)
@given(bodies, bodies, st.data())
def test_a_parent_never_changes_the_answer(data, other, draw):
    """Parents that share a beginning, an end, a middle, or nothing."""
    low = draw.draw(st.integers(0, len(data)))
    high = draw.draw(st.integers(low, len(data)))
    edited = data[:low] + draw.draw(st.sampled_from([b"", b"x", b'"', b"1", b",", b" ", other[:9], b"}"])) + data[high:]
    for api in APIS:
        for parent, child in ((data, edited), (edited, data), (data, other)):
            known = make_body(parent, api)
            assert api.segments(child, known) == api.segments(child, None)


@settings(max_examples=300)
@given(objects, st.data())
def test_a_parent_with_other_items_never_changes_the_answer(members, draw):
    """Items and members added, dropped and changed in whole, as agents do it."""
    child = [list(m) for m in members]
    for _ in range(draw.draw(st.integers(1, 3))):
        if not child:
            break
        number = draw.draw(st.integers(0, len(child) - 1))
        key, value = child[number]
        action = draw.draw(st.sampled_from(["drop", "repeat", "insert item", "drop item", "change item", "change"]))
        if action == "drop":
            del child[number]
        elif action == "repeat":
            child.insert(number, [key, value])
        elif isinstance(value, list) and value and action.endswith("item"):
            at = draw.draw(st.integers(0, len(value) - 1))
            new = draw.draw(st.one_of(st.builds(lambda t: {"role": "user", "content": t}, words), values))
            middle = {"insert item": [new, value[at]], "drop item": [], "change item": [new]}[action]
            child[number] = [key, [*value[:at], *middle, *value[at + 1 :]]]
        else:
            child[number] = [key, draw.draw(values)]
    data, parent = spell(child), spell(members)
    for api in APIS:
        assert api.segments(data, make_body(parent, api)) == api.segments(data, None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("suu", "ssu"),
        ("usu", "ssu"),
        ("ssu", "usu"),
        ("ssus", "ssss"),
        ("susu", "sssu"),
        ("sssu", "susu"),
        ("us", "ss"),
        ("suuu", "susu"),
    ],
)
@pytest.mark.parametrize("api", [CHAT, RESPONSES], ids=lambda a: a.name)
def test_what_still_leads_is_known_beyond_what_the_parent_shares(api, before, after):
    key = "messages" if api is CHAT else "input"

    def spelled(roles):
        words_ = ("system" if r == "s" else "user  " for r in roles)
        return json.dumps(
            {key: [{"role": r.strip(), "pad": r.count(" "), "content": f"text {n}"} for n, r in enumerate(words_)]}
        ).encode()

    data = spelled(after)
    assert api.segments(data, make_body(spelled(before), api)) == api.segments(data, None)


def test_a_chain_of_parents_gives_the_same_segments_and_shares_the_old_ones():
    draw = random.Random(7)
    history, parent = [], None
    for n in range(40):
        history.append({"role": "user", "content": [{"type": "text", "text": f"ask {n} " + "é" * draw.randrange(40)}]})
        clock = {"type": "text", "text": f"It is {n:02d} o'clock."}
        data = json.dumps(
            {"tools": [{"name": "look"}], "system": [clock], "messages": history, "stream": True, "model": "m"}
        ).encode()
        body = make_body(data, ANTHROPIC, parent)
        assert body.segments == ANTHROPIC.segments(data, None)
        if parent is not None:
            old = [s for s in parent.segments if s.kind == "message"]
            assert all(a is b for a, b in zip(old[:-1], body.segments[2:], strict=False))
        parent = body
        history.append({"content": "answer", "role": "assistant"})


@example([("messages", [{"role": "user", "content": "é"}])])
@given(objects)
def test_spelling_a_provider_cannot_see_keeps_the_digest(members):
    for api in APIS:
        plain = digests(api, spell(members))
        assert digests(api, spell(members, " \n")) == plain
        assert digests(api, spell(members, ascii_only=True)) == plain


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"type":"text","text":"a/b"}', r'{ "text" : "a\/b", "type":"text", "cache_control":{"type":"ephemeral"} }'),
        ('{"type":"text","text":"a\\nb"}', r'{"type":"text","text":"a\u000ab"}'),
        (r'{"type":"text","text":"\ud83d\ude42 \ud800"}', r'{"type":"text","text":"🙂 \uD800"}'),
        (r'{"type":"text","text":"\\u00e9"}', r'{"type":"text","text":"\\u00e9" }'),
        (
            '{"type":"tool_result","tool_use_id":"t","content":"r"}',
            '{"type":"tool_result","tool_use_id":"t","content":[{"text":"r","type":"text","cache_control":null}]}',
        ),
    ],
)
def test_two_spellings_of_one_block_have_one_digest(one, other):
    bodies = [f'{{"messages":[{{"role":"user","content":[{b}]}}]}}'.encode() for b in (one, other)]
    assert digests(ANTHROPIC, bodies[0]) == digests(ANTHROPIC, bodies[1])


def test_a_string_is_the_one_text_block_it_stands_for():
    listed = [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]
    for key in ("content",):
        one = cut(ANTHROPIC, {"system": "s", "messages": [{"role": "user", key: "hi"}]})
        two = cut(ANTHROPIC, {"system": [{"text": "s", "type": "text"}], "messages": [{key: listed, "role": "user"}]})
        assert [s.digest for s in one] == [s.digest for s in two]
        assert [s.path for s in one] == ["/system", "/messages/0/content"]
        assert [s.breakpoint for s in two] == [False, True]
    chat = [cut(CHAT, {"messages": [{"role": "user", "content": c}]})[0] for c in ("hi", listed)]
    assert chat[0].digest == chat[1].digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"type":"text","text":"a"}', '{"type":"text","text":"b"}'),
        ('{"type":"text","text":"a\\n"}', '{"type":"text","text":"a\\r\\n"}'),
        (r'{"type":"text","text":"\\u00e9"}', r'{"type":"text","text":"\u00e9"}'),
        ('{"type":"tool_use","input":{"a":1,"b":2}}', '{"type":"tool_use","input":{"b":2,"a":1}}'),
        ('{"type":"tool_use","input":{"a":1}}', '{"type":"tool_use","input":{"a":1.0}}'),
        ('{"type":"tool_use","input":{"a":1}}', '{"type":"tool_use","input":{"a":1,"cache_control":1}}'),
        ('{"type":"tool_use","input":{"a":1}}', '{"type":"tool_use","input":{"a":1},"x":null}'),
        ('{"type":"text","text":"a b"}', '{"type":"text","text":"a  b"}'),
    ],
)
def test_what_a_model_sees_changes_the_digest(one, other):
    bodies = [f'{{"messages":[{{"role":"user","content":[{b}]}}]}}'.encode() for b in (one, other)]
    assert digests(ANTHROPIC, bodies[0]) != digests(ANTHROPIC, bodies[1])


@given(words, words)
def test_another_text_has_another_digest(one, other):
    bodies = [json.dumps({"messages": [{"role": "user", "content": t}]}).encode() for t in (one, other)]
    for api in (ANTHROPIC, CHAT):
        assert (digests(api, bodies[0]) == digests(api, bodies[1])) == (one == other)


def test_tool_key_order_matters_only_inside_the_schema():
    def tool(api, text):
        return digests(api, f'{{"tools":[{text}]}}'.encode())

    one = '{"name":"n","input_schema":{"type":"object","required":["a"]}}'
    assert tool(ANTHROPIC, one) == tool(
        ANTHROPIC,
        '{"input_schema":{"type":"object","required":["a"]},"name":"n","cache_control":{"type":"ephemeral"}}',
    )
    assert tool(ANTHROPIC, one) != tool(ANTHROPIC, '{"name":"n","input_schema":{"required":["a"],"type":"object"}}')
    chat = '{"type":"function","function":{"name":"n","parameters":{"a":1,"b":2}}}'
    assert tool(CHAT, chat) == tool(CHAT, '{"function":{"parameters":{"a":1,"b":2},"name":"n"},"type":"function"}')
    assert tool(CHAT, chat) != tool(CHAT, '{"type":"function","function":{"name":"n","parameters":{"b":2,"a":1}}}')


def test_merging_or_splitting_messages_and_another_role_change_the_digests():
    a, b = {"type": "text", "text": "a"}, {"type": "text", "text": "b"}
    forms = [
        [s.digest for s in cut(ANTHROPIC, {"messages": m})]
        for m in (
            [{"role": "user", "content": [a, b]}],
            [{"role": "user", "content": [a]}, {"role": "user", "content": [b]}],
            [{"role": "assistant", "content": [a, b]}],
            [{"role": "user", "content": [a, b], "output_config": {"effort": "low"}}],
        )
    ]
    assert len({tuple(f) for f in forms}) == len(forms)


def test_anthropic_paths_kinds_and_cache_order():
    found = cut(
        ANTHROPIC,
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [{"type": "thinking"}, {"type": "tool_use", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "image"}]}]},
                {"role": "user", "content": []},
            ],
            "system": [{"type": "text", "text": "s"}],
            "tools": [{"name": "a"}, {"name": "b", "cache_control": {"type": "ephemeral"}}],
            "thinking": {"type": "enabled"},
        },
    )
    in_cache_order = sorted(found, key=lambda s: s.order)
    assert [(s.path, s.kind, s.role, s.block) for s in in_cache_order] == [
        ("/tools/0", "tool", "", "other"),
        ("/tools/1", "tool", "", "other"),
        ("/system/0", "system", "", "text"),
        ("/messages/0/content", "message", "user", "text"),
        ("/messages/1/content/0", "message", "assistant", "thinking"),
        ("/messages/1/content/1", "message", "assistant", "tool_call"),
        ("/messages/2/content/0", "message", "user", "tool_result"),
        ("/messages/3", "message", "user", "other"),
        ("/model", "param", "", "other"),
        ("/thinking", "param", "", "other"),
    ]
    assert [s.path for s in found if s.breakpoint] == ["/tools/1"]


def test_chat_counts_only_the_leading_system_messages_as_system():
    roles = ("system", "developer", "user", "system", "assistant", "tool")
    given_ = [{"role": r, "content": "x"} for r in roles]
    given_[4]["tool_calls"] = [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]
    found = cut(CHAT, {"messages": given_, "tools": [{"function": {"name": "f"}}]})
    assert [(s.kind, s.order) for s in found] == [
        ("system", (1, 0)),
        ("system", (1, 1)),
        ("message", (2, 0)),
        ("message", (2, 1)),
        ("message", (2, 2)),
        ("message", (2, 3)),
        ("tool", (0, 0)),
    ]
    assert [s.block for s in found[2:6]] == ["text", "text", "tool_call", "tool_result"]


def test_responses_items_and_instructions():
    found = cut(
        RESPONSES,
        {
            "input": [
                {"role": "developer", "content": "rules"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "reasoning", "encrypted_content": "e"},
                {"type": "function_call", "call_id": "c"},
                {"type": "function_call_output", "call_id": "c", "output": "o"},
                {"type": "compaction", "encrypted_content": "e"},
            ],
            "instructions": "be brief",
        },
    )
    assert [(s.path, s.kind, s.role, s.block) for s in sorted(found, key=lambda s: s.order)] == [
        ("/instructions", "system", "", "text"),
        ("/input/0", "system", "developer", "text"),
        ("/input/1", "message", "user", "text"),
        ("/input/2", "message", "assistant", "thinking"),
        ("/input/3", "message", "assistant", "tool_call"),
        ("/input/4", "message", "tool", "tool_result"),
        ("/input/5", "message", "", "other"),
    ]
    one = cut(RESPONSES, {"input": "hi"})[0]
    two = cut(RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]})[0]
    assert (one.path, one.role, one.digest) == ("/input", "user", two.digest)


def test_gemini_parts_and_declarations():
    found = cut(
        GEMINI,
        {
            "contents": [
                {"parts": [{"text": "hi"}, {"inlineData": {"data": "AA=="}}], "role": "user"},
                {"parts": [{"text": "t", "thought": True}, {"functionCall": {"name": "f"}}], "role": "model"},
                {"parts": [{"functionResponse": {"name": "f"}}], "role": "user"},
            ],
            "systemInstruction": {"parts": [{"text": "s"}, {"text": "r"}]},
            "tools": [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}, {"googleSearch": {}}],
            "generationConfig": {"maxOutputTokens": 5},
        },
    )
    assert [(s.path, s.kind, s.role, s.block) for s in sorted(found, key=lambda s: s.order)] == [
        ("/systemInstruction/parts/0", "system", "", "text"),
        ("/systemInstruction/parts/1", "system", "", "text"),
        ("/tools/0/functionDeclarations/0", "tool", "", "other"),
        ("/tools/0/functionDeclarations/1", "tool", "", "other"),
        ("/tools/1", "tool", "", "other"),
        ("/contents/0/parts/0", "message", "user", "text"),
        ("/contents/0/parts/1", "message", "user", "image"),
        ("/contents/1/parts/0", "message", "model", "thinking"),
        ("/contents/1/parts/1", "message", "model", "tool_call"),
        ("/contents/2/parts/0", "message", "user", "tool_result"),
        ("/generationConfig", "param", "", "other"),
    ]


def test_keys_that_come_twice_are_both_cut():
    data = b'{"model":"a","messages":[{"role":"user","content":"x"}],"model":"b","messages":[]}'
    assert tile(data, ANTHROPIC.segments(data, None)) == ["/model", "/messages/0/content", "/model", "/messages"]
