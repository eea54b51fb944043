"""The conversation of a request out of the chain, message by message beside the served one.

A call's messages begin with those of the call before, so that only what is new is read and written: what was written
beside the same bytes for the same messages is taken over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.claude_code.echo import Writer, echoed_whole, is_added
from ctxscope.agents.claude_code.messages import Form, Message, by_rule, led, messages
from ctxscope.agents.claude_code.points import context_of
from ctxscope.agents.claude_code.served import ServedMessage, Top, message_ends, message_of
from ctxscope.agents.claude_code.tree import Tree, tree
from ctxscope.model import Body, Piece, Point

_ROW = 8
"""Answers in a row that are looked at together."""
_KEPT = 4
"""Conversations remembered by their bodies: a call is asked about together with those around it."""


@dataclass(eq=False, slots=True)
class Conversation:
    """Messages written beside a served body."""

    data: bytes = b""
    start: int = 0
    form: Form = field(default_factory=Form)
    model: str = ""
    ends: list[int] = field(default_factory=list)
    """Offsets behind the served messages, from ``start``."""
    taken: list[int] = field(default_factory=list)
    """How many implied messages are used up with each served one."""
    implied: list[Message] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    """Number of the piece each message begins with."""
    sound: bool = True
    """Each served message has one beside it."""


def implied(log: Log, point: Point) -> list[Message]:
    """The messages the chain implies for a call."""
    trail, length = context_of(log, point)
    return messages(tree(log), trail, length)


def unserved(log: Log, point: Point, form: Form) -> tuple[Piece, ...]:
    """The conversation by the rule alone."""
    found = [m for m in implied(log, point) if not m.maybe]
    written: dict[Message, list[Piece]] = shared_memo(log, "claude_code.written").setdefault(form, {})
    out: list[Piece] = []
    for message in found[: -form.marks or None]:
        pieces = written.get(message)
        if pieces is None:
            written[message] = pieces = led(b",", by_rule(message, form, mark=False))
        out += pieces
    for message in found[-form.marks :] if form.marks else ():
        out += led(b",", by_rule(message, form, mark=True))
    if out:
        out[0] = Piece(out[0].data[1:], out[0].provenance, out[0].place, out[0].path, out[0].external)
    return tuple(out)


def beside(log: Log, point: Point, body: Body, top: Top, form: Form) -> Conversation:
    """The conversation beside what was served; a function of both alone, whatever was asked before."""
    memo = shared_memo(log, "claude_code.conversations")
    kept: dict[str, Conversation] = memo.setdefault("by body", {})
    known = kept.get(body.sha256)
    model = str(point.data.get("model") or "")
    found = implied(log, point)
    if known is not None and known.implied == found and (known.form, known.model) == (form, model):
        return known
    last: Conversation | None = memo.get(point.lineage)
    own = Conversation(body.data, top.start, form, model, implied=found)
    if last is not None and (last.form, last.model) == (form, model):
        _take_over(last, own)
    _write(own, body, top, tree(log))
    memo[point.lineage] = own
    kept[body.sha256] = own
    if len(kept) > _KEPT:
        del kept[next(iter(kept))]
    return own


def _take_over(last: Conversation, own: Conversation) -> None:
    """What both begin with: the same bytes, the same implied messages, none of them at the end, where marks stand."""
    if not last.sound:
        return
    marks = own.form.marks
    most = min(len(last.ends) - marks, max(len(own.implied) - marks, 0) if last.taken else 0)
    while most > 0 and last.taken[most - 1] > len(own.implied) - marks:
        most -= 1
    low = 0
    while low < most:  # the whole of it is nearly always the same: tried first
        middle = most if low == 0 else (low + most + 1) // 2
        if _same(last, own, middle):
            low = middle
        else:
            most = middle - 1
    if low == 0:
        return
    end = last.firsts[low] if low < len(last.firsts) else len(last.pieces)
    own.ends, own.taken = last.ends[:low], last.taken[:low]
    own.firsts, own.pieces = last.firsts[:low], last.pieces[:end]


def _same(last: Conversation, own: Conversation, count: int) -> bool:
    end, taken = last.ends[count - 1], last.taken[count - 1]
    if last.implied[:taken] != own.implied[:taken]:
        return False
    return own.data.startswith(last.data[last.start : last.start + end + 1], own.start)


def _write(own: Conversation, body: Body, top: Top, grown: Tree) -> None:
    first = len(own.ends)
    at = top.start + own.ends[-1] if own.ends else top.start
    ends = message_ends(body, top, first, at)
    shown = [
        (message_of(body.data[start:end].lstrip(b", \t\r\n")), end)
        for start, end in zip([at, *ends], ends, strict=False)
    ]
    count, implied_count = first + len(ends), len(own.implied)
    used = own.taken[-1] if own.taken else 0
    for number, (served, end) in enumerate(shown):
        index, raw = len(own.ends), body.data[at + (len(own.ends) > 0) : end]
        at = end
        following = shown[number + 1][0] if number + 1 < len(shown) else None
        used = _without_left(own.implied, used, [m for m, _ in shown[number : number + _ROW]])
        message = own.implied[used] if used < implied_count else None
        pieces: list[Piece] | None
        if (
            served is not None
            and message is not None
            and served.role == message.role
            and not _is_extra(served, following)
        ):
            mark = index >= count - own.form.marks
            writer = Writer(message, served, own.form, index, mark, own.model, grown)
            pieces, used = writer.pieces(), used + 1
        else:
            pieces = echoed_whole(served, raw, index, grown.version) if served is not None else None
            own.sound = own.sound and pieces is not None
            if pieces is None and message is not None:
                mark = used >= implied_count - own.form.marks
                pieces, used = by_rule(message, own.form, mark=mark), used + 1
        own.ends.append(end - top.start)
        own.taken.append(used)
        _put(own, pieces or [])
    for message in own.implied[used:]:
        if not message.maybe:
            own.sound = False
            _put(own, by_rule(message, own.form, mark=message is own.implied[-1]))


def _without_left(found: Sequence[Message], used: int, served: Sequence[ServedMessage | None]) -> int:
    """Past answers that were left out: as many as the log has more of in a row than were sent."""
    while used < len(found) and found[used].maybe:
        sure = _answers(not m.maybe if m.role == "assistant" else None for m in found[used + 1 :])
        if _answers(True if m is not None and m.role == "assistant" else None for m in served) > sure:
            break
        used += 1
    return used


def _answers(flags: Iterable[bool | None]) -> int:
    """How many hold, up to the first that is no answer."""
    return sum(bool(flag) for flag in takewhile(lambda flag: flag is not None, flags))


def _is_extra(served: ServedMessage, following: ServedMessage | None) -> bool:
    """Whether a message is the client's own: the log implies no two of a user's that follow one another."""
    return served.role == "user" and following is not None and following.role == "user" and is_added(served)


def _put(own: Conversation, pieces: Sequence[Piece]) -> None:
    own.firsts.append(len(own.pieces))
    own.pieces += led(b",", pieces) if pieces and own.pieces else pieces
