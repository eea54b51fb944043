"""Raw folders: an index with a line an exchange beside its bodies, as any tee-proxy can write them (DESIGN §5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ctxscope.capture.importers.http_parts import decoded
from ctxscope.capture.importers.imported import Answer, Capture, Ending, Imported, item
from ctxscope.capture.raw import INDEX, RawFolder
from ctxscope.capture.raw_index import is_index
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
    """See ``Importer``."""
    folder = _folder(path)
    if folder is None:
        raise CtxscopeError(f"{path}: found no {INDEX}, expected a folder with one beside NNNN.req files")
    raw = RawFolder(folder, 0)
    exchanges = raw.poll()
    items = [item(_imported(e, lambda: b"", lambda: b""), _reader(e), folder, e.n) for e in exchanges]
    return Capture(tuple(items), raw.notices)


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
