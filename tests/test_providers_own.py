"""Rules files of the user's own: on top of the bundled ones, a new provider, and wrong in each way."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxscope.analysis.providers import UNKNOWN, Providers, Seen
from ctxscope.model import CtxscopeError

ROW = """
[[rule]]
what = "{what}"
value = {value}
source = "our own measurement"
date = 2026-11-29
known = "measured"
"""
BUNDLED = Providers()


def written(folder: Path, text: str, name: str = "own.toml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_one_row_of_a_provider_is_overridden_and_all_others_stay(tmp_path: Path):
    own = Providers([written(tmp_path, 'provider = "openai"\n' + ROW.format(what="ttl", value=900))])
    before, after = BUNDLED.rules("openai", "gpt-5.6"), own.rules("openai", "gpt-5.6")
    assert (before.ttl, after.ttl) == (1800, 900)
    assert after.said("ttl") == "our own measurement, 2026-11-29"
    changed = {what for what, row in after.rows.items() if before.rows.get(what) is not row}
    assert changed == {"ttl"}
    assert own.names == BUNDLED.names
    assert own.identify(Seen("https://api.openai.com")) == "openai"


def test_a_row_for_some_models_leaves_the_others(tmp_path: Path):
    row = ROW.format(what="minimum", value=7) + 'models = ["claude-opus-9*"]\n'
    own = Providers([written(tmp_path, 'provider = "anthropic"\n' + row)])
    assert own.rules("anthropic", "claude-opus-9-1").minimum == 7
    assert own.rules("anthropic", "claude-opus-4-5").minimum == 4096


def test_the_last_file_wins(tmp_path: Path):
    files = [written(tmp_path, 'provider = "xai"\n' + ROW.format(what="step", value=n), f"{n}.toml") for n in (32, 64)]
    assert Providers(files).rules("xai").step == 64
    assert Providers(reversed(files)).rules("xai").step == 32


def test_a_new_provider_is_based_on_one_that_is_known(tmp_path: Path):
    text = """
