"""Pieces being put together; neighbours from one place become one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ctxscope.model import Piece, Place, Provenance


@dataclass(eq=False, slots=True)
class Pieces:
    """A row of pieces that grows."""

    place: Place | None = None
    """Where what is logged stands."""
    found: list[Piece] = field(default_factory=list)

    def logged(self, data: bytes) -> None:
        """Bytes that the log holds."""
        self._add(Piece(data, "logged", self.place))

    def constant(self, data: bytes) -> None:
        """Bytes that follow from a rule."""
        self._add(Piece(data))

    def borrowed(self, data: bytes, path: str, provenance: Provenance = "echoed") -> None:
        """Bytes at a learnable path."""
        self._add(Piece(data, provenance, path=path))

    def _add(self, piece: Piece) -> None:
        last = self.found[-1] if self.found else None
        if last is not None and (last.provenance, last.place, last.path) == (piece.provenance, piece.place, piece.path):
            self.found[-1] = replace(last, data=last.data + piece.data)
        elif piece.data:
            self.found.append(piece)
