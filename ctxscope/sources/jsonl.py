"""A file of lines by offsets: each complete line a record, a line that changed a new version of it."""

from __future__ import annotations

import hashlib
import io
import os
from array import array
from collections.abc import Iterator

import orjson

from ctxscope.model import CtxscopeError, Place, Record, SourceSpec
from ctxscope.sources.files import look, missing, racy, signature, unreadable

CHUNK = 256 * 1024
"""Bytes per read; 256 KB and 1 MB measured alike (engineering.md §3)."""
POLL_BYTES = 2 * 1024 * 1024
"""One poll stops after the line that passes this many bytes, so that memory stays flat on a log of any size."""
WINDOW = 64 * 1024
"""Bytes at the start, and before the offset, whose hash tells an append from a rewrite. More than the 4 KB and 64 B of
engineering.md §3: what agents rewrite is mostly a header or a recent line."""
LONGEST_UNENDED = 16 * 1024 * 1024
"""A longer last line without a newline is held back, whatever it is."""
HELD_FROM = 16 * 1024 * 1024
"""Below, what a log says fits in memory whatever its agent makes of it."""
DIGEST = 16
NOTHING = bytes(DIGEST)
"""Stands in the digests for a line that is no record because it is blank."""

REPLACED, TRUNCATED, REWRITTEN = "replaced by another file", "truncated", "rewritten in place"


