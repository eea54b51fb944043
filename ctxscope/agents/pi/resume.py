"""What a new process makes of a session file: it goes on behind its last entry, wherever the old one stood (pi.md §2).

Model and thinking level are the session's; a message thread is known to the process alone that began it (read in 1.6.0).
"""

from __future__ import annotations

from typing import Any

from ctxscope.agents import Before, Log
from ctxscope.agents.pi.lines import SESSION
from ctxscope.agents.pi.thread import thread_before
from ctxscope.agents.pi.tree import Node, tree
from ctxscope.model import NEXT_INPUT, Place, Record, Resume, Value
from ctxscope.wire import json_text

_LOGGED = "where rules, skills, tools or project files changed since, the system prompt is patched"
_OLD = "the system prompt is made anew, with its date and project files as they are then"
_NEW_THREAD = b'{"type":"create"}'


def resume(log: Log, before: Before) -> Resume | None:
    """A further user line behind the last entry; see ``Agent.resume``."""
    grown = tree(log)
    last = grown.last
    if last is None or (last.call is None and last.model is None):
        return None
    number = 1 + max(e.place.number for e in log.entries if e.source == SESSION)
    line = json_text.js(_line(last)).encode("utf-8", "surrogatepass")
    record = Record(SESSION, str(number), Place(last.entry.place.log, f"line {number}"), line)
    served = before[-1][1] if before else None
    values, changes = {}, []
    if served is not None and any(s.path == "/thread" for s in served.segments):
        values["/thread"] = Value(_NEW_THREAD, "learned")
        if thread_before(last) is not None:
            changes.append("the message thread is begun anew: the whole conversation is sent, not only what is new")
    return Resume((record,), {}, values, tuple(changes), (_LOGGED if grown.version == "1.x" else _OLD,))


def _line(last: Node) -> dict[str, Any]:
    return {
        "type": "message",
        "id": f"after {last.entry.key}",
        "parentId": last.entry.key,
        "timestamp": last.entry.data.get("timestamp"),
        "message": {"role": "user", "content": [{"type": "text", "text": NEXT_INPUT}]},
    }
