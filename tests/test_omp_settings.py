"""omp's settings: which files are read, what of them is kept, and the windows and thresholds they give."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ctxscope
from ctxscope.agents import omp
from ctxscope.agents.omp.settings import due_of
from ctxscope.agents.omp.side_files import files
from ctxscope.model import NO_WINDOW, Config, Window
from tests.omp_cases import Told
from tests.pi_sessions import text

MODELS = b"""\
providers:
  acme:
    baseUrl: http://127.0.0.1:1
    apiKey: sk-secret
    models:
      - id: sonnet-x
        contextWindow: 32000
      - id: other
        contextWindow: 9
    modelOverrides:
      other: {"contextWindow": 50000}
"""


def spoken() -> Told:
    script = Told().begin()
    script.user("hello")
    script.assistant(text("hi"))
    return script


def configured(settings: str | None = None, models: bytes | None = MODELS) -> tuple[Config, Window, int | None]:
    side = {} if models is None else {"models": models}
    log = spoken().log(side if settings is None else {**side, "settings": settings.encode()})
    found = omp.config(log)
    return found, omp.window(log, omp.requests(log)[-1], found), omp.due(log, found, 200_000)


@pytest.mark.parametrize(
    ("settings", "threshold", "by", "due"),
    [
        (None, 15_616, "rule", 170_000),
        ("compaction:\n  reserveTokens: 4096\n", 27_200, "rule", 170_000),
        ("compaction:\n  reserveTokens: 40000\n", 27_200, "rule", 160_000),
        ("compaction:\n  thresholdPercent: 50\n  reserveTokens: 9\n", 16_000, "rule", 100_000),
        ("compaction:\n  thresholdTokens: 20000\n  thresholdPercent: 50\n", 20_000, "config", 20_000),
        ("compaction:\n  thresholdTokens: 90000\n", 31_999, "rule", 90_000),
        ("compaction:\n  thresholdTokens: -1\n  thresholdPercent: -1\n", 15_616, "rule", 170_000),
        ("compaction:\n  enabled: false\n", None, None, None),
        ("compaction:\n  methodOrder: []\n", None, None, None),
        ("compaction:\n  methodOrder: [nonsense]\n", None, None, None),
        ("compaction:\n  strategy: off\n", None, None, None),
        ("compaction:\n  strategy: 'off'\n  methodOrder:\n  - soft\n", 15_616, "rule", 170_000),
        ("theme: x\n", 15_616, "rule", 170_000),
    ],
)
def test_the_threshold_is_what_the_settings_say_else_what_the_rule_leaves(settings, threshold, by, due):
    config, window, of_another = configured(settings)
    assert (config.window, config.window_by, config.threshold, config.threshold_by) == (32_000, "config", threshold, by)
    assert window == Window(32_000, "config", threshold, by)
    assert of_another == due


def test_a_small_window_keeps_its_share_where_the_default_reserve_would_take_it():
    assert [due_of({}, window) for window in (8_000, 16_384, 19_275, 19_276)] == [6_800, 13_927, 16_384, 2_892]
    assert due_of({"reserveTokens": 16_384}, 16_400) == 16
    assert due_of({"reserveTokens": 99_999}, 16_400) == 13_940


@given(
    st.integers(2, 10**6),
    st.dictionaries(st.sampled_from(["thresholdTokens", "thresholdPercent", "reserveTokens"]), st.integers(-5, 10**6)),
)
def test_a_threshold_lies_below_its_window(window, settings):
    found = due_of(settings, window)
    assert found is None or 0 < found < window


def test_what_no_file_says_is_unknown():
    assert configured(models=None) == (Config(), NO_WINDOW, 170_000)
    config, window, _ = configured("compaction:\n  thresholdTokens: 20000\n", None)
    assert (config.window, config.threshold, config.protect_tail) == (None, 20_000, 20_000)
    assert window == Window(None, None, 20_000, "config")
    assert configured("compaction:\n  thresholdTokens: 0.5\n", None)[0].threshold == 1
    config, _, _ = configured("compaction: {enabled: true\n broken")
    assert (config.protect_tail, config.values) == (None, {})


@pytest.mark.parametrize(
    "text", ["compaction: {enabled: true\n broken", "compaction:\n\treserveTokens: 1", "- a", "compaction: 1"]
)
def test_settings_that_cannot_be_read_are_told_and_no_threshold_is_made_up(text):
    config, window, due = configured(text)
    assert (window.size, window.threshold, due, config.protect_tail) == (32_000, None, None, None)
    log = spoken().log({"models": MODELS, "settings": text.encode()})
    told = [notice for notice in omp.notices(log) if "settings file" in notice]
    assert told == ["settings file: no YAML mapping that can be read; windows and thresholds it may name are not known"]
    assert not [n for n in omp.notices(spoken().log({"models": MODELS, "settings": b"a: 1"})) if "file" in n]


def test_an_override_of_a_model_goes_before_its_own_and_nothing_else_of_a_file_is_kept():
    log = spoken().log({"models": MODELS, "settings": b"compaction:\n  keepRecentTokens: 7\n  secret: s\nother: t\n"})
    entries = {key: log.entries[log.index[key]] for key in ("models", "settings")}
    assert entries["models"].data == {"windows": {"acme/sonnet-x": 32_000, "acme/other": 50_000}}
    assert entries["settings"].data == {"compaction": {"keepRecentTokens": 7}}
    assert {e.raw for e in entries.values()} == {b""}
    assert omp.config(log).values == {"compaction": {"keepRecentTokens": 7}}


@pytest.mark.parametrize(
    ("spelled", "size"), [("3.2e4", 32_000), ("32000.0", 32_000), ("0.5", None), ("1e999", None), ("true", None)]
)
def test_a_window_is_a_whole_number_however_it_is_spelled(spelled, size):
    models = MODELS.replace(b"contextWindow: 32000", f"contextWindow: {spelled}".encode())
    assert configured(models=models)[0].window == size


def test_the_first_of_the_names_that_is_there_is_read(tmp_path: Path):
    assert [path.name for _, path in files(tmp_path)] == ["config.yml", "models.yml"]
    for name in ("settings.json", "config.yaml", "models.json"):
        (tmp_path / name).touch()
    assert [path.name for _, path in files(tmp_path)] == ["config.yaml", "models.json"]
    (tmp_path / "config.yml").touch()
    assert [path.name for _, path in files(tmp_path)] == ["config.yml", "models.json"]


def test_a_session_is_opened_with_the_settings_of_its_home(tmp_path: Path):
    agent = tmp_path / ".omp" / "agent"
    (agent / "sessions" / "-p").mkdir(parents=True)
    (agent / "sessions" / "-p" / "s.jsonl").write_bytes(spoken().bytes())
    (agent / "models.yml").write_bytes(MODELS)
    (agent / "config.yml").write_text("compaction:\n  thresholdPercent: 50\n")
    inspection = ctxscope.open(tmp_path)
    assert [call.window for call in inspection.snapshot.calls] == [Window(32_000, "config", 16_000, "rule")]
    inspection.close()
