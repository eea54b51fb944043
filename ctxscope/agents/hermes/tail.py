"""Where a batch compaction cuts: the head it protects, the budget of its tail, and the walk from the end (hermes.md §6).

Source of the rules: both versions' own compressor, read. To the message like two recorded compactions of 0.20, and on
made-up histories like the compressors themselves: 0.19 in 1,199 of 1,200, 0.20 in 1,787 of 1,800. Two things are
approximated, which is where they part: a tool output that the pass before the walk shortens counts as a line of ``_LINE`` characters,
and of long call arguments ``_ARGUMENTS`` characters are taken to stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.hermes.estimators import RULES
from ctxscope.agents.hermes.rows import SYNTHETIC_USERS, is_summary

FLOOR, MOST_FLOOR = 3, 8
"""Messages the tail always has: the setting ``protect_last_n``, but no fewer and no more than these."""
RATIO, PROTECT_FIRST, PROTECT_LAST = 0.2, 3, 20
"""What the settings say where they say nothing."""
_IMAGE = 6400
"""Characters an image counts for."""
_OVERHEAD = 10
_PRUNED, _LINE = 200, 80
_LONG_ARGUMENTS, _ARGUMENTS = 500, 260
_SPARED = 3
"""Newest messages that are shortened last (0.20)."""
_OPAQUE = frozenset({"signature", "data", "encrypted_content"})
_ITEMS = ("codex_reasoning_items", "codex_message_items")
_THINKING = ("reasoning", "reasoning_content")
_DETAILS = "reasoning_details"

Message = Mapping[str, Any]
_tokens = RULES["0.20"].tokens


@dataclass(frozen=True, slots=True)
class TailRule:
    """How one version walks, under some settings."""

    old: bool
    """0.19."""
    budget: int
    """Tokens of the tail: the compaction threshold x ``compression.target_ratio``."""
    last: int = PROTECT_LAST
    """``compression.protect_last_n``."""

    def tokens(self, message: Message, *, newest: bool) -> int:
        """Tokens of a message; ``newest``: of the last answer, whose thinking alone 0.20 charges."""
        content = message.get("content") or ""
        if isinstance(content, str):
            total = _OVERHEAD + (len(content) // 4 if self.old else _tokens(content))
        else:
            total = _OVERHEAD + _length(content) // 4
        for call in message.get("tool_calls") or ():
            total += len(str(call)) // 4 if self.old else _tokens(str(call))
        total += sum(_serialised(message.get(name)) // 4 for name in _ITEMS)
        if self.old:
            return total + sum(_serialised(message.get(name)) // 4 for name in (*_THINKING, _DETAILS))
        if newest:
            total += sum(_serialised(message.get(name)) // 4 for name in _THINKING)
            if not any(message.get(name) for name in _THINKING):
                total += _thought(message.get(_DETAILS)) // 4
        return total


def without_envelope(message: Message) -> Message:
    """The message with its opaque reasoning bytes left out: signatures, encrypted and redacted content."""
    held = {name: message[name] for name in (_DETAILS, *_ITEMS) if message.get(name)}
    return {**message, **{name: _readable(value) for name, value in held.items()}} if held else message


def cut_of(messages: Sequence[Message], head: int, rule: TailRule) -> int:
    """Index of the first message of the tail, ``head`` messages being protected at the start."""
    pruned = _prune(messages, rule)
    start = _forward(pruned, head)
    cut = _cut(pruned, start, rule)
    asked = _last_user(pruned, 0, rule)
    if not rule.old and cut == asked:  # so that the summary is not merged into what was asked
        bridge = asked - 1
        if bridge >= 0 and pruned[bridge]["role"] == "tool":
            bridge = _backward(pruned, asked)
        elif bridge < 0 or pruned[bridge]["role"] != "assistant":
            bridge = -1
        cut = bridge if bridge > start else cut
    return cut


def _cut(messages: Sequence[Message], start: int, rule: TailRule) -> int:
    n = len(messages)
    room = max(0, n - start - 1)
    floor = min(max(FLOOR, min(rule.last, MOST_FLOOR)), max(FLOOR, room - 2), room) if room > 1 else 0
    sizes = _sizes(messages, rule)
    ceiling = int(rule.budget * 1.5)
    cut, held, _ = _walk(sizes, start, ceiling, floor)
    if cut <= start and 0 < held <= ceiling:
        # All of it fits: it walks again with the budget itself, and there the message that no longer fits is the first kept.
        again, _, over = _walk(sizes, start, rule.budget, floor)
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


def _walk(sizes: Sequence[int], start: int, most: int, floor: int) -> tuple[int, int, bool]:
    """From the end back: where it stops, what it holds then, and whether a message was too much."""
    held, cut = 0, len(sizes)
    for i in range(len(sizes) - 1, start - 1, -1):
        if held + sizes[i] > most and len(sizes) - i >= floor:
            return cut, held, True
        held += sizes[i]
        cut = i
    return cut, held, False


def _sizes(messages: Sequence[Message], rule: TailRule) -> list[int]:
    newest = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=-1)
    return [rule.tokens(m, newest=i == newest) for i, m in enumerate(messages)]


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
    if is_summary(content):
        return True
    if rule.old or not isinstance(content, str):
        return False
    return not content.strip() or content.startswith(SYNTHETIC_USERS)


def _last_said(messages: Sequence[Message], start: int, rule: TailRule) -> int:
    """The last answer with a text, else the last one."""
    any_one = -1
    for i in range(len(messages) - 1, start - 1, -1):
        content = messages[i].get("content")
        if messages[i]["role"] != "assistant" or (not rule.old and is_summary(content)):
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


def _prune(messages: Sequence[Message], rule: TailRule) -> list[Message]:
    """What the pass before the walk leaves: older tool outputs as lines, repeated ones as references, long arguments cut.

    0.20 also shortens inside what it protects, as long as that is half as much again as the budget.
    """
    out = _once(messages)
    floor = min(rule.last, len(out)) if rule.old else min(rule.last, len(out), MOST_FLOOR)
    cut, _, over = _walk(_sizes(out, rule), 0, rule.budget, floor)
    first = max(0, min(cut - 1 if over else cut, len(out) - floor))
    for i in range(first):
        out[i] = _shortened(out[i])
    spared = len(out) - min(_SPARED, len(out))
    if rule.old or spared <= first:
        return out
    _relieve(out, first, spared, rule, lambda _: True)
    newest = max((i for i, m in enumerate(out) if m["role"] == "tool"), default=-1)
    _relieve(out, first, len(out), rule, lambda i: i != newest, at_once=True)
    if newest >= first:
        _relieve(out, newest, newest + 1, rule, lambda _: True, since=first)
    return out


def _relieve(
    messages: list[Message],
    first: int,
    end: int,
    rule: TailRule,
    takes: Callable[[int], bool],
    *,
    at_once: bool = False,
    since: int | None = None,
) -> None:
    """Shorten messages from ``first`` on while those from ``since`` on are too much; ``at_once``: all, if they are."""
    sizes = [rule.tokens(m, newest=True) for m in messages]
    total, ceiling = sum(sizes[first if since is None else since :]), int(rule.budget * 1.5)
    if total <= ceiling:
        return
    for i in range(first, end):
        if takes(i):
            messages[i] = _shortened(messages[i])
            total += rule.tokens(messages[i], newest=True) - sizes[i]
        if total <= ceiling and not at_once:
            return


def _once(messages: Sequence[Message]) -> list[Message]:
    """The messages with all but the newest of equal tool outputs replaced by a reference."""
    out, seen = list(messages), set[str]()
    for i in range(len(out) - 1, -1, -1):
        content = out[i].get("content")
        if out[i]["role"] == "tool" and isinstance(content, str) and len(content) >= _PRUNED:
            if content in seen:
                out[i] = {**out[i], "content": "." * _LINE}
            seen.add(content)
    return out


def _shortened(message: Message) -> Message:
    content = message.get("content")
    if message["role"] == "tool":
        return {**message, "content": "." * _LINE} if isinstance(content, str) and len(content) > _PRUNED else message
    calls = message.get("tool_calls")
    return {**message, "tool_calls": [_shorter(call) for call in calls]} if calls else message


def _shorter(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(arguments, str) or len(arguments) <= _LONG_ARGUMENTS:
        return call
    return {**call, "function": {**function, "arguments": arguments[:_ARGUMENTS]}}


def _length(content: Any) -> int:
    """Characters of a content that is no text: an image counts flat."""
    if not isinstance(content, list):
        return len(str(content or ""))
    total = 0
    for part in content:
        if not isinstance(part, dict):
            total += len(str(part))
        elif part.get("type") in {"image", "image_url", "input_image"}:
            total += _IMAGE
        else:
            total += len(str(part.get("text") or ""))
    return total


def _serialised(value: Any) -> int:
    """Characters of a field: of a text its own, else of its JSON with blanks behind commas and colons."""
    if value is None or isinstance(value, str):
        return len(value or "")
    return len(json.dumps(value, ensure_ascii=False, default=str))


def _thought(value: Any) -> int:
    """Characters of the thinking texts in ``reasoning_details``."""
    if isinstance(value, str):
        return len(value)
    parts = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    texts = (
        [part] if isinstance(part, str) else [part.get(k) for k in ("thinking", "text", "summary")]
        for part in parts
        if isinstance(part, str | dict)
    )
    return sum(len(t) for some in texts for t in some if isinstance(t, str))


def _readable(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _readable(v) for k, v in value.items() if k not in _OPAQUE}
    return [_readable(v) for v in value] if isinstance(value, list) else value
