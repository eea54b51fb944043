"""The head of a request as the log holds it: which system prompt and which tools were in force at a point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes.log import newest
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.replay import Route
from ctxscope.agents.hermes.runs import runs_of, turn_of
from ctxscope.model import ApiName, Endpoint, Entry, Learned, Point


def system_entry(log: Log, point: Point) -> Entry | None:
    """The entry holding the system prompt of a call; ``None`` when the log no longer holds it.

    The agent deletes a prompt at a model switch. Where agent.log gives a turn another model than the last turn, and both
    would have the one prompt left, the earlier turn's is lost.
    """
    first = point.context[0] if point.context else None
    if first is None or first.kind not in {"prompt", "session"}:
        return None
    turn, models = turn_of(point), runs_of(log).model
    if turn is not None and turn in models and models[turn] != (last := models[max(models)]):
        points = reading_of(log).points
        if any(p.context[:1] == (first,) and models.get(turn_of(p) or 0) == last for p in reversed(points)):
            return None
    return first


def tools_of(log: Log, point: Point) -> Entry | None:
    """The JSON snapshot's entry with the tool list in force at a point; ``None`` when snapshots are off."""
    at = point.answer.key if point.answer is not None else None
    seq = log.history(at)[0].seq if at is not None else None
    entry = log.as_of("snapshot:file", seq)
    return entry if entry is not None and isinstance(entry.data.get("tools"), list) and entry.data["tools"] else None


def route_of(log: Log, point: Point, learned: Learned) -> Route:
    """Model, provider and base URL of a call, from the envelope, agent.log, the session row and the settings."""
    session = newest(log, f"session:{log.ref.id}")
    row: Mapping[str, Any] = session.data if session is not None else {}
    config = newest(log, "config:file")
    settings: Mapping[str, Any] = config.data if config is not None else {}
    turn = turn_of(point)
    runs = runs_of(log)
    value = learned.values.get("/model")
    if value is not None and value.data is not None:
        model = value.data.decode("utf-8", "replace").strip('"')
    else:
        model = runs.model.get(turn or 0) or row.get("model") or settings.get("model.default") or ""
    provider = runs.provider.get(turn or 0) or row.get("billing_provider") or settings.get("model.provider") or ""
    return Route(str(model), str(provider), str(row.get("billing_base_url") or ""))


_TRANSPORTS: Mapping[str, ApiName] = {
    "chat_completions": "openai-chat",
    "anthropic_messages": "anthropic-messages",
    "codex_responses": "openai-responses",
}


def endpoint_of(log: Log, point: Point) -> Endpoint:
    """See ``Agent.endpoint``."""
    route = route_of(log, point, Learned())
    return Endpoint(api_of(log, point), route.provider or None, route.model or None)


def _api_kept(entry: Entry) -> ApiName | None:
    """The API that what stands in a row was made for, where it tells."""
    if entry.kind != "assistant":
        return None
    if entry.data.get("codex_reasoning_items") or entry.data.get("codex_message_items"):
        return "openai-responses"
    details = entry.data.get("reasoning_details")
    return "anthropic-messages" if isinstance(details, str) and '"type": "thinking"' in details else None


def api_of(log: Log, point: Point) -> ApiName | None:
    """The API of a call no body shows: what its rows keep tells it, else the settings; ``None`` for another transport."""
    kept = shared_memo(log, "hermes.apis")
    for entry in log.entries[kept.get("seen", 0) :]:
        kept["any"] = kept.get("any") or _api_kept(entry)
    kept["seen"] = len(log.entries)
    rows = point.context if kept.get("any") or log.rewrites else ()  # most logs tell nothing: then none is asked
    found: ApiName | None = next(filter(None, map(_api_kept, rows)), None)
    if found is not None:
        return found
    config = newest(log, "config:file")
    mode = config.data.get("model.api_mode", "chat_completions") if config is not None else "chat_completions"
    return _TRANSPORTS.get(str(mode))
