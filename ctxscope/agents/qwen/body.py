"""A whole request body out of a place in a chat (qwen.md §4)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ctxscope.agents import Log
from ctxscope.agents.qwen.history import History
from ctxscope.agents.qwen.joined import WORDS, WORDS_IN_TEXT, Joined, Unlogged
from ctxscope.agents.qwen.learning import ENVIRONMENT, PARAMS, SYSTEM
from ctxscope.agents.qwen.messages import Form, Message, answer, spelled
from ctxscope.agents.qwen.points import call_of
from ctxscope.agents.qwen.replay import replay
from ctxscope.agents.qwen.state import Call
from ctxscope.model import Learned, Piece, Place, Point, Rebuilt

KEYS = ("model", "messages", "stream", "stream_options", "tools", "max_tokens")
"""Order of the keys where no body was seen."""
NO_HEAD = "system prompt, environment, tools and parameters of Qwen Code are not known without a recording"
ENVIRONMENT_READ = "Got it. Thanks for the context!"
"""The model's part behind the environment message."""
_DEEPSEEK, _MIRRORED = "deepseek", "qwen3"
"""Models whose names hold this get every content as a string; get reasoning under two keys (0.21.2 and later)."""
_CONSTANTS = {"stream": b"true", "stream_options": b'{"include_usage":true}'}


def rebuild(log: Log, point: Point, learned: Learned) -> Rebuilt | None:
    """The request the log implies; ``None`` for one in another form than Chat Completions."""
    call = call_of(log, point)
    if call is None or (learned.keys and "messages" not in learned.keys):
        return None
    began = learned.choice.get("began")
    call = replay(log).reread(call, *began) if began is not None else call
    fields: dict[str, tuple[Piece, ...]] = {}
    for key in learned.keys or KEYS:
        value = learned.values.get(f"/{key}")
        if key == "messages":
            fields[key] = _reminded(call, learned) if call.rules.reminds else _messages(call, learned)
        elif key == "model" and not call.model and value is not None and value.data is not None:
            fields[key] = (Piece(value.data, value.provenance, path="/model"),)
        elif key == "model" and call.model:
            fields[key] = (Piece(spelled(call.model), "logged", call.answer.place if call.answer else call.last.place),)
        elif key in _CONSTANTS:
            fields[key] = (Piece(_CONSTANTS[key]),)
        elif key in PARAMS and value is not None and value.data is not None:
            fields[key] = (Piece(value.data, value.provenance, path=f"/{key}"),)
    return Rebuilt(_joined(fields), "body", () if learned.keys else (NO_HEAD,))


