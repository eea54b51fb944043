"""Tokens of a request's messages, summed up from where the request before it left off."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from ctxscope.analysis.images import image_tokens
from ctxscope.analysis.prompts import messages_in, shared
from ctxscope.analysis.tokenizers import factor
from ctxscope.model import ApiName, Body, Segment, TokenParts

VISIBLE = ("system", "tools", "text", "tool_calls", "tool_results", "thinking", "sidecar")
"""The parts whose sum is the visible text."""
_PARTS = (*VISIBLE, "envelope")
_DIGEST = attrgetter("digest")
_REMEMBERED = 4
"""Requests whose sums are kept to go on from: subagents and side calls interleave."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted of one segment, in tokens of the vocabulary it was counted with."""

    parts: Mapping[str, int]
    """By part, those that are 0 left out."""
    thinking: bytes
    """Hash of the thinking text, to see it repeated in one message; empty without any."""
    text: bytes
    """Hash of the plain text, to see that it is a sidecar's; empty without any."""
    images: tuple[tuple[tuple[int, int] | None, str], ...]
    """Size of each image, where its header could be read, and the detail asked for."""
    documents: tuple[int | None, ...]
    """Pages of each document, ``None`` for a file of which nothing can be counted."""
    envelope_bytes: int
    """Of the opaque strings, in UTF-8."""


@dataclass(frozen=True, slots=True)
class Summed:
    """What a request comes to."""

    parts: TokenParts
    """``documents`` is ``None`` where there are any."""
    envelope_bytes: int
    pages: int | None
    """Of all documents; ``None`` when one of them is unknown."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A request whose bytes are asked for only where something in it was not counted yet."""

    api: ApiName | None
    model: str | None
    segments: tuple[Segment, ...]
    load: Callable[[], Body]


Count = Callable[[Body | Unread, Segment], Counted]
Recall = Callable[[Body | Unread, Sequence[Segment]], None]
Sum = tuple[int, ...]
"""Tokens by ``_PARTS``, bytes of envelopes, tokens of images and how many segments hold an unknown one, pages of documents
and how many documents are unknown."""
_NOTHING: Sum = (0,) * (len(_PARTS) + 5)


_Rules = tuple[ApiName | None, str | None]
"""API and model: they decide what a text and an image come to."""


@dataclass(eq=False, slots=True)
class _Run:
    """The messages of one request, summed up; it grows with a request that goes on from it."""

    rules: _Rules
    segments: Sequence[Segment]
    """Of the messages."""
    ends: list[int]
    """For each message, the segments up to and including it."""
    sums: list[Sum]
    """Likewise, the tokens."""
    texts: list[tuple[bytes, int]]
    """Hash and tokens of the plain text of each segment."""

    def alike(self, segments: Sequence[Segment]) -> int:
        """How many leading segments are those of another request: mostly the same objects, else by content."""
        same, end = shared(self.segments, segments), min(len(self.segments), len(segments))
        mine, theirs = (tuple(map(_DIGEST, s[same:end])) for s in (self.segments, segments))
        return same + shared(mine, theirs)

    def cut(self, messages: int) -> int:
        """Forget what comes behind the first so many messages; gives how many segments are left."""
        left = self.ends[messages - 1] if messages else 0
        del self.ends[messages:], self.sums[messages:], self.texts[left:]
        return left

    def first(self, messages: int) -> _Run:
        """The first so many messages alone."""
        left = self.ends[messages - 1] if messages else 0
        return _Run(self.rules, (), self.ends[:messages], self.sums[:messages], self.texts[:left])


