"""What Claude Code's fixed texts, headers and records tell: kinds of requests, their session, causes of differences."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import islice

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.claude_code import exact, texts
from ctxscope.agents.claude_code.learning import BILLING_PATH, PARAMS
from ctxscope.agents.claude_code.metadata import is_old, session_in
from ctxscope.agents.claude_code.points import context_of
from ctxscope.agents.claude_code.records import record_of, request_digest
from ctxscope.agents.claude_code.trail import Trail
from ctxscope.agents.claude_code.tree import tree
from ctxscope.model import Body, CallKind, Difference, Entry, Learned, Named, Point

SESSION_HEADER = "x-claude-code-session-id"
_COMPACTING = b"AI assistant tasked with summarizing conversations"
"""In the system prompt of a compaction's request up to 2.0."""
_WARMUP = b'"Warmup"'
"""All that 2.0 asks of the agents it starts beside a session (measured in 2.0.30)."""
_LAST = 3
"""Blocks at the end of a conversation that may hold a compaction's prompt."""
_SHOWN = 300
"""Bytes at the start of a segment that a fixed text begins in."""


def named(headers: Mapping[str, str], body: Body) -> Named:
    """See ``Agent.named``."""
    session = headers.get(SESSION_HEADER)
    for segment in () if session else reversed(body.segments):
        if segment.kind == "param" and segment.path.startswith("/metadata"):
            value = body.data[segment.start : segment.end]
            session = session_in(value) if not is_old(value) or any(s.kind == "tool" for s in body.segments) else None
            break
    return Named(session or None)


def classify(body: Body) -> CallKind | None:
    """See ``Agent.classify``."""
    last = next((s for s in reversed(body.segments) if s.kind == "message"), None)
    if last is None:
        return None
    if any(prompt.encode() in shown for shown in _ends(body) for prompt in texts.COMPACTION_PROMPTS):
        return "compaction"
    system = [s for s in body.segments if s.kind == "system"]
    if any(_COMPACTING in body.data[s.start : s.end][:_SHOWN] for s in system):
        return "compaction"
    if any(s.kind == "tool" for s in body.segments):
        return None
    first = next(s for s in body.segments if s.kind == "message")
    if not system and body.data[first.start : first.end].strip(b'"') in (b"quota", b"test"):
        return "probe"
    # titles, paths, prefixes: one question without tools, and without what every agent's conversation begins with
    lone = last.path.startswith("/messages/0/")
    shown = body.data[first.start : first.end][:_SHOWN]
    begun = texts.REMINDER.encode() in shown or _WARMUP in shown
    return "side" if lone and not begun else None


def _ends(body: Body) -> Iterator[bytes]:
    """How the last blocks of the conversation begin: behind a user's, 2.1.332 may put a message of the system."""
    messages = (s for s in reversed(body.segments) if s.kind == "message")
    for segment in islice(messages, _LAST):
        yield body.data[segment.start : segment.start + _SHOWN]


def basis(log: Log, point: Point) -> Hashable:
    """What beside the point ``learn`` and ``rebuild`` look at: the request's record, a rewritten transcript."""
    grown = tree(log)
    record = record_of(log, point)
    upto = len(grown.others) if point.answer is None else 0
    return id(record) if record is not None else None, grown.rewrites, upto


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Causes Claude Code is known for; ``None`` where it is not."""
    path = difference.path
    top = "/" + path.partition("/")[2].partition("/")[0]
    if path.startswith("/messages") and (
        texts.CUT_PROMPT in difference.served or (difference.cls == "extra" and _follows_a_cut(log, point))
    ):
        return "after an answer cut at its limit the client sends a message of its own, which this version does not log"
    if path.startswith("/messages") and texts.SUMMARY_STARTS in difference.served:
        return "the request starts at the summary of a compaction that this log does not hold"
    record = record_of(log, point)
    if record is not None:
        return _against(log, point, record, learned)
    if path.startswith(BILLING_PATH) and BILLING_PATH in learned.values:
        return "the billing text changed although the conversation begins with the same message"
    if top[1:] in (*PARAMS, "system", "tools"):
        taught: Mapping[str, str] = learned.choice.get("taught", {})
        since = f" since the call answered at {taught[top]}" if top in taught else ""
        return f"{top[1:]} changed{since}; this version does not log it"
    return None


def _follows_a_cut(log: Log, point: Point) -> bool:
    """Whether a request ended with an answer that was cut: the client asks for the rest on its own."""
    trail, length = context_of(log, point)
    last = next((i for i in trail.back(length) if i.role in ("user", "assistant")), None)
    return last is not None and last.group is not None and any(n.head.stop == "max_tokens" for n in last.nodes)


def _against(log: Log, point: Point, record: Entry, learned: Learned) -> str | None:
    """What the digest says that a record keeps of its request: who changed something, the log or the wire."""
    rebuilt = exact.rebuild(log, point, record, learned)
    params = record.data.get("params")
    digest = record.data.get("requestDigest")
    if rebuilt is None or not isinstance(digest, str) or not isinstance(params, Mapping):
        return "the log's own record of this request says otherwise"
    if request_digest(rebuilt.data, params.get("betas")) == digest:
        return "the log's record of this request says otherwise, and its digest holds: it was changed behind the client"
    return "the log does not give what its record of this request has the digest of: it was changed since"


def characters(log: Log, trail: Trail, length: int) -> int:
    """Characters of the lines of a context's first items."""
    sums: dict[Trail, list[int]] = shared_memo(log, "claude_code.characters")
    known = sums.setdefault(trail, [0])
    count = trail.counts[length]
    for entry in trail.entries[len(known) - 1 : count]:
        known.append(known[-1] + len(entry.raw.decode("utf-8", "replace")))
    return known[count]
