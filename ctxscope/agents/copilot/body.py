"""A whole request body out of a call: messages from the log, the rest as learned (copilot.md §4)."""

from __future__ import annotations

from collections.abc import Mapping

from ctxscope.agents import Log
from ctxscope.agents.copilot.events import payload
from ctxscope.agents.copilot.learning import KEYS, Taught
from ctxscope.agents.copilot.messages import Form, Rendered, system
from ctxscope.agents.copilot.spelling import raw
from ctxscope.agents.copilot.story import call_of
from ctxscope.agents.copilot.trail import Call
from ctxscope.model import Entry, Learned, Piece, Point, Rebuilt
from ctxscope.wire.blocks import listed, mapped, string

NO_PARAMS = "tools and parameters are not known without a recording"
LIVE = Form(live=True, source=False)
FOUND = Form(live=False, source=True, reasoning=None)

Pieces = tuple[Piece, ...]


def rebuild(log: Log, point: Point, learned: Learned) -> Rebuilt | None:
    """The request the log implies; ``None`` for another API, and after what rewrote the context as the log does not tell."""
    call = call_of(log, point.key)
    if call is None or (point.api or "openai-chat") != "openai-chat":
        return None
    if call.rewritten is not None:
        return None
    model = Piece(raw(point.data["model"]), "logged", point.data["model_place"])
    fields: dict[str, Pieces] = {"model": (model,), "messages": _messages(call, learned)}
    for name in ("cap", "effort"):
        key, value = learned.choice.get(name), point.data[name]
        if key is not None and value is not None:
            fields[key] = (Piece(raw(value), "logged", point.data[f"{name}_place"]),)
    for path, value in learned.values.items():
        if value.data is not None:
            fields[path[1:]] = (Piece(value.data, value.provenance, path=path),)
    return Rebuilt(_joined(fields, learned.keys or KEYS), "semantic", tuple(_notices(point, learned)))


def _messages(call: Call, learned: Learned) -> Pieces:
    known, now = learned.choice.get("taught"), learned.choice.get("now")
    first = system(call.system) if call.system is not None else ()
    if isinstance(known, Taught) and isinstance(now, int):
        rest = known.messages(call, now).request(call.length, now)
    else:
        key = (call.process, call.base)
        if key not in call.trail.plain:
            plain = Rendered(call.trail.items, call.process, (LIVE, FOUND), call.base, lambda _: None)
            call.trail.plain[key] = plain
        rest = call.trail.plain[key].request(call.length, None)
    last = _asking(call, known, now) if call.is_compaction else ()
    return (Piece(b"["), *first, *rest, *last, Piece(b"]"))


def _asking(call: Call, known: object, now: object) -> Pieces:
    """The message that asks for a summary, in words the log does not hold."""
    words = known.words if isinstance(known, Taught) else None
    number = call.base + call.length
    head = Piece((b"," if number else b"") + b'{"role":"user","content":')
    if call.shown is not None and (asked := _asked(call.shown)) is not None:
        return (head, Piece(raw(asked), "logged", call.shown.place), Piece(b"}"))
    if words is None or not isinstance(now, int) or words.at > now or not isinstance(words.value, bytes):
        return (head, Piece(b"null", "unknown"), Piece(b"}"))
    path = f"/messages/{number}/content"
    return (head, Piece(words.value, "echoed" if words.at == now else "learned", path=path), Piece(b"}"))


def _asked(shown: Entry) -> str | None:
    """The last message of the user among those of a compaction."""
    said = [mapped(m) for m in listed(payload(shown).get("messages"))]
    return next((string(m.get("content")) or None for m in reversed(said) if m.get("role") == "user"), None)


def _notices(point: Point, learned: Learned) -> list[str]:
    if not learned.keys:
        return [NO_PARAMS]
    sizes = learned.choice.get("sizes")
    return [f"{point.place}: {size_words(*sizes)}"] if sizes else []


def size_words(served: int, logged: int) -> str:
    """That a joined body has another size than the log recorded for its call."""
    return f"the log says that this request had {logged:,} bytes, the recorded body has {served:,}"


def _joined(fields: Mapping[str, Pieces], order: tuple[str, ...]) -> Pieces:
    pieces: list[Piece] = []
    for key in (*(k for k in order if k in fields), *(k for k in fields if k not in order)):
        pieces += [Piece((b"," if pieces else b"{") + raw(key) + b":"), *fields[key]]
    return (*pieces, Piece(b"}"))
