"""A point's rows as the message list a call starts from, the settled part of it kept from one call to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes.canonical import Message, blank, message_of, sent_content
from ctxscope.agents.hermes.repair import VERIFICATION, repaired, sanitised, without_thinking_only
from ctxscope.agents.hermes.rows import tool_calls_of
from ctxscope.agents.hermes.runs import is_loaded, origins_of, rows_among
from ctxscope.model import Entry, Point


def messages_of(log: Log, point: Point, boundary: int, *, drops: bool) -> Sequence[Message]:
    """The repaired list at a point. ``drops``: assistants that only thought are left out on this transport.

    A session's calls re-send their history: the list up to a place no repair reaches across is taken over from the
    call before, when its rows are the same.
    """
    rows = tuple(rows_among(point.context))
    origins = origins_of(log)
    memo = shared_memo(log, "hermes.settled")
    key = (boundary, drops)
    kept_rows, kept = memo.get(key, ((), []))
    if rows[: len(kept_rows)] != kept_rows or not _is_cut(rows, len(kept_rows)):
        kept_rows, kept = (), []
    made = shared_memo(log, "hermes.messages")
    start = len(kept_rows)
    cut = _last_cut(rows, start)
    if cut > start:
        kept = [*kept, *_list(made, origins, rows[start:cut], boundary, drops, final=False)]
        memo[key] = (rows[:cut], kept)
    return [*kept, *_list(made, origins, rows[cut:], boundary, drops, final=True)]


def _list(
    made: dict[Any, Message],
    origins: Mapping[int, int],
    rows: Sequence[Entry],
    boundary: int,
    drops: bool,
    *,
    final: bool,
) -> list[Message]:
    messages: list[Message] = []
    for entry in rows:
        loaded = is_loaded(origins, entry, boundary)
        message = made.get((entry, loaded))
        if message is None:
            message = made[entry, loaded] = message_of(entry, loaded=loaded)
        messages.append(message)
    out = sanitised([_sent(made, m) for m in repaired(messages)], final=final)
    return without_thinking_only(out) if drops else out


def _sent(made: dict[Any, Message], message: Message) -> Message:
    """The copy sent; always the same one, since what was spelled of it is kept with it."""
    copy = message.sent()
    return copy if copy is message else made.setdefault(message, copy)


def _last_cut(rows: Sequence[Entry], start: int) -> int:
    """The last index no repair reaches across, ``start`` when there is none after it."""
    for k in range(len(rows) - 1, start, -1):
        if _is_cut(rows, k):
            return k
    return start


def _is_cut(rows: Sequence[Entry], k: int) -> bool:
    """Whether what stands before ``k`` is repaired alike whatever follows."""
    if k == 0:
        return True
    if k >= len(rows):
        return False
    before, after = rows[k - 1], rows[k]
    if _known(rows, k - 1):
        return after.kind != "tool"
    if after.kind == "user":
        return before.kind == "assistant" and not tool_calls_of(before.data) and _says(before)
    # One that only thought goes, and its users become one; so may the one that replaces a candidate.
    kept = (_says(after) or bool(tool_calls_of(after.data))) and after.data.get("finish_reason") != VERIFICATION
    return after.kind == "assistant" and before.kind == "user" and kept


def _says(entry: Entry) -> bool:
    return not blank(sent_content(entry.data, loaded=False))


def _known(rows: Sequence[Entry], k: int) -> bool:
    """Whether a row is a tool result whose call the assistant before it made."""
    if rows[k].kind != "tool":
        return False
    j = k
    while j > 0 and rows[j].kind == "tool":
        j -= 1
    call = str(rows[k].data.get("tool_call_id"))
    if rows[j].kind != "assistant" or sum(1 for r in rows[j : k + 1] if r.data.get("tool_call_id") == call) > 1:
        return False
    return any(call in {c.get("id"), c.get("call_id")} for c in tool_calls_of(rows[j].data))
