"""What a model is given by a request: its segments in cache order, made from those of a request before it.

Made without a body's bytes, which are asked for only where segments alone do not tell: a long session sends far more
than fits into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from ctxscope.model import ApiName, Body, Segment

_ORDER = attrgetter("order")
_DIGEST = attrgetter("digest")
_PROMPT_BYTES = attrgetter("prompt_bytes")
_HEAD = ("tool", "system")
_PARAM_BYTES = 64 * 1024
"""Longest parameter that is kept as spelled."""
_IMAGE, _CITATIONS = b'"image"', b'"citations"'


@dataclass(frozen=True, slots=True)
class Settings:
    """What is rendered of a request beside the text of its segments."""

    model: str | None = None
    params: Mapping[str, bytes] = field(default_factory=dict)
    """Values outside the prompt as spelled, by name."""
    image: int = -1
    """First segment of the body that shows an image, where its mere presence is rendered (Anthropic); -1: none does."""
    citations: int = -1
    """First segment of the body that asks for citations (likewise)."""


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """A request as its provider renders it. Places count segments in cache order, from 0."""

    api: ApiName | None
    settings: Settings
    listed: tuple[Segment, ...]
    """All segments in the order of the body, parameters too."""
    segments: tuple[Segment, ...]
    digests: tuple[bytes, ...]
    """Of ``segments``."""
    head: int
    """Segments before the first message."""
    marks: tuple[int, ...]
    """Places of the segments that carry a cache mark."""
    marked_whole: bool
    """The client marked the whole request."""
    first: int
    """Where in the body the messages begin that stand in a row behind ``head``; -1 when they do not."""
    common: int
    """Leading segments known to be those of the prompt it was made from."""
    load: Callable[[], Body]
    """Reads the body."""

    @property
    def readable(self) -> bool:
        """Whether its API is known and its body was understood."""
        return self.api is not None and not (self.listed and self.listed[0].kind == "opaque")

    def size(self, start: int = 0, stop: int | None = None) -> int:
        """Bytes of the prompt form of the segments from ``start`` to before ``stop``."""
        return sum(map(_PROMPT_BYTES, self.segments[start:stop]))

    def sent(self, place: int) -> bytes:
        """A segment as it was sent."""
        segment = self.segments[place]
        return self.load().data[segment.start : segment.end]

    def of_kind(self, kind: str) -> tuple[Segment, ...]:
        """Its segments of one kind."""
        if kind == "message" and self.first >= 0:
            return self.segments[self.head :]
        return tuple(s for s in self.segments[: self.head if self.first >= 0 else None] if s.kind == kind)


def prompt(body: Body) -> tuple[Segment, ...]:
    """The segments a model is given, in cache order."""
    return prompt_of(body).segments


def shared(first: Sequence[object], second: Sequence[object]) -> int:
    """How many leading items (digests, segments) two sequences have in common; compares slices, not items one by one."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def prompt_of(body: Body, before: Prompt | None = None) -> Prompt:
    """The prompt of a body at hand. ``before``: one that likely shares most of it; only what is new is looked at."""
    known = (before.listed, before.settings) if before else None
    return made(body.api, body.segments, settings_of(body, known), lambda: body, before)


# --- what stands beside the segments ---------------------------------------------------------------------------------


def settings_of(body: Body, before: tuple[tuple[Segment, ...], Settings] | None = None) -> Settings:
    """The settings of a body. ``before``: segments and settings of one it was likely cut with; only the rest is read."""
    listed, known = before or ((), Settings())
    segments = body.segments
    image = citations = -1
    if body.api == "anthropic-messages":
        probe = min(len(segments), len(listed)) // 2
        at = shared(segments, listed) if listed and segments and segments[probe] is listed[probe] else 0
        old_image, old_citations = (place if place < at else -1 for place in (known.image, known.citations))
        fresh = range(at, len(segments))
        image = old_image if old_image >= 0 else _first(fresh, lambda i: _shows_image(body, segments[i]))
        citations = old_citations if old_citations >= 0 else _first(fresh, lambda i: _cites(body, segments[i]))
    first, end = messages_in(segments) or (0, 0)
    params = {
        s.path[1:]: body.data[s.start : s.end] if s.end - s.start <= _PARAM_BYTES else s.digest
        for s in (*segments[:first], *segments[end:])
        if s.kind == "param"
    }
    found = Settings(body.model, params, image, citations)
    return known if found == known else found


