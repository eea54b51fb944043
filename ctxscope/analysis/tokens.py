"""Tokens of a request by what they are. Each distinct segment is counted once, however often it is sent again.

A model is counted with its own vocabulary where that is public or the user names it; else with o200k_base, which is an
estimate, for Claude by a factor (prompt_caching §11). Without a vocabulary counts are bytes / 3.9.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ctxscope.analysis.encoders import Encoders
from ctxscope.analysis.images import image_size
from ctxscope.analysis.kept_counts import Kept, name_of, packed, unpacked
from ctxscope.analysis.overhead import Param, with_rules
from ctxscope.analysis.own_tokenizer import OwnTokenizer
from ctxscope.analysis.providers.rules import Rules
from ctxscope.analysis.token_sums import VISIBLE, Counted, Summed, Sums, Unread, image_sum, scaled
from ctxscope.analysis.visible_text import VisibleText, visible_text
from ctxscope.model import ApiName, Body, ContentSize, Segment, TokenLedger, TokenParts, Usage

_FRESH = 1000
"""Counts that are kept at once."""


class Counter:
    """Counts text and segments; loads a vocabulary at the first count and remembers segments by content.

    ``own``: a vocabulary of the user's. ``kept``: where counts outlast this launch. Not for use by two threads at once.
    """

    def __init__(self, own: OwnTokenizer | None = None, kept: Kept | None = None) -> None:
        self._encoders = Encoders(own)
        self._kept = kept
        self._fresh: dict[bytes, bytes] = {}
        """Counted since the last ones were kept."""
        self._segments: dict[bytes, Counted] = {}
        self._sums = Sums(self._counted, self._recall)

    def is_estimate(self, model: str | None) -> bool:
        """True when a model's counts are by another vocabulary than its own, or by bytes since none was found."""
        return not self._encoders.is_exact(model)

    @property
    def lacks_vocabulary(self) -> bool:
        """Whether something was counted by its bytes, since its vocabulary is not on this machine."""
        return self._encoders.lacks_any

    def vocabulary(self, model: str | None) -> str:
        """Which vocabulary counts for a model; one of the user's is named by what it holds."""
        return self._encoders.name(model)

    def count(self, text: str, model: str | None = None) -> int:
        """Tokens of a text, by the vocabulary of a model. Never raises."""
        return self._encoders.count(text, self._encoders.name(model))

    def count_segment(self, body: Body | Unread, segment: Segment) -> int:
        """Visible tokens of one segment; envelopes and images are no part of them."""
        parts = self._counted(body, segment).parts
        return sum(scaled(n, body.model) for name, n in parts.items() if name in VISIBLE)

    def segment_tokens(self, body: Body) -> dict[str, int]:
        """Visible tokens by segment path, for every segment of the prompt."""
        prompt = [s for s in body.segments if s.kind not in ("param", "opaque")]
        self._recall(body, prompt)
        return {s.path: self.count_segment(body, s) for s in prompt}

    def segment_images(self, body: Body) -> dict[str, int | None]:
        """Tokens of images by path, for segments with images or documents; ``None`` for what cannot be told of a segment."""
        return {
            s.path: None if found.documents else image_sum(found, body.api, body.model)
            for s in body.segments
            if s.kind not in ("param", "opaque") and ((found := self._counted(body, s)).images or found.documents)
        }

    def segment_envelopes(self, body: Body) -> dict[str, int]:
        """Bytes of opaque reasoning by segment path, for segments that hold any."""
        told = {s.path: self._counted(body, s).envelope_bytes for s in body.segments if s.kind == "message"}
        return {path: count for path, count in told.items() if count}

    def parts(self, body: Body | Unread, sidecars: Sequence[str] = ()) -> TokenParts | None:
        """Tokens of a request by part; see ``summed``."""
        found = self.summed(body, sidecars)
        return found.parts if found else None

    def summed(self, body: Body | Unread, sidecars: Sequence[str] = ()) -> Summed | None:
        """What a request comes to; ``None`` for a body that could not be read, or not be taken apart: it has no segments.

        ``sidecars``: texts sent instead of what the log shows; a message that is one of them is told as such.
        """
        if not body.segments or body.segments[0].kind == "opaque":
            return None
        return self._sums.summed(body, map(_hash, sidecars))

    def size(self, content: VisibleText, model: str | None, api: ApiName | None) -> ContentSize:
        """What a content comes to that stands in no request yet; its text is counted once, however often it is asked for."""
        text = content.text
        counted = replace(self._text(text, model), images=_sizes(content), documents=tuple(content.documents))
        return ContentSize(
            characters=len(text),
            bytes=len(text.encode("utf-8", "surrogatepass")),
            tokens=scaled(counted.parts.get("text", 0), model),
            images=None if counted.documents else image_sum(counted, api, model),
        )

    def keep(self) -> None:
        """Keep what was counted since, for the next launch."""
        if self._kept is not None and self._fresh:
            self._kept.keep(self._fresh)
            self._fresh = {}

    def _recall(self, body: Body | Unread, segments: Iterable[Segment]) -> None:
        """Take what earlier launches counted of segments that are new to this one."""
        self._remember(self._key(body, s) for s in segments)

    def _remember(self, keys: Iterable[bytes]) -> None:
        if self._kept is None:
            return
        new = (key for key in keys if key not in self._segments)
        names = {name: key for key in new if (name := name_of(key)) is not None}
        for name, value in self._kept.load(list(names)).items() if names else ():
            counted = unpacked(value)
            if counted is not None:
                self._segments[names[name]] = counted

    def _key(self, body: Body | Unread, segment: Segment) -> bytes:
        """What a segment's count is a function of."""
        content = segment.digest or _hash_of(_read(body).data[segment.start : segment.end])
        return f"{self._encoders.name(body.model)}:{segment.kind}:{segment.block}:".encode() + content

    def _counted(self, body: Body | Unread, segment: Segment) -> Counted:
        key = self._key(body, segment)
        found = self._segments.get(key)
        if found is None:
            found = self._segments[key] = self._count_texts(visible_text(_read(body), segment), body.model)
            self._note(key, found, body.model)
        return found

    def _text(self, text: str, model: str | None) -> Counted:
        key = f"{self._encoders.name(model)}:content::".encode() + _hash(text)
        self._remember((key,))
        found = self._segments.get(key)
        if found is None:
            found = self._segments[key] = self._count_texts(VisibleText([("text", text)]), model)
            self._note(key, found, model)
        return found

    def _note(self, key: bytes, counted: Counted, model: str | None) -> None:
        """Have a count kept, unless it is one by bytes."""
        if self._kept is None or self._encoders.is_missing(self._encoders.name(model)):
            return
        name, value = name_of(key), packed(counted)
        if name is not None and value is not None:
            self._fresh[name] = value
            if len(self._fresh) >= _FRESH:
                self.keep()

    def _count_texts(self, text: VisibleText, model: str | None) -> Counted:
        totals: dict[str, int] = {}
        for part, words in text.texts:
            totals[part] = totals.get(part, 0) + self.count(words, model)
        thinking, plain = ("".join(w for part, w in text.texts if part == name) for name in ("thinking", "text"))
        return Counted(
            parts=totals,
            thinking=_hash(thinking) if thinking else b"",
            text=_hash(plain) if plain else b"",
            images=_sizes(text),
            documents=tuple(text.documents),
            envelope_bytes=sum(len(_utf8(words)) for part, words in text.texts if part == "envelope"),
        )


