"""What ``ctxscope run`` says before the agent starts and after it has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ctxscope.capture.recorder import Stored
from ctxscope.cli import table

_SHOWN = 3
"""Settings that are listed one by one; the recording holds all."""


def at_start(
    path: Path, title: str, tested: Sequence[str], how: Sequence[str], changes: Sequence[str], *, forward: bool
) -> Iterator[str]:
    """Where it is recorded, how the agent was pointed at the proxy, what that changes, whether it was ever tried."""
    yield f"recording to {path}"
    tried = (
        f"run through the proxy in {' and '.join(tested)}"
        if tested
        else "untested: nobody has run it through the proxy"
    )
    if not how:
        yield f"{title} ({tried}) is NOT POINTED AT THE PROXY: nothing can be set for this command; it runs as ever"
        return
    yield f"{title} ({tried}), {'recorded as a forward proxy' if forward else 'pointed at the proxy'} by:"
    yield from (f"  {words}" for words in how[:_SHOWN])
    if len(how) > _SHOWN:
        yield f"  and {len(how) - _SHOWN} more of the kind, all in the recording"
    yield from (f"what that changes: {words}" for words in changes)


def at_end(path: Path, stored: Stored, how: Sequence[str], by_hand: str, tunnelled: Mapping[str, int]) -> Iterator[str]:
    """What was recorded; nothing of it was, which is said loudly with what was tried and what to set by hand."""
    if stored.calls or stored.requests:
        done = "passed" if stored.lost else "recorded"
        share = f" ({table.share(stored.stored, stored.sent)})" if 0 < stored.stored < stored.sent else ""
        yield (
            f"{_count(stored.calls, 'call')} in {_count(stored.requests, 'request')} {done}: "
            f"{table.size(stored.sent)} sent, {table.size(stored.stored)} stored{share}"
        )
    if not stored.calls:
        other = f" ({_count(stored.requests, 'request')} came, none of them to a model)" if stored.requests else ""
        yield f"0 CALLS CAPTURED{other}: the agent made none, or took no notice of what was set: {'; '.join(how) or 'nothing'}"
        if by_hand:
            yield f"to set by hand: {by_hand}"
    if tunnelled:
        yield f"passed on unread: {', '.join(sorted(tunnelled))}"
    if stored.lost:
        yield f"{_count(stored.lost, 'event')} COULD NOT BE STORED: {stored.why}"
    yield f"the recording is {path}" if path.exists() else f"there is no recording: {path} could not be written"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
