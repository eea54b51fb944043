"""Images in a stored history, and the frames that versions after 2.51 put around what is no user's word.

Read in the library's source (2.51.0, 2.68.0) and recorded. A history spells bytes in the URL-safe alphabet of base64, a
request in the plain one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctxscope.agents.pydantic_ai.transcript import Part, Transcript, UnknownPartError
from ctxscope.agents.pydantic_ai.writing import is_file
from ctxscope.wire.blocks import mapped, string

_PLAIN_ALPHABET = str.maketrans("-_", "+/")


def image(part: Part, item: Mapping[str, Any]) -> tuple[str, str, str]:
    """An image's address, or its media type and base64, one of both empty; raises ``UnknownPartError`` for other files."""
    kind, media = item.get("kind"), string(item.get("media_type"))
    if kind == "image-url" and not item.get("force_download"):
        return string(item.get("url")), "", ""
    if kind == "binary" and media.startswith("image/"):
        return "", media, string(item.get("data")).translate(_PLAIN_ALPHABET)
    raise UnknownPartError(part.entry, f"a part with a file of the kind {kind} ({media or 'no media type'})")


def in_chat(part: Part, item: Mapping[str, Any]) -> dict[str, Any]:
    """An image as Chat Completions are sent it."""
    address, media, data = image(part, item)
    url = {"url": address or f"data:{media};base64,{data}"}
    told = mapped(item.get("vendor_metadata"))
    return {"image_url": {**url, "detail": told.get("detail", "auto")} if told else url, "type": "image_url"}


def in_messages(part: Part, item: Mapping[str, Any]) -> dict[str, Any]:
    """An image as Anthropic is sent it."""
    address, media, data = image(part, item)
    if address:
        return {"source": {"type": "url", "url": address}, "type": "image"}
    return {"source": {"data": data, "media_type": media, "type": "base64"}, "type": "image"}


def returned(part: Part) -> list[Mapping[str, Any]]:
    """The files a tool returned."""
    value = part.data.get("content") if part.kind == "tool-return" else None
    return [mapped(v) for v in (value if isinstance(value, list) else [value]) if is_file(v)]


def framed(part: Part, *, chat: bool) -> bool:
    """Whether a part is sent in a frame: feedback on an answer, and, to Chat Completions, the files of a tool."""
    if part.kind == "retry-feedback":
        return True
    return chat and bool(returned(part))


def first_framed(told: Transcript, *, chat: bool) -> tuple[int, Part] | None:
    """The first part of a file that is sent in a frame, and the number of the unit it stands in."""
    key = f"framed:{chat}"
    if key not in told.notes:
        found = _framed(told, chat=chat)
        told.notes[key] = next(found, None)
    first: tuple[int, Part] | None = told.notes[key]
    return first


def _framed(told: Transcript, *, chat: bool) -> Iterator[tuple[int, Part]]:
    for at, unit in enumerate(told.units):
        for part in unit.parts if unit.role == "request" else ():
            if framed(part, chat=chat):
                yield at, part
