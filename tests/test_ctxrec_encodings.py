"""Bodies out of their encodings: whole, torn, several on one another, hostile; and back into the bytes sent."""

from __future__ import annotations

import gzip
import importlib
import sys
import zlib
from typing import Any

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.capture.encodings import TORN, Decoded, decode, decoded, encode, layers, recipes

zstd: Any = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def bare(data: bytes) -> bytes:
    raw = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return raw.compress(data) + raw.flush()


PACKERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate, bare": bare,
    "br": lambda data: brotli.compress(data, quality=4),
    "zstd": zstd.compress,
}
packers = pytest.mark.parametrize("name", PACKERS)
TEXT = b"".join(b'{"role":"user","content":"%d"},' % (n * n) for n in range(4000))


@packers
@given(data=st.one_of(st.binary(max_size=300), st.binary(max_size=40).map(lambda b: b * 5000)))
@settings(deadline=None)
def test_what_was_packed_comes_out(name: str, data: bytes):
    assert decode(PACKERS[name](data), name.partition(",")[0].upper()) == Decoded(data)


@packers
@given(cut=st.floats(0.01, 0.99))
@settings(deadline=None)
def test_what_was_torn_gives_what_it_holds(name: str, cut: float):
    packed = PACKERS[name](TEXT)
    found = decode(packed[: max(1, int(len(packed) * cut))], name.partition(",")[0])
    assert found.problem == TORN
    assert TEXT.startswith(found.data)


@packers
def test_what_grows_beyond_all_measure_is_not_decoded_further(name: str):
    found = decode(PACKERS[name](bytes(30_000_000)), name.partition(",")[0], most=5_000_000)
    assert len(found.data) == 5_000_000
    assert found.problem == "it is more than 5000000 bytes decoded"


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd", "compress", "gzip, zstd, br"])
@given(data=st.binary(min_size=1, max_size=200))
@settings(deadline=None)
def test_whatever_it_is_it_does_not_raise(name: str, data: bytes):
    found = decode(data, name)
    assert decoded(data, name) == (None if found.problem else found.data)


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_members_one_behind_the_other_are_all_read(name: str):
    packed = PACKERS[name](TEXT)
    assert decode(packed * 3, name) == Decoded(TEXT * 3)
    assert decode(packed + b"trailing", name) == Decoded(TEXT, "what follows its end is none of it")


def test_encodings_on_one_another_come_off_in_order():
    assert layers(" GZIP, identity ,br") == ["gzip", "br"]
    assert decode(brotli.compress(gzip.compress(TEXT)), "gzip, br") == Decoded(TEXT)
    assert decode(TEXT, "identity") == decode(TEXT, "") == Decoded(TEXT)
    assert decode(TEXT, "gzip," * 9).problem == "9 encodings on one another"
    assert decode(b"x", "sdch").problem == "its encoding 'sdch' is none known here"
    assert decode(b"", "gzip") == Decoded(b"")


def sent_as(recipe: str, data: bytes) -> bytes:
    """What a client of another make would send, by libraries of its own."""
    name, _, level = recipe.rpartition("-")
    if name == "zstd-stream":
        stream = zstd.ZstdCompressor(level=int(level))
        return bytes(stream.compress(data) + stream.flush())
    if name == "gzip":
        return gzip.compress(data, int(level), mtime=1234)
    return bytes(zstd.compress(data, int(level)) if name == "zstd" else zlib.compress(data, int(level)))


@pytest.mark.parametrize("recipe", [r for name in ("zstd", "gzip", "deflate") for r in recipes(name)])
def test_a_recipe_makes_the_bytes_that_were_sent(recipe: str):
    sent = sent_as(recipe, TEXT)
    assert encode(TEXT, recipe, sent[:10]) == sent


def test_there_is_no_recipe_for_what_takes_seconds_or_is_twice_encoded():
    assert recipes("br") == recipes("gzip, zstd") == recipes("") == ()
