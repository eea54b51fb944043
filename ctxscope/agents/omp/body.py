"""A whole request body out of a point of the log, key by key (omp.md §4.5 to §4.8)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.omp import anthropic, chat, checksum, google, responses
from ctxscope.agents.omp.fold import MOST_MARKS, Fold, Form, Line, Renderer, fold
from ctxscope.agents.omp.learning import CHECKSUM, LEADING, target_of
from ctxscope.agents.omp.points import context_of, requests, session_of
from ctxscope.agents.omp.prompt import prompt_of
from ctxscope.agents.omp.reminder import Zone, position, reminders
from ctxscope.agents.omp.spelling import Lead, dumped
from ctxscope.agents.omp.store import store
from ctxscope.agents.omp.tree import tree
from ctxscope.agents.omp.warm import RESPONSES, native
from ctxscope.agents.pi.fold import mark_of
from ctxscope.agents.pi.transform import Target
from ctxscope.model import Learned, Piece, Point, Rebuilt

NO_HEAD = "system prompt, tools and request options of omp are not known without a recording"
RENDERERS: Mapping[str, Any] = {
    "anthropic-messages": anthropic,
    "openai-completions": chat,
    "openai-responses": responses,
    "google-generative-ai": google,
}
BULK = {
    "anthropic-messages": "messages",
    "openai-completions": "messages",
    "openai-responses": "input",
    "google-generative-ai": "contents",
}
_USUAL: Mapping[str, tuple[str, ...]] = {
    "anthropic-messages": ("model", "messages", "metadata", "stream"),
    "openai-completions": ("model", "messages", "stream", "stream_options", "store"),
    "openai-responses": ("model", "input", "stream", "prompt_cache_key", "store"),
    "google-generative-ai": ("contents",),
}
"""Keys that the log and omp's rules give by themselves, in their order."""
_PROMPTS = {"system", "instructions"}
_MARK = re.compile(rb'(?<!\\)"cache_control":\{')
_CONSTANT = {"stream": True, "store": False, "stream_options": {"include_usage": True}}


@dataclass(eq=False)
class Draft:
    """A body being put together."""

    log: Log
    point: Point
    target: Target
    learned: Learned
    fold: Fold | None
    length: int
    pieces: list[Piece] = field(default_factory=list)
    line: Line = field(default_factory=Line)
    bulk_end: int = 0
    """How many of ``pieces`` end with the messages that are final in the fold."""
    bulk_count: int = 0
    """How many of the line's pieces those are."""
    sum_at: int | None = None
    """Index of the piece that the checksum goes to."""

    def value(self, path: str) -> Piece | None:
        """A learned value as a piece; ``None`` where there is none."""
        found = self.learned.values.get(path)
        if found is None or found.data is None:
            return None
        return Piece(found.data, found.provenance, path=path)


def rebuild(log: Log, point: Point, learned: Learned) -> Rebuilt | None:
    """The request the log implies; ``None`` for an API that is not rebuilt and for a call beside the conversation."""
    target = target_of(point, str(learned.choice.get("api") or ""))
    context = context_of(log, point)
    if target.api not in RENDERERS or context is None:
        return None
    trail, length = context
    form = _form(log, point, target, learned)
    renderer: Renderer = RENDERERS[target.api]
    folded = fold(trail, form, renderer, store(log), shared_memo(log, "omp.rendered")) if length else None
    draft = Draft(log, point, target, learned, folded, length)
    keys = learned.keys or _USUAL[target.api]
    for key in keys:
        _put(draft, key)
    draft.pieces.append(Piece(b"}" if draft.pieces else b"{}"))
    notices = () if learned.keys else (NO_HEAD,)
    return Rebuilt(_summed(draft), "body", notices)


def _form(log: Log, point: Point, target: Target, learned: Learned) -> Form:
    """The choices for one request: as learned, else as omp makes them by default."""
    choice = learned.choice
    deepseek = "deepseek" in target.model.lower()
    anthropic_api = target.api == "anthropic-messages"
    return Form(
        target,
        cache=mark_of(choice) if anthropic_api else None,
        marks=max(0, MOST_MARKS - sum(_marks(learned, path) for path in ("/system", "/tools"))) if learned.keys else 2,
        prefix=bool(choice.get("prefix", anthropic_api)),
        reasoning=bool(choice.get("reasoning", deepseek)),
        developer=bool(choice.get("developer")),
        native=_native(log, point, target, learned),
        vision=choice.get("vision", "images"),
        nested=bool(choice.get("nested")),
        part_ids=bool(choice.get("part_ids")),
        sentinel=bool(choice.get("sentinel")),
        leads=_leads(log, point, learned),
        blobs=store(log).version,
    )


def _native(log: Log, point: Point, target: Target, learned: Learned) -> bool:
    if target.api != RESPONSES:
        return True
    told = learned.choice.get("native")
    return told if isinstance(told, bool) else native(log, point)


def _marks(learned: Learned, path: str) -> int:
    """Cache marks in a value of the head."""
    value = learned.values.get(path)
    return len(_MARK.findall(value.data)) if value is not None and value.data is not None else 0


def _leads(log: Log, point: Point, learned: Learned) -> tuple[tuple[int, Lead], ...]:
    context, header = context_of(log, point), tree(log).header
    zone = learned.choice.get("zone")
    attached = reminders(log, point, requests(log), zone if isinstance(zone, Zone) else Zone())
    found = []
    for one in attached:
        at = position(*context, one.item) if context else None
        if at is not None:
            folder = str(header.get("cwd") or "")
            found.append((at, Lead(one.date, "derived", "", folder, tree(log).header_place)))
    return tuple(found)


