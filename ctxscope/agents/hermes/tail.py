"""Where a batch compaction cuts: the head it protects, the budget of its tail, and the walk from the end (hermes.md §6).

Source of the rules: both versions' own compressor, read. To the message like two recorded compactions of 0.20, and on
made-up histories like the compressors themselves, 0.19 and 0.20.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxscope.agents.hermes.budget import Message, TailRule, walk
from ctxscope.agents.hermes.pruning import MOST_FLOOR, pruned
from ctxscope.agents.hermes.rows import SYNTHETIC_USERS, is_summary

FLOOR = 3
"""Messages the tail always has: the setting ``protect_last_n``, but no fewer and no more than ``MOST_FLOOR``."""
RATIO, PROTECT_FIRST = 0.2, 3
"""What the settings say where they say nothing."""
_TEXTS = frozenset({"text", "input_text"})
_NOTES = (*SYNTHETIC_USERS, "[System: ", "[IMPORTANT: Background process ")
"""How messages begin that the agent wrote as the user's."""


def cut_of(messages: Sequence[Message], head: int, rule: TailRule) -> int:
    """Index of the first message of the tail, ``head`` messages being protected at the start."""
    shown = pruned(messages, rule)
    echoes = range(0) if rule.old else _echoes(shown, rule)
    shown = [*shown[: echoes.start], *shown[echoes.stop :]]
    start = _forward(shown, head)
    cut = _cut(shown, start, rule)
    asked = _last_user(shown, 0, rule)
    if not rule.old and cut == asked:  # so that the summary is not merged into what was asked
        bridge = asked - 1
        if bridge >= 0 and shown[bridge]["role"] == "tool":
            bridge = _backward(shown, asked)
        elif bridge < 0 or shown[bridge]["role"] != "assistant":
            bridge = -1
        cut = bridge if bridge > start else cut
    return cut + len(echoes) if cut >= echoes.start else cut


def _echoes(messages: Sequence[Message], rule: TailRule) -> range:
    """Messages of the user's that say nothing, between the last that does and its answer: 0.20 leaves them out."""
    first = end = _last_user(messages, 0, rule) + 1
    while first and end < len(messages) and messages[end]["role"] == "user" and _is_blank(messages[end].get("content")):
        end += 1
    return range(first, end) if end < len(messages) and messages[end]["role"] == "assistant" else range(first, first)


def _cut(messages: Sequence[Message], start: int, rule: TailRule) -> int:
    n = len(messages)
    room = max(0, n - start - 1)
    floor = min(max(FLOOR, min(rule.last, MOST_FLOOR)), max(FLOOR, room - 2), room) if room > 1 else 0
    sizes = rule.sizes(messages)
    ceiling = int(rule.budget * 1.5)
    cut, held, _ = walk(sizes, start, ceiling, floor)
    if cut <= start and 0 < held <= ceiling:
        # All of it fits: it walks again with the budget itself, and there the message that no longer fits is the first kept.
        again, _, over = walk(sizes, start, rule.budget, floor)
        cut = again - 1 if over else again
    cut = min(cut, n - floor)
    if cut <= start:
        cut = max(n - floor, start + 1)
    cut = _backward(messages, cut)
    cut = _with_last_user(messages, cut, start, rule)
    said = _last_said(messages, start, rule)
    if 0 <= said < cut:
        cut = max(_backward(messages, said), start + 1)
    return _forward(messages, max(cut, start + 1))


def _with_last_user(messages: Sequence[Message], cut: int, start: int, rule: TailRule) -> int:
    """The cut moved so that what was asked last is kept; where that is the first message behind the head, behind its reply."""
    at = _last_user(messages, start, rule)
    if at < 0 or at >= cut:
        return cut
    if at > start:
        return at
    end = at + 1
    if end < len(messages) and messages[end]["role"] == "assistant":
        end = _forward(messages, end + 1)
    return max(end, start + 1)


def _last_user(messages: Sequence[Message], start: int, rule: TailRule) -> int:
    for i in range(len(messages) - 1, start - 1, -1):
        if messages[i]["role"] == "user" and not _is_own(messages[i].get("content"), rule):
            return i
    return -1


def _is_own(content: Any, rule: TailRule) -> bool:
    """Whether a user message is the agent's own: a summary; in 0.20 also its other notes, and nothing at all."""
    if is_summary(_text_of(content)):
        return True
    return not rule.old and (_is_blank(content) or _text_of(content).strip().startswith(_NOTES))


def _text_of(content: Any) -> str:
    """The texts of a content, each on lines of its own."""
    if isinstance(content, list):
        texts = (part.get("text") if isinstance(part, dict) else part for part in content)
        return "\n".join(text for text in texts if isinstance(text, str) and text)
    return content if isinstance(content, str) else ""


def _is_blank(content: Any) -> bool:
    if not isinstance(content, list):
        return content is None or (isinstance(content, str) and not content.strip())
    texts = (p.get("text") if isinstance(p, dict) and p.get("type") in _TEXTS else p for p in content)
    return all(isinstance(text, str) and not text.strip() for text in texts)


def _last_said(messages: Sequence[Message], start: int, rule: TailRule) -> int:
    """The last answer with a text, else the last one."""
    any_one = -1
    for i in range(len(messages) - 1, start - 1, -1):
        content = messages[i].get("content")
        if messages[i]["role"] != "assistant" or (not rule.old and is_summary(_text_of(content))):
            continue
        any_one = i if any_one < 0 else any_one
        parts = content if isinstance(content, list) else [content]
        texts = (p.get("text") or p.get("content") if isinstance(p, dict) else p for p in parts)
        if any(isinstance(text, str) and text.strip() for text in texts):
            return i
    return any_one


def _forward(messages: Sequence[Message], at: int) -> int:
    """Behind the tool results that stand there."""
    while at < len(messages) and messages[at]["role"] == "tool":
        at += 1
    return at


def _backward(messages: Sequence[Message], at: int) -> int:
    """Before the answer whose tool results end there."""
    if not 0 < at < len(messages):
        return at
    before = at - 1
    while before >= 0 and messages[before]["role"] == "tool":
        before -= 1
    calls = before >= 0 and messages[before]["role"] == "assistant" and messages[before].get("tool_calls")
    return before if calls else at
