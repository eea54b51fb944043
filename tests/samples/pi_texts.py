"""The invented agent set-up that the pi samples share: prompt sections and three small tools, as logged and as served."""

from __future__ import annotations

from typing import Any

CWD = "/home/ada/tides"

SECTIONS = {
    "preamble": "You keep the tide log of a small harbour. Answer in one or two sentences and name the file you used.",
    "tools": "<tools>\n- gauge: Read water levels\n- grep_log: Search the tide log\n- jot: Add a line to the log\n</tools>",
    "rules": "<rules>\n- Read before you answer\n- Levels are in centimetres above chart datum\n</rules>",
    "cwd": f"<cwd>\n{CWD}\n</cwd>",
}

SYSTEM = (
    "You keep the tide log of a small harbour. Answer in one or two sentences and name the file you used.\n\n"
    "<tools>\n- gauge: Read water levels\n- grep_log: Search the tide log\n- jot: Add a line to the log\n</tools>\n\n"
    "<rules>\n- Read before you answer\n- Levels are in centimetres above chart datum\n</rules>\n\n"
    "<cwd>\n/home/ada/tides\n</cwd>"
)

_GAUGE = {
    "station": {"type": "string", "description": "Name of the gauge, such as north-mole"},
    "day": {"type": "string", "description": "Day as YYYY-MM-DD"},
    "every": {"type": "number", "description": "Minutes between two readings (default 30)"},
}
_GREP = {
    "pattern": {"type": "string", "description": "Words to look for"},
    "limit": {"type": "number", "description": "Most lines to return"},
}
_JOT = {"line": {"type": "string", "description": "Text of the new line"}}

GAUGE_SAYS = "Read the water levels of one gauge for one day."
GREP_SAYS = "Search the tide log and return the lines that match."
JOT_SAYS = "Append one line to today's page of the tide log."

_PREFER = {"type": "json_schema", "strict": "prefer"}

TOOLS_LOGGED: list[dict[str, Any]] = [
    {
        "name": "gauge",
        "description": GAUGE_SAYS,
        "parameters": {"type": "object", "required": ["station", "day"], "properties": _GAUGE},
        "constrainedSampling": _PREFER,
    },
    {
        "name": "grep_log",
        "description": GREP_SAYS,
        "parameters": {"type": "object", "required": ["pattern"], "properties": _GREP},
        "constrainedSampling": _PREFER,
    },
    {
        "name": "jot",
        "description": JOT_SAYS,
        "parameters": {"type": "object", "required": ["line"], "properties": _JOT},
        "constrainedSampling": _PREFER,
    },
]


def _served(name: str, says: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": says, "eager_input_streaming": True, "input_schema": schema}


TOOLS_SERVED: list[dict[str, Any]] = [
    _served("gauge", GAUGE_SAYS, _GAUGE, ["station", "day"]),
    _served("grep_log", GREP_SAYS, _GREP, ["pattern"]),
    _served("jot", JOT_SAYS, _JOT, ["line"]),
]

TOOLS_SERVED_REORDERED: list[dict[str, Any]] = [
    TOOLS_SERVED[0],
    _served("grep_log", GREP_SAYS, {"limit": _GREP["limit"], "pattern": _GREP["pattern"]}, ["pattern"]),
    TOOLS_SERVED[2],
]


def levels(first: int, count: int) -> str:
    """A day's readings: a line per half hour, the level rising and falling by a fixed rule."""
    rows = []
    for k in range(count):
        minute = 30 * k
        level = first + (k * 37) % 113 - (k * k) % 29
        rows.append(f"{minute // 60 % 24:02d}:{minute % 60:02d} {level} cm, wind {(k * 7) % 19} kn, gate {k % 4}")
    return "\n".join(rows) + "\n"


_CELLS = dict(zip("abcdefghijklmnopqrstuvwxyz", "⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵", strict=True))
_CELLS |= {str(n): _CELLS["jabcdefghi"[n]] for n in range(10)} | {" ": "\u2800", ",": "⠂", "#": "⠼"}
"""Letters in Braille; a number is the letters a to j behind a number sign."""


def braille(sheet: int, count: int) -> str:
    """A sheet of the tide table in Braille: a line a tide, by a fixed rule."""
    rows = []
    for k in range(count):
        kind, gate = ("high", "low")[k % 2], "abcd"[k % 4]
        said = f"{kind} water at #{(k * 6 + sheet) % 24} #{k * 25 % 60}, #{120 + k * 37 % 140} centimetres, gate {gate} is open"
        rows.append("".join(_CELLS[c] for c in said))
    return "\n".join(rows) + "\n"
