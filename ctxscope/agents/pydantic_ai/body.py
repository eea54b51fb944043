"""A whole request body out of a stored history: system prompt and messages from it, the rest as learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from ctxscope.agents import Log
from ctxscope.agents.pydantic_ai import anthropic, chat, files, filling
from ctxscope.agents.pydantic_ai.learning import KEYS
from ctxscope.agents.pydantic_ai.points import transcript_of
from ctxscope.agents.pydantic_ai.transcript import Transcript, Unit, Written, instructions
from ctxscope.agents.pydantic_ai.writing import spelled
from ctxscope.model import Entry, Learned, Piece, Point, Rebuilt, quoted
from ctxscope.wire.blocks import string

NO_PARAMS = "tools and parameters are not known without a recording"
SILENT_CAP = 4096
SILENT = (
    "requests were sent with max_tokens 4096: versions up to 2.51.0 send that by themselves where the application chose "
    "none (pydantic/pydantic-ai#7468); the history says neither who chose it nor which version wrote it"
)

Pieces = tuple[Piece, ...]
Texts = list[tuple[str, Entry]]


def rebuild(log: Log, point: Point, learned: Learned) -> Rebuilt | None:
    """The request the history implies; ``None`` for other APIs, and for parts that no rule here tells how to send."""
    told = transcript_of(log, point)
    api = learned.choice.get("api") or point.api or "openai-chat"
    if told is None or api not in KEYS:
        return None
    length = point.data["length"]
    units, form = told.until[length], _form(learned)
    written = _written(told, api, length, form, carried=bool(learned.choice.get("carried")))
    if len(written.starts) <= units:
        return None
    rest = written.pieces[: written.starts[units]]
    prompts, told_last = _prompts(told), _instructions(told, length, learned)
    name = point.data[learned.choice.get("model") or ("asked" if point.data["asked"] else "model")]
    fields: dict[str, Pieces] = {"model": (Piece(spelled(name), "logged", point.place),)}
    if api == "anthropic-messages":
        foreign = anthropic.first_foreign(told) if learned.choice.get("carried") else None
        framed = files.first_framed(told, chat=False)
        first = min((at for at in (framed[0] if framed else None, foreign) if at is not None), default=units)
        head = anthropic.system(prompts, told_last, form.notice if first < units else None)
        fields |= {"system": head} if head else {}
    else:
        rest = filling.filled(told, written, rest, units, learned.choice.get("filling", "none"))
        framed = files.first_framed(told, chat=True)
        lead = chat.notice(form) if form.leads and framed and framed[0] < units else []
        rest = [*lead, *chat.system([*prompts, *told_last], str(learned.choice.get("role", "system"))), *rest]
    fields["messages"] = _listed(rest)
    for path, value in learned.values.items():
        if value.data is not None and path not in (chat.NOTICE, anthropic.NOTICE):
            fields[path[1:]] = (Piece(value.data, value.provenance, path=path),)
    return Rebuilt(_joined(fields, learned.keys or KEYS[api]), "body", tuple(_notices(point, learned)))


def _form(learned: Learned) -> chat.Form:
    notice = learned.values.get(chat.NOTICE) or learned.values.get(anthropic.NOTICE)
    choice = learned.choice
    return chat.Form(
        bool(choice.get("verbatim")), str(choice.get("frames", "")), notice, bool(choice.get("notice_leads"))
    )


def _written(told: Transcript, api: str, length: int, form: chat.Form, *, carried: bool = False) -> Written:
    if api == "anthropic-messages":
        return told.write((api, carried), partial(anthropic.render, carried=carried), length)
    framed = files.first_framed(told, chat=True)
    first = framed[1] if framed else None
    return told.write((api, form), partial(chat.render, form=form, first=first), length)


def unknown_parts(told: Transcript) -> Iterator[tuple[Entry, str]]:
    """The first part of a file that no rule tells how to send, for the API its answers came by."""
    apis = {
        "anthropic-messages" if e.data.get("provider_name") == "anthropic" else "openai-chat" for e in told.entries[-1:]
    }
    for api in apis:
        part = _written(told, api, len(told.entries), chat.Form()).unknown
        if part is not None:
            yield part.entry, part.what


def _prompts(told: Transcript) -> Texts:
    """System prompts of the first request."""
    first: Unit | None = told.units[0] if told.units else None
    parts = first.parts if first is not None and first.role == "request" else ()
    return [(string(p.data.get("content")), p.entry) for p in parts if p.kind == "system-prompt"]


def _instructions(told: Transcript, length: int, learned: Learned) -> Texts:
    """The instructions of a request, split as the body splits them where its texts make the whole."""
    text, entry = instructions(told.entries[max(0, length - _NEWEST) : length])
    if entry is None:
        return []
    served = tuple(learned.choice.get("system") or ())
    joined = "\n\n".join(t for t, _ in _prompts(told))
    for skip in range(len(served) - 1):
        if "\n\n".join(served[:skip]) == joined and "\n\n".join(served[skip:]).strip() == text:
            return [(t, entry) for t in served[skip:]]
    return [(text, entry)]


_NEWEST = 64
"""Messages at the end among which the newest two requests are looked for."""


def _listed(pieces: list[Piece]) -> Pieces:
    if not pieces:
        return (Piece(b"[]"),)
    first = pieces[0]
    return (Piece(b"["), Piece(first.data[1:], first.provenance, first.place, first.path), *pieces[1:], Piece(b"]"))


def _notices(point: Point, learned: Learned) -> Iterator[str]:
    if not learned.keys:
        yield NO_PARAMS
        return
    cap, stop = learned.choice.get("cap"), point.stop
    if cap == SILENT_CAP and learned.choice.get("api") == "anthropic-messages":
        yield SILENT
    output = point.stored_usage.output if point.stored_usage is not None else None
    if cap is None or point.answer is None:
        return
    if stop is not None and stop.state == "truncated":
        yield f"{point.place}: the answer was cut at max_tokens {cap}, which the history does not hold"
    elif output is not None and output == cap:
        said = f"; finish reason {quoted(str(stop.reason))}" if stop is not None else ", and no finish reason is stored"
        yield f"{point.place}: the answer has exactly the {cap} tokens that were allowed{said}: it may have been cut"


def _joined(fields: Mapping[str, Pieces], order: tuple[str, ...]) -> Pieces:
    pieces: list[Piece] = []
    for key in (*(k for k in order if k in fields), *(k for k in fields if k not in order)):
        pieces += [Piece((b"," if pieces else b"{") + spelled(key) + b":"), *fields[key]]
    return (*pieces, Piece(b"}"))
