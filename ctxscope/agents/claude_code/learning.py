"""What Claude Code's log does not hold, taken from served bodies (claude_code.md §4.3, §4.4).

System prompt, tools and parameters are those of the first call of a thread to a model, and hold from then on. The
billing text changes with the first message of the conversation, and holds as long as that stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.claude_code.chain import beside
from ctxscope.agents.claude_code.messages import EPHEMERAL, Form
from ctxscope.agents.claude_code.points import context_of
from ctxscope.agents.claude_code.records import record_of
from ctxscope.agents.claude_code.served import Top, message_number, top_of
from ctxscope.agents.claude_code.texts import BILLING
from ctxscope.agents.claude_code.tree import Node
from ctxscope.model import Body, Learnable, Learned, Point, Value

_HEAD = "versions without request records log neither the system prompt nor the tools"
_PARAM = "a request parameter; versions without request records do not log them"
PARAMS = (
    *("max_tokens", "temperature", "top_p", "top_k", "thinking", "context_management", "output_config", "tool_choice"),
    *("stop_sequences", "service_tier", "speed", "diagnostics", "safeguards", "data_flow", "thread", "container"),
    *("mcp_servers", "fallback", "betas"),
)
OLD = ("0.", "1.", "2.0.")
LIMITS = frozenset({"max_tokens", "temperature", "thinking"})
"""Parameters that an unstreamed request has otherwise."""
BILLING_PATH = "/system/0/text"
LEARNABLE = (
    Learnable("/system", _HEAD),
    Learnable(BILLING_PATH, "the billing text and its checksums are made for the wire and never logged"),
    Learnable("/tools", _HEAD),
    Learnable("/stream", "a call whose stream broke off may be made again without one"),
    Learnable("/metadata", "ids of the device and the account are never logged"),
    Learnable("/model", "the log holds the model that answered; the request may have named it by an alias"),
    *(Learnable(f"/{name}", _PARAM) for name in PARAMS),
    Learnable(
        "/messages/*/content",
        "reminders the client adds, and whether a lone text is sent as a string or a block, are not logged",
    ),
)
_BILLED = re.compile(rb'"text":"(%s[^"\\]*)"' % BILLING.encode())
CHECKSUM = re.compile(rb"cch=([0-9a-fA-F]+)")
_MARK = re.compile(rb'"cache_control":(\{[^{}]*\})')

_ENOUGH = 3
"""Messages a body needs to have before it tells how many at the end are marked."""
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A thing and the call that showed it first."""

    at: int
    point: Point
    value: Any


@dataclass(eq=False, slots=True)
class Taught:
    """What a row of joined calls taught; of a shorter row that it begins with, what was held by then."""

    calls: list[tuple[Point, str]] = field(default_factory=list)
    heads: dict[tuple[str, str], Held] = field(default_factory=dict)
    """``Top`` of the first call of a thread to a model."""
    limits: dict[tuple[str, str, bool], Held] = field(default_factory=dict)
    """The same of the first one that is streamed, and of the first that is not."""
    marks: dict[str, Held] = field(default_factory=dict)
    """By thread, how many messages at the end are marked."""
    mark: dict[str, Held] = field(default_factory=dict)
    """By thread, the cache mark."""
    billing: dict[tuple[str, Node | None], Held] = field(default_factory=dict)
    """By thread and first message, the billing text as spelled."""

    def take(self, log: Log, point: Point, digest: str, load: Callable[[], Body]) -> None:
        """Add the next call."""
        at = len(self.calls)
        self.calls.append((point, digest))
        body = load()
        top = top_of(log, body)
        if not top.start:
            return
        thread = point.lineage
        self.heads.setdefault((thread, model_of(point)), Held(at, point, top))
        self.limits.setdefault((thread, model_of(point), _is_streamed(point, top)), Held(at, point, top))
        marks = _marks(body)
        if marks is not None:
            self.mark.setdefault(thread, Held(at, point, marks[1]))
            if marks[0] is not None:
                self.marks.setdefault(thread, Held(at, point, marks[0]))
        billed = _BILLED.search(top.values.get("system", b""))
        if billed:
            self.billing.setdefault((thread, first_message(log, point)), Held(at, point, billed[1]))

    def forget(self, start: int) -> None:
        """Take the calls from ``start`` on out again."""
        del self.calls[start:]
        self.heads, self.limits = _before(self.heads, start), _before(self.limits, start)
        self.billing = _before(self.billing, start)
        self.marks, self.mark = _before(self.marks, start), _before(self.mark, start)


