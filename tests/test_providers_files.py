"""The bundled rules files: each row readable, sourced, its own, and reached by some model."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from itertools import product
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis import providers
from ctxscope.analysis.providers import UNKNOWN, Providers
from ctxscope.analysis.providers.reading import RulesFile
from ctxscope.analysis.providers.rules import DIFFERENCES, Rules
from ctxscope.model import ApiName
from tests.providers_models import EVERY

PATHS = sorted(Path(providers.__file__).parent.glob("*.toml"))
FILES = providers._bundled()
APIS: tuple[str | None, ...] = (None, *get_args(ApiName))
ALL = Providers()
NAMES = {
    *("anthropic", "anthropic_bedrock", "anthropic_vertex", "openai", "deepseek", "llama_cpp", "vllm", "gemini"),
    *("openrouter", "kimi", "kimi_coding", "glm", "glm_coding", "qwen", "xai", "sglang", "ollama", "lm_studio", "mlx"),
}
each_file = pytest.mark.parametrize("file", FILES, ids=[f.provider for f in FILES])


def test_every_provider_has_a_file_of_its_name():
    assert [path.stem for path in PATHS] == [f.provider for f in FILES]
    assert set(ALL.names) == NAMES
    assert {f.provider for f in FILES} == {*NAMES, UNKNOWN}


@each_file
def test_every_row_says_where_and_when_it_was_read(file: RulesFile):
    today = dt.datetime.now(tz=dt.UTC).date()
    for row in (*file.rows, *file.matches):
        assert dt.date(2024, 1, 1) < row.date <= today
        assert len(row.source) > 10
        assert not row.source.endswith((".", " "))


@each_file
def test_a_source_is_readable_without_the_notes_it_was_taken_from(file: RulesFile):
    for row in (*file.rows, *file.matches):
        assert not re.fullmatch(r"[A-Z]\d+([ ,;]+[A-Z]\d+)*", row.source)
        assert not re.search("prompt_caching|§", row.source)


@each_file
def test_no_row_says_a_thing_twice(file: RulesFile):
    said = Counter((row.what, frozenset(row.models), frozenset(row.apis), row.when) for row in file.rows)
    assert [what for what, times in said.items() if times > 1] == []
    wanted = Counter(match.wants for match in file.matches)
    assert [wants for wants, times in wanted.items() if times > 1] == []


@each_file
def test_some_model_makes_every_row_hold(file: RulesFile):
    every = product((None, *EVERY), APIS, (False, True))
    asked = [ALL.rules(file.provider, model, api, marked=marked) for model, api, marked in every]
    reached = {id(row) for rules in asked for row in rules.rows.values()}
    assert [(row.what, row.models) for row in file.rows if id(row) not in reached] == []


@each_file
def test_every_glob_catches_some_model(file: RulesFile):
    globs = {glob for row in file.rows for glob in row.models}
    assert {glob for glob in globs if not any(providers._holds((glob,), name) for name in EVERY)} == set()


@each_file
def test_general_rows_come_before_those_for_some_models(file: RulesFile):
    for number, row in enumerate(file.rows):
        if not row.models:
            assert not [r.what for r in file.rows[:number] if r.what == row.what and r.models and r.apis == row.apis]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_provider_says_of_every_difference_whether_it_shows(name: str):
    rules = ALL.rules(name)
    left_out = {"form"} if name == "gemini" else set()
    assert set(rules.visible) == DIFFERENCES - left_out
    assert rules.shows("breakpoint") == "benign"
    assert rules.said("visible.breakpoint")
    assert all(f"visible.{difference}" in rules.rows for difference in rules.visible)


def test_of_an_unknown_provider_nothing_but_marks_is_invisible():
    for model in (None, "claude-opus-4-5", "gpt-5.6"):
        for api in APIS:
            rules = ALL.rules(UNKNOWN, model, api)
            shown = {difference: rules.shows(difference) for difference in DIFFERENCES}
            assert shown == {**dict.fromkeys(DIFFERENCES, "unknown"), "breakpoint": "benign"}
            assert (rules.mode, rules.boundary, rules.minimum, rules.ttl, rules.reasoning) == (
                "unknown",
                None,
                None,
                None,
                "unknown",
            )
            assert not any(param.sure for param in rules.params.values())


@given(
    model=st.none() | st.text(max_size=60), api=st.none() | st.sampled_from(get_args(ApiName)) | st.text(max_size=10)
)
def test_any_text_may_be_a_model(model: str | None, api: str | None):
    for name in (*ALL.names, UNKNOWN):
        rules = ALL.rules(name, model, api)
        assert isinstance(rules, Rules)
        assert rules.provider == name


def test_the_same_question_gives_the_same_object():
    assert ALL.rules("openai", "gpt-5.6", "openai-chat") is ALL.rules("openai", "gpt-5.6", "openai-chat")
