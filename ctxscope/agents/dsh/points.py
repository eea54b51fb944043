"""Where the harness must have called a model: a point per attempt at a request (dsh.md §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.dsh import answers, lines, streams
from ctxscope.agents.dsh.ask import Request
from ctxscope.agents.dsh.story import Story, Told, story
from ctxscope.agents.dsh.texts import listed, mapped, string, whole
from ctxscope.model import ApiName, CallKind, Endpoint, Entry, Point

OFFICIAL = "deepseek-official"
"""The provider whose requests are known; those of others (llm-pi-ai) are not."""
_PARTS = ("assistant/chunk", *lines.PACKED)
"""v0: events an answer comes in by."""
_LAST_PARTS = 4
"""Of an answer that came whole only the last are looked at: one of them says why it ended."""


def requests(log: Log) -> Sequence[Point]:
    """Points in the order in which something came of them, then those that wait."""
    found: Sequence[Point] | None = log.memo.get("points")
    if found is None:
        log.memo["points"] = found = _points(log, story(log))
    return found


def request_of(point: Point) -> Request:
    """What a point says of its request."""
    found: Request = point.data["request"]
    return found


def api_of(told: Story) -> ApiName:
    """Chat Completions up to log format 3, Anthropic's Messages from 4 on (dsh.md §1)."""
    return "anthropic-messages" if told.carries else "openai-chat"


def endpoint(log: Log, point: Point) -> Endpoint:
    """As the request's header says, a title's as its own record does; the API by the log's format."""
    provider, model = route(story(log), request_of(point))
    return Endpoint(point.api, provider, model)


def route(told: Story, request: Request) -> tuple[str | None, str | None]:
    """Provider and model. A summary names those that made it: a deployment may have it made by another model."""
    own = told.summaries.get(request.begun.key)
    if request.kind == "side":
        fields = mapped(mapped(request.begun.data.get("data")).get("route"))
    elif own is not None and string(mapped(own.data.get("data")).get("model")):
        fields = mapped(own.data.get("data"))
    else:
        head = told.head_of(request)
        fields = config_of(head) if head else {}
    return string(fields.get("provider")) or None, string(fields.get("model")) or None


def header_of(head: Entry) -> Mapping[str, Any]:
    """The request header in a record: ``config``, ``tools``, in v0 ``system``."""
    return mapped(mapped(head.data.get("data")).get("header"))


def config_of(head: Entry) -> Mapping[str, Any]:
    """Its config: provider, model, maxTokens, reasoningEffort."""
    return mapped(header_of(head).get("config"))


def error_line(point: Point) -> str | None:
    """What a retry or the end of a compaction says went wrong."""
    answer = point.answer
    if answer is None:
        return None
    data = mapped(answer.data.get("data"))
    if isinstance(data.get("error"), str):
        return str(data["error"])
    failure = mapped(data.get("failure")) or streams.failure(streams.rows(data) or streams.rows_of([answer]))
    words = [str(failure[k]) for k in ("code", "status", "message") if isinstance(failure.get(k), str | int)]
    return " ".join(words) or None


def _points(log: Log, told: Story) -> list[Point]:
    made: dict[str, Any] = shared_memo(log, "dsh.points")
    if made.get("story") is not told:
        made.clear()
        made.update(story=told, points=[], aside={"compaction": 0, "side": 0})
    kept: list[Point] = made["points"]
    kept += [_point(told, one, n, made["aside"]) for n, one in enumerate(told.told[len(kept) :], len(kept))]
    aside = dict(made["aside"])
    return [*kept, *(_point(told, one, n, aside) for n, one in enumerate(told.waiting(), len(kept)))]


def _point(told: Story, one: Told, number: int, aside: dict[str, int]) -> Point:
    """``number``: of the request among those told, then those that wait."""
    request, answer = one.request, one.answer
    kind, lineage = _kind(told, one, aside)
    surface = told.surface_of(request)
    end = answer or (surface.nodes[-1] if request.kind == "main" and surface.length else request.begun)
    provider = route(told, request)[0]
    parts = _parts(told, request, answer) if answer else ()
    return Point(
        key=answer.key if answer else f"after:{request.begun.key}",
        place=end.place,
        context=_context(told, request),
        answer=answer,
        ids=(_ids(answer) if answer else frozenset()) | _names(told, request),
        turn=one.turn,
        order=(float(end.place.number), number),
        time=end.time,
        kind=kind,
        lineage=lineage,
        blocks=answers.stored(answer, parts) if answer else None,
        stop=answers.stop(answer, parts) if answer else None,
        api=api_of(told) if provider in (None, OFFICIAL) else None,
        data={"request": request, "dead": True} if one.dead else {"request": request},
        stored_usage=answers.usage(answer) if answer else None,
    )


def _context(told: Story, request: Request) -> Sequence[Entry]:
    if request.kind == "side":
        return (request.begun,)
    nodes = told.surface_of(request).nodes
    if request.kind == "compaction" and request.region is not None:
        region = set(request.region)
        return tuple(n for n in nodes if n.kind == "system/message" or whole(n.data.get("seq")) in region)
    return nodes


def _kind(told: Story, one: Told, aside: dict[str, int]) -> tuple[CallKind, str]:
    kind = one.request.kind
    if kind != "main":
        aside[kind] += 1
        return kind, f"{kind}:{aside[kind]}"
    header = told.header.data if told.header else {}
    if header.get("origin") == "subagent":
        return ("retry" if one.retried else "subagent"), f"sub:{string(header.get('id'))}"
    return ("retry" if one.retried else "main"), "main"


def _names(told: Story, request: Request) -> frozenset[str]:
    """How an attempt is told from all others: a fork's copy has the same; and the place in the log it carries itself.

    A copy carries nothing: it was sent with the log it was copied from.
    """
    begun = request.begun.data
    own = frozenset({f"{request.begun.kind} {begun.get('seq')} {begun.get('time')} {request.low}"})
    return own | request.names() if told.carries and not told.copied(request.begun) else own


def _ids(answer: Entry) -> frozenset[str]:
    """Tool-call ids, and the message's own, which a fork's copy has too."""
    message = answers.message_of(answer) if answer.kind == "assistant/message" else {}
    calls = [string(mapped(b).get("id")) for b in listed(message.get("content"))]
    return frozenset(name for name in (*calls, string(message.get("id"))) if name)


def _parts(told: Story, request: Request, answer: Entry) -> list[Entry]:
    """v0: the events an answer came in by, of one that was not cut the last; other formats keep them in its record."""
    if told.format != _FORMAT_OF_PARTS:
        return []
    if answer.kind == "assistant/message":
        numbers = listed(answer.data.get("sourceEventSeqs"))
        found = _numbered(told, numbers[-_LAST_PARTS:])
        return found if answers.ended_well(found) else _numbered(told, numbers)
    span = lines.numbers(answer)
    between = told.between(request.last, span[1]) if span and answer.kind in answers.ATTEMPTS else ()
    return [entry for entry in between if entry.kind in _PARTS]


_FORMAT_OF_PARTS = 0


def _numbered(told: Story, numbers: Sequence[Any]) -> list[Entry]:
    found = (told.numbered.get(n) for n in numbers if whole(n) is not None)
    return [entry for entry in found if entry is not None and entry.kind in _PARTS]
