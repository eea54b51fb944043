"""What a new process adds to a transcript that it goes on with, and what of its request the log tells (§4, §5)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxscope.agents import Before, Log
from ctxscope.agents.claude_code import restarted
from ctxscope.agents.claude_code.chain import beside
from ctxscope.agents.claude_code.learning import CHECKSUM, OLD, default_form
from ctxscope.agents.claude_code.lines import ABORTED, SESSION
from ctxscope.agents.claude_code.messages import units_of
from ctxscope.agents.claude_code.points import requests
from ctxscope.agents.claude_code.records import digest, record_of, records
from ctxscope.agents.claude_code.served import top_of
from ctxscope.agents.claude_code.settings import config
from ctxscope.agents.claude_code.texts import SUMMARY_STARTS, mapped, spelled, string, text_block
from ctxscope.agents.claude_code.tree import MAIN, Group, Node, Tree, tree
from ctxscope.agents.reading.drift import is_newer
from ctxscope.model import NEXT_INPUT, Body, Entry, Place, Point, Record, Resume

LAST_UNRECORDED = ("2.1.299",)
"""Behind it requests hold what only their records tell: attachments as messages of role ``system`` (§3)."""
COPIES, ANSWERS_ITSELF = ("0.", "1."), "2.0."
"""Versions that go on in a new file without a compaction's boundary; one that answers what was left open by itself."""
NO_ANSWER = "No response requested."
"""What 2.0.30 puts behind inputs that asked for nothing (measured)."""
_CHANGED = "system prompt, tools, settings, date, git status or CLAUDE.md where they changed since"
_ADDED = "reminders that are not logged, beside the input itself"
_CHECKSUM = "the checksum cch, new in each request"
_OTHERWISE = "inputs and tool results are sent as logged: without reminders added to them, their text not trimmed"
_UNLOGGED = "messages the client added without logging them are left out"
_OWN_ANSWER = f"what asked for nothing is answered by the client itself: {NO_ANSWER}"
_NEW_FILE = "the id of the session: this version goes on in a new file"
_UNDONE = "the whole conversation is sent again: this version does not log a compaction"

Line = dict[str, Any]


def resume(log: Log, before: Before) -> Resume | None:
    """The lines up to the next request; see ``Agent.resume``.

    ``None`` where the conversation does not end with a whole answer, and for versions with request records where the
    last request has none.
    """
    grown = tree(log)
    last, tip = _last_call(log), grown.tips.get(MAIN)
    if last is None or tip is None:
        return None
    version = string(last.data.get("version"))
    lines: list[Line] = []
    if not _is_whole(tip, last):
        if not (version.startswith(ANSWERS_ITSELF) and _asks_nothing(log, tip)):
            return None
        lines.append(_answer(grown))
    lines.append(_input(grown, lines[-1] if lines else None))
    record = record_of(log, last) if tip.group is not None else None
    if record is not None and tip.group is not None:
        lines.append(_request(log, record, tip, lines[-1]))
    elif is_newer(version, LAST_UNRECORDED):
        return None
    served = next((before[i] for i in range(len(before) - 1, -1, -1) if before.told[i][0].lineage == "main"), None)
    changes = [_OWN_ANSWER] if len(lines) > 1 and record is None else []
    if served is not None and record is None:
        changes += _changes(log, *served, version)
    body = served[1] if served is not None else None
    doubts = tuple(_doubts(log, last, body, exact=record is not None))
    return Resume(tuple(_records(grown, lines)), {"restarted": True}, {}, tuple(changes), doubts)


def _last_call(log: Log) -> Point | None:
    """The last answered call of the conversation."""
    return next((p for p in reversed(requests(log)) if p.lineage == "main" and p.answer is not None), None)


def _is_whole(tip: Node, last: Point) -> bool:
    """Whether the last line is of the last answer, and nothing of it is still to be done."""
    group = last.data.get("group")
    if not isinstance(group, Group) or tip.group is not group or tip.head.flags & ABORTED:
        return False
    return not group.uses and not all(unit.thought for unit in units_of(tip))


def _asks_nothing(log: Log, tip: Node) -> bool:
    """Whether inputs stand at the end that no call is due for: what a local command wrote, a compaction's summary."""
    own = (p for p in requests(log) if p.lineage == "main")
    return tip.entry.kind == "user" and all(p.answer is not None or p.data.get("dead") for p in own)


