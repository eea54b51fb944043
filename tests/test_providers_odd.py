"""Rules files that no one would write on purpose: one clear error, and nothing else."""

from __future__ import annotations

import pytest

from ctxscope.analysis.providers import Providers
from ctxscope.model import CtxscopeError

PARAM = '[[rule]]\nwhat = "param.thinking"\nvalue = "messages"\nsource = "a contract"\ndate = 2026-11-30\n'
PRICE = '[[rule]]\nwhat = "price_write"\nsource = "a contract"\ndate = 2026-11-30\nvalue = '


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PARAM + "hidden = 5\n", "hidden is 5; expected a list of members"),
        (PARAM + "defaults = 7\n", "defaults is 7; expected a table of members"),
        (PRICE + "1" + "0" * 400 + "\n", "expected a multiple of the price of an input token"),
        (PRICE + "9" * 5000 + "\n", "not readable as TOML"),
        ("x = " + "[" * 5000, "not readable as TOML"),
    ],
    ids=["hidden", "defaults", "huge", "more digits than Python reads", "deep"],
)
def test_a_file_that_is_odd_is_told_in_one_sentence(tmp_path, text, words):
    (tmp_path / "own.toml").write_text(f'provider = "own"\n{text}', encoding="utf-8")
    with pytest.raises(CtxscopeError, match=r"own\.toml") as found:
        Providers([tmp_path / "own.toml"])
    assert words in str(found.value)


def test_a_providers_name_is_in_lower_case(tmp_path):
    (tmp_path / "own.toml").write_text('provider = "Anthropic"\n', encoding="utf-8")
    with pytest.raises(CtxscopeError, match="'Anthropic'; expected lower case"):
        Providers([tmp_path / "own.toml"])
