r"""JSON text spelled anew: what a log holds, as the client that sends it writes it.

Key order, number spelling and duplicate keys stay as logged; white space between tokens and the escapes of strings are
the client's. Forms met (wire_formats §2, and the standard encoders of Go and PHP): compact or ``", "``/``": "``; text raw,
ASCII-escaped, raw with ``<>&`` and U+2028/9 escaped, ASCII-escaped with ``\/``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from ctxscope.wire import json_text

Escapes = Literal["raw", "ascii", "html", "php"]
WORDS = {
    "raw": "text raw",
    "ascii": "text escaped to ASCII",
    "html": "text raw but for <, > and &",
    "php": "text and / escaped",
}

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[ \t\n\r]+|[,:]', re.DOTALL)
_SPACE = re.compile(rb'("(?:[^"\\]++|\\.)*+")|[ \t\n\r]+', re.DOTALL)
_HTML = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_OPENING = re.compile(rb'\{"(?:[^"\\]++|\\.)*+":( ?)(?=[^ \t\n\r])')
_UNEVEN = rb"(?<!\\)(?:\\\\)*+\\"
"""A backslash that is not itself escaped."""
_HIGH = re.compile(_UNEVEN + rb"u(?:00[89a-fA-F]|0[1-9a-fA-F]|[1-9a-fA-F])")
_MARKUP = re.compile(_UNEVEN + rb"u00(?:3c|3e|26)")
_SLASH = re.compile(_UNEVEN + rb"/")


@dataclass(frozen=True, slots=True)
class Spelling:
    """One client's way to write JSON."""

    spaced: bool = False
    escapes: Escapes = "raw"

    @property
    def comma(self) -> bytes:
        """What stands between two items."""
        return b", " if self.spaced else b","

    @property
    def colon(self) -> bytes:
        """What stands between a key and its value."""
        return b": " if self.spaced else b":"

    @property
    def words(self) -> str:
        """The form, for a person."""
        return f"JSON is written {'with spaces' if self.spaced else 'compact'}, {WORDS[self.escapes]}"

    def string(self, text: str) -> str:
        """A string as this client writes it."""
        if self.escapes in ("ascii", "php"):
            quoted = json.dumps(text)
            return quoted.replace("/", "\\/") if self.escapes == "php" else quoted
        quoted = json_text.js_string(text)
        return quoted.translate(_HTML) if self.escapes == "html" else quoted

    def value(self, value: Any) -> bytes:
        """A parsed value as this client writes it; numbers as Python has them."""
        return self.text(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))

    def text(self, data: bytes) -> bytes:
        """JSON text in this client's spelling; what is not JSON keeps its bytes as far as they can be kept."""
        return _respelled(data, self)


RAW = Spelling()


@lru_cache(maxsize=4096)
def _respelled(data: bytes, spelling: Spelling) -> bytes:
    if not spelling.spaced and spelling.escapes == "raw" and b"\\u" not in data and b"\\/" not in data:
        return _SPACE.sub(rb"\1", data)
    comma, colon = spelling.comma.decode(), spelling.colon.decode()

    def token(found: re.Match[str]) -> str:
        text = found[0]
        if text[0] != '"':
            return comma if text == "," else colon if text == ":" else ""
        try:
            return spelling.string(json.loads(text, strict=False))
        except ValueError:
            return text

    return _TOKEN.sub(token, data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def spaces_shown(data: bytes) -> bool | None:
    """Whether a body is written with spaces; ``None`` for white space of another kind (indented)."""
    opening = _OPENING.match(data)
    return None if opening is None else opening[1] == b" "


def escapes_shown(data: bytes) -> Escapes | None:
    """How a body escapes text; ``None`` where it holds nothing that tells."""
    if not data.isascii():
        return "html" if b"\\u00" in data and _MARKUP.search(data) else "raw"
    if b"\\u" not in data and b"\\/" not in data:
        return None
    if _SLASH.search(data):
        return "php"
    if _HIGH.search(data):
        return "ascii"
    if _MARKUP.search(data):
        return "html"
    return None


def ordered(data: bytes) -> bytes:
    """JSON text with the keys of every object sorted, for comparing where their order is not known; else as ``RAW``."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return RAW.text(data)
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
