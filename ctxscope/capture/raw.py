"""Raw folders: ``index.jsonl`` with a line an exchange, beside ``NNNN.req`` and ``NNNN.res`` with exact decoded bodies."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ctxscope.capture.events import Meta
from ctxscope.capture.raw_index import Index, is_racy, listed, seconds
from ctxscope.model import Exchange

INDEX = "index.jsonl"
NOTHING_SAID = Meta(0.0)
_BODY = re.compile(r"(\d{1,13})\.(?:req|res)")


@dataclass(frozen=True, slots=True)
class _File:
    """One body as it lay on disk; equal files hold the same bytes."""

    size: int
    changed: int
    inode: int
    rewrites: int = 0
    """How often it became another without showing it."""
    digest: bytes | None = field(default=None, compare=False)
    """Of a file so young that this may happen."""


@dataclass(slots=True)
class _Given:
    """What an exchange was when it was last delivered."""

    line: dict[str, Any]
    request: _File
    reply: _File | None
    trouble: tuple[tuple[str, str], ...]
    """Bodies that could not be read, which count as empty: name and reason."""

    def rests(self, request: str, reply: str) -> bool:
        """Whether both files, by path, are as they were, as far as a look at each tells; asked for every exchange."""
        if not _rests(self.request, request):
            return False
        return _rests(self.reply, reply) if self.reply else not os.path.exists(reply)  # noqa: PTH110 - see _rests


@dataclass(eq=False)
class RawFolder:
    """A raw folder, read by number; a line may come before its bodies, and a reply may grow (DESIGN §5)."""

    path: Path
    number: int
    notices: tuple[str, ...] = ()
    generation: int = 0
    meta: Meta = NOTHING_SAID
    _index: Index = field(init=False)
    _given: dict[int, _Given] = field(default_factory=dict)
    _missing: list[int] = field(default_factory=list)
    """Exchanges of the index without a request."""
    _bodies: tuple[tuple[int, ...], list[str]] | None = None
    """Folder and index when the folder was last listed, and the bodies there that no line named."""

    def __post_init__(self) -> None:
        self._index = Index(self.path / INDEX)

    @property
    def watched(self) -> Path:
        """The file that tells of a new exchange."""
        return self.path / INDEX

    @property
    def partial(self) -> bool:
        """The index ends in half a line."""
        return self._index.rest > 0

    def poll(self) -> list[Exchange]:
        """Exchanges new or changed since the last poll; all of them, with a new ``generation``, once some are void."""
        restarts = self._index.restarts
        self._index.read()
        found = None if self._index.restarts != restarts else self._news()
        if found is None:
            self.generation += 1
            self._given = {}
            found = self._news()
        self.notices = tuple(self._told())
        return found or []

    def _news(self) -> list[Exchange] | None:
        """What is new; ``None`` when a request that was delivered is gone or another, or a reply did not just grow."""
        found: list[Exchange] = []
        self._missing = []
        newest = max(self._index.lines, default=0)
        folder = os.fspath(self.path)
        for n, line in sorted(self._index.lines.items()):
            given = self._given.get(n)
            if (
                given is not None
                and line is given.line
                and given.rests(f"{folder}/{n:04d}.req", f"{folder}/{n:04d}.res")
            ):
                continue
            request = self._look(n, "req", given.request if given else None)
            reply = self._look(n, "res", given.reply if given else None)
            if request is None:
                if given is not None:
                    return None
                self._missing.append(n)
            elif given is not None and (line, request, reply) == (given.line, given.request, given.reply):
                given.line, given.request, given.reply = line, request, reply
            elif given is None or (_grew(given.request, request, n == newest) and _grew(given.reply, reply)):
                self._given[n] = _Given(line, request, reply, tuple(self._unreadable(n, reply)))
                found.append(self._exchange(n, self._given[n]))
            else:
                return None
        return found

    def _look(self, n: int, kind: str, known: _File | None) -> _File | None:
        """A body as it is now; ``None`` when it is not there, or is no file."""
        path = self._file(n, kind)
        try:
            status = path.stat()
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        now = _File(status.st_size, status.st_mtime_ns, status.st_ino, known.rewrites if known else 0)
        young = is_racy(now.changed)
        if not young and (known is None or known != now or known.digest is None):
            return now
        digest = hashlib.blake2b(_loader(path)(), digest_size=16).digest()
        if known == now and known.digest not in (None, digest):
            now = replace(now, rewrites=now.rewrites + 1)
        return replace(now, digest=digest if young else None)

    def _unreadable(self, n: int, reply: _File | None) -> Iterator[tuple[str, str]]:
        for kind in ("req",) if reply is None else ("req", "res"):
            try:
                self._file(n, kind).open("rb").close()
            except OSError as error:
                yield self._file(n, kind).name, error.strerror or type(error).__name__

    def _file(self, n: int, kind: str) -> Path:
        return self.path / f"{n:04d}.{kind}"

    # --- what is told ---

    def _told(self) -> Iterator[str]:
        """What is wrong now, a sentence for each kind."""
        yield from self._index.notices()
        if self._missing:
            names = listed(f"{n:04d}.req" for n in self._missing)
            yield f"{self.path}: found no {names}, expected beside the lines of {INDEX} that name them"
        if unnamed := self._unnamed():
            yield f"{self.path}: found {listed(unnamed)}, which no line of {INDEX} names; left out"
        reasons: dict[str, list[str]] = {}
        for name, reason in sorted(t for given in self._given.values() for t in given.trouble):
            reasons.setdefault(reason, []).append(name)
        yield from (f"{self.path}: {listed(names)} cannot be read: {reason}" for reason, names in reasons.items())

    def _unnamed(self) -> list[str]:
        """Bodies in the folder that no line names, sorted; it is listed again only when it or the index changed."""
        try:
            status = self.path.stat()
            now = (status.st_ino, status.st_mtime_ns, self._index.restarts, len(self._index.lines))
            if self._bodies is None or self._bodies[0] != now or is_racy(status.st_mtime_ns):
                named = {f"{n:04d}" for n in self._index.lines}
                names = filter(_BODY.fullmatch, os.listdir(self.path))  # noqa: PTH208 - names do
                self._bodies = (now, sorted(name for name in names if name[:-4] not in named))
        except OSError:
            return []
        return self._bodies[1]

    def _exchange(self, n: int, given: _Given) -> Exchange:
        line = given.line
        headers = line.get("headers")
        status = line.get("status")
        return Exchange(
            recording=self.number,
            n=n,
            time=seconds(line["t"]) or 0.0,
            method=_text(line.get("method"), "POST"),
            path=_text(line.get("path"), ""),
            headers={str(k).lower(): str(v) for k, v in headers.items()} if isinstance(headers, dict) else {},
            request=_loader(self._file(n, "req")),
            response=_loader(self._file(n, "res")),
            request_bytes=given.request.size,
            response_bytes=given.reply.size if given.reply else None,
            status=status if isinstance(status, int) and not isinstance(status, bool) else None,
            first_byte=seconds(line.get("t_first")),
            end=seconds(line.get("t_end")),
        )


def _rests(known: _File, path: str) -> bool:
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of them at every poll
    except OSError:
        return False
    return (
        status.st_mtime_ns == known.changed
        and status.st_size == known.size
        and status.st_ino == known.inode
        and known.digest is None
    )


def _grew(before: _File | None, now: _File | None, may: bool = True) -> bool:
    """Whether a body is as it was or, where it ``may``, has more behind it, as far as its size tells."""
    return before == now or (may and now is not None and (before is None or now.size > before.size))


def _text(value: Any, otherwise: str) -> str:
    return value if isinstance(value, str) else otherwise


def _loader(path: Path) -> Callable[[], bytes]:
    def load() -> bytes:
        try:
            return path.read_bytes()
        except OSError:  # gone since, or never readable, which a notice says
            return b""

    return load
