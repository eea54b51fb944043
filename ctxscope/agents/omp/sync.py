"""What a call did to omp's append-only context, judged from the log (omp.md §4.9, §5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.agents import Before, Log
from ctxscope.agents.omp import append_only
from ctxscope.agents.omp.append_only import SyncCase
from ctxscope.agents.omp.estimate import tokens
from ctxscope.agents.omp.items import Item
from ctxscope.agents.omp.points import context_of
from ctxscope.agents.omp.trail import Trail
from ctxscope.agents.pi.texts import string
from ctxscope.model import Learned, Point
from ctxscope.wire import json_text


@dataclass(frozen=True, slots=True)
class Synced:
    """One call beside the one before it in the same process."""

    case: SyncCase
    kept: int
    """Messages that stay as they were; a log that was cleared keeps none."""
    stable: int
    """Messages that both begin with, whatever was done."""
    first_rewritten: int | None
    """Index of the first message that is sent in another form; ``None`` where there is none."""
    appended: int
    fingerprint: str | None
    """Name of the head as it was sent; ``None`` where no body taught it. A model switch makes another one."""
    resent_tokens: int
    """Estimated tokens of the messages kept: what clearing the whole log instead would have re-sent."""


def sync(log: Log, point: Point, previous: Point | None, learned: Learned | None = None) -> Synced | None:
    """How the context of ``point`` continues that of ``previous``; ``None`` for calls beside the conversation.

    Without an earlier call, or after one to another model, the log was empty.
    """
    context = context_of(log, point)
    if context is None:
        return None
    earlier = context_of(log, previous) if previous is not None and _same_model(point, previous) else None
    trail, length = context
    sent = _sent(trail, length)
    old_trail, old_length = earlier or (trail, 0)
    old = _sent(old_trail, old_length)
    stable = _stable(old, sent)
    done = append_only.step([0] * len(old), [0] * len(sent), stable)
    kept = next((i for i, item in enumerate(trail.items[:length]) if done.kept and item is sent[done.kept - 1]), -1) + 1
    return Synced(
        done.case,
        done.kept,
        stable,
        done.first_rewritten,
        done.appended,
        _fingerprint(learned),
        tokens(trail, kept) if kept else 0,
    )


def remarks(log: Log, point: Point, before: Before, learned: Learned) -> tuple[str, ...]:
    """What the append-only context did at a call, in words."""
    earlier = next((p for p, _ in reversed(before.told) if p.lineage == point.lineage and p.kind == point.kind), None)
    synced = sync(log, point, earlier, learned)
    if synced is None:
        return ()
    if earlier is None or not synced.kept:
        done = "begins with all messages" if earlier is None else "is cleared and filled again"
    elif synced.case == "rewrite":
        done = f"is cut to {synced.kept} messages and goes on from there"
    else:
        done = f"keeps {synced.kept} messages"
    saved = f"; clearing it would have sent ≈{synced.resent_tokens:,} tokens again" if synced.resent_tokens else ""
    head = f", head {synced.fingerprint}" if synced.fingerprint else ""
    return (f"the append-only context {done}, {synced.appended} added ({synced.case}{head}){saved}",)


def _same_model(one: Point, other: Point) -> bool:
    return all(one.data.get(k) == other.data.get(k) for k in ("api", "provider", "model"))


def _sent(trail: Trail, length: int) -> list[Item]:
    return [item for item in trail.items[:length] if not item.failed]


def _stable(old: list[Item], new: list[Item]) -> int:
    """Messages that two contexts begin with alike; an item they share needs no digest."""
    bound = min(len(old), len(new))
    return next((i for i in range(bound) if old[i] is not new[i] and _digest(old[i]) != _digest(new[i])), bound)


def _digest(item: Item) -> int:
    return append_only.digest({"role": item.role, **{k: v for k, v in item.message.items() if k != "role"}})


def _fingerprint(learned: Learned | None) -> str | None:
    """Omp's name for the head, made of the form it was sent in."""
    if learned is None or not any(p in learned.values for p in ("/tools", "/system", "/instructions", "/messages/0")):
        return None
    values = {path: _parsed(v.data) for path, v in learned.values.items() if v.data is not None}
    system = [_text(v) for path, v in sorted(values.items()) if path.startswith(("/messages/", "/instructions"))]
    system += [string(b.get("text")) for b in _dicts(values.get("/system"))]
    tools = [_tool(t) for t in _dicts(values.get("/tools"))]
    return append_only.fingerprint(system, tools, intent=any(_intends(t) for t in tools))


def _text(value: Any) -> str:
    return string(value.get("content")) if isinstance(value, Mapping) else string(value)


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool of any API as omp names its parts."""
    function = tool.get("function")
    inside: Mapping[str, Any] = function if isinstance(function, Mapping) else tool
    found = {k: inside[k] for k in ("name", "description", "strict") if k in inside}
    for key in ("parameters", "input_schema", "parametersJsonSchema"):
        if key in inside:
            found["parameters"] = inside[key]
    return found


def _intends(tool: Mapping[str, Any]) -> bool:
    """Whether a tool takes the argument in which omp has the model say what it is for."""
    parameters = tool.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    return isinstance(properties, Mapping) and "i" in properties


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []


def _parsed(data: bytes) -> Any:
    try:
        return json_text.loads(data)
    except ValueError:
        return None
