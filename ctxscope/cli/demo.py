"""Open the bundled sample sessions in the app; needs nothing else."""

from __future__ import annotations

import argparse
from pathlib import Path

from ctxscope import resources
from ctxscope.cli import target
from ctxscope.cli.open import need_terminal
from ctxscope.model import CtxscopeError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(args: argparse.Namespace) -> int:  # noqa: ARG001 - the face of a verb
    """Show a list of the samples to pick from."""
    need_terminal()
    from ctxscope.cli.source import InspectionSource  # noqa: PLC0415 - loads every agent
    from ctxscope.tui import app  # noqa: PLC0415 - Textual is loaded once there is something to show
    from ctxscope.tui.source import PickerRow  # noqa: PLC0415 - with the app

    rows = [PickerRow(agent=case.parent.name, project=case.name, path=str(case), served=True) for case in samples()]
    return app.run(None, lambda: rows, lambda row: InspectionSource.open(target.Target(Path(row.path))))


def samples() -> list[Path]:
    """The folders of the bundled samples. Raises ``CtxscopeError`` when the installation lacks them."""
    folder = resources.sample_sessions()
    cases = sorted(path.parent for path in folder.glob("*/*/expected.json"))
    if not cases:
        raise CtxscopeError(f"{folder}: no samples; expected those that come with ctxscope")
    return cases