def _first(places: Iterable[int], holds: Callable[[int], bool]) -> int:
    return next((i for i in places if holds(i)), -1)


def _shows_image(body: Body, segment: Segment) -> bool:
    if segment.kind != "message" or segment.block in ("text", "thinking", "tool_call"):
        return False
    return segment.block == "image" or body.data.find(_IMAGE, segment.start, segment.end) >= 0


def _cites(body: Body, segment: Segment) -> bool:
    """A document whose citations are switched on."""
    document = segment.kind == "message" and segment.block == "other"
    at = body.data.find(_CITATIONS, segment.start, segment.end) if document else -1
    return at >= 0 and b"true" in body.data[at : min(segment.end, at + 60)]


def messages_in(listed: Sequence[Segment]) -> tuple[int, int] | None:
    """Where the messages of a body begin and end; ``None`` when they do not stand in a row."""
    first, end = 0, len(listed)
    while first < end and listed[first].kind != "message":
        first += 1
    while end > first and listed[end - 1].kind != "message":
        end -= 1
    # places in cache order are consecutive: nothing else can stand between when they are as many as the segments
    if first < end and listed[end - 1].order[1] - listed[first].order[1] != end - 1 - first:
        return None
    return first, end


# --- in cache order --------------------------------------------------------------------------------------------------


def is_kin(listed: Sequence[Segment], before: Prompt) -> bool:
    """Whether a body was cut with the segments of another at hand, so that comparing them costs next to nothing."""
    at = before.first
    return 0 <= at < min(len(listed), len(before.listed)) and listed[at] is before.listed[at]


def made(
    api: ApiName | None,
    listed: tuple[Segment, ...],
    settings: Settings,
    load: Callable[[], Body],
    before: Prompt | None = None,
) -> Prompt:
    """A prompt from the segments of a body; see ``prompt_of``."""
    first, end = messages_in(listed) or (-1, -1)
    known = 0
    if before is not None and first == before.first and is_kin(listed, before):
        known = max(0, min(shared(listed, before.listed) - first, len(before.segments) - before.head))
    else:
        before = None
    rest, messages = listed[:first] + listed[end:], listed[first:end]
    head = tuple(sorted((s for s in rest if s.kind in _HEAD), key=_ORDER))
    if first < 0 or (head and messages and head[-1].order > messages[0].order):
        head = tuple(sorted((s for s in listed if s.kind in (*_HEAD, "message")), key=_ORDER))
        before, known, first, messages, rest = None, 0, -1, (), listed
    digests, marks = _joined(head, messages, before, known)
    whole = any(s.path == "/cache_control" for s in rest)
    size = 0 if first < 0 else len(head)
    common = 0
    if before is not None and digests[:size] == before.digests[: before.head]:
        common = size + known
    return Prompt(api, settings, listed, head + messages, digests, size, marks, whole, first, common, load)


def _joined(
    head: tuple[Segment, ...], messages: tuple[Segment, ...], before: Prompt | None, known: int
) -> tuple[tuple[bytes, ...], tuple[int, ...]]:
    """Digests and marked places of a prompt whose first ``known`` messages are those of ``before``."""
    digests = tuple(map(_DIGEST, head))
    marks = [i for i, s in enumerate(head) if s.breakpoint]
    if before is not None:
        old, stop = before.head, before.head + known
        digests += before.digests[old:stop]
        marks += [p - old + len(head) for p in before.marks if old <= p < stop]
    fresh = messages[known:]
    marks += [len(head) + known + i for i, s in enumerate(fresh) if s.breakpoint]
    return digests + tuple(map(_DIGEST, fresh)), tuple(marks)
