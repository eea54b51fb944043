"""What went wrong, for a line on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxscope.model import CtxscopeError


def ours() -> type[CtxscopeError]:
    """Our own kind of error. It stands among all the words of the program, which a first screen does not wait for."""
    from ctxscope.model import CtxscopeError  # noqa: PLC0415 - likewise

    return CtxscopeError


def in_words(error: Exception) -> str:
    """One line: our own errors and the system's speak for themselves, others need their name. Not yet printable."""
    told = str(error)
    plain = isinstance(error, (ours(), OSError)) and told
    return told if plain else f"{type(error).__name__}: {told}" if told else type(error).__name__
