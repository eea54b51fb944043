"""The recordings in ctxscope's own folder: what each holds, whether it is being written, and how it is removed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ctxscope import wire
from ctxscope.capture import SUFFIX, is_recording, open_recording

if sys.platform != "win32":
    import fcntl

_SOME_BODY = b"{}"
"""Which API a request speaks its path tells; its body need not be loaded for it."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One recording, summed up."""

    path: Path
    written: float
    """When it was last written to (seconds since the epoch)."""
    stored: int
    """Its size in bytes."""
    live: bool
    """A writer has it open."""
    agent: str
    source: str
    """For an import: the format it came from."""
    requests: int
    calls: int
    """Model calls among the requests."""
    sent: int
    """Bytes of the request bodies."""


def survey(folder: Path) -> list[Listed]:
    """The recordings that lie in a folder itself, newest first; links and anything else there are passed over.

    Raises ``OSError`` when the folder is there and cannot be read.
    """
    try:
        paths = [Path(entry.path) for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    found = (listed(path) for path in paths if path.suffix == SUFFIX and is_recording(path))
    return sorted((each for each in found if each), key=lambda each: (each.written, each.path), reverse=True)


def listed(path: Path) -> Listed | None:
    """One recording; ``None`` when it was removed meanwhile."""
    try:
        status = path.stat()
        live = is_live(path)
        recording = open_recording(path, 0)
        exchanges = recording.poll()
    except FileNotFoundError:
        return None
    kinds = (wire.detect(e.path, e.headers, _SOME_BODY if e.request_bytes else b"") for e in exchanges)
    return Listed(
        path=path,
        written=status.st_mtime,
        stored=status.st_size,
        live=live,
        agent=recording.meta.agent,
        source=recording.meta.source,
        requests=len(exchanges),
        calls=sum(api is not None for api in kinds),
        sent=sum(e.request_bytes for e in exchanges),
    )


def outdated(recordings: Sequence[Listed], now: float, older_than: float | None, keep: int | None) -> list[Listed]:
    """Those to remove of recordings that are listed newest first; one that is being written never is.

    Last written more than ``older_than`` seconds before ``now``, and not among the ``keep`` newest; ``None`` rules nothing
    out. Without either none is.
    """
    if older_than is None and keep is None:
        return []
    return [
        each
        for place, each in enumerate(recordings)
        if not each.live and (keep is None or place >= keep) and (older_than is None or now - each.written > older_than)
    ]


def is_live(path: Path) -> bool:
    """Whether a writer has a recording open: it holds a lock on the file for as long as it does."""
    with path.open("rb") as file, _unwritten(file.fileno()) as free:
        return not free


def remove(path: Path) -> bool:
    """Remove a recording; False when a writer has it open. Raises ``OSError`` when it cannot be removed."""
    with path.open("rb") as file, _unwritten(file.fileno()) as free:
        if free:
            path.unlink()
    return free


@contextmanager
def _unwritten(descriptor: int) -> Iterator[bool]:
    """Whether no writer holds the file; none can begin before the block ends."""
    if sys.platform == "win32":  # nothing tells a writer, but a file that is open cannot be removed either
        yield True
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
