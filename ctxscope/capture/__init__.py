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
    """What could not be read, in words; replaced at each poll."""
    partial: bool
    """A writer is in the middle of an exchange."""

    def poll(self) -> list[Exchange]:
        """Exchanges that are new, or whose reply grew, since the last poll; in order of number."""


def is_recording(path: Path) -> bool:
    """Whether ``path`` is a recording ctxscope can open: a folder whose index begins with an exchange, or is empty."""
    from ctxscope.capture.raw import is_index  # noqa: PLC0415 - a face does not load its implementations

    return is_index(path / "index.jsonl")


def open_recording(path: Path, number: int) -> Recording:
    """The recording at ``path``; its exchanges carry ``number`` as their recording."""
    from ctxscope.capture.raw import RawFolder  # noqa: PLC0415 - a face does not load its implementations

    return RawFolder(path, number)
