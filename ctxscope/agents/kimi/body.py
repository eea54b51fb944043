"""A call's request body out of its rows (kimi.md §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.kimi import summary
from ctxscope.agents.kimi.chapter import Chapter, begins
from ctxscope.agents.kimi.rows import calls_of, parts, text_of
from ctxscope.model import Config, Entry, Learned, Piece, Point, Rebuilt
from ctxscope.wire.json_text import py

SESSION, LIMIT = "prompt_cache_key", "max_tokens"
"""What Kimi's own provider always sends, and those of other kinds never do."""
_USUAL = ("messages", SESSION, "stream", "stream_options")
"""The keys that the log implies."""
NO_RECORDING = "model, parameters and tools are not known without a recording"


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:  # noqa: ARG001 - the face's signature
    """The whole body, key by key in the order the client has them; ``None`` for another API than Chat Completions."""
    if learned.choice.get("api", "openai-chat") != "openai-chat":
        return None
    keys = learned.keys or _USUAL
    if LIMIT in keys and SESSION not in keys:
        keys = (*keys, SESSION)
    pieces: list[Piece] = []
    for key in keys:
        value = _value(log, point, learned, key, keeps_empty=SESSION not in keys)
        if value:
            pieces += [Piece(b'%s"%s":' % (b"," if pieces else b"{", key.encode())), *value]
    return Rebuilt((*pieces, Piece(b"}")), "body", () if learned.keys else (NO_RECORDING,))


def _value(log: Log, point: Point, learned: Learned, key: str, *, keeps_empty: bool) -> Sequence[Piece]:
    known = learned.values.get(f"/{key}")
    if known is not None and known.data is not None:
        return (Piece(known.data, known.provenance, path=f"/{key}"),)
    if key == "messages" and point.kind == "compaction":
        return summary.messages(point, learned)
    if key == "messages":
        return _messages(log, point, keeps_empty=keeps_empty)
    constants = {SESSION: log.ref.id, "stream": True, "stream_options": {"include_usage": True}}
    return (Piece(_spelled(constants[key])),) if key in constants else ()


def _messages(log: Log, point: Point, *, keeps_empty: bool) -> tuple[Piece, ...]:
    key = (point.data["chapter"], keeps_empty)
    written: Written = shared_memo(log, "kimi.written").setdefault(key, Written(*key))
    inside = written.upto(len(point.context)) if point.context else ()
    return (Piece(b"["), *inside, Piece(b"]"))


@dataclass(eq=False, repr=False)
class Written:
    """A chapter's messages as sent, written as far as some call needed them."""

    chapter: Chapter
    keeps_empty: bool
    """Whether a tool call without a text has a content nevertheless: with other providers than Kimi's own."""
    pieces: list[Piece] = field(default_factory=list)
    """Of all sent messages that no later row can add to."""
    starts: list[int] = field(default_factory=list)
    """For each row, the first of those that are sent with it as one message."""
    ends: list[int] = field(default_factory=list)
    """For each row, how many of ``pieces`` stand before the message it goes into."""

    def upto(self, length: int) -> tuple[Piece, ...]:
        """The messages that the first ``length`` rows are sent as."""
        rows = self.chapter.messages
        for at in range(len(self.starts), length):
            if at and _is_one(rows[at - 1], rows[at]):
                self.starts.append(self.starts[-1])
            else:
                self.pieces += self._message(self.starts[-1], at) if at else ()
                self.starts.append(at)
            self.ends.append(len(self.pieces) if self.starts[-1] == at else self.ends[-1])
        start = self.starts[length - 1]
        return (*self.pieces[: self.ends[start]], *self._message(start, length))

    def _message(self, start: int, end: int) -> tuple[Piece, ...]:
        rows, comma = self.chapter.messages[start:end], b"," if start else b""
        if len(rows) == 1:
            return (Piece(comma + _spelled(_sent(rows[0], keeps_empty=self.keeps_empty)), "logged", rows[0].place),)
        pieces = [Piece(comma + b'{"role":"user","content":[')]
        for row in rows:
            inside = b",".join(map(_spelled, parts(row.data.get("content"))))
            if inside:
                pieces.append(Piece((b"," if len(pieces) > 1 else b"") + inside, "logged", row.place))
        return (*pieces, Piece(b"]}"))


def _is_one(row: Entry, following: Entry) -> bool:
    """Whether two rows are sent as one message: the user's, neither of them a notification."""
    return row.kind == following.kind == "user" and not any(begins(r, "<notification ") for r in (row, following))


def _sent(row: Entry, *, keeps_empty: bool) -> Mapping[str, Any]:
    """A row as sent: thinking apart, a single text as a string, a call's empty content left out."""
    if row.kind == "prompt":
        return {"role": "system", "content": row.data["content"]}
    content = parts(row.data.get("content"))
    shown = [part for part in content if part.get("type") != "think"]
    thought = "".join(text_of(part, "think") for part in content)
    one = len(shown) == 1 and shown[0].get("type") == "text"
    sent = {"role": row.kind, "name": row.data.get("name"), "content": text_of(shown[0]) if one else shown}
    if row.kind == "assistant" and calls_of(row.data) and not keeps_empty and not any(map(_is_something, shown)):
        del sent["content"]
    sent |= {key: row.data.get(key) for key in ("tool_calls", "tool_call_id", "partial")}
    return {**{k: v for k, v in sent.items() if v is not None}, **({"reasoning_content": thought} if thought else {})}


def _is_something(part: Mapping[str, Any]) -> bool:
    return part.get("type") != "text" or bool(text_of(part).strip())


def _spelled(value: Any) -> bytes:
    return py(value).encode("utf-8", "surrogatepass")
