"""Plan mode's reminders: a text behind the newest input, for one call alone (checked with 1.18.33).

One is sent while the input is for the agent ``plan``, another while it is for ``build`` and an answer that is read was
made in plan mode. Both are constants of the agent's, and neither is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.opencode.points import asked_at
from ctxscope.agents.opencode.served import BULK, facts
from ctxscope.agents.opencode.written import written_of
from ctxscope.model import Body, Point, Value
from ctxscope.wire.blocks import listed, mapped, parsed
from ctxscope.wire.json_text import js_string


def learn(log: Log, point: Point, body: Body, before: Before, form: str) -> Mapping[str, Value]:
    """The reminder by its path in the request, as the first call showed it that had the same one."""
    mine = asked_at(point).reminder
    place = _place(log, point, body.sha256, lambda: body, form)
    if place is None:
        return {}
    alike = (at for at, (other, _) in enumerate(before.told) if asked_at(other).reminder == mine)
    taught = next((text for at in alike if (text := _shown(log, before, at, form)) is not None), None)
    text = _text(body, *place) if taught is None else taught
    path = f"/{BULK[facts(log, body.sha256, lambda: body).api or '']}/{place[0]}/content/{place[1]}/text"
    return {} if text is None else {path: Value(text, "echoed" if taught is None else "learned")}


def _shown(log: Log, before: Before, at: int, form: str) -> bytes | None:
    point, digest = before.told[at]
    memo = shared_memo(log, "opencode.reminders")
    if digest not in memo:
        place = _place(log, point, digest, partial(_body, before, at), form)
        memo[digest] = None if place is None else _text(before[at][1], *place)
    found: bytes | None = memo[digest]
    return found


def _place(log: Log, point: Point, digest: str, load: Callable[[], Body], form: str) -> tuple[int, int] | None:
    """Number of the newest input's message in a request, and of the reminder in it."""
    asked, shown = asked_at(point), facts(log, digest, load)
    return written_of(log, asked, form).reminded(asked.length, len(shown.systems))


def _text(body: Body, message: int, block: int) -> bytes | None:
    """The last block of a message, as spelled."""
    found = listed(parsed(body.data).get(BULK[body.api or ""]))[message : message + 1]
    content = listed(mapped(found[0]).get("content")) if found else []
    text = mapped(content[block]).get("text") if len(content) == block + 1 else None
    return js_string(text).encode("utf-8", "surrogatepass") if isinstance(text, str) else None


def _body(before: Before, at: int) -> Body:
    return before[at][1]
