"""The Kimi CLI samples: what each session says, what its files keep, what crossed the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.samples.kimi_form import (
    COMPACTED,
    COMPACTS,
    Session,
    Tokens,
    Use,
    answer_row,
    answer_sent,
    body,
    recording,
    reply,
    result,
)
from tests.samples.recording import Recording

SYSTEM = (
    "You keep the log of a small lighthouse.\n\nAnswer in one sentence. Use the tools to look things up — never guess."
)
ASKS = "\nSum up what was said above for a keeper who takes over. Keep every reading."
SUMMARY = "Pressure 1003 hPa and falling at 09:00; the user wanted the lamp lit early."
CWD = "/home/ada/lighthouse"


def _tool(name: str, about: str, **properties: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {k: {"type": v} for k, v in properties.items()},
        "required": [*properties],
    }
    return {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}


TOOLS = [
    _tool("Barometer", "The air pressure at some hour.", hour="integer"),
    _tool("Lamp", "Turn the lamp on or off.", on="boolean"),
]


def compaction_rotates(case: Path) -> None:
    """Two turns, then ``/compact``: the context file is renamed, and a new one begins with the summary and the last answer."""
    session = Session("6d0f2f0a-5f0e-4f43-9d0b-2f6c1a7b9e10", CWD)
    wire = recording()
    system = {"role": "system", "content": SYSTEM}
    session.note("_system_prompt", content=SYSTEM)

    ask = "Is a storm coming? The sky is «mackerel» 🌥."
    use = Use("call_6d0f01", "Barometer", '{"hour": 9}')
    session.turn(1.0, ask)
    messages: list[dict[str, Any]] = [system, {"role": "user", "content": ask}]
    tokens = Tokens(240, 0, 21)
    thought = "The pressure will tell."
    wire.add(1.2, body(session.id, messages, TOOLS), reply("chatcmpl-6d0f01", tokens, "I look.", thought, (use,)))
    session.step(2.7, 1, "chatcmpl-6d0f01", tokens, "I look.", thought, (use,))
    reading = result(use, "Read at 09:00.", "1003 hPa, falling — naïve reading")
    session.row(reading)

    messages += [answer_sent("I look.", thought, (use,)), reading]
    tokens = Tokens(301, 240, 12)
    said = "Yes, the pressure falls: 1003 hPa."
    wire.add(2.9, body(session.id, messages, TOOLS), reply("chatcmpl-6d0f02", tokens, said))
    session.step(4.4, 2, "chatcmpl-6d0f02", tokens, said)
    session.event(4.5, "TurnEnd")

    again = "Then light the lamp early."
    lamp = Use("call_6d0f02", "Lamp", '{"on": true}')
    session.turn(60.0, again)
    messages += [answer_sent(said), {"role": "user", "content": again}]
    tokens = Tokens(322, 301, 9)
    wire.add(60.2, body(session.id, messages, TOOLS), reply("chatcmpl-6d0f03", tokens, "", "At once.", (lamp,)))
    session.step(61.7, 1, "chatcmpl-6d0f03", tokens, "", "At once.", (lamp,))
    lit = result(lamp, "Done.", "lamp on at 15:02")
    session.row(lit)

    messages += [answer_sent("", "At once.", (lamp,)), lit]
    tokens = Tokens(348, 322, 6)
    wire.add(61.9, body(session.id, messages, TOOLS), reply("chatcmpl-6d0f04", tokens, "It burns."))
    session.step(63.4, 2, "chatcmpl-6d0f04", tokens, "It burns.")
    session.event(63.5, "TurnEnd")

    _compact(session, wire, [*messages[1:], answer_sent("It burns.")])
    summary = _carried(session, answer_row("", "At once.", (lamp,)), lit, answer_row("It burns."))
    messages = [system, summary, answer_sent("", "At once.", (lamp,)), lit, answer_sent("It burns.")]

    last = "Good night."
    session.turn(120.0, last)
    messages.append({"role": "user", "content": last})
    tokens = Tokens(290, 210, 5)
    wire.add(120.2, body(session.id, messages, TOOLS), reply("chatcmpl-6d0f06", tokens, "Good watch."))
    session.step(121.7, 1, "chatcmpl-6d0f06", tokens, "Good watch.")
    session.event(121.8, "TurnEnd")

    session.write(case / "log", ask)
    wire.write(case / "wire")


def _compact(session: Session, wire: Recording, messages: list[dict[str, Any]]) -> None:
    """The request for a summary: the texts of all messages but the last two answers and what lies between."""
    parts: list[dict[str, Any]] = []
    for number, message in enumerate(messages[:5], 1):
        parts.append({"type": "text", "text": f"## Message {number}\nRole: {message['role']}\nContent:\n"})
        content = message["content"]
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
    parts.append({"type": "text", "text": ASKS})
    asked = [{"role": "system", "content": COMPACTS}, {"role": "user", "content": parts}]
    tokens = Tokens(140, 0, 19)
    wire.add(80.1, body(session.id, asked, []), reply("chatcmpl-6d0f05", tokens, SUMMARY))
    session.event(80.0, "TurnBegin", user_input="/compact")
    session.event(80.0, "CompactionBegin")
    session.event(81.7, "CompactionEnd")
    session.event(81.8, "TurnEnd")


def _carried(session: Session, *rows: dict[str, Any]) -> dict[str, Any]:
    """The new file's beginning; gives the message the summary is sent in."""
    session.rotate()
    session.note("_system_prompt", content=SYSTEM)
    session.checkpoint()
    summary = {"role": "user", "content": [{"type": "text", "text": t} for t in (COMPACTED, SUMMARY)]}
    for row in (summary, *rows):
        session.row(row)
    session.note("_usage", token_count=31)
    return summary


CASES = (compaction_rotates,)