provider = "gateway"
title = "Our gateway"
based_on = "anthropic"
[[match]]
host = "LLM.Example.com"
path = "/claude/*"
source = "our wiki"
date = 2026-11-29
""" + ROW.format(what="visible.whitespace", value='"prompt"')
    own = Providers([written(tmp_path, text)])
    assert own.identify(Seen("https://llm.example.com", "/claude/v1/messages")) == "gateway"
    assert own.identify(Seen("https://llm.example.com", "/Claude/v1/messages")) == UNKNOWN
    rules = own.rules("gateway", "claude-opus-4-5", "anthropic-messages")
    assert (rules.title, rules.minimum, rules.shows("whitespace")) == ("Our gateway", 4096, "prompt")
    assert own.rules("anthropic").shows("whitespace") == "benign"
    assert "gateway" in own.names


def test_the_users_match_is_tried_before_the_bundled_ones(tmp_path: Path):
    text = 'provider = "mine"\n[[match]]\nhost = "*"\nheader = "x-mine: yes*"\nsource = "own"\ndate = 2026-11-29\n'
    own = Providers([written(tmp_path, text)])
    assert own.identify(Seen("https://api.openai.com", headers={"x-mine": "YES, it is"})) == "mine"
    assert own.identify(Seen("https://api.openai.com", headers={"x-mine": "no"})) == "openai"
    assert own.rules("mine").title == "mine"


def test_a_file_may_be_chosen(tmp_path: Path):
    path = written(tmp_path, 'provider = "mine"\nbased_on = "vllm"\n' + ROW.format(what="step", value=528))
    own = Providers(chosen=str(path))
    assert own.chosen == own.identify(Seen("https://api.openai.com")) == "mine"
    assert (own.rules("mine").step, own.rules("mine").mode) == (528, "implicit")


def test_a_base_must_be_known(tmp_path: Path):
    with pytest.raises(CtxscopeError, match="provider nobody: not known; expected one of anthropic, "):
        Providers([written(tmp_path, 'provider = "mine"\nbased_on = "nobody"\n')])


def test_a_circle_of_bases_is_told(tmp_path: Path):
    files = [
        written(tmp_path, f'provider = "{name}"\nbased_on = "{base}"\n', f"{name}.toml")
        for name, base in (("one", "two"), ("two", "one"))
    ]
    with pytest.raises(CtxscopeError, match="provider one: based on itself, by way of one, two"):
        Providers(files).rules("one")


HEAD = 'provider = "mine"\n'
SAID = 'source = "own"\ndate = 2026-11-29\n'
TTL = f'{HEAD}[[rule]]\nwhat = "ttl"\n'
WRONG = [
    ("provider = ", ": not readable as TOML: "),
    ('title = "x"\n', ": provider is None; expected a text"),
    ('provider = ""\n', ": provider is ''; expected a text"),
    (f"{HEAD}title = 3\n", ": title is 3; expected a text"),
    (f"{HEAD}based_on = 3\n", ": based_on is no text; expected a provider"),
    (f"{HEAD}rules = []\n", ": unknown key rules; expected provider, title, based_on, match, rule"),
    (f"{HEAD}rule = 3\n", ": rule is int; expected tables [[rule]]"),
    (f"{HEAD}match = [3]\n", ": match is list; expected tables [[match]]"),
    (f"{HEAD}[match]\nhost = 'x'\n{SAID}", ": match is dict; expected tables [[match]]"),
    (f"{HEAD}[[match]]\n{SAID}", ": match 1: names nothing; expected one of host, path, "),
    (f"{HEAD}[[match]]\nport = 3\n{SAID}", ": match 1: unknown key port; expected host, path, "),
    (f"{HEAD}[[match]]\nhost = 3\n{SAID}", ": match 1: host is 3; expected a text"),
    (f"{HEAD}[[match]]\nhost = 'x'\ndate = 2026-11-29\n", ": match 1: source is None; expected a text"),
    (f"{HEAD}[[match]]\nhost = 'x'\nsource = 'own'\n", ": match 1: date is None; expected a day such as 2026-11-29"),
    (f"{HEAD}[[rule]]\nvalue = 3\n{SAID}", ": rule 1: what is None; expected a text"),
    (f"{TTL}value = 3\nsource = 'own'\n", ": rule 1 (ttl): date is None; expected a day"),
    (f"{TTL}value = 3\nsource = 'own'\ndate = '2026-11-29'\n", ": rule 1 (ttl): date is '2026-11-29'; expected a day"),
    (f"{TTL}value = 3\nsource = 'own'\ndate = 2026-11-29T10:00:00\n", ": rule 1 (ttl): date is datetime"),
    (f"{TTL}value = 3\ndate = 2026-11-29\n", ": rule 1 (ttl): source is None; expected a text"),
    (f"{TTL}value = 'long'\n{SAID}", ": rule 1 (ttl): value is 'long'; expected seconds"),
    (f"{TTL}value = -1\n{SAID}", ": rule 1 (ttl): value is -1; expected seconds"),
    (f"{TTL}{SAID}", ": rule 1 (ttl): value is None; expected seconds"),
    (
        f"{TTL}value = 3\nknown = 'sure'\n{SAID}",
        ": rule 1 (ttl): known is 'sure'; expected one of documented, measured, ",
    ),
    (f"{TTL}value = 3\nmodels = 'gpt-*'\n{SAID}", ": rule 1 (ttl): models is 'gpt-*'; expected a list of globs"),
    (f"{TTL}value = 3\napis = [1]\n{SAID}", ": rule 1 (ttl): apis is [1]; expected a list of globs"),
    (f"{TTL}value = 3\ndefault = 3\n{SAID}", ": rule 1 (ttl): unknown key default; expected what, value, "),
    *(
        (
            f'{HEAD}{ROW.format(what="ttl", value=3)}[[rule]]\nwhat = "{what}"\nvalue = {value}\n{SAID}',
            f": rule 2 ({what}): {said}",
        )
        for what, value, said in [
            ("mode", '"auto"', "value is 'auto'; expected one of explicit, implicit, slots, unknown"),
            ("boundary", '"block"', "value is 'block'; expected one of mark, message, unit, token"),
            ("ready", '"start"', "value is 'start'; expected one of first_byte, end"),
            ("reasoning", '"dropped"', "value is 'dropped'; expected one of kept, last_turn, unknown"),
            ("step", "1.5", "value is 1.5; expected a whole number of tokens or blocks"),
            ("minimum", "true", "value is True; expected a whole number of tokens or blocks"),
            ("price_read", '"cheap"', "value is 'cheap'; expected a multiple of the price of an input token"),
            ("writes", "1", "value is 1; expected true or false"),
            ("routes", '"user"', "value is 'user'; expected a list of parameters and headers"),
            ("param.thinking", '"tools"', "value is 'tools'; expected one of all, system, messages"),
            ("visible.whitespace", '"yes"', "value is 'yes'; expected one of benign, prompt, routing, unknown"),
            (
                "visible.colour",
                '"benign"',
                "value is 'benign'; expected no such difference; one of arguments_key_order, ",
            ),
            ("ttl_short", "3", "value is 3; expected no value: nothing is called ttl_short; one of mode, boundary, "),
        ]
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_wrong_file_is_told_with_its_name_the_row_and_what_was_expected(tmp_path: Path, text: str, message: str):
    path = written(tmp_path, text)
    with pytest.raises(CtxscopeError) as told:
        Providers([path])
    assert str(told.value).startswith(f"rules own.toml{message}")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path):
    (tmp_path / "latin.toml").write_bytes(b'provider = "\xe9"')
    for name in ("absent.toml", "latin.toml"):
        with pytest.raises(CtxscopeError, match=f"^rules {name}: not readable as TOML: "):
            Providers([tmp_path / name])
        with pytest.raises(CtxscopeError, match=f"^rules {name}: not readable as TOML: "):
            Providers(chosen=str(tmp_path / name))
