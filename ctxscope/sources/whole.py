"""A file that is one unit: a record whenever its content changed."""

from __future__ import annotations

import hashlib

from ctxscope.model import CtxscopeError, Place, Record, SourceSpec
from ctxscope.sources.files import look, missing, racy, signature, unreadable


class WholeReader:
    """Follows one file (kind ``whole``): key and place are ``file``, the value is all its bytes."""

    def __init__(self, spec: SourceSpec) -> None:
        self.spec = spec
        self.partial = False
        """The file changed while it was read; the next poll reads it again."""
        self.more = False
        self.notices: tuple[str, ...] = ()
        self._signature: tuple[int, int, int, int] | None = None
        self._digest: bytes | None = None
        """Of the content last delivered; ``None`` when the file is gone."""
        self._version = -1

    def poll(self) -> list[Record]:
        """One record when the content is new; with value ``None`` when a file that was there is gone."""
        try:
            return self._read()
        except CtxscopeError as error:
            if self._version < 0 and not self.spec.optional:
                raise
            self.notices = (str(error),)
            return []

    def close(self) -> None:
        """Nothing is held between polls."""

    def _read(self) -> list[Record]:
        status = look(self.spec.path)
        if status is None:
            return self._gone()
        seen = signature(status)
        if seen == self._signature and not self.partial:
            return []
        try:
            content = self.spec.path.read_bytes()
        except FileNotFoundError:
            return self._gone()
        except OSError as error:
            raise unreadable(self.spec.path, error) from error
        after = look(self.spec.path)
        self.partial = after is None or signature(after) != seen
        if self.partial:
            return []
        self.notices = ()
        self._signature = None if racy(status.st_mtime_ns) else seen
        digest = hashlib.sha256(content).digest()
        return [] if digest == self._digest else [self._record(content, digest)]

    def _gone(self) -> list[Record]:
        self.partial = False
        self._signature = None
        if self._version < 0 and not self.spec.optional:
            raise missing(self.spec.path, f"the agent's {self.spec.key} file")
        return [] if self._digest is None else [self._record(None, None)]

    def _record(self, value: bytes | None, digest: bytes | None) -> Record:
        self._digest = digest
        self._version += 1
        return Record(self.spec.key, "file", Place(self.spec.log, "file"), value, self._version)