def ledger(
    counter: Counter,
    served: Body | Unread | None,
    rebuilt: Body | Unread | None = None,
    *,
    rules: Rules | None = None,
    param: Param = lambda _: {},
    usage: Usage | None = None,
    naive: int | None = None,
    agent: int | None = None,
    sidecars: Sequence[str] = (),
) -> TokenLedger:
    """All that is known of a request's tokens; the parts are those of the served body, else of the rebuilt one.

    ``rules`` of the provider that was asked say what it adds, as far as a ``param`` of the request decides it.
    """
    mine = counter.summed(served, sidecars) if served else None
    theirs = mine if rebuilt is served else counter.summed(rebuilt, sidecars) if rebuilt else None
    shown, found = (served, mine) if served else (rebuilt, theirs)
    parts, added_for, added_from = found.parts if found else None, "", ""
    if found and shown and rules:
        parts, added_for, added_from = with_rules(found, shown.segments, rules, param)
    return TokenLedger(
        reported=usage.reported if usage else None,
        visible=visible(mine.parts if mine else None),
        rebuilt=visible(theirs.parts if theirs else None),
        naive=naive,
        agent=agent,
        parts=parts,
        estimated=counter.is_estimate(shown.model if shown else None),
        envelope_bytes=found.envelope_bytes if found else None,
        overhead_for=added_for,
        overhead_from=added_from,
    )


def visible(parts: TokenParts | None) -> int | None:
    """Visible tokens of a request; ``None`` when its parts are unknown."""
    return None if parts is None else sum(getattr(parts, name) for name in VISIBLE)


def _sizes(text: VisibleText) -> tuple[tuple[tuple[int, int] | None, str], ...]:
    return tuple((image_size(i.data), i.detail) for i in text.images)


def _read(body: Body | Unread) -> Body:
    return body.load() if isinstance(body, Unread) else body


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _hash(text: str) -> bytes:
    return _hash_of(_utf8(text))


def _hash_of(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
