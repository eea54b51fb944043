"""Messages of a trail as the Copilot CLI sends them, live or after a resume (copilot.md §4).

What the log holds of a message is spelt from the log. What it does not hold, a live answer's ``reasoning_details`` and
the model's own spelling of tool arguments, comes from the first served body that carries the message.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents.copilot.events import payload
from ctxscope.agents.copilot.spelling import raw
from ctxscope.agents.copilot.trail import Item, Request
from ctxscope.model import Entry, Piece, Provenance
from ctxscope.wire.blocks import mapped, string

SOURCE = "__copilotMessageSource"
REASONING = ("reasoning_content", "reasoning", "reasoning_text")
"""Names under which servers take reasoning back."""
USUAL = REASONING[0]
ORDER = ("reasoning_details", "role", "content", "refusal", "tool_calls", *REASONING)
"""Keys of a live answer, in the order it is sent with."""

Pieces = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """How one run of the program sends messages: of what it wrote itself (live), or found in the log."""

    live: bool
    source: bool
    """Tool results carry ``__copilotMessageSource``."""
    called: bool = False
    """Results of one answer stand in the order of its calls, not in that of the log."""
    refusal: bool = True
    reasoning: str | None = USUAL
    """Key that reasoning goes back under; ``None``: it does not."""
    keys: tuple[tuple[bool, tuple[str, ...]], ...] = ()
    """Order of the keys of an answer with and without tool calls, where it is not ``ORDER``."""


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """What a served body showed of one live answer beyond the log."""

    at: int
    """Number of the joined call that showed it."""
    details: bytes | None = None
    arguments: Mapping[int, bytes] = field(default_factory=dict)
    """By number of the tool call, its arguments as the JSON string sent; only where they say what the log says."""


def system(entry: Entry) -> Pieces:
    """The first message."""
    return (_logged(entry, {"role": "system", "content": string(payload(entry).get("content"))}),)


def message(item: Item, form: Form, taken: Taken | None, now: int | None, path: str) -> Pieces:
    """One message. ``now``: the joined call it is rendered for, where there is one; ``path``: its JSON pointer."""
    told = payload(item.entry)
    if item.role == "user":
        sent = told.get("transformedContent")
        return (
            _logged(item.entry, {"role": "user", "content": sent if isinstance(sent, str) else told.get("content")}),
        )
    if item.role == "tool":
        return (_logged(item.entry, _result(item, told, form)),)
    if form.live:
        return _Answer(item, told, form, taken, now, path).pieces()
    return _Answer(item, told, form, None, None, path).pieces()


def content_of(told: Mapping[str, Any]) -> str | None:
    """The text of an answer; ``None`` for an empty one."""
    return string(told.get("content")) or None


def _logged(entry: Entry, value: Mapping[str, Any]) -> Piece:
    return Piece(raw(value), "logged", entry.place)


def _result(item: Item, told: Mapping[str, Any], form: Form) -> dict[str, Any]:
    result, error = mapped(told.get("result")), mapped(told.get("error"))
    content = result.get("content") if "content" in result else error.get("message")
    value = {"role": "tool", "tool_call_id": string(told.get("toolCallId")), "content": content}
    if form.source and item.requests:
        value[SOURCE] = source_of(item.requests[0])
    return value


def source_of(request: Request) -> dict[str, str]:
    """Where a tool's result came from, as it is told after a resume."""
    summary = {"summary": request.summary} if request.summary else {}
    return {"kind": "tool", "name": request.name, **summary}


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """An answer being spelt."""

    item: Item
    told: Mapping[str, Any]
    form: Form
    taken: Taken | None
    now: int | None
    path: str

    def pieces(self) -> Pieces:
        """The message, key by key."""
        values = self._values()
        order = dict(self.form.keys).get(bool(self.item.requests), ORDER) if self.form.live else ORDER
        found: list[Piece] = []
        for key in (*(k for k in order if k in values), *(k for k in values if k not in order)):
            found += [Piece((b"," if found else b"{") + raw(key) + b":"), *values[key]]
        return (*found, Piece(b"}"))

    def _values(self) -> dict[str, Pieces]:
        values: dict[str, Pieces] = {"role": (Piece(b'"assistant"'),), "content": self._text(content_of(self.told))}
        if self.item.requests:
            values["tool_calls"] = self._calls()
        if not self.form.live:
            return values
        if self.form.refusal:
            values["refusal"] = (Piece(b"null"),)
        thought = string(self.told.get("reasoningText"))
        if thought and self.form.reasoning:
            values[self.form.reasoning] = self._text(thought)
        if self.taken is not None and self.taken.details is not None:
            values["reasoning_details"] = (self._borrowed(self.taken.details, "/reasoning_details"),)
        return values

    def _text(self, text: str | None) -> Pieces:
        return (Piece(raw(text), "logged", self.item.entry.place),)

    def _calls(self) -> Pieces:
        found: list[Piece] = []
        for request in self.item.requests:
            head = raw({"id": request.id, "type": "function", "function": {"name": request.name}})[:-2]
            found.append(Piece((b"," if found else b"[") + head, "logged", self.item.entry.place))
            found += [Piece(b',"arguments":'), self._arguments(request), Piece(b"}}")]
        return (*found, Piece(b"]"))

    def _arguments(self, request: Request) -> Piece:
        known = self.taken.arguments.get(request.number) if self.taken is not None else None
        if known is not None:
            return self._borrowed(known, f"/tool_calls/{request.number}/function/arguments")
        return Piece(arguments(request), "logged", self.item.entry.place)

    def _borrowed(self, data: bytes, below: str) -> Piece:
        assert self.taken is not None
        provenance: Provenance = "echoed" if self.taken.at == self.now else "learned"
        return Piece(data, provenance, path=self.path + below)