def complete_lines(file: io.FileIO, start: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Lines of ``file`` between two offsets without their newline, each with the offset after it.

    Only the byte 0x0A ends a line. Text after the last one is not given.
    """
    position = offset = start
    carried: list[bytes] = []
    while position < end:
        file.seek(position)
        chunk = file.read(min(CHUNK, end - position))
        if not chunk:
            return
        position += len(chunk)
        first, *others = chunk.split(b"\n")
        carried.append(first)
        for piece in others:
            line = b"".join(carried) if len(carried) > 1 else carried[0]
            offset += len(line) + 1
            yield line, offset
            carried = [piece]


class LineReader:
    """Follows one file of lines (kinds ``jsonl`` and ``lines``).

    A rewrite is noticed by inode, size, time of change and the hash of two windows; the file is then read from its
    start and compared with a 16-byte digest per line, so that only what changed is told. Not noticed: a change of equal
    length outside both windows in the same poll as an append.
    """

    holds_from: int | None = HELD_FROM
    """From how many bytes on a file is held open to read lines again; ``None``: never."""

    def __init__(self, spec: SourceSpec) -> None:
        self.spec = spec
        self.partial = False
        self.more = False
        self._signature: tuple[int, int, int, int] | None = None
        self._settled = True
        self._offset = 0
        """After the last complete line taken."""
        self._line = 0
        """Lines taken, blank ones too; while a rewritten file is read again, fewer than there are digests."""
        self._unended = False
        """The line taken last has no newline yet; it is looked at again."""
        self._searched = 0
        """No newline between ``_offset`` and here, so that a long line that grows is not searched again."""
        self._digests = bytearray()
        self._versions: dict[int, int] = {}
        """By line number, of lines that had more than one."""
        self._ends = array("Q")
        """Offset behind each line taken."""
        self._file: io.FileIO | None = None
        """The file as it was followed last, held while lines of it may be asked for again."""
        self._before: tuple[io.FileIO, array[int]] | None = None
        """The file that was replaced, and its ends, until all of the new one is read."""
        self._earlier: dict[int, bytes] = {}
        self._head = self._tail = (0, b"")
        """Length and hash of the windows at the start and before the offset."""
        self._cause: str | None = None
        self._changed = self._gone = 0
        self._unconfirmed = False
        self._history: dict[str, tuple[int, int, int]] = {}
        """By cause: how often, lines changed, lines gone."""
        self._trouble: str | None = None

    @property
    def notices(self) -> tuple[str, ...]:
        """Rewrites by cause with the lines they changed, and what keeps the file from being read now."""
        name = self.spec.path.name
        told = [
            f"{name}: {cause} ({times} times), {changed} lines changed, {gone} gone"
            for cause, (times, changed, gone) in self._history.items()
        ]
        return (*told, *([self._trouble] if self._trouble else []))

    def close(self) -> None:
        """Give back the files that are held so that lines can be read again."""
        for file in (self._file, self._before[0] if self._before else None):
            if file is not None:
                file.close()
        self._file = self._before = None

    def again(self, number: int) -> bytes | None:
        """A line as it was told last; ``None`` when the file was written over since and holds it no more."""
        file, ends = (self._file, self._ends) if self._before is None or number <= self._line else self._before
        if file is None or not 0 < number <= min(len(ends), len(self._digests) // DIGEST):
            return None
        try:
            line = _line(file, ends, number)
        except OSError:
            return None
        at = (number - 1) * DIGEST
        return line if hashlib.sha256(line).digest()[:DIGEST] == bytes(self._digests[at : at + DIGEST]) else None

    @property
    def holds(self) -> bool:
        """Whether the file is long enough that its lines are better read again than kept (``again``)."""
        return self._file is not None

    def earlier(self, number: int) -> bytes | None:
        """What a line said before the last poll told it changed or gone; ``None`` where it was written over."""
        return self._earlier.get(number)

    def poll(self) -> list[Record]:
        """Records of the next lines, at most about ``POLL_BYTES`` of them."""
        self._earlier = {}
        try:
            return self._read()
        except CtxscopeError as error:
            if self._signature is None and not self.spec.optional:
                raise
            self._trouble = str(error)
            return []

    def _read(self) -> list[Record]:
        path = self.spec.path
        status = look(path)
        if status is None:
            return self._absent()
        self._trouble = None
        unchanged = signature(status) == self._signature and self._settled
        if unchanged and not self.more and not self._unconfirmed:
            return []
        try:
            with io.FileIO(path, "r") as file:
                return self._follow(file)
        except FileNotFoundError:
            return self._absent()
        except OSError as error:
            raise unreadable(path, error) from error

    def _absent(self) -> list[Record]:
        """No file: what was read of it stays told, since deleting a log is not rewriting it."""
        self.more = self.partial = False
        if self._signature is not None:
            self._trouble = f"{self.spec.path.name}: the file is gone"
        elif not self.spec.optional:
            raise missing(self.spec.path, f"the agent's {self.spec.key} log")
        return []

    def _follow(self, file: io.FileIO) -> list[Record]:
        status = os.fstat(file.fileno())
        cause = self._rewritten(file, status)
        if cause is not None:
            self._cause = cause
            self._offset = self._line = self._searched = self._changed = self._gone = 0
            self._unended = False
            if self._file is not None:
                self._set_aside(self._file, kept=cause == REPLACED and self._before is None)
        self._hold(status)
        before, self._signature = self._signature, signature(status)
        self._settled = not racy(status.st_mtime_ns)
        if self._unended:
            self._line, self._unended = self._line - 1, False
        records = self._advance(file, status.st_size)
        if not self.more:
            self._take_unended(file, status.st_size, records)
            records += self._finish(status.st_size, at_rest=before == self._signature)
        return records

    def _hold(self, status: os.stat_result) -> None:
        """Keep a long file open: what an agent replaces under its name can still be read."""
        if self._file is None and self.holds_from is not None and status.st_size >= self.holds_from:
            held = io.FileIO(self.spec.path, "r")
            if signature(os.fstat(held.fileno()))[:2] == signature(status)[:2]:
                self._file = held
            else:  # replaced at this very moment, which the next poll tells
                held.close()

    def _set_aside(self, file: io.FileIO, *, kept: bool) -> None:
        """Let go of the file as it was; one that was replaced can still be read until the new one is."""
        if kept:
            self._before = (file, array("Q", self._ends))
        else:
            file.close()
        self._file = None

    def _rewritten(self, file: io.FileIO, status: os.stat_result) -> str | None:
        """Why the file must be read from its start again; ``None`` when it is as before, but longer perhaps."""
        if self._signature is None:
            return None
        device, inode, size, changed = self._signature
        if (device, inode) != (status.st_dev, status.st_ino):
            return REPLACED
        if status.st_size < self._offset:
            return TRUNCATED
        if self._head != window(file, 0, self._head[0]) or self._tail != window(file, self._offset, -self._tail[0]):
            return REWRITTEN
        # A writer that appends moves the time before the size: look at the size once more.
        if changed != status.st_mtime_ns and size == status.st_size == os.fstat(file.fileno()).st_size:
            return REWRITTEN
        if status.st_size < self._searched:
            self._searched = self._offset
        return None

    def _advance(self, file: io.FileIO, size: int) -> list[Record]:
        records: list[Record] = []
        self.more = False
        if self._searched > self._offset and not _has_newline(file, self._searched, size):
            self._searched = size
            return records
        start = self._offset
        for line, end in complete_lines(file, start, size):
            self._offset = end
            self._take(line, records)
            self._ended(end)
            if end - start >= POLL_BYTES:
                self.more = end < size
                break
        self._searched = self._offset if self.more else size
        self._head = window(file, 0, min(WINDOW, self._offset))
        self._tail = window(file, self._offset, -min(WINDOW, self._offset))
        return records

    def _take(self, line: bytes, records: list[Record]) -> None:
        at = self._line * DIGEST
        self._line += 1
        old = bytes(self._digests[at : at + DIGEST])
        blank = not line or line.isspace()
        new = NOTHING if blank else hashlib.sha256(line).digest()[:DIGEST]
        if new == old:
            return
        self._digests[at : at + DIGEST] = new
        if blank and old in (NOTHING, b""):
            return
        self._changed += bool(old)
        self._remember(self._line, old)
        records.append(self._record(self._line, None if blank else line, old))

    def _take_unended(self, file: io.FileIO, size: int, records: list[Record]) -> None:
        """Take a last line without a newline where it is a whole JSON object: nothing can follow but its newline."""
        if self.spec.kind != "jsonl" or not 0 < size - self._offset <= LONGEST_UNENDED:
            return
        file.seek(self._offset)
        line = file.read(size - self._offset)
        if line[:1] == b"{" and line.rstrip()[-1:] == b"}" and _is_json(line):
            self._take(line, records)
            self._ended(self._offset + len(line) + 1)
            self._unended = True

    def _ended(self, end: int) -> None:
        """Note where the line taken last ends."""
        if self._line <= len(self._ends):
            self._ends[self._line - 1] = end
        else:
            self._ends.append(end)

    def _remember(self, number: int, digest: bytes) -> None:
        """What a line said that is changed or gone, from the file that was replaced."""
        if self._before is None or digest in (NOTHING, b""):
            return
        file, ends = self._before
        if number <= len(ends):
            line = _line(file, ends, number)
            if hashlib.sha256(line).digest()[:DIGEST] == digest:
                self._earlier[number] = line

    def _finish(self, size: int, *, at_rest: bool) -> list[Record]:
        """At the end of the file: lines it no longer has.

        A file that is empty or ends in half a line is probably being written anew: what it lost is told when a second
        poll finds it the same.
        """
        self.partial = self._held_back(size)
        known = len(self._digests) // DIGEST
        self._unconfirmed = known > self._line and (self.partial or size == 0) and not at_rest
        if self._unconfirmed:
            self.partial = True
            return []
        records = []
        for number in range(self._line + 1, known + 1):
            old = bytes(self._digests[(number - 1) * DIGEST : number * DIGEST])
            if old != NOTHING:
                self._remember(number, old)
                records.append(self._record(number, None, old))
        del self._digests[self._line * DIGEST :]
        del self._ends[self._line :]
        if self._before is not None:
            self._before[0].close()
            self._before = None
        self._gone = len(records)
        self._tell()
        return records

    def _held_back(self, size: int) -> bool:
        """Whether the file ends in what is no complete line."""
        return self._offset < size and not self._unended

    def _tell(self) -> None:
        if self._cause is not None and (self._changed or self._gone or self._cause != REWRITTEN):
            times, changed, gone = self._history.get(self._cause, (0, 0, 0))
            self._history[self._cause] = (times + 1, changed + self._changed, gone + self._gone)
        self._cause = None

    def _record(self, number: int, value: bytes | None, old: bytes) -> Record:
        version = self._versions[number] + 1 if number in self._versions else int(old not in (NOTHING, b""))
        if version:
            self._versions[number] = version
        return Record(self.spec.key, str(number), Place(self.spec.log, number), value, version)


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _line(file: io.FileIO, ends: array[int], number: int) -> bytes:
    """A line without its newline, by its number and where each line ends."""
    start = ends[number - 2] if number > 1 else 0
    file.seek(start)
    return file.read(ends[number - 1] - start - 1)


def window(file: io.FileIO, offset: int, length: int) -> tuple[int, bytes]:
    """Length and hash of the bytes from ``offset``, or before it when ``length`` is negative."""
    file.seek(min(offset, offset + length))
    return abs(length), hashlib.sha256(file.read(abs(length))).digest()


def _has_newline(file: io.FileIO, start: int, end: int) -> bool:
    file.seek(start)
    while start < end:
        chunk = file.read(min(CHUNK, end - start))
        if not chunk:
            return False
        if b"\n" in chunk:
            return True
        start += len(chunk)
    return False
