"""What the screen of the next request says above its bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxscope.model import CacheVerdict, NextRequest
from ctxscope.tui.paint import Spans, number
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.lines import wrapped
from ctxscope.tui.words import cache_words

_MOST_LINES = 6
"""Lines of one paragraph."""
_HANG = 3
_MINUTE = 60


def lines_of(request: NextRequest, width: int) -> list[Spans]:
    """The verdict, then what a new process does otherwise, what is not known and what was assumed."""
    return [line for told in _paragraphs(request) for line in wrapped(told, width, _MOST_LINES, _HANG)]


def _paragraphs(request: NextRequest) -> Iterator[Spans]:
    if request.body is None:
        yield [(" ≠ ", "dim"), (visible(f"not known: {request.why}"), "text")]
    else:
        style = "break" if request.cache.verdict == "break" else "text"
        yield [(" ╳ " if style == "break" else "   ", style), (visible(_verdict(request)), style)]
    yield from _each(" Δ ", "a new process: ", request.changes)
    yield from _each(" ? ", "not known: ", request.unknown)
    yield from _each("   ", "assumed of the process that ran last: ", request.hypotheses)


def _each(mark: str, words: str, sentences: Sequence[str]) -> Iterator[Spans]:
    for sentence in sentences:
        yield [(mark, "dim"), (words, "dim"), (visible(sentence), "text")]


def _verdict(request: NextRequest) -> str:
    if request.previous is None:
        return "no earlier request is known to compare it with"
    told = f"against call {request.previous_n} ({'served' if request.previous_served else 'rebuilt'}): "
    told += cache_words(request.cache) + _price(request.cache)
    if request.ttl is not None:
        life = f"{request.ttl / _MINUTE:g} min" if request.ttl >= _MINUTE else f"{request.ttl:g} s"
        told += f" · if sent at once: kept for {life}"
    return told


def _price(cache: CacheVerdict) -> str:
    if cache.extra is None or not cache.lost_tokens:
        return ""
    money = f", {cache.money:,.4f} {cache.currency}" if cache.money is not None else ""
    return f" · costs {'≈' if cache.lost_estimated else ''}{number(round(cache.extra))} input tokens more{money}"
