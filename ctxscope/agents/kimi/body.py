"""A call's request body out of its rows, and what no row holds out of bodies served before (kimi.md §4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.kimi.chapter import Chapter, begins
from ctxscope.agents.kimi.rows import calls_of, parts, text_of
from ctxscope.model import (
    Body,
    CallKind,
    Config,
    Difference,
    Entry,
    Learnable,
    Learned,
    Named,
    Piece,
    Point,
    Rebuilt,
    Value,
)
from ctxscope.wire.blocks import listed, mapped, param, parsed
from ctxscope.wire.json_text import py
from ctxscope.wire.raw_object import member_texts

COMPACTS = "You are a helpful assistant that compacts conversation context."
ASIDE = b"This is a side question from the user."
_SETTING = "settings and command line decide it; it is not logged"
LEARNABLE = (
    Learnable("/tools", "the agent's own and those of its servers; they are not logged"),
    *(Learnable(f"/{name}", _SETTING) for name in ("model", "max_tokens", "reasoning_effort", "thinking")),
    *(Learnable(f"/{name}", _SETTING) for name in ("temperature", "top_p", "n", "stop")),
    *(Learnable(f"/{name}", _SETTING) for name in ("presence_penalty", "frequency_penalty")),
    Learnable("/messages/1/content/*/text", "what asks for a summary, with the user's own words on it, is not logged"),
)
_TAKEN = tuple(item.path for item in LEARNABLE if "*" not in item.path)
_USUAL = ("messages", "prompt_cache_key", "stream", "stream_options")
"""The keys that the log implies."""
NO_RECORDING = "model, parameters and tools are not known without a recording"


def named(headers: Mapping[str, str], body: Body) -> Named:  # noqa: ARG001 - the face's signature
    """The session is the cache key of each request."""
    key = param(body, "prompt_cache_key")
    return Named(key if isinstance(key, str) else None)


def classify(body: Body) -> CallKind | None:
    """``compaction`` by its fixed prompt, ``side`` for a side question by its last message, ``main`` with tools."""
    system = next((s for s in body.segments if s.kind == "system"), None)
    if system is not None and COMPACTS.encode() in body.data[system.start : system.end]:
        return "compaction"
    last = next((s for s in reversed(body.segments) if s.kind == "message"), None)
    if last is not None and last.role == "user" and ASIDE in body.data[last.start : last.end]:
        return "side"
    return "main" if any(s.kind == "tool" for s in reversed(body.segments)) else None


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """What the first call of the same lineage that can be read was sent beside its messages, holds for all of it."""
    taught: str | None = None
    first: Mapping[str, bytes] = {}
    for at, (other, digest) in enumerate(before.told):
        if other.lineage == point.lineage and (first := _members(log, digest, partial(_body, before, at))):
            taught = other.place.at
            break
    else:
        first = _members(log, body.sha256, lambda: body)
    values = {p: Value(first[p[1:]], "learned" if taught else "echoed") for p in _TAKEN if p[1:] in first}
    if point.kind == "compaction":
        number = len(_questions(point))
        asked = _asked(body, number)
        if asked is not None:
            values[f"/messages/1/content/{number}/text"] = Value(asked, "echoed")
    return Learned(values, tuple(first), choice={"api": body.api, "taught": taught})


def _body(before: Before, at: int) -> Body:
    return before[at][1]


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:  # noqa: ARG001 - the face's signature
    """The whole body, key by key in the order the client has them; ``None`` for another API than Chat Completions."""
    if learned.choice.get("api", "openai-chat") != "openai-chat":
        return None
    pieces: list[Piece] = []
    for key in learned.keys or _USUAL:
        value = _value(log, point, learned, key)
        if value:
            pieces += [Piece(b'%s"%s":' % (b"," if pieces else b"{", key.encode())), *value]
    return Rebuilt((*pieces, Piece(b"}")), "body", () if learned.keys else (NO_RECORDING,))


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:  # noqa: ARG001 - the face's signature
    """A value that is not logged, and is another than the first call of the lineage was sent."""
    top = "/" + difference.path.partition("/")[2].partition("/")[0]
    taught = learned.choice.get("taught")
    if taught is None or top not in _TAKEN:
        return None
    return f"{top[1:]} is not in the log, and the call answered at {taught} was sent without it or with another value"


def _value(log: Log, point: Point, learned: Learned, key: str) -> Sequence[Piece]:
    known = learned.values.get(f"/{key}")
    if known is not None and known.data is not None:
        return (Piece(known.data, known.provenance, path=f"/{key}"),)
    if key == "messages":
        return _summary_request(point, learned) if point.kind == "compaction" else _messages(log, point)
    constants = {"prompt_cache_key": log.ref.id, "stream": True, "stream_options": {"include_usage": True}}
    return (Piece(_spelled(constants[key])),) if key in constants else ()


# --- messages --------------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Written:
    """A chapter's messages as sent, written as far as some call needed them."""

    pieces: list[Piece] = field(default_factory=list)
    """Of all sent messages that no later row can add to."""
    starts: list[int] = field(default_factory=list)
    """For each row, the first of those that are sent with it as one message."""
    ends: list[int] = field(default_factory=list)
    """For each row, how many of ``pieces`` stand before the message it goes into."""

    def upto(self, rows: Sequence[Entry], length: int) -> tuple[Piece, ...]:
        """The messages that the first ``length`` rows are sent as."""
        for at in range(len(self.starts), length):
            if at and _is_one(rows[at - 1], rows[at]):
                self.starts.append(self.starts[-1])
            else:
                self.pieces += _message(rows[self.starts[-1] : at], first=self.starts[-1] == 0) if at else ()
                self.starts.append(at)
            self.ends.append(len(self.pieces) if self.starts[-1] == at else self.ends[-1])
        start = self.starts[length - 1]
        return (*self.pieces[: self.ends[start]], *_message(rows[start:length], first=start == 0))


