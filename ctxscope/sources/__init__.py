"""Bytes on disk into records: the only readers of agents' files, which they never write, lock or litter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ctxscope.model import Record, SourceSpec

__all__ = ["Reader", "open_readers", "reader", "watched"]


class Reader(Protocol):
    """What follows one source: asked again and again, it tells what is new."""

    @property
    def spec(self) -> SourceSpec:
        """What it reads."""

    @property
    def partial(self) -> bool:
        """Something is held back: an unfinished last line, a file in the middle of a rewrite, a busy database."""

    @property
    def more(self) -> bool:
        """``poll`` stopped at its bound (2 MiB of lines) and has more to give at once."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What befell the source so far (rewritten, truncated, replaced, gone, a missing table), in words."""

    def poll(self) -> list[Record]:
        """Records new or changed since the last poll, in order; a few system calls when nothing changed.

        A missing optional file gives none and is looked for again. ``CtxscopeError`` while a required file was never
        read: it is missing, unreadable, locked or of another kind. What goes wrong later is a notice.
        """

    def close(self) -> None:
        """Give up what is held between polls."""


def open_readers(specs: Sequence[SourceSpec]) -> list[Reader]:
    """A reader for each spec, in order; the tables of one database file are read in one transaction."""
    tables: dict[Path, list[int]] = {}
    readers: dict[int, Reader] = {}
    for index, spec in enumerate(specs):
        if spec.kind == "sqlite":
            tables.setdefault(spec.path, []).append(index)
        else:
            readers[index] = _file_reader(spec)
    for path, indices in tables.items():
        from ctxscope.sources.sqlite import SqliteFile  # noqa: PLC0415 - sqlite3 only for those who have a database

        file = SqliteFile(path, [specs[i] for i in indices])
        readers.update(zip(indices, file.readers, strict=True))
    return [readers[index] for index in range(len(specs))]


def reader(spec: SourceSpec) -> Reader:
    """A reader for one source alone."""
    return open_readers([spec])[0]


def watched(specs: Sequence[SourceSpec]) -> tuple[Path, ...]:
    """The files whose changes should lead to a poll, for ``watch.Watcher``, each once."""
    return tuple(dict.fromkeys(spec.path for spec in specs))


def _file_reader(spec: SourceSpec) -> Reader:
    if spec.kind == "whole":
        from ctxscope.sources.whole import WholeReader  # noqa: PLC0415 - each kind costs only those who read it

        return WholeReader(spec)
    if spec.path.suffix in (".zst", ".zstd"):
        from ctxscope.sources.frames import FrameReader  # noqa: PLC0415 - each kind costs only those who read it

        return FrameReader(spec)
    from ctxscope.sources.jsonl import LineReader  # noqa: PLC0415 - each kind costs only those who read it

    return LineReader(spec)
