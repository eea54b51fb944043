"""A stand-in for an inspection, so that the command line is tested on snapshots made by hand.

``python -m tests.cli_fakes ARGS…`` is ``ctxscope ARGS…`` over the stand-in.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from ctxscope.cli.main import main
from ctxscope.model import CallView, CtxscopeError, Snapshot
from tests.report_samples import difference, known_call, snapshot, unknown_call, view

TEXT = "≈ plums – \U0001f351 \x1b[2J é"


@dataclass
class FakeInspection:
    """Opens anything but a path that says it is bad."""

    path: Path
    title: str = f"orchard {TEXT}"

    @classmethod
    def open(cls, path, **_):
        """Whatever else is asked for."""
        if path.name == "bad":
            raise CtxscopeError(f"{path}: an empty file\x1b[2J; expected a log")
        return cls(path)

    @property
    def snapshot(self) -> Snapshot:
        return snapshot(unknown_call(1), known_call(2, first=difference(TEXT, "pears"), what=TEXT))

    def view(self, n: int) -> CallView:
        return view(self.snapshot.calls[n - 1], delivered=TEXT)

    def count(self) -> None:
        """Counts stand in the calls already."""

    def close(self) -> None:
        """Holds nothing."""


def plant() -> ModuleType:
    """The module that stands for the real one."""
    module = ModuleType("ctxscope.session.inspection")
    module.Inspection = FakeInspection  # type: ignore[attr-defined] - modules take any attribute
    return module


if __name__ == "__main__":
    sys.modules["ctxscope.session.inspection"] = plant()
    sys.exit(main(sys.argv[1:]))