def _put(draft: Draft, key: str) -> None:
    """Add a key with its value, if there is one."""
    before = len(draft.pieces)
    lead = (b"," if before else b"{") + dumped(key) + b":"
    if key == BULK[draft.target.api]:
        draft.pieces.append(Piece(lead))
        _conversation(draft)
        return
    value = _own(draft, key) or draft.value(f"/{key}")
    if value is None:
        return
    draft.pieces.append(Piece(lead))
    value = [value] if isinstance(value, Piece) else value
    if key in _PROMPTS:
        value = _prompted(draft, value)
    if key == "system":
        _system(draft, value)
    else:
        draft.pieces += value


def _prompted(draft: Draft, values: Sequence[Piece]) -> Sequence[Piece]:
    """Values that carry the system prompt; a subagent's log holds its text, and holds against a learned one."""
    prompt = prompt_of(draft.log, draft.point)
    if prompt is None:
        return values
    marked = prompt.marked(values)
    return prompt.alone(draft.target.api) if marked is None else [p for pieces in marked for p in pieces]


def _own(draft: Draft, key: str) -> Piece | Sequence[Piece] | None:
    """What the log or a rule gives for a key."""
    if key == "model":
        place = draft.point.data.get("model_place")
        return Piece(dumped(draft.target.model), "logged", place) if place else Piece(dumped(draft.target.model))
    if key in _CONSTANT:
        return Piece(dumped(_CONSTANT[key]))
    name, place = session_of(draft.log, draft.point)
    if key == "prompt_cache_key":
        own = tree(draft.log).header.get("providerPromptCacheKey")
        return Piece(dumped(own if isinstance(own, str) and own else name), "logged", place)
    if key == "metadata":
        return _metadata(draft, name)
    return None


def _metadata(draft: Draft, session: str) -> Sequence[Piece] | None:
    """The session's id where that is all there is; beside other ids the whole is learned."""
    learned = draft.learned.values.get("/metadata")
    inside = dumped(dumped({"session_id": "\0"}).decode()).partition(b"\\\\u0000")
    opening, closing = b'{"user_id":' + inside[0], inside[2] + b"}"
    if learned is not None and learned.data is not None and not learned.data.startswith(opening):
        return None
    _, place = session_of(draft.log, draft.point)
    return (Piece(opening), Piece(dumped(session)[1:-1], "logged", place), Piece(closing))


def _conversation(draft: Draft) -> None:
    """The array of messages, led by the prompt where Chat Completions carry it so."""
    leading: list[Piece] = []
    if draft.target.api == "openai-completions":
        for pieces in _leading(draft):
            leading += [Piece(b","), *pieces] if leading else pieces
    draft.pieces += [Piece(b"["), *leading]
    line, count, tail = draft.fold.request(draft.length) if draft.fold is not None else (Line(), 0, [])
    final = line.pieces[:count]
    if leading:
        draft.pieces += final
    else:
        first = [*final[:1], *(tail[:1] if not final else ())]
        if first:
            bare = first[0]
            draft.pieces.append(Piece(bare.data[1:], bare.provenance, bare.place, bare.path, bare.external))
        draft.pieces += final[1:]
        tail = tail[1:] if not final else tail
    draft.line, draft.bulk_count, draft.bulk_end = line, count, len(draft.pieces) if count else 0
    draft.pieces += [*tail, Piece(b"]")]


def _leading(draft: Draft) -> list[list[Piece]]:
    """The messages that carry the prompt."""
    values = [v for v in map(draft.value, LEADING) if v is not None]
    prompt = prompt_of(draft.log, draft.point) if values else None
    if prompt is None:
        return [[v] for v in values]
    role = b'{"role":"system","content":'
    return prompt.marked(values) or [[Piece(role), *prompt.alone(draft.target.api), Piece(b"}")]]


def _system(draft: Draft, values: Sequence[Piece]) -> None:
    """The system prompt; the checksum's digits in it are a piece of their own, filled in when all else is there."""
    value = values[0]
    found = checksum.MARK.search(value.data[:400])
    if found is None or not draft.learned.choice.get("prefix"):
        draft.pieces += values
        return
    digits = draft.value(CHECKSUM)
    if digits is None:
        draft.sum_at = len(draft.pieces) + 1
        digits = Piece(checksum.PLACEHOLDER)
    before, after = value.data[: found.start(1)], value.data[found.end(1) :]
    ends = (Piece(data, value.provenance, path=value.path) for data in (before, after))
    draft.pieces += [next(ends), digits, next(ends), *values[1:]]


def _summed(draft: Draft) -> tuple[Piece, ...]:
    """The pieces with the checksum in its place, where one is to be made."""
    pieces, at = draft.pieces, draft.sum_at
    if at is None:
        return tuple(pieces)
    end, count = draft.bulk_end, draft.bulk_count
    if count:
        opening = b"".join(p.data for p in pieces[: end - count])
        # The first message stands without its comma: it belongs to what all requests of the line begin with.
        first = pieces[end - count].data
        state = draft.line.sums.after(opening + first, draft.line.pieces, count)
    else:
        state, end = checksum.State(), 0
    pieces[at] = Piece(checksum.checksum(checksum.hashed(state, pieces[end:])))
    return tuple(pieces)
