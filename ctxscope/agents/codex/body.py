"""A whole request body out of a call of the log, key by key in the client's order (codex.md §4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.codex import base
from ctxscope.agents.codex.calls import LEFT_OUT, Call
from ctxscope.agents.codex.fold import Fold, folded
from ctxscope.agents.codex.history import RETOLD, Form
from ctxscope.agents.codex.items import spelled
from ctxscope.agents.codex.learning import TEXT, metadata_of
from ctxscope.agents.codex.points import call_of
from ctxscope.agents.codex.taught import base_text
from ctxscope.agents.reading.drift import is_newer
from ctxscope.model import Learned, Piece, Place, Point, Rebuilt
from ctxscope.wire.blocks import string

Pieces = tuple[Piece, ...]
LAST_WITH_INSTRUCTIONS = ("0.146.0",)
"""Newest version known to name the base instructions apart from the input; what is newer sends them as an item."""
CONSTANTS: Mapping[str, Any] = {
    "type": "response.create",
    "tool_choice": "auto",
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
}
"""Values that are the same in every request as far as is known."""
SUMMARIZED: Mapping[str, Any] = {"tools": [], "parallel_tool_calls": False}
"""What a local compaction sends whatever other requests do (codex.md §5)."""
_OLD = ("model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "store", "stream")
_NEW = ("model", "stream", "input", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "store", "include")
NO_HEAD = "tools and what the settings leave open are not known without a recording"


@dataclass(eq=False)
class Draft:
    """A body being put together."""

    log: Log
    fold: Fold
    call: Call
    learned: Learned

    @property
    def choice(self) -> Mapping[str, Any]:
        """Forms the log does not tell."""
        return self.learned.choice

    @property
    def form(self) -> Form:
        """The form of the input's items; where no request was seen, tools are taken to be offered that were called."""
        if self.learned.keys:
            return self.choice.get("form") or frozenset()
        summarized = self.call.kind == "compaction" and not self.fold.records
        return frozenset() if summarized else frozenset({RETOLD})

    def taken(self, path: str) -> Pieces:
        """A learned value; nothing where there is none."""
        value = self.learned.values.get(path)
        if value is None or value.data is None:
            return ()
        return (Piece(value.data, value.provenance, path=path),)


def rebuild(log: Log, point: Point, learned: Learned) -> Rebuilt | None:
    """The request the log implies; ``None`` for another API than Responses, which older versions could speak."""
    call = call_of(point)
    if call is None or learned.choice.get("api"):
        return None
    draft = Draft(log, folded(log), call, learned)
    pieces: list[Piece] = []
    for key in learned.keys or _usual_keys(draft):
        value = _VALUES.get(key, _option(key))(draft)
        if value:
            pieces.append(Piece((b"," if pieces else b"{") + spelled(key) + b":"))
            pieces += value
    pieces.append(Piece(b"}" if pieces else b"{}"))
    return Rebuilt(tuple(pieces), "body", () if learned.keys else (NO_HEAD,))


def _usual_keys(draft: Draft) -> tuple[str, ...]:
    return (*(_NEW if _as_item(draft) else (*_OLD, "include")), "prompt_cache_key")


def _as_item(draft: Draft) -> bool:
    """Whether the base instructions are the first item of the input."""
    if draft.learned.keys:
        return "members" in draft.choice or ("instructions" not in draft.learned.keys and bool(base_text(draft.log)))
    return is_newer(string(draft.fold.header.get("cli_version")), LAST_WITH_INSTRUCTIONS)


def _option(key: str) -> Callable[[Draft], Sequence[Piece]]:
    """A value that is constant or not in the log at all."""

    def value(draft: Draft) -> Pieces:
        fixed = SUMMARIZED if draft.choice.get("purpose") == "local" else {}
        usual = spelled(fixed.get(key, CONSTANTS.get(key)))
        found = draft.learned.values.get(f"/{key}")
        if key in fixed or (key in CONSTANTS and (found is None or found.data == usual)):
            return (Piece(usual),)
        return draft.taken(f"/{key}")

    return value


