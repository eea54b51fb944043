"""claude-trace: one JSON line a call, ``{request, response, logged_at}``, written by a patched ``fetch``.

The shape: recorded with 1.0.9 and Claude Code 1.0.128. ``response.timestamp`` is when the reply's headers came;
``logged_at`` when its body was whole; a request still open as the process ended has ``response: null`` and a ``note``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ctxscope.capture.importers.http_parts import decoded, headers, moment, spelled, split_url
from ctxscope.capture.importers.imported import Answer, Capture, Damage, Ending, Imported, Item, UnfitError, item
from ctxscope.capture.importers.json_lines import first_objects, objects

title = "claude-trace"
notes = (
    "claude-trace keeps parsed bodies: escapes, white space, repeated keys and the spelling of numbers are left out.",
    "claude-trace leaves out requests whose connection failed and, unless told otherwise, calls with two messages or fewer.",
)

_UNANSWERED = "no reply before the traced process ended"


def claims(path: Path, head: bytes) -> float:
    """See ``Importer``."""
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return 0.0
    return 0.95 if any(_is_pair(value) for value in first_objects(path)) else 0.0


def _is_pair(value: Mapping[str, Any]) -> bool:
    request = value.get("request")
    return isinstance(request, dict) and {"timestamp", "method", "url"} <= request.keys() and "response" in value


def read(path: Path) -> Capture:
    """See ``Importer``."""
    damage = Damage(path, "line", "a JSON object with request.url and request.timestamp")
    items: list[Item] = []
    for line in objects(path, damage):
        try:
            exchange = _exchange(line.value)
        except ValueError as error:
            damage.add(line.number, str(error))
        else:
            items.append(item(exchange, _reader(line.load), path))
    return Capture(tuple(items), tuple(damage.sentences()))


def _reader(load: Callable[[], dict[str, Any]]) -> Callable[[], Imported]:
    return lambda: _exchange(load())


def _exchange(pair: Mapping[str, Any]) -> Imported:
    """A line as an exchange. Raises ``UnfitError``."""
    request, response = pair.get("request"), pair.get("response")
    if not isinstance(request, dict) or not isinstance(request.get("url"), str):
        raise UnfitError("an object without request.url")
    time = moment(request.get("timestamp"))
    if time is None:
        raise UnfitError("a request without a time")
    upstream, target = split_url(request["url"])
    logged = moment(pair.get("logged_at"))
    answer = _answer(response, time)
    ending = None
    if answer is not None:
        ending = Ending(logged if logged is not None else answer.time)
    elif pair.get("note"):
        ending = Ending(logged if logged is not None else time, "stopped", _UNANSWERED)
    return Imported(
        time=time,
        method=str(request.get("method", "POST")),
        target=target,
        upstream=upstream,
        headers=decoded(headers(request.get("headers"))),
        body=spelled(request.get("body")),
        fidelity="parsed",
        answer=answer,
        ending=ending,
    )


def _answer(response: Any, after: float) -> Answer | None:
    if not isinstance(response, Mapping) or not isinstance(response.get("status_code"), int):
        return None
    raw = response.get("body_raw")
    return Answer(
        time=moment(response.get("timestamp")) or after,
        status=response["status_code"],
        headers=decoded(headers(response.get("headers"))),
        body=spelled(raw if isinstance(raw, str) else response.get("body")),
    )
