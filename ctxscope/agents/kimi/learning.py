"""What no row holds of a request, and what of it earlier requests showed (kimi.md §4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.kimi.summary import COMPACTS, asked, place
from ctxscope.model import Body, CallKind, Difference, Learnable, Learned, Named, Point, Value
from ctxscope.wire.blocks import param
from ctxscope.wire.raw_object import member_texts

ASIDE = b"This is a side question from the user."
CHOSEN = ("model", "reasoning_effort", "thinking")
"""What the user may choose anew between two turns (``--model``, ``--thinking``)."""
_SETTING = "settings and command line decide it; it is not logged"
LEARNABLE = (
    Learnable("/tools", "the agent's own and those of its servers; they are not logged"),
    *(Learnable(f"/{name}", _SETTING) for name in (*CHOSEN, "max_tokens", "temperature", "top_p", "n", "stop")),
    *(Learnable(f"/{name}", _SETTING) for name in ("presence_penalty", "frequency_penalty")),
    Learnable("/messages/1/content/*/text", "the words that ask for a summary are not logged"),
)
TAKEN = tuple(item.path for item in LEARNABLE if "*" not in item.path)
SWITCHED = "between two turns the user chose another model or way of thinking; the log does not tell"


def named(headers: Mapping[str, str], body: Body) -> Named:  # noqa: ARG001 - the face's signature
    """The session is the cache key of each request."""
    key = param(body, "prompt_cache_key")
    return Named(key if isinstance(key, str) else None)


def classify(body: Body) -> CallKind | None:
    """``compaction`` by its fixed prompt, ``side`` for a side question by its last message, ``main`` with tools."""
    system = next((s for s in body.segments if s.kind == "system"), None)
    if system is not None and COMPACTS.encode() in body.data[system.start : system.end]:
        return "compaction"
    last = next((s for s in reversed(body.segments) if s.kind == "message"), None)
    if last is not None and last.role == "user" and ASIDE in body.data[last.start : last.end]:
        return "side"
    return "main" if any(s.kind == "tool" for s in reversed(body.segments)) else None


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """What the first call with the same choice of the user's was sent beside its messages, holds for all of them.

    The first call of a turn shows what was chosen; the others of the turn go on with it. Subagents and requests for
    summaries learn apart from the conversation.
    """
    told, lineage = before.told, point.lineage

    def shown(at: int) -> Mapping[str, bytes]:
        return _members(log, told[at][1], partial(_body, before, at))

    alike = [at for at in range(len(told)) if told[at][0].lineage == lineage]
    first = next((at for at in alike if shown(at)), None)
    opening = next((at for at in alike if told[at][0].turn == point.turn and shown(at)), None)
    own = _members(log, body.sha256, lambda: body) if opening is None else shown(opening)
    source = own or (shown(first) if first is not None else own)
    teacher = next((at for at in alike if _choice(shown(at)) == _choice(source)), None)
    if teacher is not None:
        source = shown(teacher)
    values = {p: Value(source[p[1:]], "echoed" if teacher is None else "learned") for p in TAKEN if p[1:] in source}
    if point.kind == "compaction":
        values |= _question(point, body, [before[at] for at in alike])
    notes = {"api": body.api, "taught": None if teacher is None else told[teacher][0].place.at}
    switched = (SWITCHED,) if first is not None and _choice(shown(first)) != _choice(source) else ()
    return Learned(values, tuple(source), switched, notes)


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:  # noqa: ARG001 - the face's signature
    """A value that is not logged, and is another than the first call of the lineage was sent."""
    top = "/" + difference.path.partition("/")[2].partition("/")[0]
    taught = learned.choice.get("taught")
    if taught is None or top not in TAKEN:
        return None
    return f"{top[1:]} is not in the log, and the call answered at {taught} was sent without it or with another value"


def _question(point: Point, body: Body, before: Sequence[tuple[Point, Body]]) -> Mapping[str, Value]:
    """What asks for a summary is the same in all requests with words of the user's, and in all without."""
    focused = bool(point.data["focus"].words)
    alike = (pair for pair in before if bool(pair[0].data["focus"].words) == focused)
    taught = next((text for pair in alike if (text := asked(*pair)) is not None), None)
    text = asked(point, body) if taught is None else taught
    return {} if text is None else {place(point): Value(text, "echoed" if taught is None else "learned")}


def _choice(members: Mapping[str, bytes]) -> tuple[bytes | None, ...]:
    return tuple(members.get(name) for name in CHOSEN)


def _body(before: Before, at: int) -> Body:
    return before[at][1]


def _members(log: Log, digest: str, load: Callable[[], Body]) -> Mapping[str, bytes]:
    """A body's top-level values by key; empty for one that cannot be read. Each is read once."""
    memo = shared_memo(log, "kimi.members")
    if digest not in memo:
        try:
            members = member_texts(load().data)
        except ValueError:
            members = {}
        spelled = shared_memo(log, "kimi.spelled")  # tools are long, and the same in every call
        taken = {key: value if f"/{key}" in TAKEN else b"" for key, value in members.items()}
        memo[digest] = {key: spelled.setdefault(value, value) for key, value in taken.items()}
    found: Mapping[str, bytes] = memo[digest]
    return found
