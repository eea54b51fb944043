"""The first difference of two requests: its byte, its path, its class, its place in cache order."""

from __future__ import annotations

import copy
import unicodedata
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis.coverage import equal_runs
from ctxscope.analysis.divergence import coverage, first_difference, segment_provenance, where
from ctxscope.analysis.json_place import place_of
from ctxscope.model import Body, Piece, Segment
from tests.analysis_bodies import body

TOOL = {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {"p": {}}}}
OTHER = {"name": "write", "description": "Writes a file.", "input_schema": {"type": "object"}}
REQUEST: dict[str, Any] = {
    "model": "m-1",
    "max_tokens": 100,
    "messages": [
        {"role": "user", "content": "What stands in the café file?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "call_1", "name": "read", "input": {"command": "cat x", "n": 1}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "two\nlines"}]},
    ],
    "system": [{"type": "text", "text": "You are terse."}],
    "tools": [TOOL, OTHER],
}


def changed(*path: Any, to: Any = None, drop: bool = False) -> dict[str, Any]:
    value = copy.deepcopy(REQUEST)
    at: Any = value
    for step in path[:-1]:
        at = at[step]
    if drop:
        del at[path[-1]]
    else:
        at[path[-1]] = to
    return value


SERVED = body(REQUEST)
MARK = {"type": "ephemeral"}

CASES = [
    (changed("messages", 1, "content", 0, "text", to="Let me see."), "content", "/messages/1/content/0/text"),
    (
        changed("messages", 1, "content", 1, "input", "command", to="cat y"),
        "content",
        "/messages/1/content/1/input/command",
    ),
    (changed("messages", 1, "content", 1, "input", "n", to=1.0), "number_spelling", "/messages/1/content/1/input/n"),
    (changed("messages", 1, "content", 1, "id", to="call_2"), "id_regenerated", "/messages/1/content/1/id"),
    (
        changed("messages", 0, "content", to=unicodedata.normalize("NFD", REQUEST["messages"][0]["content"])),
        "unicode_form",
        "/messages/0/content",
    ),
    (
        changed("messages", 2, "content", 0, "content", to="two\r\nlines"),
        "line_ending",
        "/messages/2/content/0/content",
    ),
    (changed("messages", 2, "content", 0, "content", to="two lines"), "whitespace", "/messages/2/content/0/content"),
    (
        changed("messages", 0, "content", to=[{"type": "text", "text": REQUEST["messages"][0]["content"]}]),
        "form",
        "/messages/0/content",
    ),
    (
        changed(
            "messages",
            0,
            "content",
            to=[{"type": "text", "text": REQUEST["messages"][0]["content"], "cache_control": MARK}],
        ),
        "breakpoint",
        "/messages/0/content",
    ),
    (changed("system", 0, "cache_control", to=MARK), "breakpoint", "/system/0/cache_control"),
    (changed("tools", to=[OTHER, TOOL]), "order", "/tools/0"),
    (changed("tools", to=[TOOL]), "extra", "/tools/1"),
    (changed("tools", to=[OTHER]), "extra", "/tools/0"),
    (changed("messages", 1, drop=True), "extra", "/messages/1/content/0"),
    (
        changed("messages", to=[*REQUEST["messages"], {"role": "user", "content": "and?"}]),
        "missing",
        "/messages/3/content",
    ),
    (
        changed("tools", 0, to={"name": "read", "input_schema": TOOL["input_schema"], "description": "Reads a file."}),
        "key_order",
        "/tools/0",
    ),
    (changed("messages", 2, "content", 0, "is_error", to=None), "null_vs_missing", "/messages/2/content/0/is_error"),
    (changed("messages", 1, "content", 0, "text", to=None), "content", "/messages/1/content/0/text"),
    (
        changed("messages", 1, "content", 1, "cache_control", to=MARK),
        "breakpoint",
        "/messages/1/content/1/cache_control",
    ),
    (
        changed("messages", 1, "content", 1, "input", "more", to=2),
        "missing",
        "/messages/1/content/1/input/more",
    ),
    (changed("model", to="m-2"), "content", "/model"),
    (changed("max_tokens", drop=True), "extra", "/max_tokens"),
    (changed("temperature", to=1), "missing", "/temperature"),
    (changed("max_tokens", to=1000), "content", "/max_tokens"),
]


@pytest.mark.parametrize(("rebuilt", "cls", "path"), CASES, ids=[f"{c[1]}:{c[2]}" for c in CASES])
def test_a_difference_has_the_class_and_path_of_what_was_changed(rebuilt, cls, path):
    found = first_difference(SERVED, body(rebuilt))
    assert found is not None
    assert (found.cls, found.path) == (cls, path)
    assert found.raw_offset == next(
        i for i, (a, b) in enumerate(zip(SERVED.data, body(rebuilt).data, strict=False)) if a != b
    )
    assert found.cause


def respelled(old: bytes, new: bytes) -> Body:
    """The served body with some bytes spelled otherwise and its segments moved along."""
    at = SERVED.data.index(old)
    shift = len(new) - len(old)
    segments = tuple(
        replace(s, start=s.start + (shift if s.start > at else 0), end=s.end + (shift if s.end > at else 0))
        for s in SERVED.segments
    )
    return replace(SERVED, data=SERVED.data.replace(old, new, 1), segments=segments)


@pytest.mark.parametrize(
    ("old", "new", "cls", "path"),
    [
        ("café".encode(), b"caf\\u00e9", "escape", "/messages/0/content"),
        (b'"name":"read"', b'"n\\u0061me":"read"', "escape", "/messages/1/content/1"),
        (b'{"type":"text","text":"Let', b'{"type": "text","text":"Let', "whitespace", "/messages/1/content/0/type"),
        (b'"n":1}', b'"n":1.0}', "number_spelling", "/messages/1/content/1/input/n"),
    ],
)
def test_spelling_alone_is_told_from_content(old, new, cls, path):
    found = first_difference(SERVED, respelled(old, new))
    assert found is not None
    assert (found.cls, found.path) == (cls, path)


def test_equal_bodies_have_no_difference():
    assert first_difference(SERVED, body(copy.deepcopy(REQUEST))) is None


def test_an_edited_message_whose_text_comes_again_later_is_edited_in_place():
    again = [{"role": "user", "content": f"Part {n} of the files."} for n in range(3)] * 2
    edited = [{"role": "user", "content": "Part x of the files."}, *again[1:]]
    for one, two in ((again, edited), (edited, again)):
        found = first_difference(body({"messages": one}), body({"messages": two}))
        assert found is not None
        assert (found.cls, found.path) == ("content", "/messages/0/content")


def test_a_body_that_ends_early_differs_at_its_end():
    short = replace(SERVED, data=SERVED.data[:-1])
    for one, two in ((short, SERVED), (SERVED, short)):
        found = first_difference(one, two)
        assert found is not None
        assert found.raw_offset == len(short.data)


def test_a_body_that_is_no_json_differs_as_opaque():
    torn = Body(b'{"model":', None, (Segment("", 0, 9, "opaque"),))
    found = first_difference(SERVED, torn)
    assert found is not None
    assert (found.cls, found.path, found.prefix_offset) == ("opaque", "", None)


def test_nesting_too_deep_to_parse_still_has_a_first_byte():
    deep = b'{"a":' + b"[" * 100_000 + b"1" + b"]" * 100_000 + b"}"
    other = deep.replace(b"1", b"2")
    param = (Segment("/a", 5, len(deep) - 1, "param"),)
    found = first_difference(Body(deep, None, param), Body(other, None, param))
    assert found is not None
    assert found.raw_offset == deep.index(b"1")


def test_the_prefix_offset_counts_in_cache_order_whatever_the_json_order():
    found = first_difference(SERVED, body(changed("messages", 0, "content", to="What?")))
    assert found is not None
    head = sum(s.prompt_bytes for s in SERVED.segments if s.kind in ("tool", "system"))
    segment = next(s for s in SERVED.segments if s.path == "/messages/0/content")
    assert found.prefix_offset == head + found.raw_offset - segment.start


def test_a_missing_message_is_located_after_all_that_is_there():
    found = first_difference(SERVED, body(changed("messages", to=[*REQUEST["messages"], REQUEST["messages"][0]])))
    assert found is not None
    assert found.prefix_offset == sum(s.prompt_bytes for s in SERVED.segments if s.kind != "param")


def test_a_parameter_has_no_place_in_the_prompt():
    found = first_difference(SERVED, body(changed("max_tokens", to=7)))
    assert found is not None
    assert found.prefix_offset is None


def test_an_excerpt_is_short_and_hides_no_byte():
    found = first_difference(SERVED, replace(SERVED, data=SERVED.data[:200] + b"\xff" + SERVED.data[201:]))
    assert found is not None
    assert "\\xff" in found.rebuilt
    assert len(found.served) <= 80


@given(st.integers(0, len(SERVED.data) - 1), st.integers(1, 255))
def test_an_edit_of_one_byte_is_found_at_that_byte(at, flip):
    data = bytearray(SERVED.data)
    data[at] ^= flip
    found = first_difference(SERVED, replace(SERVED, data=bytes(data)))
    assert found is not None
    assert found.raw_offset == at
    inside = next((s for s in SERVED.segments if s.start < at < s.end), None)
    if inside:
        assert found.path.startswith(inside.path)


@given(st.integers(0, len(SERVED.data) - 1))
def test_stepping_over_segments_does_not_change_the_place(at):
    assert place_of(SERVED.data, SERVED.segments, at) == place_of(SERVED.data, (), at)


# --- coverage --------------------------------------------------------------------------------------------------------

PROVENANCES = ["logged", "derived", "learned", "echoed"]


def cut(data: bytes, borders: list[int]) -> list[Piece]:
    edges = [0, *sorted(min(b, len(data)) for b in borders), len(data)]
    return [Piece(data[a:b], PROVENANCES[n % 4]) for n, (a, b) in enumerate(pairwise(edges))]


@given(st.sampled_from(CASES), st.lists(st.integers(0, len(SERVED.data)), max_size=12))
def test_every_served_byte_is_counted_once(case, borders):
    rebuilt = body(case[0])
    found = coverage(SERVED, rebuilt, cut(rebuilt.data, borders))
    assert found.logged + found.derived + found.learned + found.echoed + found.unknown == len(SERVED.data)


@given(st.lists(st.integers(0, len(SERVED.data)), max_size=12))
def test_equal_bodies_are_covered_by_their_pieces(borders):
    pieces = cut(SERVED.data, borders)
    found = coverage(SERVED, SERVED, pieces)
    assert found.unknown == 0
    assert found.logged == sum(len(p.data) for p in pieces if p.provenance == "logged")


def test_one_changed_letter_is_the_only_unknown_byte():
    rebuilt = body(changed("messages", 1, "content", 0, "text", to="Let me cook."))
    assert coverage(SERVED, rebuilt, [Piece(rebuilt.data, "logged")]).unknown == 1


def test_two_changed_segments_leave_what_lies_between_them_covered():
    value = changed("messages", 0, "content", to="Quite another question?")
    value["tools"][1]["description"] = "Saves a file."
    rebuilt = body(value)
    unknown = coverage(SERVED, rebuilt, [Piece(rebuilt.data, "logged")]).unknown
    assert unknown <= len(REQUEST["messages"][0]["content"].encode()) + len("Writes")


def test_a_served_message_the_log_lacks_is_unknown_and_what_follows_is_not():
    rebuilt = body(changed("messages", 1, drop=True))
    extra = len('{"role":"assistant","content":[{"type":"text","text":"Let me look."},') - 20
    found = coverage(SERVED, rebuilt, [Piece(rebuilt.data, "logged")])
    assert extra < found.unknown < len(SERVED.data) - len(rebuilt.data) + 1


def test_a_message_that_moved_twice_over_is_still_found():
    one, two = ({"role": "user", "content": f"{word} question, asked at some length"} for word in ("First", "Second"))
    kept = {"role": "assistant", "content": "An answer that both requests hold, between two changes."}
    served, rebuilt = body({"messages": [one, kept]}), body({"messages": [kept, two]})
    found = coverage(served, rebuilt, [Piece(rebuilt.data, "logged")])
    assert found.logged >= len(kept["content"])


@given(st.text("ab", max_size=9), st.text("ab", max_size=9))
def test_runs_of_equal_bytes_rise_and_never_overlap(one, two):
    a, b = Body(one.encode(), None, ()), Body(two.encode(), None, ())
    at = (0, 0)
    for start, other, length in equal_runs(a, b):
        assert start >= at[0]
        assert other >= at[1]
        assert a.data[start : start + length] == b.data[other : other + length]
        at = (start + length, other + length)


def test_a_segment_tells_where_it_comes_from():
    border = next(s for s in SERVED.segments if s.path == "/messages/1/content/1")
    pieces = [Piece(SERVED.data[: border.start + 5], "learned"), Piece(SERVED.data[border.start + 5 :], "logged")]
    found = segment_provenance(SERVED, SERVED, pieces)
    assert found["/messages/1/content/0"] == "learned"
    assert found["/messages/1/content/1"] == "mixed"
    assert found["/tools/0"] == "logged"


def test_a_segment_that_differs_is_not_called_logged():
    rebuilt = body(changed("system", 0, to={"other": 12345}))
    assert segment_provenance(SERVED, rebuilt, [Piece(rebuilt.data, "logged")])["/system/0"] != "logged"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/messages/38/content/1/input/command", "message 38, block 1, input/command"),
        ("/tools/3/description", "tool 3, description"),
        ("/messages/2/content", "message 2, content"),
        ("", "the request"),
        ("/thinking/type", "thinking/type"),
    ],
)
def test_a_path_reads_as_words(path, words):
    assert where(path) == words
