"""Where an application must have called a model: before each response of its history (pydantic_ai.md §4, §6, §7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.pydantic_ai import writing
from ctxscope.agents.pydantic_ai.disk import HISTORY
from ctxscope.agents.pydantic_ai.history import END
from ctxscope.agents.pydantic_ai.transcript import Transcript, View
from ctxscope.model import ApiName, Block, Endpoint, Entry, Point, Stop, StopState, Usage
from ctxscope.wire.blocks import listed, mapped, number, string

_STOPS: Mapping[str, StopState] = {
    "stop": "complete",
    "tool_call": "complete",
    "length": "truncated",
    "content_filter": "blocked",
    "error": "error",
}
"""By ``finish_reason``. The field ``state`` tells nothing of a cut: it is ``complete`` for a cut answer too."""


@dataclass(eq=False, slots=True, repr=False)
class Conversation:
    """The files of a session, each as far as it can be read."""

    transcripts: dict[str, Transcript] = field(default_factory=dict)
    """By source, the fullest file first."""
    torn: list[Entry] = field(default_factory=list)
    """Ends of files that break off."""

    def by_age(self) -> list[tuple[str, Transcript]]:
        """The files in the order in which they must have been written: by the time of their newest message."""
        return sorted(self.transcripts.items(), key=lambda item: _age(item[1]))


def _age(told: Transcript) -> tuple[float, int]:
    times = (entry.time for entry in reversed(told.entries) if entry.time is not None)
    return next(times, float("-inf")), len(told.entries)


def conversation(log: Log) -> Conversation:
    """The files as they stand now."""
    memo = shared_memo(log, "pydantic_ai.conversation")
    known = memo.get("known")
    if known is None or known[0] != len(log.versions):
        memo["known"] = known = (len(log.versions), _conversation(log))
    found: Conversation = known[1]
    return found


def _conversation(log: Log) -> Conversation:
    counts = {(e.source, e.key.rpartition(":")[0]): e.data["messages"] for e in log.entries if e.kind == END}
    by_source: dict[str, list[Entry]] = {}
    for entry in log.entries:
        if entry.kind in (END, "gone"):
            continue
        where, _, place = entry.key.rpartition("#")
        unit, _, at = place.rpartition(":")
        held = counts.get((entry.source, f"{where}#{unit or 'file'}"))
        if held is None or int(at) <= held:
            by_source.setdefault(entry.source, []).append(entry)
    torn = [e for e in log.entries if e.kind == END and e.data["torn"]]
    order = sorted(by_source, key=lambda source: (source != HISTORY, len(source), source))
    return Conversation({s: Transcript.of(by_source[s]) for s in order}, torn)


def disagreements(log: Log) -> Iterator[tuple[Entry, Entry]]:
    """For each further file the first message that is not the fullest file's at its place, and that one."""
    files = list(conversation(log).transcripts.values())
    for other in files[1:]:
        pairs = zip(other.entries, files[0].entries, strict=False)
        found = next(((a, b) for a, b in pairs if a.data != b.data), None)
        if found is not None:
            yield found


def transcript_of(log: Log, point: Point) -> Transcript | None:
    """The file a point stands in."""
    return conversation(log).transcripts.get(point.data["source"])


def requests(log: Log) -> Sequence[Point]:
    """A point before each response, in order.

    Of a response in several files the fullest tells what was before it, unless the oldest has other messages there: a
    history that is written again later may have been trimmed, and dynamic prompts in it are the newest.
    """
    found: Sequence[Point] | None = log.memo.get("points")
    if found is None:
        log.memo["points"] = found = _points(conversation(log), shared_memo(log, "pydantic_ai.points"))
    return found


def _points(told: Conversation, made: dict[Any, Any]) -> list[Point]:
    """``made`` keeps points by all they were made from: a file is written anew as a whole, and mostly says the same."""
    seen: dict[Any, Any] = {}
    found: dict[Any, tuple[tuple[float, int, int], _Call]] = {}
    files = told.by_age()
    for age, (source, transcript) in enumerate(files):
        latest, fullest = float("-inf"), source == next(iter(told.transcripts))
        for call in _of_file(source, transcript, made, last=age + 1 == len(files)):
            latest = max(latest, call.point.time if call.point.time is not None else latest)
            if call.name not in seen or (fullest and seen[call.name] == call.shape):
                found[call.name] = (found[call.name][0] if call.name in seen else (latest, age, call.at)), call
            seen.setdefault(call.name, call.shape)
    return list(_numbered((call for _, call in sorted(found.values(), key=lambda pair: pair[0])), made))


def _numbered(calls: Iterable[_Call], made: dict[Any, Any]) -> Iterator[Point]:
    """The points of calls in order, with their turns: a file that was trimmed no longer holds them all."""
    turn = 0
    for call in calls:
        turn += call.opens
        key = "turn", call.point.data["source"], call.point.key, turn
        if key not in made or made[key][0] is not call.point:
            made[key] = call.point, replace(call.point, turn=turn)
        yield made[key][1]


@dataclass(frozen=True, slots=True)
class _Call:
    """A call as one file tells it."""

    at: int
    """Number of the answer, or of the message that would be it."""
    name: Any
    """What it is told from others by, in all files."""
    shape: Any
    """What messages stand before the answer: their kinds, and what dynamic prompts say."""
    point: Point
    opens: bool
    """Whether the user said something since the answer before it."""


