"""The recordings in ctxscope's own folder: what each holds, whether it is being written, and how it is removed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ctxscope import wire
from ctxscope.capture import SUFFIX, is_recording, meta_record
from ctxscope.capture.ctxrec_bodies import Bodies
from ctxscope.capture.ctxrec_index import SOME_BODY, Contents
from ctxscope.capture.events import Meta
from ctxscope.capture.record import headers

if sys.platform != "win32":
    import fcntl

_COUNTED = frozenset((meta_record.KIND, "req", "ws"))
"""Records that tell of the recording or of an exchange."""


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
    """One recording, bodies and replies left unread; ``None`` when it cannot be read, as when it was removed meanwhile."""
    try:
        status = path.stat()
        live = is_live(path)
        contents = _contents(path)
    except OSError:
        return None
    found = [each for each in contents.found.values() if contents.is_exchange(each)]
    sizes = [contents.bodies[each.n].size for each in found]
    bodies = (SOME_BODY if size else b"" for size in sizes)
    meta = contents.metas[-1] if contents.metas else Meta(0.0)
    return Listed(
        path=path,
        written=status.st_mtime,
        stored=status.st_size,
        live=live,
        agent=meta.agent,
        source=meta.source,
        requests=len(found),
        calls=sum(
            wire.detect(each.target, contents.headers(each), body) is not None
            for each, body in zip(found, bodies, strict=True)
        ),
        sent=sum(sizes),
    )


def _contents(path: Path) -> Contents:
    contents = Contents(Bodies(path))
    with path.open("rb") as file:
        for header in headers(file, os.fstat(file.fileno()).st_size):
            if header.kind in _COUNTED:
                contents.take(header)
    return contents


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
    """Whether no writer holds the file; none can begin before the block ends, though others may ask the same."""
    if sys.platform == "win32":  # nothing tells a writer, but a file that is open cannot be removed either
        yield True
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
