"""Served bytes on disk: what recorded them, and how they are read back.

A recording is anything with the face ``Recording``. Today that is a raw folder, which any tee-proxy can write.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ctxscope.model import Exchange


class Recording(Protocol):
    """Exchanges in a file or folder, finished or growing."""

    path: Path
    notices: tuple[str, ...]
    """What cannot be read now, in words; replaced at each poll."""
    generation: int
    """Grows when exchanges delivered before are void, since the recording was begun anew, cut short or rewritten; the
    poll that raises it delivers all there are."""

    @property
    def partial(self) -> bool:
        """A writer is in the middle of an exchange."""

    def poll(self) -> list[Exchange]:
        """Exchanges that are new, or whose reply grew, since the last poll; in order of number."""


def is_recording(path: Path) -> bool:
    """Whether ``path`` is a recording ctxscope can open: a folder whose index names an exchange, or is still empty."""
    from ctxscope.capture.raw_index import is_index  # noqa: PLC0415 - a face does not load its implementations

    return is_index(path / "index.jsonl")


def open_recording(path: Path, number: int) -> Recording:
    """The recording at ``path``; its exchanges carry ``number`` as their recording."""
    from ctxscope.capture.raw import RawFolder  # noqa: PLC0415 - a face does not load its implementations

    return RawFolder(path, number)
