"""Where a verb's data goes: stdout in whatever encoding it has, or a file that is whole or not there."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ctxscope.cli.diagnostics import writing
from ctxscope.model import CtxscopeError

Spell = Callable[[str], str]
"""How the data's format writes a character that an encoding lacks."""


def to_stdout(text: str, spell: Spell) -> None:
    """Write text to stdout; what its encoding lacks is spelled as the format does. Raises ``CtxscopeError`` when it is full."""
    with writing() as out:
        out.write(encodable(text, out.encoding or "ascii", spell))


def encodable(text: str, encoding: str, spell: Spell) -> str:
    """The text with every character that ``encoding`` lacks replaced by its spelling."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        codecs.register_error("ctxscope.spell", lambda error: _spelled(error, spell))
        return text.encode(encoding, "ctxscope.spell").decode(encoding)
    return text


def _spelled(error: UnicodeError, spell: Spell) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(spell(c) for c in error.object[error.start : error.end]), error.end


def to_file(text: str, path: Path) -> None:
    """Write a file atomically, in UTF-8; a failure leaves what was there. Raises ``CtxscopeError`` for a place that cannot be written."""
    data = text.encode("utf-8", "backslashreplace")
    try:
        target = path.expanduser().resolve()
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            _replace(target, data)
    except (OSError, RuntimeError, ValueError) as error:  # a home that is not known, a loop of links, a NUL
        why = error.strerror if isinstance(error, OSError) else error
        raise CtxscopeError(f"{path}: cannot be written: {why}; expected a file in a folder that exists") from error


def _replace(target: Path, data: bytes) -> None:
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
        part.replace(target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
