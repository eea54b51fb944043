"""Messages of a trail as the Copilot CLI sends them, live or after a resume (copilot.md §4).

What the log holds of a message is spelt from the log. What it does not hold, a live answer's ``reasoning_details``, the
model's own spelling of tool arguments, an answer cut at its limit, comes from the first served body that carries it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ctxscope.agents.copilot import failures
from ctxscope.agents.copilot.events import payload
from ctxscope.agents.copilot.spelling import raw
from ctxscope.agents.copilot.trail import Item, Request
from ctxscope.model import Entry, Piece, Provenance
from ctxscope.wire.blocks import listed, mapped, string

SOURCE = "__copilotMessageSource"
REASONING = ("reasoning_content", "reasoning", "reasoning_text")
"""Names under which servers take reasoning back."""
USUAL = REASONING[0]
ORDER = ("reasoning_details", "role", "content", "refusal", "tool_calls", *REASONING)
"""Keys of an answer, in the order it is sent with."""
SPOKEN = ("reasoning_details", "content", "role", "refusal", *REASONING)
"""The same of a live one without tool calls."""
TAKEN_OF = ("assistant", "tool", "cut")
"""Messages that may carry in their own run what the log does not hold."""
AGENT_TOOL = "task"
"""The tool that starts a subagent."""
LOST = "The execution of this tool, or a previous tool was interrupted."
"""Sent for the result of a tool that never came."""
ONWARD = "Please continue from where you left off."
"""Sent after an answer that ended at its limit without a tool call."""
SNAPSHOT = "model.messages_snapshot"
"""Event with all the messages of a compaction that the user asked for."""
SUMMARY = (
    (
        "Some of the conversation history has been summarized to free up context.\n\nYou were originally given "
        "instructions from a user over one or more turns. Here were the user messages:\n"
    ),
    "\nHere is a summary of the prior context:\n<summary>\n",
    "\n</summary>\n",
)
"""What stands around the user's messages and the summary that a compaction left."""

Pieces = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """How one run of the program sends messages: of what it wrote itself (live), or found in the log."""

    live: bool
    source: bool
    """Tool results carry ``__copilotMessageSource``."""
    refusal: bool = True
    reasoning: str | None = USUAL
    """Key that reasoning goes back under; ``None``: it does not."""
    keys: tuple[tuple[bool, tuple[str, ...]], ...] = ()
    """Order of the keys of an answer with and without tool calls, where it is not ``ORDER`` and ``SPOKEN``."""


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """What a served body showed of one live answer beyond the log."""

    at: int
    """Number of the joined call that showed it."""
    details: bytes | None = None
    arguments: Mapping[int, bytes] = field(default_factory=dict)
    """By number of the tool call, its arguments as the JSON string sent; only where they say what the log says."""
    members: Mapping[str, bytes] = field(default_factory=dict)
    """Of an answer cut at its limit, all that the log does not tell, in the order of the message."""
    content: bytes | None = None
    """Of a failed tool, what it told, where the log only says how that begins."""


def system(entry: Entry) -> Pieces:
    """The first message; of the messages that a compaction's call was logged with, the first one."""
    told = payload(entry)
    first = mapped(next(iter(listed(told.get("messages"))), None)) if entry.kind == SNAPSHOT else told
    return (_logged(entry, {"role": "system", "content": string(first.get("content"))}),)


def message(item: Item, form: Form, taken: Taken | None, now: int | None, path: str) -> Pieces:
    """One message. ``now``: the joined call it is rendered for, where there is one; ``path``: its JSON pointer."""
    told = payload(item.entry)
    if item.role == "user":
        return _user(item, told)
    if item.role == "tool":
        return _result(item, told, form, Borrowed(taken, now, path))
    if item.role == "lost" and form.live and "error" in told:
        return _result(item, told, replace(form, source=True), Borrowed(None, None, path))
    if item.role == "lost":
        name = item.requests[0].id if item.requests else string(told.get("toolCallId"))
        return (Piece(raw({"role": "tool", "tool_call_id": name, "content": LOST}), "derived"),)
    if item.role == "onward":
        return (Piece(raw({"role": "user", "content": ONWARD}), "derived"),)
    if item.role == "cut":
        return _cut(Borrowed(taken, now, path))
    if item.role == "summary":
        return _summary(item, told)
    borrowed = Borrowed(taken, now, path) if form.live else Borrowed(None, None, path)
    return _Answer(item, told, form, borrowed).pieces()


@dataclass(frozen=True, slots=True, eq=False)
class Borrowed:
    """Where a message takes what the log does not hold."""

    taken: Taken | None
    now: int | None
    path: str

    def piece(self, data: bytes, below: str) -> Piece:
        """A value of the message, by its path in it."""
        assert self.taken is not None
        provenance: Provenance = "echoed" if self.taken.at == self.now else "learned"
        return Piece(data, provenance, path=self.path + below)