def _logged(value: Any, place: Place | None) -> Pieces:
    return (Piece(spelled(value), "logged", place) if place else Piece(spelled(value)),)


def _model(draft: Draft) -> Pieces:
    settings = draft.call.settings
    if settings.model is None:
        return draft.taken("/model")
    return _logged(settings.model, settings.model_place)


def _instructions(draft: Draft) -> Pieces:
    text = base_text(draft.log)
    if text is None:
        return draft.taken("/instructions")
    kept = draft.choice.get("kept") or base.whole_of(text)
    return tuple(base.pieces(text, kept, draft.fold.header_place))


def _cache_key(draft: Draft) -> Pieces:
    """The thread's own id, or its session's where the first request was seen to carry that."""
    header = draft.fold.header
    first = draft.learned.values.get("/prompt_cache_key")
    names = [header.get(k) for k in ("id", "session_id")]
    name = next((n for n in names if first is not None and spelled(n) == first.data), names[0])
    return _logged(name, draft.fold.header_place) if isinstance(name, str) else draft.taken("/prompt_cache_key")


def _reasoning(draft: Draft) -> Pieces:
    """Effort and summary as the log says them, and what it leaves open as learned."""
    whole = draft.taken("/reasoning")
    if whole:
        return whole
    settings = draft.call.settings
    said = {"effort": (settings.effort, settings.effort_place), "summary": (settings.summary, settings.summary_place)}
    names = [*said, *(p.rpartition("/")[2] for p in draft.learned.values if p.startswith("/reasoning/"))]
    pieces: list[Piece] = []
    for name in dict.fromkeys(names):
        logged, place = said.get(name, (None, None))
        if name == "summary" and logged == LEFT_OUT:
            continue
        value = _logged(logged, place) if logged is not None else draft.taken(f"/reasoning/{name}")
        if value:
            pieces += (Piece((b"," if pieces else b"{") + spelled(name) + b":"), *value)
    if not pieces and "reasoning" not in draft.learned.keys:
        return ()
    return (*(pieces or (Piece(b"{"),)), Piece(b"}"))


def _previous(draft: Draft) -> Pieces:
    """The response a message goes on from: logged, but for that of the request which warmed the connection."""
    name = draft.choice.get("continues")
    earlier = _continued(draft)
    if earlier is not None and earlier.response_place is not None:
        return _logged(name, earlier.response_place)
    return draft.taken("/previous_response_id")


def _continued(draft: Draft) -> Call | None:
    """The call whose response a message goes on from, as far as the history still begins with it."""
    name = draft.choice.get("continues")
    calls = draft.fold.calls if name else ()
    found = next((c for c in reversed(calls) if c.response_id == name), None)
    return found if found is not None and found.history is draft.call.history else None


def _input(draft: Draft) -> Sequence[Piece]:
    """Base instructions where they are an item, the history, and what a compaction ends with."""
    call, form = draft.call, draft.form
    start = 0
    first: Pieces = ()
    if draft.choice.get("continues"):
        earlier = _continued(draft)
        start = earlier.end if earlier is not None else _since_unlogged(draft)
    elif _as_item(draft):
        first = _base_item(draft)
    found = [Piece(b"["), *first]
    rest = call.history.pieces(form, start, call.length, call.missing)
    if rest and not first:
        rest[0] = Piece(rest[0].data[1:], rest[0].provenance, rest[0].place)
    found += rest
    if tail := _tail(draft):
        found += ((Piece(b","),) if first or rest else ()) + tail
    found.append(Piece(b"]"))
    return found


def _since_unlogged(draft: Draft) -> int:
    """Where what is new begins behind a response that is not logged: all of the history where it carries as much."""
    call = draft.call
    tail = 1 if draft.choice.get("tail") else 0
    count = int(draft.choice.get("count") or 0) - tail
    whole = call.history.count(0, call.length, call.missing)
    return 0 if count >= whole else max(0, call.length - count)


