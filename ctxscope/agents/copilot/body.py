"""A whole request body out of a call: messages from the log, the rest as learned (copilot.md §4)."""

from __future__ import annotations

from collections.abc import Mapping

from ctxscope.agents import Log
from ctxscope.agents.copilot.learning import KEYS, Taught
from ctxscope.agents.copilot.messages import Form, Rendered, system
from ctxscope.agents.copilot.spelling import raw
from ctxscope.agents.copilot.story import call_of
from ctxscope.agents.copilot.trail import Call
from ctxscope.model import Learned, Piece, Point, Rebuilt

NO_PARAMS = "tools and parameters are not known without a recording"
LIVE = Form(live=True, source=False)
FOUND = Form(live=False, source=True, reasoning=None)

Pieces = tuple[Piece, ...]


def rebuild(log: Log, point: Point, learned: Learned) -> Rebuilt | None:
    """The request the log implies; ``None`` for another API, a subagent, and after what rewrote the context."""
    call = call_of(log, point.key)
    if call is None or (point.api or "openai-chat") != "openai-chat":
        return None
    if call.trail.lineage != "main" or call.rewritten is not None:
        return None
    model = Piece(raw(point.data["model"]), "logged", point.data["model_place"])
    fields: dict[str, Pieces] = {"model": (model,), "messages": _messages(call, learned)}
    cap = learned.choice.get("cap")
    if cap is not None and point.data["cap"] is not None:
        fields[cap] = (Piece(str(point.data["cap"]).encode(), "logged", point.data["cap_place"]),)
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
    return (Piece(b"["), *first, *rest, Piece(b"]"))


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
