"""Served bytes on disk: what recorded them, and how they are read back.

A recording is anything with the face ``Recording``: a ``.ctxrec`` file, which ctxscope writes, or a raw folder, which any
tee-proxy can write.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from ctxscope.capture.events import Meta
from ctxscope.model import Exchange

SUFFIX = ".ctxrec"
_HEAD = 65_536


class Recording(Protocol):
    """Exchanges in a file or folder, finished or growing."""

    path: Path
    notices: tuple[str, ...]
    """What cannot be read now, and what the recording says of itself, in words; replaced at each poll."""
    generation: int
    """Grows when exchanges delivered before are void, since the recording was begun anew, cut short or rewritten; the
    poll that raises it delivers all there are."""

    @property
    def meta(self) -> Meta:
        """What the recording says of itself; of time 0.0 when it says nothing (yet)."""

    @property
    def watched(self) -> Path:
        """The file that changes when there is something new."""

    @property
    def partial(self) -> bool:
        """A writer is in the middle of an exchange."""

    def poll(self) -> list[Exchange]:
        """Exchanges that are new, or whose reply grew or ended, since the last poll; in order of number."""


def is_recording(path: Path) -> bool:
    """Whether ``path`` is a recording ctxscope can open.

    A folder whose index names an exchange or is still empty; a file that begins as a ``.ctxrec`` does or, under that
    name, is still empty or damaged at its beginning.
    """
    if not path.is_file():
        from ctxscope.capture.raw_index import is_index  # noqa: PLC0415 - a face does not load its implementations

        return is_index(path / "index.jsonl")
    from ctxscope.capture.record import BEGINS  # noqa: PLC0415 - as above

    head = _head(path)
    if head is None:
        return False
    meta = BEGINS + b'"t":"meta",'
    if path.suffix != SUFFIX:
        return head.startswith(meta)
    return head[: len(BEGINS)] == BEGINS[: len(head)] or b"\n" + BEGINS in head


def open_recording(path: Path, number: int) -> Recording:
    """The recording at ``path``; its exchanges carry ``number`` as their recording."""
    if path.is_file() or (path.suffix == SUFFIX and not path.is_dir()):
        from ctxscope.capture.ctxrec import CtxRec  # noqa: PLC0415 - a face does not load its implementations

        return CtxRec(path, number)
    from ctxscope.capture.raw import RawFolder  # noqa: PLC0415 - as above

    return RawFolder(path, number)


def told(path: Path) -> Meta:
    """What the recording at ``path`` says of itself at its beginning; of time 0.0 when that is nothing."""
    from ctxscope.capture.meta_record import KIND, meta_of  # noqa: PLC0415 - as above
    from ctxscope.capture.record import first  # noqa: PLC0415 - as above

    if not path.is_file():
        return Meta(0.0)
    try:
        with path.open("rb") as file:
            record = first(file, os.fstat(file.fileno()).st_size)
    except OSError:
        return Meta(0.0)
    return meta_of(record.fields) if record is not None and record.kind == KIND else Meta(0.0)


def _head(path: Path) -> bytes | None:
    """The first bytes of a file; ``None`` when it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return None