def arguments(request: Request) -> bytes:
    """A call's arguments as they are written from the log: an object as compact JSON, a text as it is."""
    value = request.arguments
    return raw(value if isinstance(value, str) else raw(value).decode("utf-8", "surrogatepass"))


@dataclass(eq=False, slots=True, repr=False)
class Rendered:
    """The messages of one trail as one run sends them, grown as calls ask for more."""

    items: Sequence[Item]
    process: int
    forms: tuple[Form, Form]
    """Live, and found in the log."""
    base: int
    taken: Callable[[Item], Taken | None]
    pieces: list[Piece] = field(default_factory=list)
    """Every message that is final, each led by its comma."""
    starts: list[int] = field(default_factory=lambda: [0])
    ats: list[int] = field(default_factory=list)
    """By message, the latest joined call that anything up to it was taken from."""

    def request(self, length: int, now: int | None) -> list[Piece]:
        """The first ``length`` messages for the joined call ``now``; without one, as the log alone gives them."""
        while len(self.ats) < length and self._is_final(len(self.ats), now):
            at = len(self.ats)
            found = self._taken(at)
            before = self.ats[-1] if self.ats else -1
            self.pieces += self._message(at, None)
            self.starts.append(len(self.pieces))
            self.ats.append(max(before, found.at if found is not None else -1))
        end = min(length, len(self.ats) if now is None else bisect_left(self.ats, now))
        out = self.pieces[: self.starts[end]]
        for at in range(end, length):
            out += self._message(at, now)
        return out

    def _is_final(self, at: int, now: int | None) -> bool:
        found = self._taken(at)
        return now is None or found is None or found.at < now

    def _taken(self, at: int) -> Taken | None:
        item = self.items[at]
        return self.taken(item) if item.role == "assistant" and item.process == self.process else None

    def _message(self, at: int, now: int | None) -> list[Piece]:
        item = self.items[at]
        form = self.forms[0] if item.process == self.process else self.forms[1]
        first, *rest = message(item, form, self._taken(at), now, f"/messages/{self.base + at}")
        lead = b"," if at + self.base else b""
        return [Piece(lead + first.data, first.provenance, first.place, first.path), *rest]
