r"""THE gate: bytes or text of a log into printable cells that a terminal cannot obey.

Controls become control pictures (``␛ ␊ ␉``) or, where the font has none, ``\x1b`` escapes; whatever has no width of its
own, or a width terminals disagree about, becomes ``\u{202e}``. What comes out holds no control byte, no direction
override and no character that is lost on screen (terminal_ui §2).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from rich.cells import cell_len

_PICTURE_OF_NUL, _PICTURE_OF_DEL = 0x2400, "␡"
_ESCAPED_CATEGORIES = frozenset({"Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
"""Formats, surrogates, private use, unassigned, separators; of the spaces only U+0020 looks like what it is."""
_MARK_CATEGORIES = frozenset({"Mn", "Mc", "Me"})
_C0, _C1 = range(0x20), range(0x7F, 0xA0)
_VARIATION_SELECTORS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0), range(0x180B, 0x1810))
_JOINED_BY_TERMINALS = (range(0x1F1E6, 0x1F200), range(0x1F3FB, 0x1F400))
"""Flag letters and skin tones: two of them, or one behind an emoji, are one or two glyphs depending on the terminal."""


class _Table(dict[int, str]):
    """Code point to what is shown for it, filled as code points turn up; what is shown as itself stands there too."""

    def __init__(self, *, pictures: bool) -> None:
        super().__init__()
        self._pictures = pictures

    def __missing__(self, code: int) -> str:
        shown = self[code] = self._shown(code)
        return shown

    def _shown(self, code: int) -> str:
        if code in _C0:
            return chr(_PICTURE_OF_NUL + code) if self._pictures else f"\\x{code:02x}"
        if code in _C1:
            return _PICTURE_OF_DEL if self._pictures and code == _C1.start else f"\\x{code:02x}"
        character = chr(code)
        category = unicodedata.category(character)
        if character == " " or (category in _MARK_CATEGORIES and not _is_selector(code)):
            return character
        if (
            category in _ESCAPED_CATEGORIES
            or any(code in r for r in _JOINED_BY_TERMINALS)
            or _is_selector(code)
            or cell_len(character) == 0
        ):
            return escape(code)
        return character


_TABLES = {pictures: _Table(pictures=pictures) for pictures in (True, False)}
_LONE_BYTES, _WIDTH_OF_BYTE = {chr(0xDC00 + byte) for byte in range(0x80, 0x100)}, 4
r"""A byte that is no UTF-8 as ``surrogateescape`` decodes it, and the cells of its ``\xff``."""


class _Widths(dict[str, int]):
    """Character to the cells it takes, filled as characters turn up."""

    def __init__(self, *, pictures: bool) -> None:
        super().__init__(dict.fromkeys(_LONE_BYTES, _WIDTH_OF_BYTE))
        self._table = _TABLES[pictures]

    def __missing__(self, character: str) -> int:
        cells = self[character] = cell_len(self._table[ord(character)])
        return cells


_WIDTHS = {pictures: _Widths(pictures=pictures) for pictures in (True, False)}


def visible(data: bytes | str, *, pictures: bool = True) -> str:
    r"""Printable text for ``data``: never raises, holds no control character, loses no character.

    Invalid UTF-8 is shown as ``\xff`` escapes. A combining mark stays where it attaches to a letter and is escaped
    elsewhere. ``pictures`` chooses ``␛`` or ``\x1b`` for controls.
    """
    text = data.decode("utf-8", "backslashreplace") if isinstance(data, bytes) else data
    if text.isascii() and text.isprintable():
        return text
    if any(is_mark(c) for c in set(text)):
        return "".join(_shown(text, pictures))
    return text.translate(_TABLES[pictures])


def widths(text: str, *, pictures: bool = True) -> Sequence[int]:
    """Terminal cells each character of a text takes once it is visible.

    ``text`` is decoded with ``surrogateescape``: what stands for a byte that is no UTF-8 is as wide as its escape.
    """
    table = _WIDTHS[pictures]
    if any(is_mark(c) for c in set(text)):
        return [
            _WIDTH_OF_BYTE if c in _LONE_BYTES else cell_len(s)
            for c, s in zip(text, _shown(text, pictures), strict=True)
        ]
    return list(map(table.__getitem__, text))


@lru_cache(maxsize=65_536)
def is_mark(character: str) -> bool:
    """Whether a character attaches to the letter before it."""
    return unicodedata.category(character) in _MARK_CATEGORIES and not _is_selector(ord(character))


def escape(code: int) -> str:
    r"""A code point written out: ``\u{202e}``."""
    return f"\\u{{{code:x}}}"


def _shown(text: str, pictures: bool) -> list[str]:
    """What each character is shown as; a combining mark is kept only behind a letter or an attached mark."""
    table, attached, shown = _TABLES[pictures], False, []
    for character in text:
        if is_mark(character):
            shown.append(character if attached else escape(ord(character)))
            continue
        piece = table[ord(character)]
        attached = piece == character and character.isalpha()
        shown.append(piece)
    return shown


def _is_selector(code: int) -> bool:
    return any(code in r for r in _VARIATION_SELECTORS)