def _of_file(source: str, told: Transcript, made: dict[Any, Any], *, last: bool) -> Iterator[_Call]:
    """The calls of a file; with ``last`` one for a request still waiting."""
    chain, shape, opens = 0, 0, False
    for at, entry in enumerate(told.entries):
        before, chain = chain, hash((chain, entry.raw))
        earlier, shape = shape, hash((shape, _shape(entry)))
        if entry.kind == "request":
            opens |= any(string(mapped(p).get("part_kind")) == "user-prompt" for p in listed(entry.data.get("parts")))
        elif entry.kind == "response":
            if (source, at, chain) not in made:
                made[source, at, chain] = _answered(source, told, at)
            yield _Call(at, response_id(entry) or (before, entry.raw), earlier, made[source, at, chain], opens)
            opens = False
    if last and told.entries and told.entries[-1].kind == "request":
        at = len(told.entries)
        if (source, at, chain) not in made:
            made[source, at, chain] = _waiting(source, told)
        yield _Call(at, chain, shape, made[source, at, chain], opens)


def _shape(entry: Entry) -> tuple[Any, ...]:
    parts = [mapped(part) for part in listed(entry.data.get("parts"))]
    kinds = (string(p.get("part_kind")) for p in parts)
    return entry.kind, *kinds, *(string(p.get("content")) for p in parts if p.get("dynamic_ref") is not None)


def _answered(source: str, told: Transcript, at: int) -> Point:
    entry = told.entries[at]
    stored = tuple(_blocks(entry.data))
    ids = {response_id(entry), *(b.id for b in stored if b.kind == "tool_call")}
    return Point(
        key=entry.key,
        place=entry.place,
        context=View(told.entries, at),
        answer=entry,
        ids=frozenset(ids - {""}),
        order=(float(at), 0),
        time=entry.time,
        blocks=stored,
        stop=_stop(entry.data),
        api=api_of(entry.data),
        data={"source": source, "length": at, **_notes(entry.data)},
        stored_usage=_usage(entry.data),
    )


def _waiting(source: str, told: Transcript) -> Point:
    last = told.entries[-1]
    before = next((e for e in reversed(told.entries) if e.kind == "response"), None)
    return Point(
        key=f"after:{last.key}",
        place=last.place,
        context=View(told.entries, len(told.entries)),
        answer=None,
        order=(float(len(told.entries)), 1),
        time=last.time,
        data={"source": source, "length": len(told.entries), **_notes(before.data if before is not None else {})},
    )


def _notes(response: Mapping[str, Any]) -> dict[str, Any]:
    name = string(response.get("model_name"))
    asked = string(response.get("model_id")).partition(":")[2]
    return {"model": name or None, "asked": asked or None, "provider": string(response.get("provider_name")) or None}


def endpoint(point: Point) -> Endpoint:
    """As the answer says; an OpenAI answer does not tell which of the two APIs it came by."""
    return Endpoint(point.api, point.data["provider"], point.data["model"])


def api_of(response: Mapping[str, Any]) -> ApiName | None:
    """The API an answer came by, where provider or id tell it."""
    provider, name = response.get("provider_name"), _id(response)
    if provider == "anthropic":
        return "anthropic-messages"
    if provider == "openai" and name.startswith("resp_"):
        return "openai-responses"
    return "openai-chat" if provider == "openai" and name.startswith("chatcmpl-") else None


def response_id(entry: Entry) -> str:
    """The provider's id of a response, by its present or its old name."""
    return _id(entry.data)


def _id(response: Mapping[str, Any]) -> str:
    return string(response.get("provider_response_id")) or string(response.get("vendor_id"))


def details(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the provider said of a response, by its present or its old name."""
    return mapped(response.get("provider_details")) or mapped(response.get("vendor_details"))


def _stop(response: Mapping[str, Any]) -> Stop | None:
    reason, raw = string(response.get("finish_reason")), string(details(response).get("finish_reason"))
    return Stop(raw or reason, _STOPS.get(reason, "unknown")) if reason or raw else None


def _usage(response: Mapping[str, Any]) -> Usage | None:
    """Usage with the cached tokens taken out of the input; a zero that stands for nothing said is unknown."""
    used = mapped(response.get("usage"))
    told = _either(used, "input_tokens", "request_tokens")
    output = _either(used, "output_tokens", "response_tokens")
    if not told and not output:
        return None
    said = response.get("provider_name") == "anthropic"
    read, written = number(used, "cache_read_tokens"), number(used, "cache_write_tokens")
    read, written = (n if n or said else None for n in (read, written))
    fresh = max(told - (read or 0) - (written or 0), 0) if told is not None else None
    return Usage(fresh, read, written, output, number(used, "output_reasoning_tokens") or None)


def _either(used: Mapping[str, Any], *names: str) -> int | None:
    return next((n for name in names if (n := number(used, name)) is not None), None)


def _blocks(response: Mapping[str, Any]) -> Iterator[Block]:
    """An answer as stored, in the form common to all APIs."""
    for part in map(mapped, listed(response.get("parts"))):
        kind, content = part.get("part_kind"), string(part.get("content"))
        if kind == "text":
            yield Block("text", content)
        elif kind == "thinking":
            yield Block("thinking", content, envelope=string(part.get("signature")))
        elif kind == "tool-call":
            called = writing.text(_sorted(writing.arguments(part)))
            yield Block("tool_call", called, string(part.get("tool_call_id")), string(part.get("tool_name")))
        else:
            yield Block("other")


def _sorted(value: Any, depth: int = 0) -> Any:
    """A value with the keys of its objects sorted, as deep as answers nest."""
    if isinstance(value, dict) and depth < _DEEP:
        return {k: _sorted(value[k], depth + 1) for k in sorted(value)}
    return [_sorted(v, depth + 1) for v in value] if isinstance(value, list) and depth < _DEEP else value


_DEEP = 100
