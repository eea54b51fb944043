"""mitmproxy flow files: one typed netstring a flow, read without mitmproxy.

The shape: flow format 21 of mitmproxy 12.3.1 and 11.0.2, recorded and made; what earlier formats name otherwise, from
mitmproxy's own migrations (``mitmproxy/io/compat.py``). ``content`` is the body as it crossed the wire.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal

from ctxscope.capture.events import Headers
from ctxscope.capture.importers.http_parts import failure, moment, origin
from ctxscope.capture.importers.imported import Answer, Capture, Damage, Ending, Imported, Item, Said, UnfitError, item
from ctxscope.capture.importers.tnetstring import extent, parsed

title = "mitmproxy flows"
notes = ("mitmproxy keeps when a reply began and when it ended, not when each part of it came.",)

_EXPECTED = "a flow of HTTP with the request's body"
_PREFIX_BYTES = 16
_WINDOW = 1 << 20
"""Bytes of a damaged file that are searched at once for the next flow."""
_FLOW = re.compile(rb"(?<![0-9])[1-9][0-9]{1,11}:[1-9][0-9]?:[a-z_]+[;,]")
"""Where a flow may begin: a dictionary whose first key is a name."""
_KINDS: Mapping[Any, Literal["text", "binary", "close"]] = {1: "text", 2: "binary", 8: "close"}
"""Opcodes of WebSocket messages (RFC 6455)."""
_LAST_CODE = 0xFFFF
"""Codes of closings have two bytes."""


def claims(path: Path, head: bytes) -> float:  # noqa: ARG001 - the face of all formats
    """See ``Importer``: a netstring that is a dictionary with a flow's keys, as far as the head shows."""
    if not _FLOW.match(head):
        return 0.0
    keys = sum(f":{key}{mark}".encode() in head for key in ("request", "version", "client_conn") for mark in ";,")
    return 0.95 if keys else 0.6


def read(path: Path) -> Capture:
    """See ``Importer``."""
    damage = Damage(path, "flow", _EXPECTED)
    items: list[Item] = []
    with path.open("rb") as file:
        for number, (offset, data) in enumerate(_flows(file, damage), 1):
            try:
                exchange = _exchange(parsed(data))
            except ValueError as error:
                damage.add(number, str(error))
            else:
                items.append(item(exchange, _reader(path, offset, len(data)), path))
    return Capture(tuple(items), tuple(damage.sentences()))


def _reader(path: Path, offset: int, length: int) -> Callable[[], Imported]:
    def load() -> Imported:
        with path.open("rb") as file:
            file.seek(offset)
            return _exchange(parsed(file.read(length)))

    return load


# --- the file --------------------------------------------------------------------------------------------------------


def _flows(file: BinaryIO, damage: Damage) -> Iterator[tuple[int, bytes]]:
    """Each flow and where it begins; what is no flow is stepped over up to the next one."""
    offset, size = 0, os.fstat(file.fileno()).st_size
    while offset < size:
        data, end = _value_at(file, offset, size)
        if data.endswith(b"}"):
            yield offset, data
            offset += len(data)
        else:
            found = f"{size - offset} bytes of a flow of {end}" if end > size - offset else "no flow"
            damage.add(f"at byte {offset}", found)
            offset = _next_flow(file, offset + 1, size)


def _value_at(file: BinaryIO, offset: int, size: int) -> tuple[bytes, int]:
    """The netstring at an offset and the length it says it has; no bytes when it is none, or is cut short."""
    file.seek(offset)
    try:
        end = extent(file.read(_PREFIX_BYTES))
    except ValueError:
        return b"", 0
    if end > size - offset:
        return b"", end
    file.seek(offset)
    return file.read(end), end


def _next_flow(file: BinaryIO, offset: int, size: int) -> int:
    """Where the next flow begins; the end of the file when there is none."""
    while True:
        file.seek(offset)
        window = file.read(_WINDOW)
        for start in _FLOW.finditer(window):
            at = offset + start.start()
            data, _ = _value_at(file, at, size)
            if data.endswith(b"}") and _is_flow(data):
                return at
        if len(window) < _WINDOW:
            return offset + len(window)
        offset += len(window) - _PREFIX_BYTES * 2


def _is_flow(data: bytes) -> bool:
    try:
        value = parsed(data)
    except ValueError:
        return False
    return isinstance(value, dict) and {"version", "type", "client_conn"} <= value.keys()


