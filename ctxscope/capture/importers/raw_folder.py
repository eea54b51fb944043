"""Raw folders: an index with a line an exchange beside its bodies, as any tee-proxy can write them (DESIGN §5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ctxscope.capture.importers.http_parts import decoded
from ctxscope.capture.importers.imported import Answer, Capture, Ending, Imported, Item, item
from ctxscope.capture.raw import INDEX, RawFolder
from ctxscope.capture.raw_index import is_index, listed
from ctxscope.model import CtxscopeError, Exchange

title = "raw folder"
notes = (
    "A raw folder keeps decoded bodies: how they were compressed is left out.",
    "A raw folder does not tell where a request went, nor when each part of a reply came.",
)

_FOLDER = "wire"
"""Where agents' recordings keep it (DESIGN §5)."""


def claims(path: Path, head: bytes) -> float:  # noqa: ARG001 - the face of all formats
    """See ``Importer``: the folder, the one it lies in, or its index."""
    folder = _folder(path)
    return 0.95 if folder is not None and is_index(folder / INDEX) else 0.0


def _folder(path: Path) -> Path | None:
    if path.is_dir():
        return next((f for f in (path, path / _FOLDER) if (f / INDEX).is_file()), None)
    return path.parent if path.name == INDEX else None


def read(path: Path) -> Capture:
    """See ``Importer``. What a link would fetch from outside the folder is left out: a capture may come from anyone."""
    folder = _folder(path)
    if folder is None:
        raise CtxscopeError(f"{path}: found no {INDEX}, expected a folder with one beside NNNN.req files")
    if not _stays(folder, INDEX):
        raise CtxscopeError(f"{folder / INDEX}: found a link that leaves the folder, expected the file itself")
    raw = RawFolder(folder, 0)
    strangers: list[str] = []
    items = list(_items(folder, raw.poll(), strangers))
    told = (f"{folder}: found links that leave the folder as {listed(strangers)}, expected the bodies; left out",)
    return Capture(tuple(items), (*raw.notices, *(told if strangers else ())))


def _items(folder: Path, exchanges: list[Exchange], strangers: list[str]) -> Iterator[Item]:
    """Exchanges whose request lies in the folder, without replies that do not; what does not is named in ``strangers``."""
    for each in exchanges:
        request, reply = f"{each.n:04d}.req", f"{each.n:04d}.res"
        away = [name for name in (request, reply) if not _stays(folder, name)]
        strangers += away
        exchange = replace(each, response_bytes=None) if reply in away else each
        if request not in away:
            yield item(_imported(exchange, lambda: b"", lambda: b""), _reader(exchange), folder, each.n)


def _stays(folder: Path, name: str) -> bool:
    """Whether a name in a folder is a file there, be it by a link."""
    try:
        return (folder / name).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links in a circle
        return False


def _reader(exchange: Exchange) -> Callable[[], Imported]:
    return lambda: _imported(exchange, exchange.request, exchange.response)


def _imported(exchange: Exchange, request: Callable[[], bytes], response: Callable[[], bytes]) -> Imported:
    answer = ending = None
    if exchange.response_bytes is not None or exchange.status is not None:
        first = exchange.first_byte if exchange.first_byte is not None else exchange.time
        body = response() if exchange.response_bytes is not None else None
        answer = Answer(first, exchange.status, body=body)
        ending = None if exchange.end is None or body is None else Ending(exchange.end)
    return Imported(
        time=exchange.time,
        method=exchange.method,
        target=exchange.path,
        upstream=exchange.upstream or "",
        headers=decoded(_pairs(exchange.headers)),
        body=request(),
        fidelity="bytes",
        answer=answer,
        ending=ending,
    )


def _pairs(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(headers.items())
