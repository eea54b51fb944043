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
    files: int
    """Documents and the like, of which nothing can be counted."""


Count = Callable[[Body, Segment], Counted]
Recall = Callable[[Body, Sequence[Segment]], None]
Sum = tuple[int, ...]
"""Tokens by ``_PARTS``, then of images, then how many images and files are unknown."""
_NOTHING: Sum = (0,) * (len(_PARTS) + 2)


_Rules = tuple[ApiName | None, str | None]
"""API and model: they decide what a text and an image come to."""


@dataclass(frozen=True, slots=True)
class _Run:
    """The messages of one request, summed up."""

    rules: _Rules
    digests: tuple[bytes, ...]
    """Of the messages' segments."""
    ends: list[int]
    """For each message, the segments up to and including it."""
    sums: list[Sum]
    """Likewise, the tokens."""
    texts: list[tuple[bytes, int]]
    """Hash and tokens of the plain text of each segment."""


class Sums:
    """Parts of requests; each request's messages are looked at from the first one that the request before has not."""

    def __init__(self, count: Count, recall: Recall) -> None:
        """``recall`` is told which segments are counted next, all at once."""
        self._count = count
        self._recall = recall
        self._runs: deque[_Run] = deque(maxlen=_REMEMBERED)
        self._heads: deque[tuple[_Rules, tuple[bytes, ...], Sum]] = deque(maxlen=_REMEMBERED)
        """What stands around the messages: API and model, digests, tokens."""

    def parts(self, body: Body, sidecars: Iterable[bytes] = ()) -> TokenParts:
        """The parts of a body; ``sidecars`` are hashes of texts sent instead of what the log shows."""
        first, end = messages_in(body.segments) or (0, 0)
        total = self._head(body, [s for s in (*body.segments[:first], *body.segments[end:]) if s.kind != "param"])
        run = self._run(body, body.segments[first:end])
        total = _added(total, run.sums[-1] if run.sums else _NOTHING)
        named = dict(zip(_PARTS, total, strict=False))
        left = Counter(sidecars)
        if left:
            held = Counter(run.texts)
            instead = sum(tokens * min(left[text], n) for (text, tokens), n in held.items() if left[text])
            named["text"] -= instead
            named["sidecar"] += instead
        return TokenParts(**named, images=None if total[-1] else total[-2])

    def _head(self, body: Body, segments: Sequence[Segment]) -> Sum:
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

    def _run(self, body: Body, messages: Sequence[Segment]) -> _Run:
        rules, digests = (body.api, body.model), tuple(map(_DIGEST, messages))
        known, depth = None, 0
        for run in reversed(self._runs):
            if run.rules == rules and (alike := shared(run.digests, digests)) > depth:
                known, depth = run, alike
            if 2 * depth >= len(digests):
                break
        # the last message both have may go on in one of them
        whole = max(0, bisect_right(known.ends, depth) - 1) if known else 0
        start = known.ends[whole - 1] if known and whole else 0
        found = _Run(
            rules,
            digests,
            known.ends[:whole] if known else [],
            known.sums[:whole] if known else [],
            known.texts[:start] if known else [],
        )
        self._extend(found, body, messages[start:])
        self._runs.append(found)
        return found

    def _extend(self, run: _Run, body: Body, fresh: Sequence[Segment]) -> None:
        self._recall(body, fresh)
        end, total = len(run.texts), run.sums[-1] if run.sums else _NOTHING
        for _, group in groupby(fresh, key=_owner):
            message = list(group)
            end, total = end + len(message), _added(total, self._message(body, message))
            run.ends.append(end)
            run.sums.append(total)
            counted = [self._count(body, s) for s in message]
            run.texts.extend((c.text, scaled(c.parts.get("text", 0), body.model)) for c in counted)

    def _message(self, body: Body, segments: Sequence[Segment]) -> Sum:
        """One message, tool or piece of the head; thinking that it repeats is taken once."""
        totals, images, unknown = dict.fromkeys(_PARTS, 0), 0, 0
        seen: set[bytes] = set()
        for segment in segments:
            found = self._count(body, segment)
            for name, count in found.parts.items():
                if name != "thinking" or found.thinking not in seen:
                    totals[name] += count if name == "envelope" else scaled(count, body.model)
            seen.add(found.thinking)
            for size, detail in found.images:
                tokens = image_tokens(size, body.api, body.model, detail) if size else None
                images, unknown = images + (tokens or 0), unknown + (tokens is None)
            unknown += found.files  # pages of a document are images too
        return (*totals.values(), images, unknown)


def scaled(count: int, model: str | None) -> int:
    """Tokens of a model for so many of the vocabulary it is counted with."""
    times = factor(model)
    return count if times == 1 else round(count * times)


def _added(one: Sum, other: Sum) -> Sum:
    return tuple(map(int.__add__, one, other))


def _owner(segment: Segment) -> str:
    """The tool, system text or message a segment belongs to: the first two steps of its path."""
    return "/".join(segment.path.split("/")[:3])
