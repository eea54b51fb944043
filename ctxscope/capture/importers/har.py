"""HAR 1.2: one JSON document with an entry an exchange, as browsers and proxies export it.

The shape: the HAR 1.2 specification; ``_error`` and ``_webSocketMessages`` as mitmproxy and Chrome write them. A text
is the bytes where the entry confirms it: as long as it says the body was, and no replacement character in it. Tools put
JSON into another form and leave the size out (``bodySize`` -1), so that a text alone proves nothing.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ctxscope.capture.events import Headers
from ctxscope.capture.importers.http_parts import decoded, failure, headers, moment, split_url, value_of
from ctxscope.capture.importers.imported import Answer, Capture, Damage, Ending, Imported, Item, Said, UnfitError, item
from ctxscope.capture.importers.json_lines import UNREADABLE, document, kind
from ctxscope.model import CtxscopeError, Fidelity

title = "HAR"
notes = (
    "HAR keeps bodies as decoded text: how they were compressed is left out.",
    "A body whose text no stated size confirms, or that holds replaced characters, is kept by value only.",
    "HAR keeps when a reply began and when it ended, not when each part of it came.",
)

_HEAD = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*\{\s*"log"\s*:\s*\{')
_CHARSET = re.compile(r"charset=\"?([\w-]+)", re.IGNORECASE)
_BEFORE_REPLY = ("blocked", "dns", "connect", "send", "wait")
"""Parts of ``timings`` in milliseconds (``ssl`` lies inside ``connect``); -1 is not told."""
_MS = 1000.0
_REPLACED = "\ufffd"
_Tell = Callable[[str], None]
"""Takes what of a reply cannot be read."""


def claims(path: Path, head: bytes) -> float:
    """See ``Importer``."""
    if _HEAD.match(head):
        return 0.95 if any(key in head for key in (b'"entries"', b'"creator"', b'"version"')) else 0.6
    return 0.3 if path.suffix.lower() == ".har" and head.lstrip().startswith(b"{") else 0.0


def read(path: Path) -> Capture:
    """See ``Importer``. The document is held in memory: HAR can only be read whole."""
    try:
        archive, _ = document(path)
        entries = archive["log"]["entries"]
    except (ValueError, KeyError, TypeError):
        entries = None
    if not isinstance(entries, list):
        raise CtxscopeError(f"{path}: found no list log.entries, expected an HTTP archive (HAR 1.2)")
    damage = Damage(path, "entry", "an HTTP request with its body")
    replies = Damage(path, "entry", "a reply or message in base64")
    items: list[Item] = []
    for number, entry in enumerate(entries, 1):
        try:
            exchange = _exchange(entry, partial(replies.add, number))
        except ValueError as error:
            damage.add(number, str(error))
        else:
            items.append(item(exchange, _reader(entry), path))
    return Capture(tuple(items), (*damage.sentences(), *replies.sentences()))


def _reader(entry: Any) -> Callable[[], Imported]:
    return lambda: _exchange(entry, lambda _: None)


def _exchange(entry: Any, tell: _Tell) -> Imported:
    """An entry as an exchange, without what of its reply cannot be read. Raises ``UnfitError``."""
    if not isinstance(entry, dict):
        raise UnfitError(kind(UNREADABLE if entry is UNREADABLE else entry))
    request = entry.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("url"), str):
        raise UnfitError("an entry without request.url")
    time = moment(entry.get("startedDateTime"))
    if time is None:
        raise UnfitError("an entry without a date as startedDateTime")
    upstream, target = split_url(request["url"])
    given = headers(request.get("headers"))
    body, fidelity = _body(request, given)
    took = entry.get("time")
    end = time + (took / _MS if isinstance(took, int | float) and took > 0 else 0.0)
    answer = _answer(entry.get("response"), min(time + _before_reply(entry.get("timings")), end), tell)
    return Imported(
        time=time,
        method=str(request.get("method", "GET")),
        target=target,
        upstream=upstream,
        headers=decoded(given) if value_of(given, "content-encoding") else given,
        body=body,
        fidelity=fidelity,
        answer=answer,
        ending=_ending(entry, answer, end),
        messages=tuple(_messages(entry.get("_webSocketMessages"), tell)),
    )


def _body(request: Mapping[str, Any], given: Headers) -> tuple[bytes, Fidelity]:
    """The request's body, and whether its text can be taken for its bytes."""
    posted = request.get("postData")
    text = posted.get("text") if isinstance(posted, Mapping) else None
    if not isinstance(posted, Mapping) or not isinstance(text, str):
        if _sizes(request, given):
            raise UnfitError("a request whose body was not kept")
        return b"", "bytes"
    # Content-Length counts what is compressed, bodySize in some tools the text.
    told = _sizes(request, () if value_of(given, "content-encoding") else given)
    if posted.get("encoding") == "base64":
        body = _from_base64(text)
        return body, "bytes" if told <= {len(body)} else "parsed"
    charset = _CHARSET.search(str(posted.get("mimeType", "")))
    body, exact = _encoded(text, charset[1] if charset else "utf-8")
    confirmed = told == ({len(body)} if body else set())
    return body, "bytes" if exact and confirmed and _REPLACED not in text else "parsed"


