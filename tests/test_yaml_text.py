"""Settings in YAML: what agents write comes back as they read it, and what nobody can read is nothing."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.agents.reading.yaml_text import mapping

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


@given(st.dictionaries(words, values, min_size=1, max_size=4), st.booleans())
def test_what_is_written_in_blocks_or_as_json_comes_back(value, core):
    assert mapping(written(value), core=core) == value
    assert mapping(json.dumps(value), core=core) == value


@given(st.text("ab:- \n\t#'\"[]{}|>&*,0.!~", max_size=60), st.booleans())
def test_any_text_is_a_mapping_or_nothing(text, core):
    found = mapping(text, core=core)
    assert found is None or isinstance(found, dict)


@pytest.mark.parametrize(
    ("word", "core", "python"),
    [
        ("off", "off", False),
        ("yes", "yes", True),
        ("true", True, True),
        ("010", 10, 8),
        ("1e3", 1000.0, "1e3"),
        ("12:30", "12:30", 750),
        ("2026-01-02", "2026-01-02", date(2026, 1, 2)),
        ("~", None, None),
        ("0.5", 0.5, 0.5),
        ("'1'", "1", "1"),
    ],
)
def test_plain_words_are_what_the_agent_takes_them_for(word, core, python):
    assert mapping(f"a: {word}", core=True) == {"a": core}
    assert mapping(f"a: {word}", core=False) == {"a": python}


@pytest.mark.parametrize(
    "text",
    [
        "- a",
        "a",
        "a:\n\tb: 1",
        "a: 1\n---\nb: 2",
        "[1]",
        "a: !!python/name:os.system x",
        "a: 2026-99-99",
        "a: " + "9" * 5000,
    ],
)
def test_what_is_no_mapping_or_cannot_be_read_is_nothing(text):
    assert mapping(text, core=False) is None


def test_an_empty_file_is_an_empty_mapping_and_size_and_depth_have_an_end():
    assert mapping("", core=True) == mapping("# nothing\n\n", core=True) == {}
    assert mapping("\n".join(" " * i + "a:" for i in range(5000)), core=True) is None
    assert mapping("[" * 100_000, core=True) is None
    assert mapping("a: " + "b" * 1_000_000, core=True) is None