def _before(held: dict[Key, Held], start: int) -> dict[Key, Held]:
    return {k: h for k, h in held.items() if h.at < start}


def model_of(point: Point) -> str:
    """The model a call was answered by; empty while it is not known."""
    return str(point.data.get("model") or "")


def asked_model(point: Point) -> str:
    """The model a call asked for as far as the log says: newer versions log it, else it is the one that answered."""
    asked = point.answer.data.get("requestedModel") if point.answer is not None else None
    return asked if isinstance(asked, str) and asked else model_of(point)


def is_other_model(point: Point, served: str) -> bool:
    """Whether a request went to another model than the log says; a gateway's name, or a short one, is no other.

    Nothing of such a request is taken: it is another call's.
    """
    own = asked_model(point)
    both = own.startswith("claude-") and served.startswith("claude-")
    return both and not (own.startswith(served) or served.startswith(own))


def first_message(log: Log, point: Point) -> Node | None:
    """The line the conversation of a call begins with."""
    trail, length = context_of(log, point)
    return next((i.nodes[0] for i in trail.items(0, length) if i.role == "user"), None)


def _marks(body: Body) -> tuple[int | None, bytes] | None:
    """How many messages at the end carry a mark, where there are enough of them to tell, and the mark; ``None``: none."""
    marked: dict[int, bytes] = {}
    last = None
    for segment in reversed(body.segments):
        number = message_number(segment.path) if segment.kind == "message" else None
        if number is None:
            continue
        last = number if last is None else last
        if number < last - _ENOUGH:
            break
        if segment.breakpoint:
            found = _MARK.findall(body.data, segment.start, segment.end)
            marked[number] = found[-1] if found else EPHEMERAL
    if last is None or not marked:
        return None
    return (len(marked) if last + 1 >= _ENOUGH else None), marked[max(marked)]


def taught(log: Log, point: Point, body: Body, before: Before) -> Taught:
    """What the joined calls up to this one taught, this one included; continued from what was asked before."""
    calls = [*before.told, (point, body.sha256)]
    memo = shared_memo(log, "claude_code.taught")
    kept: Taught | None = memo.get("kept")
    found = kept if kept is not None else Taught()
    same = min(len(found.calls), len(calls))
    if found.calls[:same] != calls[:same]:
        if len(calls) == 1:
            found = Taught()  # a question about one call alone must not cost what is known of them all
        else:
            found.forget(next(i for i in range(same) if found.calls[i] != calls[i]))
    if found is kept or len(calls) > 1 or kept is None:
        memo["kept"] = found
    for at in range(len(found.calls), len(calls)):
        load = partial(_load, before, at) if at < len(before) else lambda: body
        found.take(log, *calls[at], load)
    return found


def _load(before: Before, at: int) -> Body:
    return before[at][1]


def default_marks(version: str) -> int:
    """Messages at the end that carry a mark: two up to 2.0, one since 2.1 (measured in 1.0.103, 2.0.30, 2.1.112)."""
    return 2 if version.startswith(OLD) else 1


def default_form(point: Point) -> Form:
    """How the version of a call writes messages."""
    version = str(point.data.get("version") or "")
    return Form(default_marks(version), EPHEMERAL, not version.startswith(OLD))


