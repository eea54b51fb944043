"""Log text made harmless: for a terminal that prints it, and for a Markdown reader that renders it.

Text of a log is hostile (DESIGN law 8): it may carry escape sequences, bidirectional overrides, tables, links, fences.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import groupby

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_VARIATION_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_MARKDOWN = re.compile(r"[\\`*\[\]<>|~]|(?<![^\W_])_|_(?![^\W_])")
_ALIVE = re.compile(
    r"[#@$]|&[#\w]|://|\bwww\.|\b(?:mailto|xmpp):|[!%^~]\w|:[\w+-]+:|\w\.[^\W\d_]{2}|\b(?:gh|ghsa|cve)-\w"
    r"|\b(?=[0-9a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64}\b",
    re.IGNORECASE,
)
"""What hosts of Markdown bring to life in a word after it was rendered, where no backslash helps: addresses, names of
hosts, mentions, references to issues and commits, formulas, emoji, entities. Inside a code span all of it stays text."""
_BLOCK_START = re.compile(r"\A(?:(?=[-+=](?:[-+= ]|\Z))|(?P<number>[0-9]{1,9})(?=[.)](?: |\Z)))")
"""Where words would begin a list, a rule or a heading's underline."""
_LAST_BYTE = 0xFF


@lru_cache(maxsize=4096)
def _spell(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN and not _VARIATION_SELECTORS.match(character):
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code <= _LAST_BYTE else f"\\u{{{code:x}}}"


def visible(text: str) -> str:
    r"""One line in which every character is seen: controls, format characters and lone surrogates become escapes.

    ``\n``, ``\r`` and ``\t`` by name, others below U+0100 as ``\x1b``, the rest as ``\u{202e}``.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_NAMED.get(c) or _spell(c) for c in text)


def visible_lines(text: str) -> str:
    """Like ``visible``, but line feeds stay line feeds."""
    return "\n".join(visible(line) for line in text.split("\n"))


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def fenced(text: str, info: str = "") -> str:
    """A Markdown code block that no run of backticks inside can close."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"{ticks}{info}\n{visible_lines(text)}\n{ticks}"


def code(text: str) -> str:
    """A Markdown code span that no backtick inside can close; ``–`` for an empty text."""
    shown = visible(text)
    if not shown.strip():
        return f"` {shown} `" if shown else "–"
    ticks = "`" * (_longest_run(shown) + 1)
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def code_cell(text: str) -> str:
    """Code spans for a table cell, a ``|`` between them: inside of one, hosts read a backslash before it differently."""
    return r"\|".join(code(part) if part else "" for part in text.split("|")) if text else code(text)


def prose(text: str) -> str:
    """Words inside a Markdown paragraph, heading, list item or cell: nothing in them is markup, a link or a mention.

    What would come to life on some host stands as code.
    """
    words = r"\|".join(_tamed(part) for part in visible(text).strip(" ").split("|"))
    return _BLOCK_START.sub(lambda m: f"{m['number'] or ''}\\", words)


def _tamed(text: str) -> str:
    """Text without ``|``; neighbouring words that are alive share a code span."""
    runs = groupby(text.split(" "), key=lambda word: bool(_ALIVE.search(word)))
    spelled = ((alive, " ".join(words)) for alive, words in runs)
    return " ".join(code(run) if alive else _MARKDOWN.sub(r"\\\g<0>", run) for alive, run in spelled)


def number(value: int | None, *, estimated: bool = False) -> str:
    """A count with thousands apart: ``≈1,200`` when estimated, ``–`` when unknown."""
    return "–" if value is None else f"{'≈' if estimated else ''}{value:,}"
