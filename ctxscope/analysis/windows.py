"""What a person should look at where a prompt nears its window: phantom compactions, under-counts, refused calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ctxscope.analysis.compaction_words import lost_words, phantom_words
from ctxscope.model import Call, Compaction, Finding, Point, quoted

NEAR = 0.9
"""Share of a window from which on a prompt is near it, where the agent has no threshold."""
_TOO_LONG = re.compile(
    r"context[_ ]length|context window|maximum context|prompt is too long|input is too long|prompt length"
    r"|exceeds? the (?:available )?context|too many (?:input )?tokens|input token count|reduce the length"
    r"|exceed_context_size|input length and `?max_tokens`? exceed",
    re.IGNORECASE,
)
"""How providers and engines say that a prompt is longer than the model takes: Anthropic, OpenAI, Gemini, Bedrock, DeepSeek,
xAI, Groq, vLLM, llama.cpp (prompt_caching.md; wire_formats.md)."""


def is_too_long(error: str) -> bool:
    """Whether an error says that a prompt is longer than its model takes."""
    return _TOO_LONG.search(error) is not None


def window_findings(
    calls: Sequence[Call],
    compactions: Sequence[Compaction],
    refused: Mapping[int, str],
    dead: Sequence[tuple[str, Point, str | None]],
) -> Iterator[Finding]:
    """``refused``: the error by number of each call that ended in one; ``dead``: as for ``findings_of``."""
    for found in compactions:
        before = calls[found.before - 1] if found.before is not None else None
        if found.phantom and before is not None:
            numbers = (before.n, *((found.told.marker.call,) if found.told.marker.call else ()))
            message = f"the compaction fired on phantom bytes: {phantom_words(found, before)}"
            yield Finding("CTX401", "warning", numbers, None, message, lost_words(found))
    heeded = {found.before for found in compactions}
    last: dict[str | None, Call] = {}
    for call in calls:
        if call.kind in ("main", "subagent", "retry") and call.n not in heeded:
            yield from _under(call)
        if call.n in refused and is_too_long(refused[call.n]):
            yield _refused(call, last.get(call.session), refused[call.n])
        elif call.tokens.agent is not None:
            last[call.session] = call
    for session, point, line in dead:
        if line is not None and is_too_long(line):
            known = _last_before(calls, session, point)
            message = f"{point.place}: refused for its length{_estimate_before(known)}"
            yield Finding("CTX403", "error", (known.n,) if known is not None else (), None, message, quoted(line))


def _last_before(calls: Sequence[Call], session: str, point: Point) -> Call | None:
    """The last call of a session, up to the turn of an input, for which the agent's estimate is known."""
    own = (c for c in reversed(calls) if c.session == session and c.turn is not None and c.turn <= point.turn)
    return next((c for c in own if c.tokens.agent is not None), None)


def _under(call: Call) -> Iterator[Finding]:
    """The agent's estimate says that there is room where there is none."""
    window, agent, filled = call.window, call.tokens.agent, call.filled
    limit = window.threshold or (int(NEAR * window.size) if window.size else None)
    if agent is None or filled is None or limit is None or agent >= limit or filled < limit:
        return
    what = "reported" if call.tokens.reported is not None else "visible"
    of = f"threshold {limit:,}" if window.threshold else f"window {window.size:,}"
    message = f"the agent under-counts near the window: estimated {agent:,}, {what} {filled:,}, {of}"
    yield Finding("CTX402", "warning", (call.n,), None, message, "it will not compact in time by its estimate alone")


def _refused(call: Call, before: Call | None, error: str) -> Finding:
    if call.tokens.agent is not None:
        words, numbers = f"; the agent's estimate of it was {call.tokens.agent:,}", (call.n,)
    else:
        words, numbers = _estimate_before(before), (*((before.n,) if before is not None else ()), call.n)
    filled = call.tokens.visible if call.tokens.visible is not None else call.tokens.rebuilt
    words += f", visible {'≈' if call.tokens.estimated else ''}{filled:,}" if filled is not None else ""
    words += f", window {call.window.size:,}" if call.window.size else ""
    return Finding("CTX403", "error", numbers, None, f"refused for its length{words}", error)


def _estimate_before(call: Call | None) -> str:
    """The agent's estimate before it, a clause."""
    if call is None or call.tokens.agent is None:
        return ""
    return f"; the agent's last estimate, at call {call.n}, was {call.tokens.agent:,}"
