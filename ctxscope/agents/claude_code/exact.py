"""A whole body out of the request record its answer names (claude_code.md §4.1).

The record names its messages by hash. A hash that nothing in the log has any more (a line was changed) is answered by
the message the chain has at that place; where a record and a line of the transcript tell one text differently, the
line is believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.claude_code.chain import implied
from ctxscope.agents.claude_code.learning import BILLING_PATH, CHECKSUM
from ctxscope.agents.claude_code.messages import Message, joined, led, sent
from ctxscope.agents.claude_code.metadata import metadata
from ctxscope.agents.claude_code.reconcile import Told, as_recorded, as_told
from ctxscope.agents.claude_code.records import Found, Records, digest, records
from ctxscope.agents.claude_code.texts import is_reminder, mapped, quoted, spelled, string
from ctxscope.model import Entry, Learned, Piece, Place, Point, Rebuilt

NO_BILLING = "billing text and metadata of requests are not known without a recording"
Marks = Mapping[tuple[str | int, ...], Any]
"""Cache marks by path, the path of the place that carries one."""


def rebuild(log: Log, point: Point, record: Entry, learned: Learned) -> Rebuilt | None:
    """The body a record stands for; ``None`` where it cannot be read."""
    found = records(log)
    data = record.data
    hashes = found.hashes(string(data.get("id")))
    params, shape = mapped(data.get("params")), found.shapes.get(string(data.get("shapeHash")))
    if hashes is None or not params:
        return None
    marks = _marks(data.get("cacheControl"))
    notices: list[str] = []
    fields: dict[str, list[Piece]] = {"model": _logged(params.get("model"), record.place)}
    messages = _messages(log, point, found, hashes, marks)
    notices += [n for n in messages.notices if n]
    fields["messages"] = [Piece(b"["), *messages.pieces, Piece(b"]")]
    content = mapped(shape.data.get("shape")) if shape is not None else {}
    if shape is None:
        notices.append(f"{record.place}: the record of its system prompt and tools is not in the log")
    elif digest(content) != data.get("shapeHash"):
        notices.append(f"{shape.place}: what it holds is not what its own hash was made from")
    place = shape.place if shape is not None else record.place
    fields["system"] = _system(content.get("system"), marks, place, learned)
    if isinstance(content.get("tools"), list):
        fields["tools"] = _tools(content["tools"], marks, place)
    own = metadata(log, point, learned)
    if own:
        fields["metadata"] = own
    elif not learned.keys:
        notices.append(NO_BILLING)
    for name, value in params.items():
        if name not in ("model", "betas"):
            fields[name] = _logged(value, record.place)
    fields["stream"] = [Piece(b"true")]
    return Rebuilt(tuple(body_of(fields)), "body", tuple(notices))


def body_of(fields: Mapping[str, Sequence[Piece]]) -> list[Piece]:
    """An object out of its members."""
    pieces: list[Piece] = []
    for key, value in fields.items():
        pieces.append(Piece((b"," if pieces else b"{") + quoted(key) + b":"))
        pieces += value
    return [*pieces, Piece(b"}")]


def _logged(value: Any, place: Place) -> list[Piece]:
    return [Piece(spelled(value), "logged", place)]


def _marks(recorded: Any) -> Marks:
    found: dict[tuple[str | int, ...], Any] = {}
    for mark in recorded if isinstance(recorded, list) else ():
        path = mapped(mark).get("path")
        if isinstance(path, list) and all(isinstance(p, str | int) for p in path):
            found[tuple(path)] = mark.get("value")
    return found


def _at(marks: Marks, *path: str | int) -> Marks:
    """The marks below a path, by what is left of theirs."""
    return {p[len(path) :]: v for p, v in marks.items() if p[: len(path)] == path}


def marked(block: Any, marks: Marks) -> Any:
    """A block with its cache marks, each as the last member of what carries it."""
    if not marks or not isinstance(block, dict | list):
        return block
    copy: Any = dict(block) if isinstance(block, dict) else list(block)
    for path, value in marks.items():
        if not path:
            copy["cache_control"] = value
            continue
        step = path[0]
        there = step in copy if isinstance(copy, dict) else isinstance(step, int) and 0 <= step < len(copy)
        if there:
            copy[step] = marked(copy[step], _at(marks, step))
    return copy


def _system(blocks: Any, marks: Marks, place: Place, learned: Learned) -> list[Piece]:
    """The billing text, then the recorded blocks; marks count from the first recorded one."""
    texts = [_logged(marked(b, _at(marks, "system", i)), place) for i, b in enumerate(_listed(blocks))]
    billing = learned.values.get(BILLING_PATH)
    if billing is not None and billing.data is not None:
        texts.insert(0, [Piece(b'{"type":"text","text":"'), *billing_pieces(learned), Piece(b'"}')])
    return _array(texts)


def billing_pieces(learned: Learned) -> Iterator[Piece]:
    """The billing text as it stands in a JSON string; its checksum is this request's own."""
    billing = learned.values[BILLING_PATH]
    own = learned.values.get(f"{BILLING_PATH}/cch")
    text = billing.data or b""
    found = CHECKSUM.search(text)
    if own is None or own.data is None or found is None:
        yield Piece(text, billing.provenance, path=BILLING_PATH)
        return
    yield Piece(text[: found.start(1)], billing.provenance, path=BILLING_PATH)
    yield Piece(own.data, own.provenance, path=BILLING_PATH)
    yield Piece(text[found.end(1) :], billing.provenance, path=BILLING_PATH)


