"""The reader of settings in YAML: what agents write comes back, and nothing it does not understand is made up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.agents.reading.block_yaml import mapping

words = st.text("abé /:.#-'\"{}[]|>?,&*", max_size=8)
scalars = st.one_of(words, st.booleans(), st.none(), st.integers(-(10**9), 10**9))
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(words, v, max_size=3), max_leaves=12)


def written(value: Any, column: int = 0) -> str:
    """A value in block style, every text quoted."""
    pad = "\n" + " " * column
    if isinstance(value, dict) and value:
        return "".join(f"{pad}{json.dumps(k, ensure_ascii=False)}:{written(v, column + 2)}" for k, v in value.items())
    if isinstance(value, list) and value:
        return "".join(f"{pad}-{written(v, column + 2)}" for v in value)
    return " " + json.dumps(value, ensure_ascii=False)


@given(st.dictionaries(words, values, min_size=1, max_size=4))
def test_what_is_written_in_blocks_or_as_json_comes_back(value):
    assert mapping(written(value)) == value
    assert mapping(json.dumps(value)) == value


@given(st.text("ab:- \n\t#'\"[]{}|>&*,0.", max_size=60))
def test_any_text_is_a_mapping_or_nothing(text):
    assert mapping(text) is None or isinstance(mapping(text), dict)


def test_files_as_people_write_them():
    text = """\
# mine
compaction:
  enabled: true   # yes
  order:
  - soft
  - 'it''s'
  list: [a, b c]
  pairs: {a: 1, b: c d}  # both
models:
  - id: llama3:8b
    url: http://127.0.0.1:1/v1
    size: 8.5
  -
    id: "b"
"""
    assert mapping(text) == {
        "compaction": {"enabled": True, "order": ["soft", "it's"], "list": ["a", "b c"], "pairs": {"a": 1, "b": "c d"}},
        "models": [{"id": "llama3:8b", "url": "http://127.0.0.1:1/v1", "size": 8.5}, {"id": "b"}],
    }
    assert mapping("---\n" + text.replace("\n", "\r\n")) == mapping(text)
    assert mapping("\ufeff" + text) == mapping(text)


def test_what_is_richer_is_nothing_in_its_place():
    text = "note: |\n  a: 1\n   b\nanchor: &x 1\nalias: *x\ntag: !t 1\nflow: {a: {b: c}}\nfolded: a\n  b\nlast: 1\n"
    rich = dict.fromkeys(("note", "anchor", "alias", "tag", "flow", "folded"))
    assert mapping(text) == {**rich, "last": 1}


@pytest.mark.parametrize("text", ["- a", "a", "a:\n\tb: 1", "a: 1\n---\nb: 2", "[1]", "a:\n  - 1\n b: 2"])
def test_what_is_no_mapping_or_does_not_nest_is_nothing_at_all(text):
    assert mapping(text) is None


def test_an_empty_file_is_an_empty_mapping_and_depth_has_an_end():
    assert mapping("") == mapping("# nothing\n\n") == {}
    assert mapping("\n".join("  " * i + "a:" for i in range(5000))) is None
    assert mapping("[" * 100_000) is None
