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
from ctxscope.agents.omp.lines import pruned_at
from ctxscope.agents.omp.points import context_of, node_of
from ctxscope.agents.omp.reminder import moment_of
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

    Without an earlier call, and after one to another provider, in another process or before a ``/clear``, the log was
    empty (read in 18.2.3: another model of the same provider leaves it as it is).
    """
    context = context_of(log, point)
    if context is None:
        return None
    goes_on = previous is not None and _goes_on(log, point, previous)
    earlier = context_of(log, previous) if previous is not None and goes_on else None
    trail, length = context
    sent = _sent(trail, length)
    old_trail, old_length = earlier or (trail, 0)
    old = _sent(old_trail, old_length)
    stable = _stable(old, sent)
    if previous is not None and earlier is not None:
        stable = min(stable, _rewritten(sent, previous, point))
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
    if synced.case == "append" and not synced.kept:
        done = "begins with all messages"
    elif not synced.kept:
        done = "is cleared and filled again"
    elif synced.case == "rewrite":
        done = f"is cut to {_messages(synced.kept)} and goes on from there"
    else:
        done = f"keeps {_messages(synced.kept)}"
    saved = f"; clearing it would have sent ≈{synced.resent_tokens:,} tokens again" if synced.resent_tokens else ""
    head = f", head {synced.fingerprint}" if synced.fingerprint else ""
    return (f"the append-only context {done}, {synced.appended} added ({synced.case}{head}){saved}",)


def _goes_on(log: Log, one: Point, other: Point) -> bool:
    """Whether a call finds what another one left."""
    mine, theirs = node_of(log, one), node_of(log, other)
    same = mine is not None and theirs is not None and (mine.run, mine.reset) == (theirs.run, theirs.reset)
    return same and one.data.get("provider") == other.data.get("provider")


def _rewritten(sent: list[Item], previous: Point, point: Point) -> int:
    """Index of the first message pruned between two calls, also where the log was first read after that."""
    since, until = moment_of(previous) * 1000, moment_of(point) * 1000
    times = (pruned_at(item.entry) for item in sent)
    return next((i for i, at in enumerate(times) if at is not None and since < at <= until), len(sent))


def _sent(trail: Trail, length: int) -> list[Item]:
    return [item for item in trail.items[:length] if not item.absent]


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


def _messages(count: int) -> str:
    return f"{count} message" if count == 1 else f"{count} messages"
