"""Findings and notices: what was found wrong, and what could not be read."""

from __future__ import annotations

from textwrap import wrap

from ctxscope.model import Finding, Snapshot
from ctxscope.tui.paint import Spans
from ctxscope.tui.screens.modal import LinesScreen
from ctxscope.tui.visible import visible

_WIDTH = 72


class FindingsScreen(LinesScreen):
    """All findings, then all notices, of one snapshot."""

    def __init__(self) -> None:
        super().__init__("Findings and notices")


def finding_lines(snapshot: Snapshot) -> list[Spans]:
    """Findings with their calls and evidence, then notices, wrapped."""
    lines: list[Spans] = []
    for finding in snapshot.findings:
        lines += [[(f" {_head(finding)}", "head")], *_wrapped(finding.message), *_wrapped(finding.evidence, "dim"), []]
    if snapshot.notices:
        lines.append([(" NOTICES", "head")])
    for notice in snapshot.notices:
        lines += _wrapped(notice)
    return lines


def _head(finding: Finding) -> str:
    calls = ", ".join(map(str, finding.calls))
    where = f" at {finding.path}" if finding.path else ""
    return visible(f"{finding.code} {finding.severity} · call {calls or '–'}{where}")


def _wrapped(text: str, style: str = "text") -> list[Spans]:
    return [[(f"   {line}", style)] for line in wrap(visible(text), _WIDTH)]
