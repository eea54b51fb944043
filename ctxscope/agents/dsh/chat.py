"""The surface as Chat Completions carry it (v0, v3; dsh.md §4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents.dsh.answers import message_of, role_of
from ctxscope.agents.dsh.texts import (
    NO_OUTPUT,
    array,
    blocks,
    derived,
    led,
    listed,
    logged,
    mapped,
    members,
    spelled,
    string,
    text_of,
)
from ctxscope.model import Entry, Piece, Place

Pieces = tuple[Piece, ...]


class Fold:
    """Messages one behind the other."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.marks: list[tuple[int, int]] = [(0, 0)]
        """After each event: how many pieces stand, and how many messages."""

    def add(self, found: Sequence[Pieces]) -> None:
        """The next event."""
        count = self.marks[-1][1]
        for message in found:
            self.pieces += led(b",", message)
        self.marks.append((len(self.pieces), count + len(found)))

    def request(self, length: int, tail: Sequence[Pieces] = (), lead: Sequence[Pieces] = ()) -> Pieces:
        """The messages of the first events between ``lead`` and ``tail``."""
        out = [piece for message in lead for piece in led(b",", message)]
        out += self.pieces[: self.marks[length][0]]
        for message in tail:
            out += led(b",", message)
        opening = [derived(b"[" + out[0].data[1:])] if out else [derived(b"[")]
        return (*opening, *out[1:], derived(b"]"))


def node(entry: Entry) -> list[Pieces]:
    """The messages an event gives."""
    message, place = message_of(entry), entry.place
    content = message.get("content")
    role = role_of(entry)
    if role == "system":
        return [text("system", logged(text_of(content), place))]
    if role == "assistant":
        return _answer(content, place)
    if role == "tool":
        return [_result(message, place)]
    results = [_result(b, place) for b in blocks(content) if b.get("type") == "tool-result"]
    said = text_of(content)
    return [*([text("user", logged(said, place))] if said or not results else []), *results]


def text(role: str, said: Piece) -> Pieces:
    """A message of one text."""
    return members([("role", b'"%s"' % role.encode()), ("content", said)])


def _answer(content: Any, place: Place) -> list[Pieces]:
    if not listed(content):
        return []
    fields: list[tuple[str, bytes | Piece | Sequence[Piece]]] = [("role", b'"assistant"')]
    fields.append(("content", logged(text_of(content), place)))
    thoughts = [string(b.get("text")) for b in blocks(content) if b.get("type") == "reasoning"]
    if any(thoughts):
        fields.append(("reasoning_content", logged("".join(thoughts), place)))
    calls = [_call(b, place) for b in blocks(content) if b.get("type") == "tool-call"]
    if calls:
        fields.append(("tool_calls", array(calls)))
    return [members(fields)]


def _call(block: Mapping[str, Any], place: Place) -> Pieces:
    called = members([("name", logged(block.get("name"), place)), ("arguments", logged(block.get("arguments"), place))])
    return members([("id", logged(block.get("id"), place)), ("type", b'"function"'), ("function", called)])


def _result(message: Mapping[str, Any], place: Place) -> Pieces:
    said = text_of(message.get("content"))
    output = logged(said, place) if said else derived(spelled(NO_OUTPUT))
    return members(
        [("role", b'"tool"'), ("tool_call_id", logged(message.get("toolCallId"), place)), ("content", output)]
    )


def tools(given: Any, place: Place) -> Pieces:
    """The tools of a request header."""
    names = ("name", "description", "parameters")
    found = [members([(n, logged(t[n], place)) for n in names if n in t]) for t in map(mapped, listed(given))]
    return array(members([("type", b'"function"'), ("function", one)]) for one in found)
