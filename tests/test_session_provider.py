"""Whose cache rules hold: by where a call really went, by the user's word, by the log where nothing was served."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from platformdirs import user_config_path

import ctxscope
from ctxscope.analysis.providers import Providers
from ctxscope.cli.main import main
from ctxscope.model import CtxscopeError, Snapshot
from tests.conftest import ROOT, SAMPLES
from tests.planted import TRANSITIONS, write

SERVED = next(t for t in TRANSITIONS if t.name == "anthropic/system_changed")
ENGINE = next(t for t in TRANSITIONS if t.provider == "llama_cpp")


def opened(path: Path, **options: str) -> Snapshot:
    inspection = ctxscope.open(path, **options)
    try:
        return inspection.snapshot
    finally:
        inspection.close()


def test_the_provider_is_where_a_call_went(tmp_path):
    assert {c.provider for c in opened(write(tmp_path / "a", SERVED)).calls} == {"anthropic"}
    assert {c.provider for c in opened(write(tmp_path / "b", ENGINE)).calls} == {None}


def test_the_readme_lists_every_provider():
    told = (ROOT / "README.md").read_text("utf-8").split("### Whose cache", 1)[1].split("Their rules", 1)[0]
    listed = re.findall(r"`([a-z_]+)`", told.split("Known:", 1)[1])
    assert [name for name in listed if name != "ambiguous"] == Providers().names


def test_it_can_be_named(tmp_path):
    assert {c.provider for c in opened(write(tmp_path, ENGINE), provider="llama_cpp").calls} == {"llama_cpp"}
    with pytest.raises(CtxscopeError, match="provider nowhere: not known; expected one of anthropic, "):
        opened(tmp_path, provider="nowhere")


def test_the_file_in_the_readme_gives_losses_a_price(tmp_path):
    text = (ROOT / "README.md").read_text("utf-8")
    told = text.split("<!-- rules: tested -->\n```toml\n", 1)[1].split("```", 1)[0]
    (tmp_path / "own.toml").write_text(told.replace("claude-opus-4-5*", "*"), encoding="utf-8")
    (cost,) = opened(write(tmp_path / "case", SERVED), provider=str(tmp_path / "own.toml")).costs
    assert cost.money == pytest.approx(cost.extra * 5 / 1_000_000)
    assert cost.currency == "USD"


def test_files_in_the_configuration_folder_come_on_top(tmp_path):
    own = user_config_path("ctxscope", appauthor=False) / "providers"
    own.mkdir(parents=True)
    (own / "own.toml").write_text(
        'provider = "anthropic"\n[[rule]]\nwhat = "price_read"\nvalue = 0.5\nsource = "a contract"\ndate = 2026-11-30\n',
        encoding="utf-8",
    )
    (cost,) = opened(write(tmp_path / "case", SERVED)).costs
    assert cost.extra == pytest.approx(cost.lost_tokens * 0.75)


def test_a_log_alone_names_its_provider():
    assert {c.provider for c in opened(SAMPLES / "dsh" / "compaction_and_resume" / "log").calls} == {"deepseek"}


def test_the_report_takes_it_and_repeats_it(tmp_path, capsys):
    assert main(["report", str(write(tmp_path, ENGINE)), "--provider", "llama_cpp"]) == 0
    assert "--provider llama_cpp" in capsys.readouterr().out
    assert main(["report", str(tmp_path), "--provider", "nowhere"]) == 2