def _base_item(draft: Draft) -> Pieces:
    """The developer message that carries the base instructions (0.171)."""
    members = draft.choice.get("members") or ("type", "role", "content")
    pieces: list[Piece] = []
    for name in members:
        pieces += (Piece((b"," if pieces else b"{") + spelled(name) + b":"), *_base_member(draft, name))
    return (*pieces, Piece(b"}"))


def _base_member(draft: Draft, name: str) -> Pieces:
    if name in ("type", "role"):
        return (Piece(spelled({"type": "message", "role": "developer"}[name])),)
    if name != "content":
        return _belongs(draft, f"/input/0/{name}")
    text = base_text(draft.log)
    kept = draft.choice.get("kept") or base.whole_of(text or "")
    said = tuple(base.pieces(text, kept, draft.fold.header_place)) if text is not None else draft.taken(TEXT)
    return (Piece(b'[{"type":"input_text","text":'), *(said or (Piece(b'""'),)), Piece(b"}]"))


def _tail(draft: Draft) -> Pieces:
    """The item a compaction ends its request with: a prompt, or what asks the server for one."""
    members: tuple[str, ...] = draft.choice.get("tail") or ()
    where = str(draft.choice.get("tail at"))
    usual = {"type": "message" if "content" in members else "compaction_trigger", "role": "user"}
    pieces: list[Piece] = []
    for name in members:
        if name == "content":
            text = draft.taken(f"{where}/content/0/text")
            value: Pieces = (Piece(b'[{"type":"input_text","text":'), *text, Piece(b"}]"))
        elif name in usual:
            value = (Piece(spelled(usual[name])),)
        else:
            value = _belongs(draft, f"{where}/{name}")
        pieces += (Piece((b"," if pieces else b"{") + spelled(name) + b":"), *value)
    return (*pieces, Piece(b"}")) if pieces else ()


def _belongs(draft: Draft, path: str) -> Pieces:
    """A member of an item that is not logged: the turn where it says only that, else as it was sent."""
    settings = draft.call.settings
    value = draft.taken(path)
    turn = spelled({"turn_id": settings.turn_id})
    if value and value[0].data == turn and settings.turn_place is not None:
        return (Piece(turn, "logged", settings.turn_place),)
    return value


def _metadata(draft: Draft) -> Pieces:
    """Ids that the log holds from the log, whatever else it says as sent; the order of its keys is random."""
    value = draft.learned.values.get("/client_metadata")
    if value is None or value.data is None:
        return (Piece(b"{}"),) if "client_metadata" in draft.learned.keys else ()
    header, settings = draft.fold.header, draft.call.settings
    known: dict[str, tuple[Any, Place | None]] = {
        "thread_id": (header.get("id"), draft.fold.header_place),
        "session_id": (header.get("session_id") or header.get("id"), draft.fold.header_place),
        "turn_id": (settings.turn_id, settings.turn_place),
        "root_turn_id": (settings.root_turn_id, settings.turn_place),
    }
    pieces: list[Piece] = []
    for name, raw in metadata_of(value.data).items():
        path = "/client_metadata/" + name.replace("~", "~0").replace("/", "~1")
        logged, place = known.get(name, (None, None))
        own = draft.taken(path) or (Piece(raw, value.provenance, path=path),)
        said = _logged(logged, place) if isinstance(logged, str) else own
        lead = (b"," if pieces else b"{") + spelled(name) + b":"
        pieces += (Piece(lead, value.provenance, path=path), *said)
    return (*pieces, Piece(b"}")) if pieces else draft.taken("/client_metadata")


_VALUES: Mapping[str, Callable[[Draft], Sequence[Piece]]] = {
    "model": _model,
    "instructions": _instructions,
    "input": _input,
    "reasoning": _reasoning,
    "prompt_cache_key": _cache_key,
    "client_metadata": _metadata,
    "previous_response_id": _previous,
}