@dataclass(slots=True, eq=False)
class Lesson:
    """What holds for one call."""

    at: int
    values: dict[str, Value] = field(default_factory=dict)
    taught: dict[str, str] = field(default_factory=dict)
    """By path, the place of the earlier answer whose call a value, or its absence, was learned from."""

    def hold(self, path: str, held: Held, value: bytes | None) -> None:
        """What a call showed at a path holds here; that it had no such key is held too."""
        if held.at < self.at:
            self.taught[path] = held.point.place.at
        if value is not None:
            provenance: Literal["learned", "echoed"] = "learned" if held.at < self.at else "echoed"
            self.values[path] = Value(value, provenance)


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Values for one call: what the first one of its kind showed, holds."""
    known = taught(log, point, body, before)
    own = top_of(log, body)
    lesson = Lesson(len(before))
    kind = point.lineage, model_of(point)
    held = _until(known.heads.get(kind), lesson.at) or Held(lesson.at, point, own)
    limited = _until(known.limits.get((*kind, _is_streamed(point, own))), lesson.at) or Held(lesson.at, point, own)
    source: Top = limited.value
    exact = record_of(log, point) is not None
    names = ("metadata",) if exact else ("system", "tools", "metadata", "model", *PARAMS)
    for name in names:
        by = limited if name in LIMITS else held
        if name in by.value.values or name in own.values:
            lesson.hold(f"/{name}", by, by.value.values.get(name))
    _bill(lesson, known, log, point, own)
    form = _form(known, point, lesson.at)
    choice: dict[str, Any] = {"taught": lesson.taught, "form": form, "body": body.sha256}
    if not exact and own.start and not is_other_model(point, body.model or ""):
        choice["conversation"] = beside(log, point, body, own, form)
    keys = own.keys if not source.keys else _ordered(source.keys, own)
    return Learned(lesson.values, keys, _told(form, point), choice)


def _is_streamed(point: Point, top: Top) -> bool:
    """Whether a call counts as streamed: up to 2.0 the client asks again unstreamed, with other limits (measured)."""
    return "stream" in top.keys or not str(point.data.get("version") or "").startswith(OLD)


def _until(held: Held | None, at: int) -> Held | None:
    return held if held is not None and held.at <= at else None


def _ordered(keys: tuple[str, ...], own: Top) -> tuple[str, ...]:
    """Keys as the call that taught them had them; ``messages`` is always there."""
    return keys if "messages" in keys else own.keys


def _form(known: Taught, point: Point, at: int) -> Form:
    usual = default_form(point)
    marks, mark = _until(known.marks.get(point.lineage), at), _until(known.mark.get(point.lineage), at)
    return Form(marks.value if marks else usual.marks, mark.value if mark else usual.mark, usual.newline)


def _bill(lesson: Lesson, known: Taught, log: Log, point: Point, own: Top) -> None:
    """The billing text of the conversation; a checksum in it is new in every request."""
    billed = _BILLED.search(own.values.get("system", b""))
    held = _until(known.billing.get((point.lineage, first_message(log, point))), lesson.at)
    if held is None:
        return
    text: bytes = held.value
    mine, theirs = CHECKSUM.search(billed[1]) if billed else None, CHECKSUM.search(text)
    lesson.hold(BILLING_PATH, held, text)
    if mine and theirs and mine[1] != theirs[1] and held.at < lesson.at:
        lesson.values[f"{BILLING_PATH}/cch"] = Value(mine[1], "echoed")


def _told(form: Form, point: Point) -> tuple[str, ...]:
    words = []
    if form.marks != default_marks(str(point.data.get("version") or "")):
        words.append(f"the last {form.marks} messages of a request carry a cache mark")
    if form.mark != EPHEMERAL:
        words.append(f"cache marks are {form.mark.decode('utf-8', 'replace')}")
    return tuple(words)


def split_billing(system: bytes) -> tuple[bytes, bytes, bytes] | None:
    """A system value around its billing text; ``None`` where it has none."""
    found = _BILLED.search(system)
    return (system[: found.start(1)], found[1], system[found.end(1) :]) if found else None


def texts_of(values: Mapping[str, Value]) -> tuple[Value | None, Value | None]:
    """The billing text, and the checksum that replaces the one in it."""
    return values.get(BILLING_PATH), values.get(f"{BILLING_PATH}/cch")