def _tools(tools: Sequence[Any], marks: Marks, place: Place) -> list[Piece]:
    return _array([_logged(marked(t, _at(marks, "tools", i)), place) for i, t in enumerate(tools)])


def _array(values: Sequence[list[Piece]]) -> list[Piece]:
    out = [Piece(b"[")]
    for i, value in enumerate(values):
        out += [Piece(b","), *value] if i else value
    return [*out, Piece(b"]")]


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


@dataclass(eq=False, slots=True)
class Conversation:
    """The messages of a request, with what is needed to begin the next one from them."""

    hashes: Sequence[str] = ()
    chain: Sequence[Message] = ()
    pieces: list[Piece] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    """Number of the piece each message begins with."""
    used: list[int] = field(default_factory=list)
    """How many messages of the chain are used up before each."""
    notices: list[str | None] = field(default_factory=list)
    settled: int = 0
    """Messages from the start that will not be written otherwise: known, and without a mark."""

    def common(self, other: Conversation) -> int:
        """How many messages another conversation can take over."""
        count = min(self.settled, len(other.hashes))
        while count and self.hashes[:count] != other.hashes[:count]:
            count = next(i for i in range(count) if self.hashes[i] != other.hashes[i])
        while count and self.chain[: self._upto(count)] != other.chain[: self._upto(count)]:
            count -= 1
        return count

    def _upto(self, count: int) -> int:
        return self.used[count] if count < len(self.used) else self.used[-1]


def _messages(log: Log, point: Point, found: Records, hashes: Sequence[str], marks: Marks) -> Conversation:
    """The messages; those the call before of the thread has too are taken over from it."""
    found.hash_lines(len(found.tree.order))
    own: dict[int, dict[tuple[str | int, ...], Any]] = {}
    for path, value in _at(marks, "messages").items():
        if path and isinstance(path[0], int):
            own.setdefault(path[0], {})[path[1:]] = value
    made = Conversation(hashes, implied(log, point))
    kept: dict[str, Conversation] = shared_memo(log, "claude_code.exact").setdefault(found, {})
    last = kept.get(point.lineage)
    start = min([last.common(made), *own]) if last is not None else 0
    if last is not None and start:
        end = last.firsts[start] if start < len(last.firsts) else len(last.pieces)
        made.pieces, made.firsts, made.used = last.pieces[:end], last.firsts[:start], last.used[: start + 1]
        made.notices, made.settled = last.notices[:start], start
    for i in range(start, len(hashes)):
        _add(made, found, i, own.get(i, {}))
    kept[point.lineage] = made
    return made


def _add(made: Conversation, found: Records, index: int, marks: Marks) -> None:
    """Write the next message: the one its hash stands for, beside the one the chain has there."""
    name = made.hashes[index]
    known = found.pool.get(name)
    at = made.used[-1] if made.used else 0
    message = made.chain[at] if at < len(made.chain) else None
    following = found.pool.get(made.hashes[index + 1]) if index + 1 < len(made.hashes) else None
    if message is not None and known is not None and (known.role != message.role or _is_extra(known, following)):
        message = None
    told = _told(known, message, found.tree.restored)
    pieces = _message(told, marks) if told is not None else []
    if not made.used:
        made.used.append(0)
    made.firsts.append(len(made.pieces))
    made.used.append(at + (message is not None))
    made.pieces += led(b",", pieces) if pieces and made.pieces else pieces
    broken = known is not None and known.entry is not None and not _holds(known, name)
    place = known.entry.place if broken and known is not None and known.entry is not None else None
    made.notices.append(f"{place}: what it holds is not what its own hash was made from" if place else None)
    if made.settled == index and known is not None and not marks:
        made.settled += 1


def _is_extra(known: Found, following: Found | None) -> bool:
    """Whether a message is the client's own: the lines imply no two of a user's that follow one another."""
    both = known.role == "user" and following is not None and following.role == "user"
    return both and all(is_reminder(string(b.get("text"))) for b in known.blocks)


def _holds(known: Found, name: str) -> bool:
    return digest({"role": known.role, "content": known.blocks, **known.more}) == name


def _told(known: Found | None, message: Message | None, restored: set[Any]) -> Told | None:
    """Blocks of a message with the place of each."""
    if known is None:
        return as_told(message) if message is not None else None
    if known.entry is None:
        blocks = [(sent(u.block, u.block), u.node.entry.place, False) for u in known.units]
        return Told(known.role, blocks, known.more, bare=all(u.bare for u in known.units))
    return as_recorded(known, known.entry.place, message, restored)


def _message(told: Told, marks: Marks) -> list[Piece]:
    """A message as sent: a lone text that no line holds as a block is a string without a mark, all else blocks (measured)."""
    blocks = told.blocks
    lone = blocks[0][0] if len(blocks) == 1 and told.role != "assistant" and told.bare else {}
    if not marks and lone.keys() == {"type", "text"} and lone.get("type") == "text":
        text = Piece(spelled(lone["text"]), "logged", blocks[0][1], external=blocks[0][2])
        pieces = [*led(b'{"role":"%s","content":' % told.role.encode(), [text]), Piece(b"}")]
    else:
        spelt = [
            [Piece(spelled(marked(b, _at(marks, "content", i))), "logged", place, external=external)]
            for i, (b, place, external) in enumerate(blocks)
        ]
        pieces = joined(told.role, spelt)
    if told.more:
        tail = b"".join(b"," + quoted(k) + b":" + spelled(v) for k, v in told.more.items())
        pieces[-1] = replace(pieces[-1], data=pieces[-1].data[:-1])
        pieces += [Piece(tail, "logged", blocks[0][1] if blocks else told.place), Piece(b"}")]
    return pieces