# --- lines -----------------------------------------------------------------------------------------------------------


def _chained(grown: Tree) -> Node:
    """The last line of the conversation, which the next one goes on from."""
    return next(n for n in reversed(grown.order) if n.entry.source == SESSION and n.thread == MAIN)


def _made_up(grown: Tree, what: str) -> str:
    """An id in the form that lines have, always the same for a place in a transcript."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{what} {_chained(grown).head.uuid} {grown.upto}"))


def _line(grown: Tree, kind: str, before: Line | None, message: Mapping[str, Any]) -> Line:
    last = _chained(grown)
    known = {k: last.entry.data.get(k) for k in ("userType", "cwd", "sessionId", "version") if k in last.entry.data}
    return {
        "parentUuid": before["uuid"] if before is not None else last.head.uuid,
        "isSidechain": False,
        **known,
        "type": kind,
        "message": message,
        "uuid": _made_up(grown, kind),
        "timestamp": last.entry.data.get("timestamp"),
    }


def _input(grown: Tree, before: Line | None) -> Line:
    return _line(grown, "user", before, {"role": "user", "content": NEXT_INPUT})


def _answer(grown: Tree) -> Line:
    content = [text_block(NO_ANSWER)]
    message = {"id": _made_up(grown, "answer"), "model": "<synthetic>", "role": "assistant", "type": "message"}
    return _line(grown, "assistant", None, {**message, "stop_reason": "stop_sequence", "content": content})


def _request(log: Log, record: Entry, tip: Node, own: Line) -> Line:
    """The record of the next request: all that the last one had, its answer, the input; marks as that one had them."""
    found, data = records(log), record.data
    hashes = list(found.hashes(string(data.get("id"))) or ())
    assert tip.group is not None
    answer = [u.block for n in tip.group.nodes for u in units_of(n)]
    asked = {"role": "user", "content": [text_block(string(mapped(own["message"]).get("content")))]}
    hashes += [digest({"role": "assistant", "content": answer}), digest(asked)]
    return {
        **{k: v for k, v in data.items() if k != "requestDigest"},
        "id": _made_up(tree(log), "request"),
        "base": None,
        "keep": 0,
        "tail": hashes,
        "cacheControl": list(_marks(data.get("cacheControl"), len(hashes) - 1)),
    }


def _marks(marks: Any, last: int) -> Iterator[Mapping[str, Any]]:
    """Those outside the conversation, and that of its last message on the input's one block."""
    value: Any = None
    for mark in marks if isinstance(marks, list) else ():
        path = mapped(mark).get("path")
        if isinstance(path, list) and path[:1] == ["messages"]:
            value = mark.get("value")
        else:
            yield mark
    if value is not None:
        yield {"path": ["messages", last, "content", 0], "value": value}


def _records(grown: Tree, lines: Sequence[Line]) -> Iterator[Record]:
    last = max((e for e in (*grown.others, _chained(grown).entry) if e.source == SESSION), key=lambda e: e.place.number)
    for count, line in enumerate(lines, 1):
        number = last.place.number + count
        yield Record(SESSION, str(number), Place(last.place.log, number), spelled(line))


# --- words -----------------------------------------------------------------------------------------------------------


def _changes(log: Log, point: Point, body: Body, version: str) -> Iterator[str]:
    """What the last request had, and the next one will not."""
    top = top_of(log, body)
    if not top.start:
        return
    if version.startswith(COPIES) and SUMMARY_STARTS.encode() in body.data and not tree(log).boundaries.get(SESSION):
        yield _UNDONE
        return
    otherwise, others = restarted.left_out(beside(log, point, body, top, default_form(point)))
    if otherwise and version.startswith(OLD):
        yield _OTHERWISE
    if others:
        yield _UNLOGGED


def _doubts(log: Log, last: Point, body: Body | None, *, exact: bool) -> Iterator[str]:
    used = last.stored_usage.reported if last.stored_usage is not None else None
    if used is not None and config(log).values.get("auto_compact", True):
        yield f"whether a compaction comes first: the last call used {used} tokens, and no file says where a window ends"
    yield _CHANGED
    if not exact:
        yield _ADDED
    if string(last.data.get("version")).startswith(COPIES):
        yield _NEW_FILE
    found = CHECKSUM.search(body.data) if body is not None else None
    if found is not None and re.fullmatch(rb"0+", found[1]) is None:
        yield _CHECKSUM
