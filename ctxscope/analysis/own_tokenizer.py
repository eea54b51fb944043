"""A tokenizer of the user's: a ``tokenizer.json`` as models on Hugging Face have it, read by the package ``tokenizers``.

That package is not among ours: with what it brings along it is larger than ctxscope and all else that it needs. Where it
is installed it reads the file alone; nothing is fetched.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxscope.model import CtxscopeError

_WANTED = "expected a tokenizer.json of Hugging Face"


@dataclass(frozen=True, slots=True)
class OwnTokenizer:
    """A vocabulary that does not come with ctxscope."""

    name: str
    """Stands for the file's content and for the version of what reads it."""
    encode: Callable[[str], Sequence[int]]
    """Text to ids; marks of a chat that stand in it are plain text, as they are to a server that is careful."""


def read(path: Path) -> OwnTokenizer:
    """Read a tokenizer. Raises ``CtxscopeError`` for a file that is none, and where nothing here can read it."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise CtxscopeError(f"{path}: {os.strerror(error.errno or 0)}; {_WANTED}") from error
    try:
        library: Any = importlib.import_module("tokenizers")
    except ImportError as error:
        needed = "needs the package tokenizers, which is not installed; try pip install tokenizers"
        raise CtxscopeError(f"{path}: {needed}") from error
    try:
        made = library.Tokenizer.from_buffer(raw)
        made.encode_special_tokens = True
        made.no_truncation()
        made.no_padding()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise CtxscopeError(f"{path}: {error}; {_WANTED}") from error

    def encode(text: str) -> Sequence[int]:
        plain = text.encode("utf-8", "replace").decode()  # a lone surrogate is no text to it
        ids: Sequence[int] = made.encode(plain, add_special_tokens=False).ids
        return ids

    return OwnTokenizer(f"own:{hashlib.sha256(raw).hexdigest()}:{library.__version__}", encode)