def _user(item: Item, told: Mapping[str, Any]) -> Pieces:
    sent = told.get("transformedContent")
    text = sent if isinstance(sent, str) else told.get("content")
    if not item.beside:
        return (_logged(item.entry, {"role": "user", "content": text}),)
    files = {string(mapped(a).get("assetId")): string(mapped(a).get("path")) for a in listed(told.get("attachments"))}
    pieces = [Piece(b'{"role":"user","content":['), _logged(item.entry, {"type": "text", "text": text})]
    for asset in item.beside:
        image = payload(asset)
        words = f"Image file at path {files.get(string(image.get('assetId')), '')}"
        url = f"data:{string(image.get('mimeType'))};base64,{string(image.get('data'))}"
        pieces += [Piece(b","), _logged(item.entry, {"type": "text", "text": words})]
        pieces += [Piece(b","), _logged(asset, {"type": "image_url", "image_url": {"url": url}})]
    return (*pieces, Piece(b"]}"))


def _summary(item: Item, told: Mapping[str, Any]) -> Pieces:
    """What stands for the messages that a compaction took away."""
    pieces = [Piece(b'{"role":"user","content":"' + _inner(SUMMARY[0]))]
    for said in item.beside:
        text = _inner(string(payload(said).get("content")))
        pieces += [Piece(b"<user_message>\\n"), Piece(text, "logged", said.place), Piece(b"\\n</user_message>\\n")]
    summary = Piece(_inner(string(told.get("summaryContent"))), "logged", item.entry.place)
    return (*pieces, Piece(_inner(SUMMARY[1])), summary, Piece(_inner(SUMMARY[2]) + b'"}'))


def _inner(text: str) -> bytes:
    """A text as it stands between the quotes of a JSON string."""
    return raw(text)[1:-1]


def _cut(borrowed: Borrowed) -> Pieces:
    """An answer that ended at its limit: nothing of it is logged."""
    taken = borrowed.taken
    if taken is None or not taken.members:
        return (Piece(b'{"content":'), Piece(b"null", "unknown"), Piece(b',"role":"assistant","refusal":null}'))
    found: list[Piece] = []
    for key, value in taken.members.items():
        found.append(Piece((b"," if found else b"{") + raw(key) + b":"))
        fixed = {"role": b'"assistant"', "refusal": b"null"}.get(key)
        found.append(Piece(fixed) if fixed is not None else borrowed.piece(value, f"/{key}"))
    return (*found, Piece(b"}"))


def content_of(told: Mapping[str, Any]) -> str | None:
    """The text of an answer; ``None`` for an empty one."""
    return string(told.get("content")) or None


def _logged(entry: Entry, value: Mapping[str, Any]) -> Piece:
    return Piece(raw(value), "logged", entry.place)


def _result(item: Item, told: Mapping[str, Any], form: Form, borrowed: Borrowed) -> Pieces:
    result, error = mapped(told.get("result")), mapped(told.get("error"))
    content = result.get("content") if "content" in result else error.get("message")
    value = {"role": "tool", "tool_call_id": string(told.get("toolCallId"))}
    request = item.requests[0] if item.requests else None
    source = raw({SOURCE: source_of(request)})[1:] if form.source and request is not None else b"}"
    tail = (b"," if form.source and request is not None else b"") + source
    long = failures.told(told, request) if form.live and request is not None else None
    if long is None:
        return (Piece(raw({**value, "content": content})[:-1] + tail, "logged", item.entry.place),)
    head = Piece(raw(value)[:-1] + b',"content":', "logged", item.entry.place)
    if borrowed.taken is not None and borrowed.taken.content is not None:
        return (head, borrowed.piece(borrowed.taken.content, "/content"), Piece(tail))
    text = raw(long.text) if long.is_whole else raw(content)
    return (head, Piece(text, "logged", item.entry.place), Piece(tail))


def source_of(request: Request) -> dict[str, str]:
    """Where a tool's result came from, as it is told after a resume."""
    agent = mapped(request.arguments).get("agent_type") if request.name == AGENT_TOOL else None
    if isinstance(agent, str):
        return {"kind": "subagent", "name": agent, "summary": request.summary}
    summary = {"summary": request.summary} if request.summary else {}
    return {"kind": "tool", "name": request.name, **summary}


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """An answer being spelt."""

    item: Item
    told: Mapping[str, Any]
    form: Form
    borrowed: Borrowed

    def pieces(self) -> Pieces:
        """The message, key by key."""
        values = self._values()
        usual = SPOKEN if self.form.live and not self.item.requests else ORDER
        order = dict(self.form.keys).get(bool(self.item.requests), usual) if self.form.live else ORDER
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
        taken = self.borrowed.taken
        if taken is not None and taken.details is not None:
            values["reasoning_details"] = (self.borrowed.piece(taken.details, "/reasoning_details"),)
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
        known = self.borrowed.taken.arguments.get(request.number) if self.borrowed.taken is not None else None
        if known is not None:
            return self.borrowed.piece(known, f"/tool_calls/{request.number}/function/arguments")
        return Piece(arguments(request), "logged", self.item.entry.place)


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
        return self.taken(item) if item.role in TAKEN_OF and item.process == self.process else None

    def _message(self, at: int, now: int | None) -> list[Piece]:
        item = self.items[at]
        form = self.forms[0] if item.process == self.process else self.forms[1]
        first, *rest = message(item, form, self._taken(at), now, f"/messages/{self.base + at}")
        lead = b"," if at + self.base else b""
        return [Piece(lead + first.data, first.provenance, first.place, first.path), *rest]
