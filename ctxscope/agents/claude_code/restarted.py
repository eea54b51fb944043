"""The conversation as a process sends it that read it from the log: without what an earlier one added unlogged (§5).

The reminders before the first input are made anew by every process, and those of logged attachments follow from these:
both are taken as they were served last. Everything else is written from the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.claude_code.chain import Conversation
from ctxscope.agents.claude_code.echo import Writer
from ctxscope.agents.claude_code.learning import OLD
from ctxscope.agents.claude_code.messages import Form, Message, by_rule, joined, led, written
from ctxscope.agents.claude_code.served import ServedMessage, message_of
from ctxscope.agents.claude_code.tree import tree
from ctxscope.model import Piece
from ctxscope.wire import json_text


def restarted(log: Log, last: Conversation) -> tuple[Piece, ...]:
    """The messages a new process sends; ``last``: those implied for its request, beside what was served last."""
    form, grown, count = last.form, tree(log), len(last.implied)
    shown = {at: (index, served) for at, index, served in _pairs(last)}
    out = _before_all(last)
    for at, message in enumerate(last.implied):
        mark = at >= count - form.marks
        index, served = shown.get(at, (at, None))
        if served is not None and _is_made_again(at, message):
            pieces = Writer(message, served, form, index, mark, last.model, grown).pieces()
        else:
            pieces = _read(message, form, mark=mark, blocks=(grown.version or "").startswith(OLD))
        out += led(b",", pieces) if out else pieces
    return tuple(out)


def _read(message: Message, form: Form, *, mark: bool, blocks: bool) -> list[Piece]:
    """A message as its lines have it; ``blocks``: a lone text that was read is none of a string any more (1.0, 2.0)."""
    lone = message.role == "user" and len(message.units) == 1 and message.units[0].bare
    if blocks and lone and not mark:
        return joined(message.role, [written(message.units[0])])
    return by_rule(message, form, mark=mark)


def left_out(last: Conversation) -> tuple[bool, bool]:
    """Of what was served: whether a line's message was sent otherwise than it stands there, and whether others were sent."""
    pairs = list(_pairs(last))
    otherwise = any(
        not _is_made_again(at, last.implied[at]) and _plain(last.implied[at], last.form) != _value(served.content)
        for at, _, served in pairs
    )
    known = {index for _, index, _ in pairs}
    first = min(known, default=0)
    return otherwise, any(index not in known for index in range(first, len(last.ends)))


def _is_made_again(at: int, message: Message) -> bool:
    """Whether what is served with a message is so by a later process too."""
    return at == 0 or bool(message.attached) or message.role == "assistant"


def _pairs(last: Conversation) -> Iterator[tuple[int, int, ServedMessage]]:
    """Number of each implied message that stands beside a served one, number of that, and it."""
    start, used = 0, 0
    for index, (end, taken) in enumerate(zip(last.ends, last.taken, strict=True)):
        served = message_of(last.data[last.start + start : last.start + end].lstrip(b", \t\r\n"))
        if taken > used and served is not None and served.role == last.implied[taken - 1].role:
            yield taken - 1, index, served
        start, used = end, taken


def _before_all(last: Conversation) -> list[Piece]:
    """Messages of the client's own before the first of the log."""
    count = next((i for i, taken in enumerate(last.taken) if taken), 0)
    return last.pieces[: last.firsts[count]] if count < len(last.firsts) else []


def _plain(message: Message, form: Form) -> Any:
    data = b"".join(p.data for p in by_rule(message, form, mark=False))
    return _value(json_text.loads(data)["content"])


def _value(content: Any) -> Any:
    """A content by what it says: a lone text is the same in both its forms, and cache marks say nothing."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [{k: v for k, v in b.items() if k != "cache_control"} for b in blocks]
