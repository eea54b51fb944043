"""Open the bundled sample sessions in the app; needs nothing else."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ctxscope import resources
from ctxscope.cli import target
from ctxscope.cli.diagnostics import bad_input
from ctxscope.cli.open import need_terminal, opened
from ctxscope.tui.source import PickerRow


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(args: argparse.Namespace) -> int:  # noqa: ARG001 - the face of a verb
    """Show a list of the samples to pick from."""
    need_terminal()
    cases = samples()
    from ctxscope.tui import app  # noqa: PLC0415 - Textual is loaded once there is something to show

    return app.run(None, lambda: [row(case) for case in cases], lambda picked: opened(target.Target(Path(picked.path))))


def samples() -> list[Path]:
    """The folders of the bundled samples. Raises ``CtxscopeError`` when the installation lacks them."""
    folder = resources.sample_sessions()
    cases = sorted(path.parent for path in folder.glob("*/*/expected.json"))
    if not cases:
        raise bad_input(f"{folder}: no samples; expected those that come with ctxscope")
    return cases


def row(case: Path) -> PickerRow:
    """A sample as the picker lists it: what it shows, when its last call was made, how many it has, how long its log is."""
    expected = json.loads((case / "expected.json").read_bytes())
    lines = [line for index in case.rglob("index.jsonl") for line in index.read_bytes().splitlines()]
    return PickerRow(
        agent=case.parent.name,
        title=str(expected["title"]),
        directory=case.name,
        path=str(case),
        updated=max((float(json.loads(line)["t"]) for line in lines), default=None),
        calls=len(lines),
        size=sum(file.stat().st_size for file in (case / "log").rglob("*") if file.is_file()),
    )
