"""What a new process adds to a rollout that it goes on with: 0.98 its whole context, 0.171 what changed (codex.md §4)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from ctxscope.agents import Before, Log
from ctxscope.agents.codex.fold import Fold, folded
from ctxscope.agents.codex.items import METADATA, PASSTHROUGH, is_context, is_user, message, spelled, text_of
from ctxscope.agents.codex.lines import SESSION, payload_of, type_of
from ctxscope.agents.codex.points import lineage_of
from ctxscope.agents.codex.served import facts
from ctxscope.agents.codex.settings import config
from ctxscope.agents.reading.drift import is_newer
from ctxscope.model import NEXT_INPUT, Body, Entry, Place, Record, Resume
from ctxscope.wire.blocks import mapped, string

GIVEN_AGAIN, ONLY_CHANGES = "0.98.0", "0.171.0"
"""Versions that were seen to go on: up to the first, and from the second on, it is taken to be as theirs."""
_LAST_ITEMS = ("reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call")
"""Items that an answer does not end with, if it was not cut."""
_AGAIN = "the context is given again before the input: permissions, AGENTS.md and the directory"
_WHOLE = "the whole input is sent: a new connection cannot go on from an earlier response"
_CHANGED = "a model, tools, instructions or settings that were changed since"
_WARMED = "whether a request warms the connection, whose response this one then goes on from"
_NEW_ID = "the id that the input's item is given"
_METADATA = "times and what is made for each request in client_metadata, and the order of its keys"

Line = tuple[str, Mapping[str, Any]]


def resume(log: Log, before: Before) -> Resume | None:
    """The lines up to the next input; see ``Agent.resume``.

    ``None`` for a subagent's rollout, for versions that were not seen to go on, and where an answer or the output of a
    tool is missing.
    """
    fold = folded(log)
    version = string(fold.header.get("cli_version"))
    again, changes_only = version == GIVEN_AGAIN, not is_newer(ONLY_CHANGES, (version,)) and bool(version)
    if not (again or changes_only) or not fold.calls or lineage_of(fold.header)[0] != "main" or _is_open(fold):
        return None
    lines = [*(_context(log) if again else _stated(log, fold)), ("response_item", _input(fold, with_ids=not again))]
    served = before[-1][1] if before else None
    own = facts(log, served.sha256, lambda: served) if served is not None else None
    socket = own is not None and own.is_socket
    changes = (*((_AGAIN,) if again else ()), *((_WHOLE,) if socket else ()))
    doubts = _doubts(served, socket=socket)
    unknown = (*_compacted_first(log, fold), *doubts, *(() if again else (_NEW_ID,)))
    return Resume(tuple(_records(log, lines)), changes=changes, unknown=unknown)


def _is_open(fold: Fold) -> bool:
    """Whether a turn did not end, as far as the log tells."""
    last = fold.history.items[-1].payload.get("type") if fold.history.items else None
    return fold.asks is not None or bool(fold.history.waiting) or last in _LAST_ITEMS or (fold.records and fold.running)


def _compacted_first(log: Log, fold: Fold) -> Iterator[str]:
    """A new process asks for a compaction before the input where the last call reached the limit."""
    limit, last = config(log).threshold, fold.calls[-1]
    used = (last.usage or {}).get("total_tokens")
    if limit is not None and isinstance(used, int) and last.kind != "compaction" and used >= limit:
        yield (
            "the summary that stands in place of what is shown: a compaction comes first, "
            f"for the last call's {used} tokens reach the limit of {limit}"
        )


def _doubts(served: Body | None, *, socket: bool) -> Iterator[str]:
    yield _CHANGED
    if socket:
        yield _WARMED
    if served is not None and b'"client_metadata"' in served.data:
        yield _METADATA


def _context(log: Log) -> Iterator[Line]:
    """The messages that were given before an input last, if they were not only some of those given at first."""
    opening: list[Mapping[str, Any]] = []
    newest: list[Mapping[str, Any]] = []
    since: list[Mapping[str, Any]] = []
    for entry in _lines(log):
        item = payload_of(entry)
        if type_of(entry) != "response_item":
            continue
        if is_context(item):
            since.append(item)
            continue
        opening = opening or since
        if is_user(item) and set(map(_kind, opening)) <= set(map(_kind, since)):
            newest = since
        since = []
    return (("response_item", item) for item in newest or opening)


def _kind(item: Mapping[str, Any]) -> tuple[str, str]:
    """Who is said to speak, and how the text begins."""
    return string(item.get("role")), text_of(item).lstrip().partition(" ")[0].partition("\n")[0]


def _stated(log: Log, fold: Fold) -> Iterator[Line]:
    """The settings as they were stated last, for a turn of its own."""
    turn = _made_up(fold, "turn")
    names = {"turn_id": turn, "root_turn_id": turn}
    for kind in ("thread_settings_applied", "task_started"):
        found = _last(log, kind)
        if found is not None:
            yield "event_msg", {**found, **(names if kind == "task_started" else {})}
    found = _last(log, "turn_context")
    if found is not None:
        yield "turn_context", {**found, **names}


def _last(log: Log, kind: str) -> Mapping[str, Any] | None:
    """What the last line of a kind carries."""
    found = (e for e in reversed(log.entries) if e.source == SESSION and e.kind == kind)
    return next((payload_of(e) for e in found), None)


def _input(fold: Fold, *, with_ids: bool) -> Mapping[str, Any]:
    """The message of the next input; what only some requests carry of it, as the last input has it."""
    plain = message(NEXT_INPUT)
    if not with_ids:
        return plain
    own = {"type": plain["type"], "id": f"msg_{_made_up(fold, 'input')}", **plain}
    carried = {name for item in fold.history.items for name in item.extras}
    for name in (PASSTHROUGH, METADATA):
        if f"{name}/turn_id" in carried:
            own[name] = {"turn_id": _made_up(fold, "turn")}
    return own


def _made_up(fold: Fold, what: str) -> str:
    """An id in the form that they have, always the same for a place in a thread."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{what} {fold.header.get('id')} {len(fold.known)}"))


def _lines(log: Log) -> list[Entry]:
    return [e for e in log.entries if e.source == SESSION and e.kind != "gone"]


def _records(log: Log, lines: list[Line]) -> Iterator[Record]:
    """Lines behind the log's last, written when that was."""
    last = max(_lines(log), key=lambda e: e.place.number)
    for count, (kind, payload) in enumerate(lines, 1):
        number = last.place.number + count
        stamp = last.data.get("timestamp")
        line = {"timestamp": stamp, "type": kind, "payload": mapped(payload)}
        yield Record(SESSION, str(number), Place(last.place.log, number), spelled(line))
