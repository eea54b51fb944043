"""The request a point implies: head, messages and envelope in the client's key order, each piece with its origin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes import anthropic, chat, codex
from ctxscope.agents.hermes.canonical import Message
from ctxscope.agents.hermes.envelope import KEYS
from ctxscope.agents.hermes.history import messages_of
from ctxscope.agents.hermes.log import newest
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.prompts import api_of, route_of, tools_of
from ctxscope.agents.hermes.runs import loaded_before
from ctxscope.agents.hermes.system import system_of
from ctxscope.model import ApiName, Entry, Learned, Piece, Point, Rebuilt
from ctxscope.wire.json_text import py

Pieces = list[Piece]
_COMMA = Piece(b",")


def rebuild_at(log: Log, point: Point, learned: Learned) -> Rebuilt | None:
    """The request at a point; ``None`` for an API this agent does not speak here, or a row no request can carry."""
    api: ApiName | None = learned.choice.get("api") or api_of(log, point)
    if api is None or api not in KEYS or any(e.kind == "unknown" for e in point.context):
        return None
    writer = _Writer(log, point, learned, api)
    return Rebuilt(tuple(writer.body()), "body")


class _Writer:
    """Spells one request."""

    def __init__(self, log: Log, point: Point, learned: Learned, api: ApiName) -> None:
        self._log = log
        self._point = point
        self._learned = learned
        self._api = api
        self._route = route_of(log, point, learned)
        self._kind = self._route.kind
        self._mark: Mapping[str, Any] | None = learned.choice.get("mark")
        self._system = system_of(log, point, learned, api)
        self._spelled = shared_memo(log, "hermes.spelled")

    def body(self) -> Pieces:
        """All pieces of the body."""
        out: Pieces = []
        for name in self._learned.keys or KEYS[self._api]:
            value = self._value(name)
            if value:
                lead = "," if out else "{"
                out += [Piece(f'{lead}"{name}":'.encode()), *value]
        out.append(Piece(b"}" if out else b"{}"))
        return out

    def _value(self, name: str) -> Pieces:
        if name == "messages" and self._api == "openai-chat":
            return self._chat()
        if name == "messages":
            return self._anthropic()
        if name == "input":
            return self._codex()
        if name in {"system", "instructions"}:
            return self._system.value()
        if name == "tools":
            return self._tools()
        return self._envelope(name)

    def _envelope(self, name: str) -> Pieces:
        value = self._learned.values.get(f"/{name}")
        if value is not None:
            return [Piece(value.data, value.provenance, path=f"/{name}")] if value.data is not None else []
        if name == "model" and self._route.model:
            session = newest(self._log, f"session:{self._log.ref.id}")
            place = session.place if session is not None else None
            return [
                Piece(py(self._route.model).encode("utf-8", "surrogatepass"), "logged" if place else "derived", place)
            ]
        return []

    def _tools(self) -> Pieces:
        entry = tools_of(self._log, self._point)
        if entry is None:
            value = self._learned.values.get("/tools")
            return [Piece(value.data, value.provenance, path="/tools")] if value is not None and value.data else []
        key = (entry, self._api)
        if key not in self._spelled:
            shapes: dict[str, Callable[[Any], Any]] = {
                "openai-chat": list,
                "anthropic-messages": anthropic.wire_tools,
                "openai-responses": codex.wire_tools,
            }
            shape = shapes[self._api]
            self._spelled[key] = Piece(
                py(shape(entry.data["tools"])).encode("utf-8", "surrogatepass"), "logged", entry.place
            )
        return [self._spelled[key]]

    def _messages(self) -> Sequence[Message]:
        boundary = self._learned.choice.get("loaded_before")
        if boundary is None:
            boundary = loaded_before(self._log, self._point, {})
        return messages_of(self._log, self._point, boundary, drops=self._api != "openai-responses")

    def _chat(self) -> Pieces:
        head = self._system.message()
        messages = self._messages()
        rows = self._chat_rows(messages) if self._mark is None else self._chat_marked(messages, self._mark)
        return [Piece(b"["), *head, *(rows if head else rows[1:]), Piece(b"]")]

    def _chat_rows(self, messages: Sequence[Message]) -> Pieces:
        """Each message after a comma, continued from the call before where it began with the same messages."""
        memo = shared_memo(self._log, "hermes.pieces")
        known, pieces = memo.get(self._kind, ([], []))
        if messages[: len(known)] != known:
            known, pieces = [], []
        new = messages[len(known) :]
        pieces = [*pieces, *(p for m in new for p in (_COMMA, self._message(m)))]
        memo[self._kind] = (messages, pieces)
        return pieces

    def _message(self, message: Message) -> Piece:
        key = (message, self._kind)
        piece = self._spelled.get(key)
        if piece is None:
            piece = _piece(chat.spelled(chat.wire_message(message, self._route)), message.rows)
            self._spelled[key] = piece
        return cast("Piece", piece)

    def _chat_marked(self, messages: Sequence[Message], mark: Mapping[str, Any]) -> Pieces:
        out: Pieces = []
        wanted = chat.marked_positions([m.data.get("content") for m in messages], self._system.marks)
        for i, message in enumerate(messages):
            if i in wanted:
                wire = chat.marked(chat.wire_message(message, self._route), mark)
                out += [_COMMA, _piece(chat.spelled(wire), message.rows)]
            else:
                out += [_COMMA, self._message(message)]
        return out

    def _anthropic(self) -> Pieces:
        old = reading_of(self._log).old
        turns = anthropic.wire_turns(self._messages(), self._route, self._mark, self._system.marks, old=old)
        out: Pieces = [Piece(b"[")]
        for turn in turns:
            out.append(_piece(chat.spelled({"role": turn.role, "content": turn.content}), turn.rows))
        return [*_with_commas(out), Piece(b"]")]

    def _codex(self) -> Pieces:
        messages = self._messages()
        out: Pieces = [Piece(b"[")]
        for message, items in zip(messages, codex.wire_items(messages, self._route), strict=True):
            out += [_piece(chat.spelled(item), message.rows) for item in items]
        return [*_with_commas(out), Piece(b"]")]


def _piece(data: bytes, rows: Sequence[Entry]) -> Piece:
    return Piece(data, "logged", rows[0].place) if rows else Piece(data)


def _with_commas(pieces: Pieces) -> Pieces:
    """Commas between the pieces after the opening bracket."""
    out = pieces[:2]
    for piece in pieces[2:]:
        out += [_COMMA, piece]
    return out
