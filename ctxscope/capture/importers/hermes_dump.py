"""Hermes request dumps: one JSON file a call, written before it (``HERMES_DUMP_REQUESTS=1``) or after it failed.

The shape: ``{timestamp, session_id, reason, request: {method, url, headers, body}, error?}``, read in Hermes 0.19.0
(``dump_api_request_debug``). ``body`` is what Hermes hands to the provider's client, secrets masked, before it adds what
makes the reply a stream; ``url`` names the chat endpoint whatever the API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctxscope.capture.importers.http_parts import decoded, failure, headers, moment, spelled, split_url
from ctxscope.capture.importers.imported import Answer, Capture, Ending, Imported, item
from ctxscope.capture.importers.sdk_body import body_of, endpoint
from ctxscope.model import CtxscopeError
from ctxscope.wire.json_text import loads

title = "Hermes request dump"
notes = (
    "A Hermes request dump is what Hermes hands to the provider's client: spelling, stream settings and masked secrets are not as sent.",
    "A Hermes request dump is dated when it was written, which is after the reply where that was an error.",
    "A call that Hermes dumped before it was made and again when it failed stands there twice.",
)

_NAME = re.compile(r"request_dump_.+\.json")
_KEYS = (b'"session_id"', b'"reason"', b'"request"')
_CHAT = "/chat/completions"


def claims(path: Path, head: bytes) -> float:
    """See ``Importer``: by name and keys; by keys alone where the file was renamed."""
    if not head.lstrip().startswith(b"{") or not all(key in head for key in _KEYS):
        return 0.0
    return 0.95 if _NAME.fullmatch(path.name) else 0.7


def read(path: Path) -> Capture:
    """See ``Importer``. Raises ``CtxscopeError``: a file is one call, and without it there is nothing."""
    exchange = _exchange(path)
    return Capture((item(exchange, lambda: _exchange(path), path),))


def _exchange(path: Path) -> Imported:
    try:
        dump = loads(path.read_bytes())
        request = dump["request"]
        body, url = request["body"], request["url"]
        upstream, target = split_url(url)
    except (ValueError, KeyError, TypeError) as error:
        raise CtxscopeError(f"{path}: found no request with a url and a body, expected {title}") from error
    time = moment(dump.get("timestamp"))
    if not isinstance(body, Mapping) or time is None:
        missing = "timestamp" if time is None else "JSON object as body"
        raise CtxscopeError(f"{path}: found no {missing}, expected {title}")
    body = body_of(body)
    return Imported(
        time=time,
        method=str(request.get("method", "POST")),
        target=endpoint(target.removesuffix(_CHAT), body),
        upstream=upstream,
        headers=decoded(headers(request.get("headers"))),
        body=spelled(body),
        fidelity="normalised",
        **_reply(dump.get("error"), time),
    )


def _reply(error: Any, time: float) -> dict[str, Any]:
    """What the error tells of the reply: its status and text, or that there was none."""
    if not isinstance(error, Mapping):
        return {}
    status = next((s for s in (error.get("response_status"), error.get("status_code")) if isinstance(s, int)), None)
    if status is None:
        how, detail = failure(error.get("type"))
        return {"ending": Ending(time, how, detail)}
    text = error.get("response_text")
    body = text if isinstance(text, str) and text else error.get("body")
    return {"answer": Answer(time, status, body=spelled(body)), "ending": Ending(time)}
