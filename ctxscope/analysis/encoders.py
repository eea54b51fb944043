"""Counts texts, each with the vocabulary of the model it goes to; a vocabulary is loaded when a text first needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

from ctxscope.analysis import vocabulary
from ctxscope.analysis.own_tokenizer import OwnTokenizer
from ctxscope.analysis.tokenizers import is_claude, is_exact, vocabulary_of

_PIECE = 65_536
"""Characters encoded at once: tiktoken panics on a run of about a million spaces (measured, engineering §1.4)."""
_BYTES_PER_TOKEN = 3.9


class Encoders:
    """Vocabularies by name; ``own``: the user's, for every model that none of the public ones is known to be made for."""

    def __init__(self, own: OwnTokenizer | None = None) -> None:
        self._own = own
        self._loaded: dict[str, Callable[[str], Sequence[int]] | None] = {own.name: own.encode} if own else {}
        """``None``: not on this machine."""
        self._names: dict[str | None, str] = {}
        """By model."""

    def name(self, model: str | None) -> str:
        """Which vocabulary a model's texts are counted with; loads none."""
        found = self._names.get(model)
        if found is None:
            own = self._own if not is_exact(model) and not is_claude(model) else None
            found = self._names[model] = own.name if own else vocabulary_of(model).name
        return found

    def is_missing(self, name: str) -> bool:
        """Whether a vocabulary was needed and is not on this machine: counts are a share of the bytes."""
        return self._loaded.get(name, True) is None

    @property
    def lacks_any(self) -> bool:
        """Whether a vocabulary was needed so far that is not on this machine."""
        return None in self._loaded.values()

    def is_exact(self, model: str | None) -> bool:
        """Whether a model's counts are by its own vocabulary, as far as it is known or the user says so."""
        name = self.name(model)
        return not self.is_missing(name) and (is_exact(model) or name not in vocabulary.PUBLIC)

    def count(self, text: str, name: str) -> int:
        """Tokens of a text. Never raises: a piece that the encoder refuses is estimated."""
        if name not in self._loaded:
            found = vocabulary.encoding(vocabulary.PUBLIC[name])
            self._loaded[name] = found.encode_ordinary if found else None
        encode = self._loaded[name]
        return sum(_count(piece, encode) for piece in _pieces(text))


def _count(piece: str, encode: Callable[[str], Sequence[int]] | None) -> int:
    if encode is None:
        return _estimate(piece)
    try:
        return len(encode(piece))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - a panic in the encoder's Rust is no Exception
        return _estimate(piece)


def _estimate(text: str) -> int:
    return ceil(len(text.encode("utf-8", "surrogatepass")) / _BYTES_PER_TOKEN)


def _pieces(text: str) -> list[str]:
    """The text cut before white space into pieces of at most ``_PIECE`` characters."""
    pieces: list[str] = []
    at = 0
    while len(text) - at > _PIECE:
        end = at + _PIECE
        cut = max(text.rfind(" ", at + 1, end), text.rfind("\n", at + 1, end))
        end = cut if cut > at else end
        pieces.append(text[at:end])
        at = end
    return [*pieces, text[at:]]
