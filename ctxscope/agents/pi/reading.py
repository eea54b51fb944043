"""What pi's fixed texts and its own notes tell: kinds of requests, causes of differences, what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.pi import settings, texts
from ctxscope.agents.pi.known import DIALECT
from ctxscope.agents.pi.learning import CAPS
from ctxscope.agents.pi.lines import is_utf8
from ctxscope.agents.pi.points import API_NAMES
from ctxscope.agents.pi.tree import tree
from ctxscope.agents.reading import drift
from ctxscope.model import Body, CallKind, Difference, Endpoint, Entry, Learned, Point, quoted

_BULK = ("/messages", "/input", "/contents")
_START_BYTES = 4000
"""The summarizer's prompt stands within a body's first segments; the search need not go through a long body."""


def classify(body: Body) -> CallKind | None:
    """``compaction`` for a summary request by its fixed text, ``main`` for one with tools, else ``None``."""
    if any(s.kind == "tool" for s in reversed(body.segments)):
        return "main"
    summarizer = texts.SUMMARIZER.encode()
    system = [s for s in body.segments if s.kind == "system"] or list(body.segments[:3])
    if any(summarizer in body.data[s.start : s.end][:_START_BYTES] for s in system):
        return "compaction"
    continues = any(s.kind == "param" and s.path.startswith("/thread") for s in body.segments)
    return "main" if continues and b'"type":"continue"' in body.data[-_START_BYTES:] else None


def endpoint(log: Log, point: Point) -> Endpoint:
    """See ``Agent.endpoint``."""
    provider, model = point.data.get("provider"), point.data.get("model")
    api = point.data.get("api") or settings.config(log).values.get("apis", {}).get((provider, model))
    return Endpoint(API_NAMES.get(str(api)), str(provider) if provider else None, str(model) if model else None)


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Causes pi is known for; ``None`` where it is not."""
    path = difference.path
    held = _held(difference, learned)
    if path.lstrip("/") in CAPS and (held or path in learned.values):
        known = (point.data.get("provider"), point.data.get("model")) in settings.config(log).values["limits"]
        if known:
            return "models.json as it stands now gives another output cap"
        return held or "the output cap is neither that of the earlier call nor one its window explains"
    if path.startswith(("/system", "/tools")) and point.data.get("version") == "0.73":
        return "system prompt or tools changed since the provider's first call; version 0.73 does not log them"
    if path.startswith(_BULK) and difference.cls in {"missing", "extra"}:
        return "an extension may have changed the context: what extensions rewrite is not logged"
    return held


def _held(difference: Difference, learned: Learned) -> str | None:
    """The call that taught a value, or that there is none, where served and rebuilt part at it."""
    top = "/" + difference.path.partition("/")[2].partition("/")[0]
    taught: Mapping[str, str] = learned.choice.get("taught", {})
    whole = difference.path == top and difference.cls in {"missing", "extra"}
    for path in (difference.path, top):
        if path in taught and (whole or path in learned.values):
            was = "with it" if difference.cls == "missing" else "with another value"
            was = was if path in learned.values else "without it"
            return f"{path[1:]} is not in the log, and the call answered at {taught[path]} was sent {was}"
    return None


def notices(log: Log) -> Sequence[str]:
    """Lines that could not be read or are not known, entries without their parent, and calls that failed, in pi's words."""
    known = shared_memo(log, "pi.notices")
    found: list[str] = []
    for entry in log.entries:
        if entry not in known:
            known[entry] = tuple(_notices(entry))
        found += known[entry]
    found += drift.notices(log, DIALECT)
    found += [f"{e.place}: its parent entry is not in the file" for e in tree(log).lost_parents]
    return tuple(found)


def _notices(entry: Entry) -> Iterator[str]:
    if entry.kind == "unknown" and not entry.data:
        yield f"{entry.source} {entry.place}: not a JSON object; pi skips it too"
    elif not is_utf8(entry.raw):
        yield f"{entry.place}: holds bytes that are no UTF-8; each is read as U+FFFD, as pi does"
    message = entry.data.get("message")
    if isinstance(message, Mapping) and message.get("stopReason") == "error":
        yield f"{entry.place}: the call failed: {quoted(texts.string(message.get('errorMessage')))}"
