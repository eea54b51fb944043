"""The Hermes samples with micro-compaction, each going wrong after a resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.samples.hermes_cases import COMPRESSOR, home
from tests.samples.hermes_form import (
    MODEL,
    Home,
    Session,
    Spent,
    answer,
    answer_row,
    calling,
    calling_row,
    live_result,
    loaded_result,
    tool_row,
    user,
    user_row,
)
from tests.samples.hermes_texts import (
    EAST,
    ROOF,
    WEST,
    batch_marker,
    batch_request,
    micro_marker,
    micro_request,
    readings,
)

MICRO = {"micro_compact": True, "micro_compact_every_n_turns": 1, "protect_first_n": 0, "protect_last_n": 2}


def _absorbed(h: Home, at: float, **numbers: int) -> None:
    """The telemetry of a pass, and the line that follows it."""
    fixed: dict[str, Any] = {"event": "micro_compaction", "outcome": "absorbed", "aux_model": "", "main_model": MODEL}
    fixed |= {
        "context_limit": h.context_length,
        "session_id": h.session.id,
        "threshold_tokens": h.context_length * 85 // 100,
    }
    fixed |= {"tokens_delta": numbers["tokens_after"] - numbers["tokens_before"], "duration_ms": 1400}
    told = json.dumps({**fixed, **numbers}, separators=(",", ":"), sort_keys=True)
    h.note(at, "agent.context_compressor", f"micro compaction telemetry: {told}")
    counts = f"{numbers['messages_before']} -> {numbers['messages_after']}"
    h.note(at, "agent.conversation_loop", f"Micro-compaction: {counts} messages")


def micro_stale_after_resume(case: Path) -> None:  # noqa: PLR0915 - a story told in the order it happened
    """After a resume the running summary starts from nothing and the old marker is not superseded: two stand stacked."""
    h = home(Session("20260201_090000_371c40"), 32000, 2048, **MICRO)
    ask1, ask2, ask3 = "Read the east for me.", "Now the west.", "And the roof?"
    east, west, roof = readings("östlich", 7, 20), readings("west", 9, 20), readings("roof", 4, 20)
    found1, found2, found3 = "East: seven to fifteen degrees.", "West: nine to seventeen.", "Roof: four to twelve."
    h.process(0.1)
    h.turn(0.9, 0, ask1)
    q1, q2 = user_row(1.0, ask1), user_row(10.0, ask2)
    h.add(q1)
    turn1 = [user(ask1), calling("", EAST), live_result(EAST, east)]
    h.ask(1.1, turn1[:1], Spent(180, 0, 22), "", EAST)
    h.add(calling_row(2.7, "", EAST), tool_row(2.8, EAST, east))
    h.ask(2.9, turn1, Spent(507, 180, 10), found1)
    h.add(answer_row(4.5, found1))
    h.turn_ended(4.6, 2, len(found1))

    h.turn(9.9, 4, ask2)
    h.add(q2)
    h.ask(10.1, [*turn1, answer(found1), user(ask2)], Spent(531, 506, 20), "", WEST)
    t2, r2, a2 = calling_row(11.7, "", WEST), tool_row(11.8, WEST, west), answer_row(13.5, found2)
    h.add(t2, r2)
    turn2 = [user(ask2), calling("", WEST), live_result(WEST, west)]
    h.ask(11.9, [*turn1, answer(found1), *turn2], Spent(851, 531, 9), found2)
    h.add(a2)
    summary1 = "The east was read: seven to fifteen degrees."
    old = micro_marker(summary1)
    h.side(13.6, "compression", micro_request("", f"{east}\n{found1}"), Spent(325, 0, 11), summary1)
    h.archive()
    m1 = answer_row(15.2, old, None)
    h.add(q1, m1, q2, t2, r2, a2)
    _absorbed(h, 15.3, messages_before=8, messages_after=6, tokens_before=700, tokens_after=480, passes_total=1)
    h.turn_ended(15.4, 2, len(found2))

    h.process(60.0)
    h.turn(60.9, 6, ask3)
    q3 = user_row(61.0, ask3)
    h.add(q3)
    loaded = [user(ask1), answer(old), user(ask2), calling("", WEST), loaded_result(WEST, west), answer(found2)]
    h.ask(61.1, [*loaded, user(ask3)], Spent(599, 186, 17), "", ROOF)
    t3, r3, a3 = calling_row(62.7, "", ROOF), tool_row(62.8, ROOF, roof), answer_row(64.5, found3)
    h.add(t3, r3)
    turn3 = [user(ask3), calling("", ROOF), live_result(ROOF, roof)]
    h.ask(62.9, [*loaded, *turn3], Spent(915, 599, 9), found3)
    h.add(a3)
    summary2 = "The west was read: nine to seventeen degrees."
    new = micro_marker(summary2)
    h.side(64.6, "compression", micro_request("", f"{west}\n{found2}"), Spent(323, 0, 11), summary2)
    h.archive()
    h.add(q1, m1, q2, answer_row(66.2, new, None), q3, t3, r3, a3)
    _absorbed(h, 66.3, messages_before=10, messages_after=8, tokens_before=860, tokens_after=660, passes_total=1)
    h.turn_ended(66.4, 2, len(found3))

    ask4, found4 = "Which one was the coldest?", "The roof, by three degrees."
    h.turn(69.9, 8, ask4)
    h.add(user_row(70.0, ask4))
    stacked = [user(ask1), answer(old), user(ask2), answer(new), *turn3, answer(found3), user(ask4)]
    h.ask(70.1, stacked, Spent(684, 267, 9), found4)
    h.add(answer_row(71.7, found4))
    h.turn_ended(71.8, 1, len(found4))
    h.write(case)


def batch_marker_destroyed(case: Path) -> None:  # noqa: PLR0915 - a story told in the order it happened
    """A batch summary stands as an assistant row; after a resume a micro pass takes it for an old exchange."""
    h = home(Session("20260201_090000_de5710"), 900, 128, **{**MICRO, "in_place": True, "protect_first_n": 1})
    ask1, ask2, ask3 = "Order of watering, please.", "Is the west still wet?", "What about the roof?"
    east, west, roof = readings("östlich", 11, 24), readings("west", 13, 16), readings("roof", 6, 8)
    found1, found2, found3 = "East, then roof, then west.", "Yes, wait a day there.", "Dry: water it now."
    h.process(0.1)
    h.turn(0.9, 0, ask1)
    q1 = user_row(1.0, ask1)
    h.add(q1)
    turn1 = [user(ask1), calling("", EAST), live_result(EAST, east)]
    h.ask(1.1, turn1[:1], Spent(180, 0, 22), "", EAST)
    h.add(calling_row(2.7, "", EAST), tool_row(2.8, EAST, east))
    h.ask(2.9, turn1, Spent(555, 180, 10), found1)
    h.add(answer_row(4.5, found1))
    h.turn_ended(4.6, 2, len(found1))

    h.turn(9.9, 4, ask2)
    q2, t2, r2 = user_row(10.0, ask2), calling_row(11.7, "", WEST), tool_row(11.8, WEST, west)
    h.add(q2)
    h.ask(10.1, [*turn1, answer(found1), user(ask2)], Spent(582, 554, 20), "", WEST)
    h.add(t2, r2)
    summary = "Agreed order of watering: east, then roof, then west. Never change it without asking."
    batch = batch_marker(summary)
    start = f"context compression started: session={h.session.id} messages=7 tokens=~800 model=fern-mini focus=None"
    h.note(11.9, COMPRESSOR, start, named=False)
    h.side(12.0, "compression", batch_request(f"{east}\n{found1}"), Spent(350, 0, 20), summary)
    h.archive()
    h.add(q1, answer_row(13.6, batch, None), q2, t2, r2)
    done = f"context compression done: session={h.session.id} messages=7->5 rough_tokens=~560 awaiting_real_usage=true"
    h.note(13.7, COMPRESSOR, done, named=False)
    turn2 = [user(ask2), calling("", WEST), live_result(WEST, west)]
    h.ask(13.8, [user(ask1), answer(batch), *turn2], Spent(544, 186, 9), found2)
    a2 = answer_row(15.4, found2)
    h.add(a2)
    h.turn_ended(15.5, 2, len(found2))

    h.process(60.0)
    h.turn(60.9, 6, ask3)
    q3 = user_row(61.0, ask3)
    h.add(q3)
    loaded2 = [user(ask2), calling("", WEST), loaded_result(WEST, west), answer(found2)]
    loaded = [user(ask1), answer(batch), *loaded2]
    h.ask(61.1, [*loaded, user(ask3)], Spent(564, 319, 17), "", ROOF)
    t3, r3, a3 = calling_row(62.7, "", ROOF), tool_row(62.8, ROOF, roof), answer_row(64.5, found3)
    h.add(t3, r3)
    turn3 = [user(ask3), calling("", ROOF), live_result(ROOF, roof)]
    h.ask(62.9, [*loaded, *turn3], Spent(736, 564, 9), found3)
    h.add(a3)
    short = "An earlier handoff note was shown."
    micro = micro_marker(short)
    h.side(64.6, "compression", micro_request("", batch), Spent(134, 0, 8), short)
    h.archive()
    h.add(q1, answer_row(66.2, micro, None), q2, t2, r2, a2, q3, t3, r3, a3)
    _absorbed(h, 66.3, messages_before=10, messages_after=10, tokens_before=760, tokens_after=745, passes_total=1)
    h.turn_ended(66.4, 2, len(found3))

    ask4, found4 = "Remind me of the order?", "I only know that a handoff note was shown."
    h.turn(69.9, 10, ask4)
    h.add(user_row(70.0, ask4))
    after = [user(ask1), answer(micro), *loaded2, *turn3, answer(found3), user(ask4)]
    h.ask(70.1, after, Spent(751, 213, 11), found4)
    h.add(answer_row(71.7, found4))
    h.turn_ended(71.8, 1, len(found4))
    h.write(case)


CASES = (micro_stale_after_resume, batch_marker_destroyed)
