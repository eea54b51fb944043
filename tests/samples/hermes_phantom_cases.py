"""The Hermes 0.19 sample that compacts on phantom bytes: its estimate counts what no model is given as text."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.samples.hermes_cases import COMPRESSOR, home
from tests.samples.hermes_db import OLD
from tests.samples.hermes_form import (
    Home,
    Session,
    Spent,
    Thought,
    answer,
    answer_row,
    calling,
    calling_row,
    live_result,
    tool_row,
    user,
    user_row,
)
from tests.samples.hermes_texts import EAST, WEST, batch_marker, batch_request, readings

WINDOW = 2500
"""It compacts at 85 % of what so small a window leaves for a prompt: at 1,907 tokens. A seventh of that is the tail's."""
NOTED = "\n\n<recall>The east bench froze at 2 °C last year; the west bench never has.</recall>"
"""What a plugin puts behind a question: question and sidecar are counted both."""
SETTINGS = {"in_place": True, "protect_first_n": 1, "protect_last_n": 2, "target_ratio": 0.14}


def _thought(text: str, length: int) -> Thought:
    """A thought signed with so many bytes of nothing in particular."""
    noise = b"".join(sha256(f"{text} {n}".encode()).digest() for n in range(length // 32 + 1))
    return Thought(text, b64encode(noise[:length]).decode())


FIRST, SECOND, THIRD, FOURTH, FIFTH = (
    _thought("The east sensor knows.", 600),
    _thought("It stayed above six.", 600),
    _thought("Now the west sensor.", 600),
    _thought("The west is warmer.", 600),
    _thought("East first, by the list.", 780),
)


def compacted_on_phantom_bytes(case: Path) -> None:
    """Sidecars counted beside their content and signatures as text: a new process compacts a prompt of 640 tokens.

    The tail is measured with the signatures too, so that the whole second question is summarised away.
    """
    h = home(Session("20260201_090000_fa4703"), WINDOW, 256, **SETTINGS)
    h.schema, h.streams = OLD, False
    ask1, ask2, ask3 = (
        "Here is my list for tonight: close the vents, cover the ferns, drain the hose. Is the east safe from frost?",
        "And the west? The basil stands there, on the lower shelf beside the door, and it minds the draught.",
        "Which of the two do I cover first?",
    )
    east, west = readings("östlich", 6, 12), readings("west", 8, 12)
    found1, found2, found3 = "Yes, it never fell below six.", "Two degrees warmer: safe.", "The east, it is colder."
    h.process(0.1)
    h.turn(0.9, 0, ask1)
    h.add(user_row(1.0, ask1, api_content=ask1 + NOTED))
    turn1 = [user(ask1 + NOTED), calling("", EAST, FIRST), live_result(EAST, east)]
    h.ask(1.1, turn1[:1], Spent(187, 0, 30), "", EAST, FIRST)
    h.add(calling_row(2.7, "", EAST, **FIRST.columns()), tool_row(2.8, EAST, east))
    h.ask(2.9, turn1, Spent(374, 186, 15), found1, thought=SECOND)
    h.add(answer_row(4.5, found1, **SECOND.columns()))
    h.turn_ended(4.6, 2, len(found1))

    h.turn(9.9, 4, ask2)
    h.add(user_row(10.0, ask2, api_content=ask2 + NOTED))
    before2 = [*turn1, answer(found1, SECOND)]
    turn2 = [user(ask2 + NOTED), calling("", WEST, THIRD), live_result(WEST, west)]
    h.ask(10.1, [*before2, turn2[0]], Spent(437, 373, 30), "", WEST, THIRD)
    h.add(calling_row(11.7, "", WEST, **THIRD.columns()), tool_row(11.8, WEST, west))
    h.ask(11.9, [*before2, *turn2], Spent(619, 436, 15), found2, thought=FOURTH)
    h.add(answer_row(13.5, found2, **FOURTH.columns()))
    h.turn_ended(13.6, 2, len(found2))

    h.turn(19.9, 8, ask3)
    q3, a3 = user_row(20.0, ask3), answer_row(21.7, found3, **FIFTH.columns())
    h.add(q3)
    h.ask(20.1, [*before2, *turn2, answer(found2, FOURTH), user(ask3)], Spent(640, 618, 15), found3, thought=FIFTH)
    h.add(a3)
    h.turn_ended(21.8, 1, len(found3))

    ask4, found4 = "Done. What was on my list beside the vents?", "The ferns and the hose."
    h.process(60.0)
    h.turn(60.9, 10, ask4)
    h.add(user_row(61.0, ask4))
    _compacted(h, f"{east}\n{found1}\n{ask2}\n{west}\n{found2}", 8)
    marker = str(h.rows[-4]["content"])
    after = [user(ask1 + NOTED), answer(marker), user(ask3), answer(found3, FIFTH), user(ask4)]
    h.ask(63.2, after, Spent(294, 187, 9), found4)
    h.add(answer_row(64.8, found4))
    h.turn_ended(64.9, 1, len(found4))
    h.write(case)


def _compacted(h: Home, turns: str, cut: int) -> None:
    """Before the first request of a process: what stands between the first message and ``cut`` becomes a summary."""
    rows = [row for row in h.rows if row["active"]]
    summary = "The user asked whether the east and the west are safe. Both are; the west is two degrees warmer."
    kept = [rows[0], answer_row(0, batch_marker(summary), None), *rows[cut:]]
    start = f"context compression started: session={h.session.id} messages={len(rows)}"
    h.note(61.1, COMPRESSOR, f"{start} tokens=~{_rough(h, rows):,} model=fern-mini focus=None", named=False)
    h.side(61.2, "compression", batch_request(turns), Spent(394, 0, 26), summary)
    h.archive()
    columns = [{name: value for name, value in row.items() if name != "id"} for row in kept]
    stamp = user_row(62.9, "")["timestamp"]
    h.add(*({**row, "timestamp": stamp + n * 1e-6} for n, row in enumerate(columns)))
    done = f"context compression done: session={h.session.id} messages={len(rows)}->{len(kept)}"
    left = [row for row in h.rows if row["active"]]
    h.note(63.0, COMPRESSOR, f"{done} rough_tokens=~{_rough(h, left):,} awaiting_real_usage=true", named=False)


def _rough(h: Home, rows: list[dict[str, Any]]) -> int:
    """What 0.19 takes a request for: a quarter of the characters of prompt, tools and messages as Python spells them."""
    tools = [tool["function"] for tool in h.tools]
    listed = sum(
        len(t["name"])
        + len(t["description"])
        + len(json.dumps(t["parameters"], ensure_ascii=False, separators=(",", ":")))
        for t in tools
    )
    held = sum(len(str(_held(row))) for row in rows)
    return math.ceil(len(h.prompt) / 4) + math.ceil(listed / 4) + math.ceil(held / 4)


def _held(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a process that loaded it holds it."""
    apart = {"id", "session_id", "observed", "active", "compacted"}
    listed = {"tool_calls", "reasoning_details"}
    kept = {name: value for name, value in row.items() if name not in apart and value is not None}
    return {name: json.loads(v) if name in listed else v for name, v in kept.items()} | {"_db_persisted": True}


CASES = (compacted_on_phantom_bytes,)
