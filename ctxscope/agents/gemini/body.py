"""A whole request body out of a place in a chat (gemini.md §4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.gemini.history import History, Placed
from ctxscope.agents.gemini.learning import HEAD, Held, Signatures
from ctxscope.agents.gemini.parts import SYNTHETIC, Part
from ctxscope.agents.gemini.points import call_of
from ctxscope.model import Learned, Piece, Point, Rebuilt

KEYS = ("contents", "systemInstruction", "tools", "generationConfig")
"""Order of the keys where no body was seen."""
NO_HEAD = "system prompt, tools and parameters of the Gemini CLI are not known without a recording"
_OPEN, _NEXT = Piece(b'{"parts":['), Piece(b',{"parts":[')
_COMMA = Piece(b",")
_CLOSE = {role: Piece(b'],"role":"%s"}' % role.encode()) for role in ("user", "model")}
_SIGNATURE = Piece(b',"thoughtSignature":')
_ONLY_SIGNATURE = Piece(b'"thoughtSignature":')
_SYNTHETIC = Piece(b'"%s"' % SYNTHETIC.encode())


def rebuild(log: Log, point: Point, learned: Learned) -> Rebuilt | None:
    """The request the log implies; ``None`` for one in another form than the Gemini API's own."""
    call = call_of(log, point)
    if call is None or (learned.keys and "contents" not in learned.keys):
        return None
    signatures = learned.choice.get("signatures")
    contents = Contents(call.history, call.length, signatures if isinstance(signatures, Signatures) else None, log)
    fields: dict[str, tuple[Piece, ...]] = {}
    for key in learned.keys or KEYS:
        value = learned.values.get(f"/{key}")
        if key == "contents":
            fields[key] = contents.pieces()
        elif key in HEAD and value is not None and value.data is not None:
            fields[key] = (Piece(value.data, value.provenance, path=f"/{key}"),)
    return Rebuilt(_joined(fields), "body", () if learned.keys else (NO_HEAD,))


def _joined(fields: Mapping[str, tuple[Piece, ...]]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for key, value in fields.items():
        pieces.append(Piece((b"," if pieces else b"{") + b'"%s":' % key.encode()))
        pieces += value
    return (*pieces, Piece(b"}"))


class Contents:
    """The contents of one request.

    Those before the newest thing the user said, whose signatures earlier calls taught, are kept with the history: the
    next request repeats them.
    """

    def __init__(self, history: History, length: int, signatures: Signatures | None, log: Log) -> None:
        self._history, self._length, self._signatures = history, length, signatures
        self._layout = history.layouts[length]
        self._made: dict[Any, Any] = shared_memo(log, "gemini.pieces")
        self._need = -1
        """Number of the call that first sent the newest signature used so far."""

    def pieces(self) -> tuple[Piece, ...]:
        """The array's pieces."""
        settled, out = self._settled()
        contents: list[list[Placed]] = []
        for placed in self._history.placed[self._after(settled) : self._length]:
            if placed is None:
                continue
            if contents and contents[-1][0].content == placed.content:
                contents[-1].append(placed)
            else:
                contents.append([placed])
        keep = settled == len(self._history.starts) and self._signatures is not None
        for number, content in enumerate(contents, settled):
            self._write(content, out)
            keep = keep and number < self._layout.loop and self._need < self._at
            if keep:
                self._settle(content, out)
        return (Piece(b"["), *out, Piece(b"]"))

    @property
    def _at(self) -> int:
        return self._signatures.at if self._signatures is not None else -1

    def _settled(self) -> tuple[int, list[Piece]]:
        """How many contents are taken over as kept, and their pieces."""
        history = self._history
        if self._signatures is None:
            return 0, []
        by = self._signatures.taught.state
        if history.settled_by is not by:
            history.settled_by = by
            for held in (history.settled, history.starts, history.needs, history.ends):
                held.clear()
            return 0, []
        count = min(len(history.starts), max(0, self._layout.loop))
        while count and history.needs[count - 1] >= self._at:
            count -= 1
        self._need = history.needs[count - 1] if count else -1
        return count, history.settled[: history.starts[count - 1]] if count else []

    def _after(self, settled: int) -> int:
        """The first turn behind the contents taken over."""
        return self._history.ends[settled - 1] if settled else 0

    def _settle(self, content: list[Placed], out: list[Piece]) -> None:
        history = self._history
        history.settled += out[len(history.settled) :]
        history.starts.append(len(out))
        history.needs.append(self._need)
        history.ends.append(content[-1].index + 1)

    def _write(self, content: list[Placed], out: list[Piece]) -> None:
        """One content; a function call of the running loop must have a signature."""
        number, role = content[0].content, content[0].turn.role
        out.append(_NEXT if number else _OPEN)
        active = number >= self._layout.loop >= 0 and role == "model"
        first = True
        for placed in content:
            for at, part in enumerate(placed.sent.parts):
                if not first:
                    out.append(_COMMA)
                first = False
                must = active and placed.call == at
                out += self._part(placed, at, part, must=must)
        out.append(_CLOSE[role])

    def _part(self, placed: Placed, at: int, part: Part, *, must: bool) -> tuple[Piece, ...]:
        held = self._signatures.held(placed.turn.id, at) if self._signatures is not None and part.open else None
        if part.open:
            self._need = max(self._need, self._at if held is None else held.seen)
        own = held if held is not None and held.value is not None else None
        learned = self._signatures.provenance(own) if own is not None and self._signatures is not None else None
        # Whether a signature that was never seen stands there is not known: then none is put there.
        unknown = part.open and held is None
        stands_in = own is None and part.signature is None and (part.patched or (must and not unknown))
        key = (placed, at, own, learned, stands_in)
        if key not in self._made:
            self._made[key] = _pieces(placed, at, part, own, learned, stands_in=stands_in)
        made: tuple[Piece, ...] = self._made[key]
        return made


def _pieces(
    placed: Placed, at: int, part: Part, own: Held | None, learned: Any, *, stands_in: bool
) -> tuple[Piece, ...]:
    entry = placed.turn.entry
    place = entry.place if entry is not None else None

    def logged(data: bytes) -> Piece:
        return Piece(data, "logged", place) if place is not None else Piece(data)

    if own is None and not stands_in:
        signature = b',"thoughtSignature":' + part.signature if part.signature else b""
        return (logged(_closed(part.start, signature, part.end)),)
    lead = _SIGNATURE if len(part.start) > 1 else _ONLY_SIGNATURE
    path = f"/contents/{placed.content}/parts/{placed.first + at}/thoughtSignature"
    value = _SYNTHETIC if own is None else Piece(own.value or b"", learned, path=path)
    return (logged(part.start), lead, value, logged(part.end))


def _closed(start: bytes, signature: bytes, end: bytes) -> bytes:
    return start + (signature if len(start) > 1 else signature.lstrip(b",")) + end
