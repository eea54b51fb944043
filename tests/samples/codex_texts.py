"""The words of the Codex samples: a greenhouse whose vents and water are run from a terminal."""

from __future__ import annotations

from typing import Any

CWD = "/srv/greenhouse"
BASE = """You help to run a greenhouse from its terminal. Be exact with numbers and units.

## Tone

Short sentences. Say what was measured before what it means.

## Lists of steps

Keep a list of steps when a task has more than three of them.
Tick off what is done before the next step begins.

## Work

Look before you change anything: a vent that is open may be open for a reason.

## `steps`

A tool named `steps` keeps the list.
Send the whole list each time."""
"""As logged: with the sections on a tool that is not offered."""
BASE_SENT = """You help to run a greenhouse from its terminal. Be exact with numbers and units.

## Tone

Short sentences. Say what was measured before what it means.

## Work

Look before you change anything: a vent that is open may be open for a reason.
"""
GIVEN = (
    "<permissions instructions>\nAll commands may be run; nobody is asked before.\n</permissions instructions>",
    f"# AGENTS.md instructions for {CWD}\n\n<INSTRUCTIONS>\nTemperatures in °C, water in litres.\n</INSTRUCTIONS>",
)
"""What Codex says before the first input."""
PROMPT = (
    "You are performing a CONTEXT CHECKPOINT COMPACTION. Write down for whoever goes on from here what was asked, what "
    "was measured, and what is still to do.\n"
)
SUMMARY_LINE = (
    "Another language model started to solve this problem and produced a summary of its thinking process. "
    "Go on from it:"
)
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "name": "exec_command",
        "description": "Runs a command in the greenhouse's shell and gives what it printed.",
        "strict": False,
        "parameters": {
            "type": "object",
            "properties": {"cmd": {"type": "string", "description": "The command line."}},
            "required": ["cmd"],
        },
    },
    {
        "type": "function",
        "name": "view_image",
        "description": "Shows a picture of one of the cameras.",
        "strict": False,
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
]


def table(beds: int) -> str:
    """What the sensors print: one line for each bed."""
    rows = (
        f"bed {n:02d}  {18 + n * 7 % 9}.{n * 3 % 10} °C  {40 + n * 11 % 37} % humid  vent {n * 5 % 4}"
        for n in range(1, beds + 1)
    )
    return "\n".join(rows) + "\n"