def _messages(log: Log, point: Point) -> tuple[Piece, ...]:
    chapter: Chapter = point.data["chapter"]
    written: Written = shared_memo(log, "kimi.written").setdefault(chapter, Written())
    inside = written.upto(chapter.messages, len(point.context)) if point.context else ()
    return (Piece(b"["), *inside, Piece(b"]"))


def _is_one(row: Entry, following: Entry) -> bool:
    """Whether two rows are sent as one message: the user's, neither of them a notification."""
    return row.kind == following.kind == "user" and not any(begins(r, "<notification ") for r in (row, following))


def _message(rows: Sequence[Entry], *, first: bool) -> tuple[Piece, ...]:
    comma = b"" if first else b","
    if len(rows) == 1:
        return (Piece(comma + _spelled(_sent(rows[0])), "logged", rows[0].place),)
    pieces = [Piece(comma + b'{"role":"user","content":[')]
    for row in rows:
        inside = b",".join(map(_spelled, parts(row.data.get("content"))))
        if inside:
            pieces.append(Piece((b"," if len(pieces) > 1 else b"") + inside, "logged", row.place))
    return (*pieces, Piece(b"]}"))


def _sent(row: Entry) -> Mapping[str, Any]:
    """A row as sent: thinking apart, a single text as a string, a call's empty content left out."""
    if row.kind == "prompt":
        return {"role": "system", "content": row.data["content"]}
    shown = [part for part in parts(row.data.get("content")) if part.get("type") != "think"]
    thought = "".join(text_of(part, "think") for part in parts(row.data.get("content")))
    one = len(shown) == 1 and shown[0].get("type") == "text"
    sent = {"role": row.kind, "name": row.data.get("name"), "content": text_of(shown[0]) if one else shown}
    if row.kind == "assistant" and calls_of(row.data) and not any(_is_something(part) for part in shown):
        del sent["content"]
    sent |= {key: row.data.get(key) for key in ("tool_calls", "tool_call_id", "partial")}
    return {**{k: v for k, v in sent.items() if v is not None}, **({"reasoning_content": thought} if thought else {})}


def _is_something(part: Mapping[str, Any]) -> bool:
    return part.get("type") != "text" or bool(text_of(part).strip())


# --- the request for a summary ---------------------------------------------------------------------------------------


def _questions(point: Point) -> list[Piece]:
    """The texts of all messages to be summarised, each message led by its number and role."""
    found: list[Piece] = []
    rows = [row for row in point.context if row.kind != "prompt"]
    for number, row in enumerate(rows, 1):
        found.append(Piece(_text(f"## Message {number}\nRole: {row.kind}\nContent:\n")))
        texts = [part for part in parts(row.data.get("content")) if part.get("type") == "text"]
        found += [Piece(_text(text_of(part)), "logged", row.place) for part in texts]
    return found


def _summary_request(point: Point, learned: Learned) -> tuple[Piece, ...]:
    pieces = [Piece(b'[{"role":"system","content":%s},{"role":"user","content":[' % _spelled(COMPACTS))]
    questions = _questions(point)
    for piece in questions:
        pieces += [piece, Piece(b",")]
    path = f"/messages/1/content/{len(questions)}/text"
    asked = learned.values.get(path)
    if asked is None or asked.data is None:
        return (*pieces[:-1], Piece(b"]}]"))
    last = Piece(asked.data, asked.provenance, path=path)
    return (*pieces, Piece(b'{"type":"text","text":'), last, Piece(b"}]}]"))


def _asked(body: Body, number: int) -> bytes | None:
    """The text behind those to be summarised, in a served request."""
    messages = listed(parsed(body.data).get("messages"))
    content = listed(mapped(messages[1]).get("content")) if len(messages) > 1 else []
    text = mapped(content[number]).get("text") if len(content) == number + 1 else None
    return _spelled(text) if isinstance(text, str) else None


def _text(text: str) -> bytes:
    return b'{"type":"text","text":%s}' % _spelled(text)


def _spelled(value: Any) -> bytes:
    return py(value).encode("utf-8", "surrogatepass")


def _members(log: Log, digest: str, load: Callable[[], Body]) -> Mapping[str, bytes]:
    """A body's top-level values by key; empty for one that cannot be read. Each is read once."""
    memo = shared_memo(log, "kimi.members")
    if digest not in memo:
        try:
            members = member_texts(load().data)
        except ValueError:
            members = {}
        memo[digest] = {key: value if f"/{key}" in _TAKEN else b"" for key, value in members.items()}
    found: Mapping[str, bytes] = memo[digest]
    return found