def _sizes(request: Mapping[str, Any], given: Headers) -> set[int]:
    """How long the body was, as the entry says in either place; none where it does not, or says 0."""
    length = value_of(given, "content-length")
    told = (int(length) if length.isdecimal() else None, request.get("bodySize"))
    return {size for size in told if isinstance(size, int) and not isinstance(size, bool) and size > 0}


def _encoded(text: str, charset: str) -> tuple[bytes, bool]:
    """Text as bytes, and whether that is certain. mitmproxy keeps bytes that are no text as lone surrogates (PEP 383)."""
    try:
        return text.encode(charset, "surrogateescape"), True
    except (UnicodeError, LookupError):
        return text.encode("utf-8", "backslashreplace"), False


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise UnfitError("base64 that cannot be decoded") from None


def _answer(response: Any, first: float, tell: _Tell) -> Answer | None:
    """The reply; ``None`` where there was none (status 0)."""
    if not isinstance(response, Mapping) or not isinstance(response.get("status"), int) or not response["status"]:
        return None
    content = response.get("content")
    content = content if isinstance(content, Mapping) else {}
    text = content.get("text")
    body: bytes | None = None
    if isinstance(text, str):
        body = _heard(text, tell, binary=content.get("encoding") == "base64")
    elif not content.get("size"):
        body = b""
    given = headers(response.get("headers"))
    return Answer(
        time=first,
        status=response["status"],
        reason=str(response.get("statusText") or ""),
        headers=decoded(given) if value_of(given, "content-encoding") else given,
        body=body,
    )


def _heard(text: str, tell: _Tell, *, binary: bool) -> bytes | None:
    """What the other side said; ``None``, and told, where it cannot be read: that must not cost the request."""
    try:
        return _from_base64(text) if binary else _encoded(text, "utf-8")[0]
    except UnfitError as error:
        tell(str(error))
        return None


def _before_reply(timings: Any) -> float:
    """Seconds between the request and the first byte of its reply."""
    if not isinstance(timings, Mapping):
        return 0.0
    parts = (timings.get(name) for name in _BEFORE_REPLY)
    return sum(part for part in parts if isinstance(part, int | float) and part > 0) / _MS


def _ending(entry: Mapping[str, Any], answer: Answer | None, end: float) -> Ending | None:
    response = entry.get("response")
    error = response.get("_error") if isinstance(response, Mapping) else None
    if isinstance(error, str) and error:
        how, detail = failure(error.replace("net::ERR_", "").replace("_", " ").lower())
        return Ending(end, how, detail)
    return Ending(end) if answer is not None and answer.body is not None else None


def _messages(messages: Any, tell: _Tell) -> Iterator[Said]:
    """``{type: send or receive, time (seconds), opcode, data}`` each; binary data in base64."""
    for message in messages if isinstance(messages, list) else ():
        match message:
            case {"type": "send" | "receive" as way, "time": time, "data": str() as data, **rest}:
                text = rest.get("opcode", 1) == 1
                body = _heard(data, tell, binary=not text)
                if body is not None:
                    sender: Literal["client", "server"] = "client" if way == "send" else "server"
                    yield Said(moment(time) or 0.0, sender, "text" if text else "binary", body)
