"""What Codex's requests and notes tell: kinds of requests, the session they name, causes of differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.codex import ancestors, settings
from ctxscope.agents.codex.fold import folded
from ctxscope.agents.codex.lines import BASE, DIALECT, payload_of
from ctxscope.agents.codex.points import call_of
from ctxscope.agents.codex.taught import TRIGGER
from ctxscope.agents.reading import drift
from ctxscope.model import ApiName, Body, CallKind, Difference, Endpoint, Entry, Learned, Named, Point, quoted
from ctxscope.wire.blocks import mapped, param, params, string

HEADERS = ("thread-id", "session-id", "session_id", "conversation_id")
"""Headers that name a thread, the surest first: a subagent's requests name its own thread, then its session's."""
_PROMPT = b"CONTEXT CHECKPOINT COMPACTION"
"""Stands in the prompt of a local compaction (codex.md §5)."""
_START_BYTES = 400
_CUT = " truncated…"
"""Stands in an output that was cut."""
_APIS: Mapping[str, ApiName] = {"responses": "openai-responses", "chat": "openai-chat"}


def named(headers: Mapping[str, str], body: Body) -> Named:
    """The thread a request names in a header, else in ``prompt_cache_key``."""
    found = next((headers[h] for h in HEADERS if headers.get(h)), None)
    if found is None:
        key = param(body, "prompt_cache_key")
        found = key if isinstance(key, str) and key else None
    return Named(found)


def classify(body: Body) -> CallKind | None:
    """``probe`` for what warms a connection, ``compaction`` by its fixed texts or by what it lacks, else ``None``."""
    body = replace(body, params=params(body))  # looked for once, not for each of those asked for below
    if param(body, "generate") is False:
        return "probe"
    last = next((s for s in reversed(body.segments) if s.path.startswith("/input/")), None)
    if last is None:
        return None
    end = body.data[last.start : last.end][:_START_BYTES]
    if any(mark in end for mark in (_PROMPT, TRIGGER)) or param(body, "stream") is None:
        return "compaction"
    # with a prompt of the user's own: newer versions say what a request is for, older ones send tools but for this
    told = mapped(param(body, "client_metadata")).get("x-codex-turn-metadata")
    if isinstance(told, str):
        return "compaction" if '"request_kind":"compaction"' in told else None
    return None if any(s.kind == "tool" for s in reversed(body.segments)) else "compaction"


def endpoint(log: Log, point: Point) -> Endpoint:
    """See ``Agent.endpoint``; the rollout names provider and model, the settings the API where it is another."""
    values = settings.config(log).values
    call = call_of(point)
    model = call.settings.model if call is not None else None
    return Endpoint(_APIS.get(values.get("wire_api") or "responses"), values.get("provider"), model)


def explain(point: Point, difference: Difference, learned: Learned) -> str | None:
    """Causes Codex is known for; ``None`` where it is not."""
    path = difference.path
    taught: Mapping[str, str] = learned.choice.get("taught", {})
    top = "/" + path.partition("/")[2].partition("/")[0]
    for known in (path, top):
        if known in taught:
            was = "with another value" if known in learned.values else "without it"
            return f"{known[1:]} is not in the rollout, and the call answered at {taught[known]} was sent {was}"
    whole = path.startswith("/input/") and path.count("/") == 2  # noqa: PLR2004 - an item, not something in it
    if whole and point.kind == "compaction" and difference.cls in ("missing", "extra"):
        return "a compaction that does not fit the window is tried again without the oldest items, which is not logged"
    if path.startswith("/input/") and path.endswith("/output") and _CUT in difference.served:
        return "a process that goes on with another model cuts earlier outputs anew, to that model's limit; it is not logged"
    call = call_of(point)
    if whole and difference.cls == "extra" and call is not None and len(call.items) > 1:
        return "an answer that broke off is asked for again behind what was complete of it; where it did is not logged"
    return None


def notices(log: Log) -> Sequence[str]:
    """Lines that could not be read, what is not known of the form, turns that failed in Codex's words."""
    known = shared_memo(log, "codex.notices")
    found: list[str] = []
    for entry in log.entries:
        if entry.source.startswith(f"{BASE}:"):
            continue  # told by the session that wrote it
        if entry not in known:
            known[entry] = tuple(_notices(entry))
        found += known[entry]
    if log.entries and not folded(log).header:
        found.append("the rollout does not begin with a session record: what it was started with is not known")
    fold = folded(log)
    base = ancestors.base_of(fold.header)
    if base is not None and not fold.begun:
        found.append(
            f"the history begins in session {base[0]}, whose rollout was not found: requests held more than is here"
        )
    return (*found, *drift.notices(log, DIALECT))


def _notices(entry: Entry) -> Iterator[str]:
    if entry.kind == "unknown" and not entry.data:
        what = "not a JSON object" if entry.source == "session" else "not readable as settings"
        yield f"{entry.source} {entry.place}: {what}; it is passed over"
    payload = payload_of(entry)
    if entry.kind in ("task_complete", "error"):
        error = mapped(payload.get("error"))
        words = string(error.get("message")) or (string(payload.get("message")) if entry.kind == "error" else "")
        if words:
            yield f"{entry.place}: the turn failed: {quoted(words)}"
