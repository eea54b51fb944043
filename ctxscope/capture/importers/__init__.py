"""Foreign captures: one file per format, each read into exchanges.

A module of this package that is not in ``NOT_FORMATS`` is a format; it registers itself by being there and has the face
``Importer``. Listing formats imports none of them.
"""

from __future__ import annotations

import importlib
import stat
from functools import lru_cache
from pathlib import Path
from typing import Protocol, cast

from ctxscope.capture.importers.imported import Capture
from ctxscope.model import CtxscopeError

NOT_FORMATS = frozenset(
    {"__init__", "imported", "ordering", "json_lines", "http_parts", "sdk_body", "tnetstring", "tap_store"}
)
HEAD_BYTES = 65_536
SURE = 0.5
"""What a format must claim at least for a file to count as one of it."""


class Importer(Protocol):
    """What a module of this package offers."""

    title: str
    """What people call the format."""
    notes: tuple[str, ...]
    """What the format does not keep, a sentence each."""

    def claims(self, path: Path, head: bytes) -> float:
        """How sure, from 0 to 1, that ``path`` is such a capture; ``head`` is its first 64 KB, empty for a folder."""

    def read(self, path: Path) -> Capture:
        """Its exchanges in the order they stand there. What is damaged becomes a problem and never loses the rest.

        Raises ``CtxscopeError`` when the file as a whole is no such capture, ``OSError`` when it cannot be read.
        """


@lru_cache
def names() -> tuple[str, ...]:
    """All formats (``claude-trace``), sorted; imports none of them."""
    stems = (p.stem for p in Path(__file__).parent.glob("*.py"))
    return tuple(sorted(stem.replace("_", "-") for stem in stems if stem not in NOT_FORMATS))


@lru_cache
def load(name: str) -> Importer:
    """One format by name; ``KeyError`` when there is none."""
    if name not in names():
        raise KeyError(name)
    return cast("Importer", importlib.import_module(f"{__name__}.{name.replace('-', '_')}"))


def choose(path: Path) -> str:
    """The name of the format a file or folder is in, by its content.

    Raises ``CtxscopeError`` when no format claims it, or it cannot be read.
    """
    head = _head(path)
    claims = sorted(((load(name).claims(path, head), name) for name in names()), reverse=True)
    if claims[0][0] < SURE:
        found = "a folder" if path.is_dir() else f"{len(head)} bytes" if len(head) < HEAD_BYTES else "a file"
        known = ", ".join(load(name).title for name in names())
        raise CtxscopeError(f"{path}: found {found or 'nothing'} in no format known here; expected one of {known}")
    return claims[0][1]


def refuse_endless(path: Path) -> None:
    """Raise ``CtxscopeError`` for what is neither a file nor a folder: reading a pipe or a device may never end."""
    try:
        mode = path.stat().st_mode
    except OSError:  # whoever reads it tells
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise CtxscopeError(f"{path}: found a pipe, a device or a socket; expected a capture: a file, or a raw folder")


def _head(path: Path) -> bytes:
    try:
        if path.is_dir():
            return b""
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError as error:
        raise CtxscopeError(f"{path}: no such file or folder; expected a capture") from error
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read: {error.strerror}; expected a capture") from error
    if not head:
        raise CtxscopeError(f"{path}: an empty file; expected a capture")
    return head
