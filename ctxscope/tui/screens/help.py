"""Help: the command table and the marks on the screen."""

from __future__ import annotations

from ctxscope.tui.commands import LEGEND, Command, groups
from ctxscope.tui.paint import Spans
from ctxscope.tui.screens.modal import LinesScreen

_KEY_WIDTH = 14


class HelpScreen(LinesScreen):
    """Every key and every mark."""

    def __init__(self) -> None:
        super().__init__("Help")


def help_lines() -> list[Spans]:
    """The table by group, then what the marks mean."""
    lines: list[Spans] = []
    for group, commands in groups():
        lines.append([(f" {group.upper()}", "head")])
        lines.extend(_line(command) for command in commands)
        lines.append([])
    lines.append([(" MARKS", "head")])
    lines.extend([(f"   {marks:<{_KEY_WIDTH}}", "key"), (f" {meaning}", "text")] for marks, meaning in LEGEND)
    return lines


def _line(command: Command) -> Spans:
    return [(f"   {command.help_keys:<{_KEY_WIDTH}}", "key"), (f" {command.description}", "text")]
