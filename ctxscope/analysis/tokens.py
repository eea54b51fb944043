"""Tokens of a request by what they are. Each distinct segment is counted once, however often it is sent again.

One encoding, o200k_base, stands for all models: exact for OpenAI's, an approximation elsewhere. Without a vocabulary
counts are bytes / 3.9 and marked as estimated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from math import ceil

from ctxscope.analysis import vocabulary
from ctxscope.analysis.images import image_size, image_tokens
from ctxscope.analysis.visible_text import VisibleText, visible_text
from ctxscope.model import Body, Segment, TokenLedger, TokenParts, Usage

_PIECE = 65_536
"""Characters encoded at once: tiktoken panics on a run of about a million spaces (measured, engineering §1.4)."""
_BYTES_PER_TOKEN = 3.9
VISIBLE = ("system", "tools", "text", "tool_calls", "tool_results", "thinking")
"""The parts whose sum is the visible text."""


@dataclass(frozen=True, slots=True)
class _Counted:
    parts: TokenParts
    thinking: bytes
    """Hash of the thinking text, to see it repeated in one message; empty without any."""
    images: tuple[tuple[int, int], ...]
    """Sizes of the images whose header could be read."""

    @property
    def visible(self) -> int:
        return sum(getattr(self.parts, name) for name in VISIBLE)


class Counter:
    """Counts text and segments; loads the vocabulary at the first count and remembers segments by content.

    Not for use by two threads at once.
    """

    def __init__(self) -> None:
        self._encode: Callable[[str], Sequence[int]] | None = None
        self._loaded = False
        self._segments: dict[bytes, _Counted] = {}

    @property
    def estimated(self) -> bool:
        """True when no vocabulary was found."""
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
        return self._counted(body, segment).visible

    def segment_tokens(self, body: Body) -> dict[str, int]:
        """Visible tokens by segment path, for every segment of the prompt."""
        return {s.path: self.count_segment(body, s) for s in body.segments if s.kind not in ("param", "opaque")}

    def parts(self, body: Body) -> TokenParts | None:
        """Tokens of a request by part; ``None`` for a body that could not be read. ``sidecar`` is left to the caller."""
        if any(s.kind == "opaque" for s in body.segments):
            return None
        totals = dict.fromkeys((f.name for f in fields(TokenParts)), 0)
        prompt = (s for s in body.segments if s.kind != "param")
        for _, group in groupby(prompt, key=_owner):
            seen: set[bytes] = set()
            for segment in group:
                found = self._counted(body, segment)
                for name in (*VISIBLE, "envelope"):
                    if name != "thinking" or found.thinking not in seen:
                        totals[name] += getattr(found.parts, name)
                if found.thinking:
                    seen.add(found.thinking)
                totals["images"] += sum(image_tokens(i, body.api, body.model) or 0 for i in found.images)
        return TokenParts(**totals)

    def _counted(self, body: Body, segment: Segment) -> _Counted:
        content = segment.digest or hashlib.blake2b(body.data[segment.start : segment.end], digest_size=16).digest()
        key = f"{segment.kind}:{segment.block}:".encode() + content
        found = self._segments.get(key)
        if found is None:
            found = self._segments[key] = self._count_texts(visible_text(body, segment))
        return found

    def _count_texts(self, text: VisibleText) -> _Counted:
        totals = dict.fromkeys((f.name for f in fields(TokenParts)), 0)
        for part, words in text.texts:
            totals[part] += self.count(words)
        thinking = "".join(words for part, words in text.texts if part == "thinking")
        sizes = (image_size(i) for i in text.images)
        return _Counted(TokenParts(**totals), _hash(thinking) if thinking else b"", tuple(s for s in sizes if s))


def ledger(
    counter: Counter,
    served: Body | None,
    rebuilt: Body | None = None,
    *,
    usage: Usage | None = None,
    naive: int | None = None,
    agent: int | None = None,
    sidecar: int = 0,
) -> TokenLedger:
    """All that is known of a request's tokens; the parts are those of the served body, else of the rebuilt one."""
    mine = counter.parts(served) if served else None
    theirs = counter.parts(rebuilt) if rebuilt else None
    parts = mine if served else theirs
    if parts and sidecar:
        parts = TokenParts(**{f.name: getattr(parts, f.name) for f in fields(parts)} | {"sidecar": sidecar})
    return TokenLedger(
        reported=usage.reported if usage else None,
        visible=visible(mine),
        rebuilt=visible(theirs),
        naive=naive,
        agent=agent,
        parts=parts,
        estimated=counter.estimated,
    )


def visible(parts: TokenParts | None) -> int | None:
    """Visible tokens of a request; ``None`` when its parts are unknown."""
    return None if parts is None else sum(getattr(parts, name) for name in VISIBLE)


def _owner(segment: Segment) -> str:
    """The tool, system text or message a segment belongs to: the first two steps of its path."""
    return "/".join(segment.path.split("/")[:3])


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