def _joined(fields: Mapping[str, tuple[Piece, ...]]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for key, value in fields.items():
        pieces.append(Piece((b"," if pieces else b"{") + b'"%s":' % key.encode()))
        pieces += value
    return (*pieces, Piece(b"}"))


def _messages(call: Call, learned: Learned) -> tuple[Piece, ...]:
    form = Form(_DEEPSEEK in (call.model or "").lower(), bool(learned.choice.get("media", True)))
    out: list[Piece] = []
    for path in (SYSTEM, ENVIRONMENT):
        value = learned.values.get(path)
        if value is not None and value.data is not None:
            out += (Piece(b",") if out else Piece(b"["), Piece(value.data, value.provenance, path=path))
    anew, lead = bool(learned.choice.get("anew")), None
    environment = learned.values.get(ENVIRONMENT)
    written = Turns(call.history, call.segment.lost if anew else call.segment.early, form)
    if environment is not None and environment.data is not None:
        lead = Message("assistant", text=ENVIRONMENT_READ)
    if lead is not None and not written.begins_with_answer(0, call.length):
        out += (Piece(b","), Piece(answer(ENVIRONMENT_READ, (), "", form)))
        lead = None
    turns = written.pieces(call.length, lead)
    if call.kind == "compaction":
        text = call.rules.summarize
        last = {"role": "user", "content": text if form.flat else [{"type": "text", "text": text}]}
        turns.append(Piece(b"," + spelled(last)))
    if not out:
        out.append(Piece(b"["))
        turns[:1] = [Piece(p.data.removeprefix(b","), p.provenance, p.place) for p in turns[:1]]
    return (*out, *turns, Piece(b"]"))


def _reminded(call: Call, learned: Learned) -> tuple[Piece, ...]:
    """The messages of a version that writes reminders before what the user says."""
    model = (call.model or "").lower()
    form = Form(_DEEPSEEK in model, bool(learned.choice.get("media", True)), joined=True, mirrored=_MIRRORED in model)
    left_out = call.segment.lost if learned.choice.get("anew") else call.segment.early
    unlogged = learned.choice.get("unlogged") or Unlogged()
    out = Joined(call.history, left_out, form, unlogged).pieces(call.length)
    if call.kind == "compaction":
        out += _question(call, learned, form)
    system = learned.values.get(SYSTEM)
    if system is not None and system.data is not None:
        return (Piece(b"["), Piece(system.data, system.provenance, path=SYSTEM), *out, Piece(b"]"))
    head = [Piece(p.data.removeprefix(b","), p.provenance, p.place, p.path) for p in out[:1]]
    return (Piece(b"["), *head, *out[1:], Piece(b"]"))


def _question(call: Call, learned: Learned, form: Form) -> tuple[Piece, ...]:
    """What asks for a summary: in words that no log holds, where it is asked with the conversation's own head."""
    start, end = (b'"', b'"') if form.flat else (b"[", b"]")
    asked = learned.choice.get("asked")
    if asked is not None:
        text = Piece(asked[0], asked[1], path=WORDS_IN_TEXT if form.flat else WORDS)
    else:
        words = call.rules.summarize
        text = Piece(spelled(words)[1:-1] if form.flat else spelled({"type": "text", "text": words}))
    return Piece(b',{"role":"user","content":' + start), text, Piece(end + b"}")


@dataclass(eq=False, slots=True)
class _Settled:
    """Contents as later requests repeat them."""

    pieces: list[Piece] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """Index in ``pieces`` behind each content."""
    needs: list[int] = field(default_factory=list)
    """Length of the request from which on each content, and all before it, read so."""


class Turns:
    """The contents of a history as the messages of a request.

    A tool call without a result is left out, and a result without its call; answers that then stand side by side become
    one.
    """

    def __init__(self, history: History, left_out: tuple[int, int], form: Form) -> None:
        self._history, self._form = history, form
        self._left_out = range(*left_out)
        self._kept: _Settled = history.settled.setdefault((form, left_out), _Settled())

    def pieces(self, length: int, lead: Message | None = None) -> list[Piece]:
        """Pieces of a request made of the first contents, each message behind its comma.

        ``lead``: an answer before them, which is one with that they begin with.
        """
        kept = self._kept
        count = len(kept.ends) if lead is None else 0
        while count and kept.needs[count - 1] > length:
            count -= 1
        out = kept.pieces[: kept.ends[count - 1]] if count else []
        settling = count == len(kept.ends) and lead is None
        before: Message | None = lead
        place: Place | None = None
        for at in range(count, length):
            for message, where in self._sent(at, length):
                if before is not None and message.role == "assistant":
                    before, settling = _merged(before, message), False
                    continue
                out += self._written(before, place)
                before, place = None, where
                if message.role == "assistant":
                    before = message
                else:
                    out.append(Piece(b"," + message.data, "logged", where))
            if before is not None and at + 1 < length and not self.begins_with_answer(at + 1, length):
                out += self._written(before, place)
                before = None
            need = self._need(at)
            settling = settling and before is None and need <= length
            if settling:
                self._settle(out, need)
        return [*out, *self._written(before, place)]

    def _settle(self, out: Sequence[Piece], need: int) -> None:
        kept = self._kept
        kept.pieces += out[len(kept.pieces) :]
        kept.ends.append(len(out))
        kept.needs.append(max(need, kept.needs[-1] if kept.needs else 0))

    def _need(self, at: int) -> int:
        """Length from which on a content reads as it does for good: its calls have their results, and one follows it."""
        known = [self._history.answered.get(name) for name in self._history.turns[at].calls]
        last = max((n for n in known if n is not None), default=at)
        return max(at + 2, last + 1) if None not in known else sys.maxsize

    def begins_with_answer(self, at: int, length: int) -> bool:
        """Whether the first message of a content is an answer."""
        if at >= length:
            return False
        first = next(iter(self._sent(at, length)), None)
        return first is not None and first[0].role == "assistant"

    def _written(self, message: Message | None, place: Place | None) -> list[Piece]:
        if message is None:
            return []
        data = answer(message.text, [c for _, c in message.calls], message.reasoning, self._form)
        return [Piece(b"," + data, "logged", place) if place is not None else Piece(b"," + data)]

    def _sent(self, at: int, length: int) -> list[tuple[Message, Place | None]]:
        """Messages of one content that a request has."""
        if at in self._left_out:
            return []
        turn = self._history.turns[at]
        found = []
        for message in turn.messages(self._form):
            if message.role == "tool" and message.id and not self._has(self._history.called, message.id, length):
                continue
            sent: Message | None = message
            if message.calls:
                sent = self._answered(message, length)
            if sent is not None:
                found.append((sent, turn.place(message.part)))
        return found

    def _answered(self, message: Message, length: int) -> Message | None:
        """An answer with those of its tool calls that have a result; ``None`` where nothing is left of it."""
        calls = tuple(c for c in message.calls if self._has(self._history.answered, c[0], length))
        if calls == message.calls:
            return message
        if calls or (message.text and message.text.strip()):
            return Message("assistant", text=message.text, calls=calls, reasoning=message.reasoning)
        return None

    def _has(self, where: Mapping[str, int], name: str, length: int) -> bool:
        at = where.get(name)
        return at is not None and at < length and at not in self._left_out


def _merged(one: Message, other: Message) -> Message:
    """Two answers side by side as one; the second's reasoning is lost."""
    text = (one.text or "") + (other.text or "")
    return Message("assistant", text=text or None, calls=(*one.calls, *other.calls), reasoning=one.reasoning)
