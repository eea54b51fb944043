"""What went wrong, for a line on the screen."""

from __future__ import annotations

from ctxscope.model import CtxscopeError


def in_words(error: Exception) -> str:
    """One line: our own errors and the system's speak for themselves, others need their name. Not yet printable."""
    told = str(error)
    plain = isinstance(error, (CtxscopeError, OSError)) and told
    return told if plain else f"{type(error).__name__}: {told}" if told else type(error).__name__
