"""A tokenizer of the user's: for which models it counts, and what is said of one that cannot be read."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from ctxscope.analysis.own_tokenizer import read
from ctxscope.analysis.tokens import Counter, ledger
from ctxscope.cli import main
from ctxscope.model import CtxscopeError
from tests.analysis_bodies import body
from tests.conftest import SAMPLES

LETTERS = {chr(c): c for c in range(32, 127)} | {"<|end|>": 200, "he": 201, "Ġ": 202, "[?]": 203}
FILE = {
    "version": "1.0",
    "truncation": {"max_length": 3, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
    "padding": {
        "strategy": {"Fixed": 50},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": " ",
    },
    "added_tokens": [
        {
            "id": 200,
            "content": "<|end|>",
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
    ],
    "normalizer": None,
    "pre_tokenizer": None,
    "post_processor": None,
    "decoder": None,
    "model": {
        "type": "BPE",
        "dropout": None,
        "unk_token": "[?]",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "vocab": LETTERS,
        "merges": ["h e"],
    },
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(FILE))
    return path


@pytest.fixture
def own(file):
    pytest.importorskip("tokenizers")
    return read(file)


def test_it_counts_whole_texts_and_marks_of_a_chat_are_text(own):
    assert len(own.encode("hehe, he")) == 5
    assert len(own.encode("<|end|>")) == 7
    assert len(own.encode("a\ud800b")) == 3
    assert len(own.encode("h" * 100_000)) == 100_000


@pytest.mark.parametrize(
    ("model", "by_own", "estimated"),
    [
        ("qwen3-coder-plus", True, False),
        (None, True, False),
        ("gemini-3-pro", True, False),
        ("gpt-4o", False, False),
        ("gpt-4", False, False),
        ("claude-opus-4-5", False, True),
    ],
)
def test_it_counts_models_whose_vocabulary_is_not_known_and_then_they_are_no_estimate(own, model, by_own, estimated):
    request = body({"model": model, "messages": [{"role": "user", "content": "zqx jkv"}]})
    found, plain = ledger(Counter(own), request), ledger(Counter(), request)
    assert found.estimated is estimated
    assert found.visible == (7 if by_own else plain.visible)


def test_two_files_are_told_apart_in_what_is_kept(own, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(json.dumps(FILE | {"model": FILE["model"] | {"fuse_unk": True}}))
    assert read(other).name != own.name


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff\x00", b'{"version": "1.0"}'])
def test_a_file_that_is_none_is_refused_by_its_name(tmp_path, content):
    pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CtxscopeError, match=r"tokenizer\.json: .*; expected a tokenizer\.json"):
        read(path)


def test_without_the_package_it_says_what_to_install(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(CtxscopeError, match="pip install tokenizers"):
        read(file)


def test_the_report_counts_with_it_and_names_it_in_the_command(file, monkeypatch, capsys):
    whole = SimpleNamespace(from_buffer=lambda _: FakeTokenizer())
    monkeypatch.setitem(sys.modules, "tokenizers", SimpleNamespace(Tokenizer=whole, __version__="0"))
    case = str(SAMPLES / "qwen" / "compression_read_twice")
    assert main.main(["report", case, "--format", "json", "--tokenizer", str(file)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {call["tokens"]["estimated"] for call in told["calls"]} == {False}
    assert main.main(["report", case, "--tokenizer", str(file)]) == 0
    assert f"--tokenizer {file}" in capsys.readouterr().out
    assert main.main(["report", case, "--tokenizer", str(file.parent / "none.json")]) == 2


class FakeTokenizer:
    """A token for each character."""

    no_truncation = no_padding = staticmethod(lambda: None)

    def encode(self, text: str, *, add_special_tokens: bool) -> SimpleNamespace:
        assert add_special_tokens is False
        return SimpleNamespace(ids=list(text))
