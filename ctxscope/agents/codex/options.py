"""Tools and options of a row of calls: what holds for which, where a turn or a process may have been started otherwise.

A rollout holds none of them. They follow from the model and the settings, and hold for a turn or for a whole run of a
process, which may be started with others than the one before (``--output-schema``, ``web_search``, an MCP server more).
So the first call of a turn may show another form of the answer, and the first of a process whole tools more or less; that
holds for all that follow and is told. A tool that is described otherwise than before is a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from ctxscope.agents.codex.taught import Held, Kind, Option, call_run, parsed
from ctxscope.wire.blocks import listed, mapped, string

ANY_TURN, ANY_PROCESS = ("text", "service_tier"), ("tools",)
"""Options that a turn, and that a process, may be started with in another way."""
_DESCRIBED = ("function", "custom", "namespace")
"""Types of tools that the client describes; of others it says only how the provider's own are to be used."""
BUILT_IN = frozenset(
    {
        *("exec_command", "write_stdin", "shell", "shell_command", "apply_patch", "update_plan", "view_image"),
        *("request_user_input", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"),
        *("spawn_agent", "send_input", "wait", "wait_agent", "close_agent", "resume_agent", "get_goal", "create_goal"),
        *("update_goal", "tool_search", "js_repl", "js_repl_reset", "read_file", "list_dir", "grep_files", "exec"),
    }
)
"""Tools of Codex's own that settings turn on and off."""
Known = Mapping[str, Option]


def held(kind: Kind, turn: int) -> Known:
    """By option that holds in a turn: the call that showed it first, and its bytes; ``None`` for no such key."""
    if len(kind.known) < len(kind.turns):
        last = next(reversed(kind.known), None)
        known: Known = {name: Option(kind.first, value) for name, value in kind.first.value.values.items()}
        known, before = (known, kind.first) if last is None else (kind.known[last], kind.turns[last])
        for number, first in islice(kind.turns.items(), len(kind.known), None):
            known = kind.known[number] = {**known, **dict(_changed(known, before, first))}
            before = first
    return kind.known[turn] if turn in kind.known else kind.known[next(iter(kind.known))]


def _changed(known: Known, before: Held, first: Held) -> Iterator[tuple[str, Option]]:
    """What a turn's first call may show otherwise than calls before it."""
    is_new = call_run(before.point) != call_run(first.point)
    for name in (*ANY_TURN, *(ANY_PROCESS if is_new else ())):
        now, was = first.value.values.get(name), known[name].value if name in known else None
        if now == was:
            continue
        if name == "text" and not is_new and _unformed(now) != _unformed(was):
            continue
        if name in ANY_TURN:
            yield name, Option(first, now, f"another {name}")
        elif (words := more_and_less(was, now)) is not None:
            yield name, Option(first, now, words)


def _unformed(text: bytes | None) -> Mapping[str, Any]:
    """The settings of a text but for the schema that a turn asks for."""
    return {k: v for k, v in mapped(parsed(text or b"")).items() if k != "format"}


def keys(kind: Kind, turn: int) -> tuple[str, ...]:
    """Top-level keys in order, as the kind's first call has them but for options of the turn."""
    first: tuple[str, ...] = kind.first.value.keys
    own: tuple[str, ...] = kind.turns[turn].value.keys if turn in kind.turns else first
    changing, known = (*ANY_TURN, *ANY_PROCESS), held(kind, turn)
    if [k for k in own if k not in changing] != [k for k in first if k not in changing]:
        return first
    return own if all((k in known and known[k].value is not None) == (k in own) for k in changing) else first


def told(kind: Kind, turn: int) -> list[str]:
    """What holds since a turn, and did not before it, in words."""
    first = kind.turns.get(turn)
    new = [o.words for o in held(kind, turn).values() if o.words and o.shown is first]
    return (
        [f"what asked for the answer at {first.point.place.at} was started with {'; '.join(new)}"]
        if first and new
        else []
    )


@lru_cache(maxsize=64)
def more_and_less(before: bytes | None, now: bytes | None) -> str | None:
    """The tools that another process may have been started with, in words; ``None`` for no such change of them."""
    if before is None or now is None:
        return None
    old, new = _named(before), _named(now)
    both = [k for k in old if k in new]
    if not both or both != [k for k in new if k in old] or not all(_same(old[k], new[k]) for k in both):
        return None
    more, less = [k for k in new if k not in old], [k for k in old if k not in new]
    if not all(_is_known(k, new[k]) for k in more):
        return None
    parts = [f"{word}: {', '.join(names)}" for word, names in (("tools more", more), ("tools less", less)) if names]
    return "; ".join(parts) or "another setting of the provider's tools"


def _is_known(name: str, tool: Mapping[str, Any]) -> bool:
    """Whether a tool is one that settings are known to add: one of Codex's own, the provider's, or of an MCP server."""
    return tool.get("type") not in ("function", "custom") or name in BUILT_IN or name.startswith("mcp__")


def _same(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    return before == now or (before.get("type") == now.get("type") and before.get("type") not in _DESCRIBED)


def _named(tools: bytes) -> dict[str, Mapping[str, Any]]:
    """Tools by name; those of the provider by type."""
    return {string(t.get("name")) or string(t.get("type")): t for t in map(mapped, listed(parsed(tools)))}
