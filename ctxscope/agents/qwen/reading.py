"""What fixed texts and the program's own notes tell: kinds of requests, causes of differences, what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.qwen.learning import ENVIRONMENT, PARAMS, SYSTEM
from ctxscope.agents.qwen.lines import SUBTYPES
from ctxscope.agents.qwen.points import call_of
from ctxscope.agents.qwen.replay import messages, replay
from ctxscope.agents.qwen.state import Segment
from ctxscope.agents.qwen.versions import RULES, VERSIONS, between
from ctxscope.agents.reading import drift
from ctxscope.model import Body, CallKind, Difference, Entry, Learned, Point

_ASIDE = (
    b"Generate the session title now.",
    b'"text":"Managed memory directory: `',
    b'"text":"Managed memory has TWO directories.',
)
"""How the last message of the user's begins in requests for a title and for what to remember."""
_SUMMARIZE = tuple(rules.summarize.encode() for rules in RULES)
_ENDS = tuple(text + end for text in _SUMMARIZE for end in (b'"}]}', b'"}'))
_TAIL_SEGMENTS = 2
CLEARED = "[Old tool result content cleared]"
"""Stands for old results of tools after an idle hour; the log keeps the results."""
_REMINDER = "<system-reminder>"
_COMMON = (
    "uuid",
    "parentUuid",
    "sessionId",
    "timestamp",
    "type",
    "cwd",
    "version",
    "gitBranch",
    "forkedFrom",
    "provenance",
    "goalContext",
)


def _kind(entry: Entry) -> str:
    """A record's kind for drift; that of one not understood is what it says."""
    if entry.kind != "unknown":
        return entry.kind
    said = [v for k in ("type", "subtype") if isinstance(v := entry.data.get(k), str)]
    return "/".join(said) or "unknown"


def _version(entry: Entry) -> str | None:
    version = entry.data.get("version")
    return version if isinstance(version, str) else None


_SYSTEM = ("subtype", "systemPayload")
DIALECT = drift.Dialect(
    "Qwen Code",
    {
        "user": ("message", *_SYSTEM),
        "assistant": ("message", "model", "usageMetadata", "contextWindowSize"),
        "tool_result": ("message", "toolCallResult"),
        **dict.fromkeys(SUBTYPES, _SYSTEM),
    },
    common=_COMMON,
    versions=VERSIONS,
    kind=_kind,
    version=_version,
)


def classify(body: Body) -> CallKind | None:
    """``compaction`` and ``side`` (a title, what to remember) by their last message, ``main`` with tools, else ``None``."""
    said = [s for s in reversed(body.segments) if s.role == "user"][:_TAIL_SEGMENTS]
    texts = [body.data[s.start : s.end] for s in said]
    if any(lead in text for text in texts for lead in _ASIDE):
        return "side"
    if any(s.kind == "tool" for s in reversed(body.segments)):
        return "compaction" if texts and texts[0].endswith(_ENDS) else "main"
    return "compaction" if any(words in text for words in _SUMMARIZE for text in texts) else None


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Causes Qwen Code is known for; ``None`` where it is not."""
    path, taught = difference.path, learned.choice.get("taught")
    top = path.partition("/")[2].partition("/")[0]
    if _within(path, ENVIRONMENT) and ENVIRONMENT in learned.values:
        return (
            "the message about the environment is not in the log; a process that starts anew writes it with its own date and "
            "folder"
        )
    if taught and (top in PARAMS or _within(path, SYSTEM)):
        what = "the system prompt" if top == "messages" else top
        return f"{what} is not in the log, and the call answered at {taught} was sent with another"
    if CLEARED in difference.served:
        return "after an idle hour the program cleared old results of tools in what it sends; its log keeps them"
    if _REMINDER in difference.served:
        return "the program put a reminder before what the user said, which it does not log"
    if difference.cls == "whitespace" and top == "messages":
        return "an answer is logged without the spaces around it, and sent by its own process as it came"
    if top == "messages" and _asked_again(log, point):
        return (
            "a cut answer was asked for again; the process that did so sends the last one alone, a process that starts anew "
            "all that are logged"
        )
    return None


def _within(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def _asked_again(log: Log, point: Point) -> bool:
    """Whether an answer before a call was cut and asked for again."""
    call = call_of(log, point)
    before = (c for c in replay(log).calls if c.kind == "escalated" and call is not None and c.turn < call.turn)
    return next(before, None) is not None


def notices(log: Log) -> Sequence[str]:
    """Lines that could not be read, lines whose parent is not there, what the log has that is not known."""
    known = shared_memo(log, "qwen.notices")
    found: list[str] = []
    for entry in log.entries:
        if entry.kind == "unknown":
            if entry not in known:
                known[entry] = tuple(_notices(entry))
            found += known[entry]
    told = replay(log)
    found += between(told.versions)
    found += [f"{e.place}: its parent line is not in the file" for e in told.orphans]
    found += [notice for segment in told.segments for notice in _compressed(segment)]
    return (*found, *drift.notices(log, DIALECT))


def _compressed(segment: Segment) -> Iterator[str]:
    """What a process that starts anew makes of a compression's line, other than the one that wrote it."""
    place = segment.entry.place if segment.entry is not None else None
    early, lost = (end - start for start, end in (segment.early, segment.lost))
    if early:
        yield f"{place}: the compression holds {messages(early)} that came after it; a new process has them twice"
    if lost:
        yield f"{place}: the compression is logged behind {messages(lost)} that it does not hold; a new process lacks them"


def _notices(entry: Entry) -> Iterator[str]:
    if not entry.data:
        yield f"{entry.source} {entry.place}: not a JSON object; the program skips it too"
