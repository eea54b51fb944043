"""The invented set-up that the Hermes samples share: prompt, two small tools, tool outputs, markers, side calls."""

from __future__ import annotations

import json
from typing import Any

from tests.samples.hermes_form import MODEL, Call

PROMPT = (
    "You look after a small greenhouse. Read a sensor before you give advice, and keep answers to two sentences. "
    "Temperatures are in degrees Celsius.\n\nSession date: 2026-02-01\nModel: fern-mini\nProvider: custom"
)

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "read_sensor",
            "description": "Hourly readings of one zone.",
            "parameters": {
                "type": "object",
                "properties": {
                    "zone": {"type": "string", "description": "Zone, such as «east»"},
                    "hours": {"type": "integer", "description": "How many hours back"},
                },
                "required": ["zone"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "diary",
            "description": "Write one line into the greenhouse diary.",
            "parameters": {"type": "object", "properties": {"line": {"type": "string"}}, "required": ["line"]},
        },
    },
]


def readings(zone: str, first: int, count: int) -> str:
    """A tool output: a line an hour, by a fixed rule."""
    lines = [f"{k % 24:02d}h {first + k * 5 % 9}.{k * 7 % 10} C {40 + k * 11 % 31} %" for k in range(count)]
    return json.dumps({"zone": zone, "readings": "\n".join(lines), "error": None}, ensure_ascii=False)


EAST = Call(
    "call_east01",
    "read_sensor",
    '{"zone": "östlich", "hours": 6}',
    '{"hours":6,"zone":"\\u00f6stlich"}',
)
WEST = Call("call_west02", "read_sensor", '{"zone": "west", "hours": 12}', '{"hours":12,"zone":"west"}')
ROOF = Call("call_roof03", "read_sensor", '{"zone":"roof"}', '{"zone":"roof"}')

# --- markers and side calls: the fixed words by which they are known, and else our own -------------------------------

LEAD = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into a short record; treat it as background."
HEADING = "## Historical Task Snapshot"
END = "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"


def batch_marker(summary: str) -> str:
    return f"{LEAD}\n{HEADING}\n{summary}\n\n{END}"


def micro_marker(summary: str) -> str:
    return f"{LEAD}\n\n{HEADING}\n{summary}\n\n{END}"


def title_request(opening: str) -> dict[str, Any]:
    rule = "You name chat sessions. Given the user's opening message, reply with a title of at most four words as JSON."
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    return {
        "messages": [{"role": "system", "content": rule}, {"role": "user", "content": opening}],
        "model": MODEL,
        "temperature": 0.3,
        "response_format": {"type": "json_schema", "json_schema": {"name": "session_title", "schema": schema}},
    }


def batch_request(turns: str) -> dict[str, Any]:
    rule = "You are a summarization agent creating a context checkpoint. Say what was asked, found and left open."
    return {
        "messages": [{"role": "user", "content": f"{rule}\n\nTURNS:\n{turns}"}],
        "model": MODEL,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def micro_request(running: str, exchange: str) -> dict[str, Any]:
    rule = "You are a summarization agent creating a compact record of an ongoing conversation. Fold the exchange in."
    asked = f"{rule}\n\nRUNNING SUMMARY:\n{running or '(none)'}\n\nEXCHANGE:\n{exchange}"
    system = {"role": "system", "content": "You are a conversation summarization assistant."}
    return {"messages": [system, {"role": "user", "content": asked}], "model": MODEL, "temperature": 0.1}
