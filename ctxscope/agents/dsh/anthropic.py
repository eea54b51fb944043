"""The surface as Anthropic's Messages carry it (v4; dsh.md §4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents.dsh.answers import message_of, role_of, signatures
from ctxscope.agents.dsh.texts import array, blocks, derived, led, listed, logged, mapped, members, spelled, string
from ctxscope.model import Entry, Piece, Place
from ctxscope.wire import json_text

Pieces = tuple[Piece, ...]
Message = tuple[str, Sequence[Pieces]]
"""A role and the blocks one event adds to it."""
_OPEN = {role: b'{"role":"%s","content":[' % role.encode() for role in ("user", "assistant", "system")}
_NEXT = {role: b"]}," + opening for role, opening in _OPEN.items()}
_CLOSE = derived(b"]}")


class Fold:
    """Events put behind one another: those of one role share a message."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.marks: list[tuple[int, str, int]] = [(0, "", 0)]
        """After each event: how many pieces stand, the role of the message still open, how many blocks stand."""

    def add(self, found: Sequence[Message]) -> None:
        """The next event."""
        _, role, count = self.marks[-1]
        for name, parts in found:
            role = _joined(self.pieces, role, name, parts)
            count += len(parts)
        self.marks.append((len(self.pieces), role, count))

    def request(self, length: int, tail: Sequence[Message] = ()) -> Pieces:
        """The messages of the first events, ``tail`` behind them."""
        stand, role, _ = self.marks[length]
        out = self.pieces[:stand]
        for name, parts in tail:
            role = _joined(out, role, name, parts)
        return (derived(b"["), *out, *((_CLOSE,) if role else ()), derived(b"]"))


def _joined(out: list[Piece], role: str, name: str, parts: Sequence[Pieces]) -> str:
    for i, part in enumerate(parts):
        lead = b"," if i or role == name else (_NEXT if role else _OPEN)[name]
        out += led(lead, part)
    return name if parts else role


def node(entry: Entry, *, first: bool) -> list[Message]:
    """What an event adds to the messages; the first one, where it is the prompt, stands outside them."""
    message, place = message_of(entry), entry.place
    content = message.get("content")
    role = role_of(entry)
    if role == "system":
        return [] if first else [("system", _texts(content, place))]
    if role == "assistant":
        return [("assistant", _answer(message, place))]
    if role == "tool":
        return [("user", [_result(message, place)])]
    results = [_result(b, place) for b in blocks(content) if b.get("type") == "tool-result"]
    return [("user", [*_texts(content, place), *results])]


def user(content: Any, place: Place | None) -> Message:
    """A user message that stands in no event of the surface."""
    return "user", _texts(content, place)


def _texts(content: Any, place: Place | None) -> list[Pieces]:
    return [text_block(logged(string(b.get("text")), place)) for b in blocks(content) if b.get("type") == "text"]


def text_block(text: Piece) -> Pieces:
    """A text block around a text."""
    return members([("type", b'"text"'), ("text", text)])


def _answer(message: Mapping[str, Any], place: Place) -> list[Pieces]:
    signed = signatures(message)
    out: list[Pieces] = []
    for at, block in enumerate(map(mapped, listed(message.get("content")))):
        kind = block.get("type")
        if kind == "reasoning":
            out.append(_thinking(string(block.get("text")), signed[at] if at < len(signed) else "", place))
        elif kind == "text":
            out.append(text_block(logged(string(block.get("text")), place)))
        elif kind == "tool-call":
            out.append(_use(block, place))
    return out


def _thinking(text: str, signature: str, place: Place) -> Pieces:
    signed = [("signature", logged(signature, place))] if signature else []
    return members([("type", b'"thinking"'), ("thinking", logged(text, place)), *signed])


def _use(block: Mapping[str, Any], place: Place) -> Pieces:
    """A tool call; its arguments are parsed and spelled anew, so that escapes in them are gone."""
    raw = string(block.get("arguments"))
    try:
        given = spelled(json_text.loads(raw))
    except ValueError:
        given = b"{}"
    name, call = logged(block.get("name"), place), logged(block.get("id"), place)
    return members([("type", b'"tool_use"'), ("id", call), ("name", name), ("input", Piece(given, "logged", place))])


def _result(message: Mapping[str, Any], place: Place) -> Pieces:
    failed = [("is_error", logged(message["isError"], place))] if "isError" in message else []
    return members(
        [
            ("type", b'"tool_result"'),
            ("tool_use_id", logged(message.get("toolCallId"), place)),
            ("content", array(_texts(message.get("content"), place))),
            *failed,
        ]
    )


def tools(given: Any, place: Place) -> Pieces:
    """The tools of a request header."""
    names = (("name", "name"), ("description", "description"), ("input_schema", "parameters"))
    found = [mapped(t) for t in listed(given)]
    return array(members([(ours, logged(t[theirs], place)) for ours, theirs in names if theirs in t]) for t in found)