class Sums:
    """Parts of requests; each request's messages are looked at from the first one that the request before has not."""

    def __init__(self, count: Count, recall: Recall) -> None:
        """``recall`` is told which segments are counted next, all at once."""
        self._count = count
        self._recall = recall
        self._runs: deque[_Run] = deque(maxlen=_REMEMBERED)
        self._heads: deque[tuple[_Rules, tuple[bytes, ...], Sum]] = deque(maxlen=_REMEMBERED)
        """What stands around the messages: API and model, digests, tokens."""

    def summed(self, body: Body | Unread, sidecars: Iterable[bytes] = ()) -> Summed:
        """What a body comes to; ``sidecars`` are hashes of texts sent instead of what the log shows."""
        first, end = messages_in(body.segments) or (0, 0)
        total = self._head(body, [s for s in (*body.segments[:first], *body.segments[end:]) if s.kind != "param"])
        run, messages = self._run(body, body.segments[first:end])
        total = _added(total, run.sums[messages - 1] if messages else _NOTHING)
        named = dict(zip(_PARTS, total, strict=False))
        left = Counter(sidecars)
        if left:
            held = Counter(run.texts[: run.ends[messages - 1] if messages else 0])
            instead = sum(tokens * min(left[text], n) for (text, tokens), n in held.items() if left[text])
            named["text"] -= instead
            named["sidecar"] += instead
        opaque, images, unsized, pages, unread = total[len(_PARTS) :]
        parts = TokenParts(**named, images=None if unsized else images, documents=None if pages or unread else 0)
        return Summed(parts, opaque, None if unread else pages)

    def _head(self, body: Body | Unread, segments: Sequence[Segment]) -> Sum:
        rules, digests = (body.api, body.model), tuple(map(_DIGEST, segments))
        for known, theirs, total in self._heads:
            if (known, theirs) == (rules, digests):
                return total
        self._recall(body, segments)
        total = _NOTHING
        for _, group in groupby(segments, key=_owner):
            total = _added(total, self._message(body, list(group)))
        self._heads.append((rules, digests, total))
        return total

    def _run(self, body: Body | Unread, messages: Sequence[Segment]) -> tuple[_Run, int]:
        """A run that begins with the messages of a request, and how many messages they are."""
        rules = (body.api, body.model)
        known, depth = None, 0
        for run in reversed(self._runs):
            if run.rules == rules and (alike := run.alike(messages)) > depth:
                known, depth = run, alike
            if 2 * depth >= len(messages):
                break
        whole = bisect_right(known.ends, depth) if known else 0
        if known is None:
            known = _Run(rules, (), [], [], [])
        else:
            self._runs.remove(known)
            self._runs.append(known)
            if whole and depth == len(messages) == known.ends[whole - 1]:
                return known, whole
            whole = max(0, whole - 1)  # the last message both have may go on in one of them
            known = known if depth == len(known.segments) else known.first(whole)
        known.segments = messages
        self._extend(known, body, messages[known.cut(whole) :])
        if known not in self._runs:
            self._runs.append(known)
        return known, len(known.ends)

    def _extend(self, run: _Run, body: Body | Unread, fresh: Sequence[Segment]) -> None:
        self._recall(body, fresh)
        end, total = len(run.texts), run.sums[-1] if run.sums else _NOTHING
        for _, group in groupby(fresh, key=_owner):
            message = list(group)
            end, total = end + len(message), _added(total, self._message(body, message))
            run.ends.append(end)
            run.sums.append(total)
            counted = [self._count(body, s) for s in message]
            run.texts.extend((c.text, scaled(c.parts.get("text", 0), body.model)) for c in counted)

    def _message(self, body: Body | Unread, segments: Sequence[Segment]) -> Sum:
        """One message, tool or piece of the head; thinking that it repeats is taken once."""
        totals = dict.fromkeys(_PARTS, 0)
        opaque = images = unsized = pages = unread = 0
        seen: set[bytes] = set()
        for segment in segments:
            found = self._count(body, segment)
            for name, count in found.parts.items():
                if name != "thinking" or found.thinking not in seen:
                    totals[name] += count if name == "envelope" else scaled(count, body.model)
            seen.add(found.thinking)
            tokens = image_sum(found, body.api, body.model)
            images, unsized = images + (tokens or 0), unsized + (tokens is None)
            opaque += found.envelope_bytes
            pages, unread = pages + sum(n or 0 for n in found.documents), unread + found.documents.count(None)
        return (*totals.values(), opaque, images, unsized, pages, unread)


def image_sum(counted: Counted, api: ApiName | None, model: str | None) -> int | None:
    """Tokens of the images in a segment; ``None`` with one whose size or formula is unknown."""
    told = [image_tokens(size, api, model, detail) if size else None for size, detail in counted.images]
    known = [tokens for tokens in told if tokens is not None]
    return sum(known) if len(known) == len(told) else None


def scaled(count: int, model: str | None) -> int:
    """Tokens of a model for so many of the vocabulary it is counted with."""
    times = factor(model)
    return count if times == 1 else round(count * times)


def _added(one: Sum, other: Sum) -> Sum:
    return tuple(map(int.__add__, one, other))


def _owner(segment: Segment) -> str:
    """The tool, system text or message a segment belongs to: the first two steps of its path."""
    return "/".join(segment.path.split("/")[:3])