# --- a flow ----------------------------------------------------------------------------------------------------------


def _exchange(flow: Any) -> Imported:
    """A flow as an exchange. Raises ``UnfitError``."""
    if not isinstance(flow, dict) or "type" not in flow:
        raise UnfitError("no flow")
    if _text(flow["type"]) != "http":
        raise UnfitError(f"a flow of {_text(flow['type'])[:20]}")
    request = flow.get("request")
    if not isinstance(request, dict) or not {"method", "path", "headers", "content"} <= request.keys():
        version = flow.get("version")
        raise UnfitError(f"flow format {version if isinstance(version, int) else 'older than 0.16'} in another shape")
    if request["content"] is None:
        raise UnfitError("a request whose body was streamed and not kept")
    time = moment(request.get("timestamp_start"))
    if time is None:
        raise UnfitError("a request without a time")
    return Imported(
        time=time,
        method=_text(request["method"]),
        target=_text(request["path"]) or _text(request.get("authority")),
        upstream=_upstream(request, flow.get("server_conn")),
        headers=_headers(request["headers"]),
        body=_bytes(request["content"]),
        fidelity="bytes",
        answer=_answer(flow.get("response"), moment(request.get("timestamp_end")) or time),
        ending=_ending(flow),
        messages=tuple(_messages(flow.get("websocket"))),
    )


def _upstream(request: Mapping[str, Any], server: Any) -> str:
    """The origin; by name where mitmproxy, in transparent mode, notes the address but the handshake named the server."""
    host = _text(request.get("host"))
    name = server.get("sni") if isinstance(server, Mapping) else None
    if isinstance(name, bytes | str) and name and _is_address(host):
        host = _text(name)
    if not host:
        return ""
    scheme, port = _text(request.get("scheme")).lower(), request.get("port")
    scheme = scheme if scheme in ("http", "https") else "https"
    host = f"[{host}]" if ":" in host else host
    return origin(scheme, f"{host}:{port}" if isinstance(port, int) else host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _answer(response: Any, after: float) -> Answer | None:
    if not isinstance(response, Mapping) or not isinstance(response.get("status_code"), int):
        return None
    content = response.get("content")
    return Answer(
        time=moment(response.get("timestamp_start")) or after,
        status=response["status_code"],
        reason=_text(response.get("reason")),
        headers=_headers(response.get("headers")),
        body=None if content is None else _bytes(content),
    )


def _ending(flow: Mapping[str, Any]) -> Ending | None:
    """How it ended: mitmproxy's own word on a failure, else the last byte of the reply or of the connection."""
    error, response, socket = flow.get("error"), flow.get("response"), flow.get("websocket")
    if isinstance(error, Mapping):
        how, detail = failure(_text(error.get("msg")))
        return Ending(moment(error.get("timestamp")) or 0.0, how, detail)
    if isinstance(socket, Mapping):
        closed = moment(socket.get("timestamp_end"))
        return None if closed is None else Ending(closed)
    if isinstance(response, Mapping) and response.get("content") is not None:
        ended = moment(response.get("timestamp_end"))
        return None if ended is None else Ending(ended)
    return None


def _messages(socket: Any) -> Iterator[Said]:
    """What was said: ``[opcode, from the client, content, time, …]`` each; the closing last."""
    if not isinstance(socket, Mapping):
        return
    messages = socket.get("messages")
    for message in messages if isinstance(messages, list) else ():
        match message:
            case [opcode, bool() as client, bytes() | str() as content, time, *_]:
                kind = _KINDS.get(opcode if isinstance(opcode, int) else 2, "binary")
                yield Said(moment(time) or 0.0, "client" if client else "server", kind, _bytes(content))
    code, closed = socket.get("close_code"), moment(socket.get("timestamp_end"))
    if isinstance(code, int) and 0 <= code <= _LAST_CODE and closed is not None:
        data = code.to_bytes(2, "big") + _bytes(socket.get("close_reason"))
        yield Said(closed, "client" if socket.get("closed_by_client") else "server", "close", data)


def _headers(value: Any) -> Headers:
    pairs = value if isinstance(value, list) else ()
    return tuple((_text(pair[0]), _text(pair[1])) for pair in pairs if isinstance(pair, list) and len(pair) == 2)  # noqa: PLR2004


def _text(value: Any) -> str:
    """Text; bytes of the wire one character each."""
    return value.decode("latin-1") if isinstance(value, bytes) else value if isinstance(value, str) else ""


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else b""
