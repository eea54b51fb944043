"""What agent.log tells of a call's tokens, by the assistant row that the call gave (hermes.md §2, §6).

No row holds its call's usage. A line for each answer taken does: ``in`` is the whole prompt, what was read of a cache and
what was written to one included; ``cache=a/b`` is what was read, of that same prompt, and is left out when nothing was.
The line names no row. The agent logs it and makes the row at once, so a line is a row's own where nothing else of the
session lies between the two, and no other line between the row and the one before it: another one there is an attempt
that left no row, or a fork's call. A row whose answer was cut off has no line of its own, hence takes none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes.generations import Generation
from ctxscope.agents.hermes.log import agent_log, newest
from ctxscope.agents.hermes.rows import Row
from ctxscope.agents.hermes.turns import ZONE
from ctxscope.model import Entry, Usage

_Line = tuple[Entry, Usage | None]
"""A call's line, and its counts in our form where they can be had."""
_Server = tuple[object, object]
"""A model, and the provider it was asked of."""
_NEAR = 1.0
"""Seconds between a line and its row; 1 to 92 ms in recorded runs."""
_ASKED = 16
"""Lines and answers at either end of a log that are asked for the zone."""
_FARTHEST = 60
"""Quarter hours: no zone lies farther from another clock than that."""
_LINELESS = ("length", "incomplete")
"""Finish reasons of answers that the agent asks to be continued before it would write the line."""


def logged_usage(log: Log, generations: Sequence[Generation]) -> Mapping[int, Usage]:
    """Usage by the id of the assistant row it bought, for the session's own rows that have a line for certain.

    None at all where the session wrote to its cache: the lines do not tell what was written from what was plain input.
    """
    session = newest(log, f"session:{log.ref.id}")
    lines, reads = _lines(log)
    if not lines or session is None or session.data.get("wrote_cache") is not False:
        return {}
    rows = [r for g in generations for r in g.rows[g.carried :] if not r.parent]
    return {
        row.id: usage if usage.cache_read else _unread(entry, usage, reads)
        for row, (entry, usage) in _paired(lines, rows)
        if usage is not None
    }


def _lines(log: Log) -> tuple[Sequence[_Line], set[_Server]]:
    """The lines of this session's calls, each read once, in the order told; and the servers that tell what they read."""
    memo = shared_memo(log, "hermes.call_lines")
    found: list[_Line] = memo.setdefault("lines", [])
    reads: set[_Server] = memo.setdefault("reads", set())
    told = agent_log(log)
    for entry in told[memo.get("read", 0) :]:
        if entry.data["event"] == "call" and entry.data.get("session") == log.ref.id:
            usage = _usage(entry.data)
            found.append((entry, usage))
            if usage is not None and usage.cache_read:
                reads.add(_server(entry))
    memo["read"] = len(told)
    return found, reads


def _server(entry: Entry) -> _Server:
    return entry.data.get("model"), entry.data.get("provider")


def _unread(entry: Entry, usage: Usage, reads: set[_Server]) -> Usage:
    """A usage without a read: of a server that tells of its reads elsewhere it says that nothing was read."""
    return replace(usage, cache_read=0) if _server(entry) in reads else usage


def _usage(data: Mapping[str, object]) -> Usage | None:
    """A line's counts in our form; ``None`` when they contradict each other or are not there."""
    prompt, output, total, read, of = (data.get(name) for name in ("prompt", "output", "total", "read", "of"))
    if not isinstance(prompt, int) or not isinstance(output, int) or total != prompt + output:
        return None
    if read is None:
        return Usage(prompt, None, None, output)
    if not isinstance(read, int) or of != prompt or read > prompt:
        return None
    return Usage(prompt - read, read, None, output)


def _paired(lines: Sequence[_Line], rows: Sequence[Row]) -> Iterable[tuple[Row, _Line]]:
    """Rows with the line that is theirs for certain."""
    shift = _shift([entry.data["time"] for entry, _ in lines], rows)
    if shift is None:
        return
    events: list[tuple[float, int, Row | _Line]] = [(line[0].data["time"] - shift, 0, line) for line in lines]
    events += [(row.ts, 1, row) for row in rows]
    events.sort(key=itemgetter(0, 1))
    waiting: list[tuple[float, _Line]] = []
    for time, _, event in events:
        if not isinstance(event, Row):
            waiting.append((time, event))
            continue
        if len(waiting) == 1 and time - waiting[0][0] < _NEAR and _takes(event):
            yield event, waiting[0][1]
        waiting = []


def _takes(row: Row) -> bool:
    """Whether a row is an answer that a line was written for."""
    return row.role == "assistant" and not row.unsaid and row.entry.data.get("finish_reason") not in _LINELESS


def _shift(times: Sequence[float], rows: Sequence[Row]) -> int | None:
    """Seconds the file's clock is ahead of the rows', as most lines and answers at both ends of the log have it.

    ``None`` where none or several have it so, or one alone of many: that may be chance.
    """
    answers = [row.ts for row in rows if _takes(row)]
    alone = len(times) == len(answers) == 1
    votes: Counter[int] = Counter()
    for moment in {*times[:_ASKED], *times[-_ASKED:]}:
        for ts in {*answers[:_ASKED], *answers[-_ASKED:]}:
            steps = round((moment - ts) / ZONE)
            if -_NEAR < moment - ts - steps * ZONE <= 0 and abs(steps) <= _FARTHEST:
                votes[steps] += 1
    best = votes.most_common(2)
    if not best or (best[0][1] == 1 and not alone) or (len(best) > 1 and best[0][1] == best[1][1]):
        return None
    return best[0][0] * ZONE
