"""``.ctxrec`` files, read while they grow, cut short or damaged: whatever is whole in them is given (DESIGN §6)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from ctxscope import wire
from ctxscope.capture import encodings
from ctxscope.capture.ctxrec_bodies import Bodies, DamagedError
from ctxscope.capture.ctxrec_index import SOME_BODY, Contents, Recorded
from ctxscope.capture.ctxrec_notices import Troubles, told
from ctxscope.capture.ctxrec_replies import Given, Replies, Reply, reply_of
from ctxscope.capture.events import Meta
from ctxscope.capture.raw_index import is_racy
from ctxscope.capture.record import Damage, records
from ctxscope.model import CtxscopeError, Exchange, Fidelity

_WINDOW = 1024
"""Bytes at the start, and before the offset, that tell an append from another recording."""


class CtxRec:
    """A ``.ctxrec``, read from where the last poll ended.

    A client's WebSocket message that asks for a reply is an exchange of its own, method ``WEBSOCKET``: its request is
    the message, its reply what the server said until the client's next one, spelled as server-sent events (no bytes
    that were sent; those ``messages`` gives). Numbers are those of the file. Not noticed: bytes that change in place
    behind the first and before the last kilobyte, but for those of bodies, which are checked whenever they are read.
    """

    def __init__(self, path: Path, number: int) -> None:
        self.path = path
        self.number = number
        self.notices: tuple[str, ...] = ()
        self.generation = 0
        self._seen: tuple[int, ...] | None = None
        """Inode, size and time of change when last read, once they cannot change without showing it."""
        self._trouble = ""
        self._restart()

    def _restart(self) -> None:
        self._bodies = Bodies(self.path)
        self._replies = Replies(self.path)
        self._contents = Contents(self._bodies)
        self._troubles = Troubles()
        self._damage: list[Damage] = []
        self._changed: set[int] = set()
        """Exchanges to deliver."""
        self._endings: dict[int, tuple[tuple[str, int, int], str]] = {}
        """By exchange, how it ended as ``_ended`` says it, and of what reply that was found."""
        self._offset = self._rest = 0
        self._head = self._tail = b""

    @property
    def meta(self) -> Meta:
        """What the recording says of itself; of several runs in one file, the last."""
        return self._contents.metas[-1] if self._contents.metas else Meta(0.0)

    @property
    def watched(self) -> Path:
        """The file that tells of a new exchange."""
        return self.path

    @property
    def partial(self) -> bool:
        """The file ends in a part of a record."""
        return self._rest > 0

    def poll(self) -> list[Exchange]:
        """Exchanges new or changed since the last poll; all of them, with a new ``generation``, once some are void."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                now = (status.st_ino, status.st_size, status.st_mtime_ns)
                if now != self._seen:
                    self._follow(file, status.st_size)
                self._seen = None if is_racy(status.st_mtime_ns) else now
                self._trouble = ""
        except OSError as error:
            self._trouble = f"{self.path}: cannot be read: {error.strerror}"
        found = [
            self._exchange(self._contents.found[n])
            for n in sorted(self._changed)
            if self._contents.is_exchange(self._contents.found[n])
        ]
        self._changed.clear()
        self.notices = tuple(self._told())
        return found

    def _follow(self, file: BinaryIO, size: int) -> None:
        if self._is_another(file, size):
            self.generation += 1
            self._restart()
        for item in records(file, self._offset, size):
            self._offset = item.end
            if isinstance(item, Damage):
                self._damage.append(item)
            else:
                self._changed.update(self._contents.take(item))
        self._rest = size - self._offset
        if len(self._head) < _WINDOW:
            file.seek(0)
            self._head = file.read(min(_WINDOW, self._offset))
        file.seek(max(0, self._offset - _WINDOW))
        self._tail = file.read(min(_WINDOW, self._offset))

    def _is_another(self, file: BinaryIO, size: int) -> bool:
        if size < self._offset or file.read(len(self._head)) != self._head:
            return True
        file.seek(self._offset - len(self._tail))
        return file.read(len(self._tail)) != self._tail

    # --- exchanges ---

    def _exchange(self, found: Recorded) -> Exchange:
        reply = reply_of(found)
        size = self._looked_at(found, reply)
        first, end = found.first_byte or found.head_time, found.last_byte or found.end_time
        if found.said:
            times = [said.time for said in found.said]
            first, end = times[0], times[-1] if self._contents.is_over(found) else None
        return Exchange(
            recording=self.number,
            n=found.n,
            time=found.time,
            method=found.method,
            path=found.target,
            headers=self._contents.headers(found),
            request=_loader(self._bodies, self._troubles, found.n),
            response=_reply_loader(self._replies, self._troubles, reply),
            request_bytes=self._bodies[found.n].size,
            response_bytes=size or (0 if found.end_time is not None and found.head_time is not None else None),
            status=found.status,
            first_byte=first,
            end=end,
            upstream=found.upstream or None,
            fidelity=cast("Fidelity", found.fidelity),
            places=found.places,
            ended=self._troubles.ended.get(found.n) or self._troubles.gaps.get(found.n),
        )

    def _looked_at(self, found: Recorded, reply: Reply) -> int:
        """Note what is wrong with an exchange; gives the bytes of its reply's body, as sent while that is coming."""
        troubles, n, size = self._troubles, found.n, found.reply.size
        missing = bool(found.reply.ahead) or (found.length or 0) > size
        problem = ""
        if encodings.layers(reply.encoding) and found.end_time is not None and not found.said:
            try:
                decoded = self._replies.body(reply)
            except OSError:  # gone since, which a notice says
                decoded = Given(b"")
            size, problem = len(decoded.data), decoded.problem
        torn = problem == encodings.TORN and (missing or found.how != "complete")
        troubles.note(troubles.ended, n, self._ended(found, reply))
        troubles.note(troubles.gaps, n, "not recorded whole" if missing else "")
        troubles.note(troubles.requests, n, found.undecoded)
        troubles.note(troubles.replies, n, "" if torn else problem)
        return sum(said.spelled for said in found.said) or size

    def _ended(self, found: Recorded, reply: Reply) -> str:
        """How an exchange ended, where that was not its reply's own end.

        Clients leave once the model has said that it is done, and of a connection's messages only the last may have been
        broken off with it: what the API's reader finds whole ended with itself. Looked for once a reply, at its end.
        """
        last = found if found.connection is None else self._contents.found.get(found.connection)
        if last is None or last.how in ("", "complete"):
            return ""
        if found.connection is not None and not self._contents.is_latest(found):
            return ""
        known, of = self._endings.get(found.n), (last.how, reply.size, len(reply.messages))
        if known is None or known[0] != of:
            known = self._endings[found.n] = of, "" if self._is_whole(found, reply) else last.how
        return known[1]

    def _is_whole(self, found: Recorded, reply: Reply) -> bool:
        if not (reply.pieces or reply.messages):
            return False
        body = SOME_BODY if self._bodies[found.n].size else b""
        api = wire.detect(found.target, self._contents.headers(found), body)
        data = _reply_loader(self._replies, self._troubles, reply)
        return api is not None and api.reply(data(), {}).complete

    # --- what was sent ---

    def as_sent(self, n: int) -> bytes:
        """A request's body exactly as it crossed the wire; raises ``CtxscopeError`` when it cannot be had."""
        try:
            self._named(n)
            return self._bodies.as_sent(n)
        except DamagedError as error:
            raise CtxscopeError(f"{self.path}: request {n} cannot be had as it was sent: {error}") from None
        except OSError as error:
            raise CtxscopeError(f"{self.path}: cannot be read: {error.strerror}") from None

    def reply_as_sent(self, n: int) -> bytes:
        """A reply's body as it crossed the wire, as far as recorded; raises ``CtxscopeError`` when it cannot be had."""
        reply = reply_of(self._named(n))
        try:
            given = self._replies.as_sent(reply)
        except OSError as error:
            raise CtxscopeError(f"{self.path}: cannot be read: {error.strerror}") from None
        self._undamaged(n, given.damage)
        return given.data

    def chunk_times(self, n: int) -> tuple[tuple[int, float], ...]:
        """When each chunk of a reply arrived: its offset in the bytes as sent, seconds since the epoch; in order."""
        return tuple(sorted(self._named(n).times.items()))

    def messages(self, n: int) -> tuple[tuple[float, str, bytes], ...]:
        """What a server said after a WebSocket message: time, kind and bytes of each message, in order.

        Raises ``CtxscopeError`` when they cannot be had.
        """
        found = self._named(n)
        try:
            said, damage = self._replies.messages(reply_of(found))
        except OSError as error:
            raise CtxscopeError(f"{self.path}: cannot be read: {error.strerror}") from None
        self._undamaged(n, damage)
        return tuple((one.time, one.kind, data) for one, data in zip(found.said, said, strict=True))

    def _undamaged(self, n: int, damage: str) -> None:
        if damage:
            raise CtxscopeError(f"{self.path}: the reply to {n} cannot be had as it was sent: {damage}")

    def _named(self, n: int) -> Recorded:
        found = self._contents.found.get(n)
        if found is None:
            raise CtxscopeError(f"{self.path}: found no exchange {n}")
        return found

    def _told(self) -> Iterator[str]:
        if self._trouble:
            yield self._trouble
        yield from told(str(self.path), self._contents, self._troubles, self._damage, self._rest)


def _loader(bodies: Bodies, troubles: Troubles, n: int) -> Callable[[], bytes]:
    def load() -> bytes:
        try:
            return bodies.body(n)
        except DamagedError as error:
            troubles.note(troubles.damaged, n, str(error))
        except OSError:  # gone since, which a notice says
            pass
        return b""

    return load


def _reply_loader(replies: Replies, troubles: Troubles, reply: Reply) -> Callable[[], bytes]:
    def load() -> bytes:
        try:
            given = replies.body(reply)
        except OSError:  # gone since, which a notice says
            return b""
        troubles.note(troubles.spoilt, reply.n, given.damage)
        return given.data

    return load
