"""Every command of the session screen, once: key bindings, palette, key line and help are views of this table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Command:
    """One thing the user can do."""

    name: str
    """What the palette calls it."""
    keys: str
    """Textual key names, comma-separated."""
    action: str
    """Action of the session screen."""
    description: str
    group: str
    shown: str = ""
    """Keys as the help shows them, where those are not Textual's names."""
    short: str = ""
    """Word in the key line; empty: not there."""
    rank: int = 0
    """Commands of a higher rank leave the key line first when it has too little room."""
    pair: str = ""
    """Keys as the key line shows them, where one word stands for two commands."""

    @property
    def help_keys(self) -> str:
        """The keys for the help."""
        return self.shown or self.keys.replace(",", " ")

    @property
    def line_keys(self) -> str:
        """The keys for the key line, which has little room."""
        return self.pair or self.help_keys.split(" ")[0]

    @property
    def binding(self) -> Binding:
        """The command as a Textual binding, remappable by its id."""
        return Binding(self.keys, self.action, self.description, show=False, id=self.name.replace(" ", "-"))


COMMANDS: tuple[Command, ...] = (
    Command("next row", "j,down", "move(1)", "next row", "Move", "j ↓"),
    Command("previous row", "k,up", "move(-1)", "previous row", "Move", "k ↑"),
    Command("page down", "space,pagedown,ctrl+d", "page(1)", "page down", "Move", "space ctrl+d"),
    Command("page up", "pageup,ctrl+u", "page(-1)", "page up", "Move", "pgup ctrl+u"),
    Command("top", "g,home", "edge(-1)", "first row", "Move", "g home"),
    Command("bottom", "G,end", "edge(1)", "last row", "Move", "G end"),
    Command("left", "h,left", "sideways(-1)", "text sideways, left", "Move", "h ←"),
    Command("right", "l,right", "sideways(1)", "text sideways, right", "Move", "l →"),
    Command("next call", "J", "step(1)", "next call, from any pane", "Move", short="Call", pair="J/K"),
    Command("previous call", "K", "step(-1)", "previous call, from any pane", "Move"),
    Command("open", "enter", "open_row", "call: its bytes · segment: its bytes · fold: open it", "Move", "enter"),
    Command(
        "next divergence",
        "d",
        "jump(1, 'D')",
        "next difference in the bytes, else next diverged call",
        "Jump",
        short="Diff",
        pair="d/D",
    ),
    Command("previous divergence", "D", "jump(-1, 'D')", "previous difference or diverged call", "Jump"),
    Command("next break", "b", "jump(1, 'B')", "next cache break", "Jump", short="Break", pair="b/B"),
    Command("previous break", "B", "jump(-1, 'B')", "previous cache break", "Jump"),
    Command("next compaction", "c", "jump(1, 'C')", "next compaction", "Jump", short="Comp", pair="c/C"),
    Command("previous compaction", "C", "jump(-1, 'C')", "previous compaction", "Jump"),
    Command("next truncated reply", "t", "jump(1, 'T')", "next reply that was cut", "Jump", short="Cut", pair="t/T"),
    Command("previous truncated reply", "T", "jump(-1, 'T')", "previous reply that was cut", "Jump"),
    Command("search", "slash", "search", "search in the bytes, both sides", "Jump", "/", "Find", 1),
    Command("next hit", "n", "hit(1)", "next search hit", "Jump"),
    Command("previous hit", "N", "hit(-1)", "previous search hit", "Jump"),
    Command("calls pane", "1", "pane('calls')", "calls", "Panes"),
    Command("context pane", "2", "pane('context')", "context", "Panes"),
    Command("bytes pane", "3", "pane('bytes')", "bytes", "Panes"),
    Command("next pane", "tab", "next_pane(1)", "next pane", "Panes", short="Pane", rank=1),
    Command("previous pane", "shift+tab", "next_pane(-1)", "previous pane", "Panes"),
    Command("zoom", "plus", "zoom(True)", "this pane alone", "Panes", "+"),
    Command("all panes", "minus,underscore", "zoom(False)", "all panes", "Panes", "- _"),
    Command(
        "next comparison",
        "v",
        "compare",
        "served│rebuilt, previous│this, delivered│stored│echoed, wire",
        "View",
        short="View",
    ),
    Command("form", "x", "form", "raw, pretty, hex", "View", short="Form", rank=2),
    Command("side by side", "u", "beside", "side by side or one column", "View"),
    Command("wrap", "w", "wrap", "wrap long rows or not", "View"),
    Command("control characters", "s", "pictures", "control characters as pictures or as escapes", "View"),
    Command("less context", "left_curly_bracket", "context(-1)", "fewer equal rows around a difference", "View", "{"),
    Command("more context", "right_curly_bracket", "context(1)", "more equal rows around a difference", "View", "}"),
    Command(
        "follow", "F", "follow", "go to the newest call and keep to it, or stay", "Session", short="Follow", rank=4
    ),
    Command("open session", "o", "sessions", "another session", "Session"),
    Command(
        "cache breaks", "p", "breaks", "breaks by price, with what to do about them", "Session", short="Price", rank=5
    ),
    Command(
        "tokens",
        "a",
        "tokens",
        "tokens: each count by part, their history, compactions",
        "Session",
        short="Tokens",
        rank=7,
    ),
    Command(
        "next request",
        "r",
        "next_request",
        "what the agent would send next if it were started anew",
        "Session",
        short="Next",
        rank=6,
    ),
    Command("findings", "i", "findings", "findings and notices", "Session"),
    Command("export report", "e", "export", "divergence report to a file", "Output", short="Export"),
    Command("copy", "y", "copy", "copy the command line that shows the same", "Output"),
    Command(
        "command palette", "colon", "app.command_palette", "every command, by name", "Program", ": ctrl+p", "Cmd", 3
    ),
    Command("help", "question_mark", "help", "this help", "Program", "?", "Help"),
    Command("clear", "escape", "clear", "end search and zoom", "Program", "esc"),
    Command("quit", "q,Q", "app.quit", "quit", "Program", "q", "Quit"),
)

BINDINGS: list[Binding] = [command.binding for command in COMMANDS]

LEGEND: tuple[tuple[str, str], ...] = (
    ("D B C T", "divergence, cache break, compaction, truncated reply"),
    ("= ≠ … L S ?", "call: equal, differs, pending, log only, served only, not supported"),
    ("r", "the reply stored is not the reply delivered"),
    ("= ~ ≠ +", "segment: bytes equal, prompt equal, differs, not on the other side"),
    ("L d l e ? m", "bytes are logged, derived, learned, echoed, of unknown origin, mixed"),
    ("┊ ╳", "breakpoint, break"),
    ("S T M C R H I", "bar: system, tools, text, tool calls, tool results, thinking, images"),
    ("s m c r ░ ⋯", "bar: a small letter is new since the previous call, free, not to scale"),
    ("≈ –", "estimated, unknown"),
    ("@12", "unchanged since call 12"),
)
"""Marks on the screen, for the help."""


def groups() -> Iterator[tuple[str, list[Command]]]:
    """The table by group, in order."""
    for group, commands in groupby(COMMANDS, key=lambda command: command.group):
        yield group, list(commands)
