"""Tokens of a request by what they are. Each distinct segment is counted once, however often it is sent again.

One encoding, o200k_base, stands for all models: exact for most of OpenAI's, an estimate elsewhere, for Claude by a factor
(prompt_caching §11). Without a vocabulary counts are bytes / 3.9.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from math import ceil

from ctxscope.analysis import vocabulary
from ctxscope.analysis.images import image_size
from ctxscope.analysis.token_sums import VISIBLE, Counted, Sums, scaled
from ctxscope.analysis.tokenizers import is_exact
from ctxscope.analysis.visible_text import VisibleText, visible_text
from ctxscope.model import Body, Segment, TokenLedger, TokenParts, Usage

_PIECE = 65_536
"""Characters encoded at once: tiktoken panics on a run of about a million spaces (measured, engineering §1.4)."""
_BYTES_PER_TOKEN = 3.9


class Counter:
    """Counts text and segments; loads the vocabulary at the first count and remembers segments by content.

    Not for use by two threads at once.
    """

    def __init__(self) -> None:
        self._encode: Callable[[str], Sequence[int]] | None = None
        self._loaded = False
        self._segments: dict[bytes, Counted] = {}
        self._sums = Sums(self._counted)

    @property
    def estimated(self) -> bool:
        """True when no vocabulary was found: every count is a share of the bytes."""
        self._load()
        return self._encode is None

    def _load(self) -> None:
        if not self._loaded:
            found = vocabulary.encoding()
            self._encode = found.encode_ordinary if found else None
            self._loaded = True

    def count(self, text: str) -> int:
        """Tokens of a text. Never raises: a piece that the encoder refuses is estimated."""
        self._load()
        return sum(self._count_piece(p) for p in _pieces(text))

    def _count_piece(self, piece: str) -> int:
        if self._encode is None:
            return _estimate(piece)
        try:
            return len(self._encode(piece))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 - a panic in the encoder's Rust is no Exception
            return _estimate(piece)

    def count_segment(self, body: Body, segment: Segment) -> int:
        """Visible tokens of one segment; envelopes and images are no part of them."""
        parts = self._counted(body, segment).parts
        return sum(scaled(n, body.model) for name, n in parts.items() if name in VISIBLE)

    def segment_tokens(self, body: Body) -> dict[str, int]:
        """Visible tokens by segment path, for every segment of the prompt."""
        return {s.path: self.count_segment(body, s) for s in body.segments if s.kind not in ("param", "opaque")}

    def parts(self, body: Body, sidecars: Sequence[str] = ()) -> TokenParts | None:
        """Tokens of a request by part; ``None`` for a body that could not be read.

        ``sidecars``: texts sent instead of what the log shows; a message that is one of them is told as such.
        """
        if body.segments and body.segments[0].kind == "opaque":
            return None
        return self._sums.parts(body, map(_hash, sidecars))

    def _counted(self, body: Body, segment: Segment) -> Counted:
        content = segment.digest or hashlib.blake2b(body.data[segment.start : segment.end], digest_size=16).digest()
        key = f"{segment.kind}:{segment.block}:".encode() + content
        found = self._segments.get(key)
        if found is None:
            found = self._segments[key] = self._count_texts(visible_text(body, segment))
        return found

    def _count_texts(self, text: VisibleText) -> Counted:
        totals: dict[str, int] = {}
        for part, words in text.texts:
            totals[part] = totals.get(part, 0) + self.count(words)
        thinking, plain = ("".join(w for part, w in text.texts if part == name) for name in ("thinking", "text"))
        return Counted(
            parts=totals,
            thinking=_hash(thinking) if thinking else b"",
            text=_hash(plain) if plain else b"",
            images=tuple((image_size(i.data), i.detail) for i in text.images),
            files=text.files,
        )


def ledger(
    counter: Counter,
    served: Body | None,
    rebuilt: Body | None = None,
    *,
    usage: Usage | None = None,
    naive: int | None = None,
    agent: int | None = None,
    sidecars: Sequence[str] = (),
) -> TokenLedger:
    """All that is known of a request's tokens; the parts are those of the served body, else of the rebuilt one."""
    mine = counter.parts(served, sidecars) if served else None
    theirs = mine if rebuilt is served else counter.parts(rebuilt, sidecars) if rebuilt else None
    shown = served or rebuilt
    return TokenLedger(
        reported=usage.reported if usage else None,
        visible=visible(mine),
        rebuilt=visible(theirs),
        naive=naive,
        agent=agent,
        parts=mine if served else theirs,
        estimated=counter.estimated or not is_exact(shown.model if shown else None),
    )


def visible(parts: TokenParts | None) -> int | None:
    """Visible tokens of a request; ``None`` when its parts are unknown."""
    return None if parts is None else sum(getattr(parts, name) for name in VISIBLE)


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


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
