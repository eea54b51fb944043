"""What fixed texts and the program's own notes tell: kinds of requests, causes of differences, what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.gemini.learning import HEAD
from ctxscope.agents.gemini.lines import MESSAGES
from ctxscope.agents.gemini.points import call_of
from ctxscope.agents.gemini.replay import replays
from ctxscope.agents.reading import drift
from ctxscope.model import Body, CallKind, Difference, Entry, Learned, Point

COMPRESSION = (
    b"Generate a new <state_snapshot> based on the provided history.",
    b"A previous <state_snapshot> exists in the history.",
    b"Critically evaluate the <state_snapshot> you just generated.",
)
"""How the last messages of the two requests of a compression begin (gemini.md §5; the second where it is not the first)."""
_NUDGES = ("[System: You previously ", "[Tool execution completed.]")
"""How the program begins what it adds to a request that it repeats after an empty answer; not logged."""
_INVISIBLE = ("\u200b", "\u200c", "\u200d", "\ufeff", "\u200e", "\u200f")
_LAST_BYTES, _LAST_SEGMENTS = 4000, 4

_MESSAGE = ("id", "timestamp", "type", "content", "displayContent")
_HEADER = ("sessionId", "projectHash", "startTime", "lastUpdated", "kind", "directories", "summary", "messages")


def _kind(entry: Entry) -> str:
    """A record's kind for drift; that of one not understood is what it says."""
    if entry.kind != "unknown":
        return entry.kind
    said = entry.data.get("type")
    return said if isinstance(said, str) and said not in MESSAGES else "unknown"


DIALECT = drift.Dialect(
    "Gemini CLI",
    {
        "session": (*_HEADER, "memoryScratchpad"),
        "set": ("$set",),
        "rewind": ("$rewindTo",),
        "user": _MESSAGE,
        "gemini": (*_MESSAGE, "thoughts", "tokens", "model", "toolCalls"),
        "info": _MESSAGE,
        "error": _MESSAGE,
        "warning": _MESSAGE,
    },
    versions=("0.61.0",),
    kind=_kind,
    sources=("session", "agent"),
)


def classify(body: Body) -> CallKind | None:
    """``compaction`` by its fixed texts, ``main`` with the program's own tools, ``side`` for what wants JSON or searches."""
    if any("/functionDeclarations/" in s.path for s in reversed(body.segments)):
        return "main"
    last = [s for s in reversed(body.segments) if s.kind == "message"][:_LAST_SEGMENTS]
    if any(text in body.data[s.start : s.end][:_LAST_BYTES] for s in last for text in COMPRESSION):
        return "compaction"
    if any(s.kind == "tool" for s in body.segments):
        return "side"
    settings = next((body.data[s.start : s.end] for s in reversed(body.segments) if s.path == "/generationConfig"), b"")
    return "side" if b"responseJsonSchema" in settings or b"responseSchema" in settings else None


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Causes the Gemini CLI is known for; ``None`` where it is not."""
    top = difference.path.split("/")[1:2]
    taught = learned.choice.get("taught")
    if top and top[0] in HEAD and taught:
        return f"{top[0]} is not in the log, and the call answered at {taught} was sent with another value"
    if (
        difference.path.endswith("/thoughtSignature")
        or '"thoughtSignature"' in (difference.served + difference.rebuilt)[:40]
    ):
        return "signatures are not logged, and this one is what came with the answer or an earlier request showed"
    if any(text in difference.served for text in _NUDGES):
        return "the program repeated the request after an empty answer with a nudge that it does not log"
    if _was_cleaned(difference) and _is_fresh(log, point, difference.path):
        return (
            "an answer is logged without the spaces around it, without HTML comments and without invisible characters, and "
            "sent as it came"
        )
    return None


def _was_cleaned(difference: Difference) -> bool:
    """Whether what differs is what the program leaves out of the text it logs."""
    return difference.cls == "whitespace" or any(text in difference.served for text in ("<!--", *_INVISIBLE))


def _is_fresh(log: Log, point: Point, path: str) -> bool:
    """Whether a difference lies in the text of an answer whose own process sent it."""
    call, steps = call_of(log, point), path.split("/")
    if call is None or len(steps) < 5 or not steps[2].isdigit():  # noqa: PLR2004 - /contents/N/parts/M
        return False
    placed = (p for p in call.history.placed[: call.length] if p is not None and p.content == int(steps[2]))
    return steps[-1] == "text" and any(p.turn.fresh for p in placed)


def notices(log: Log) -> Sequence[str]:
    """Lines that could not be read, results that a resumed process sends twice, what is new in the log."""
    known = shared_memo(log, "gemini.notices")
    found: list[str] = []
    for entry in log.entries:
        if entry.kind in {"unknown", "set"}:
            if entry not in known:
                known[entry] = tuple(_notices(entry))
            found += known[entry]
    found += _doubled(log)
    return (*found, *drift.notices(log, DIALECT))


def _notices(entry: Entry) -> Iterator[str]:
    if entry.kind == "unknown" and not entry.data:
        yield f"{entry.source} {entry.place}: not a JSON object; the program skips it too"


def _doubled(log: Log) -> Iterator[str]:
    """Histories that hold a tool's result more than once, each where it began."""
    known = shared_memo(log, "gemini.doubled")
    for replay in replays(log):
        for event in replay.happened:
            if event.kind == "resume" and event.doubled:
                many = f"{event.doubled} tool {'result' if event.doubled == 1 else 'results'}"
                known.setdefault(
                    event, f"{event.place}: the resumed history holds {many} more than once, and sends them so"
                )
                yield known[event]
