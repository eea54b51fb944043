"""The Hermes samples without micro-compaction: sidecar, batch compaction, rotation, a lost reply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.samples.hermes_form import (
    Call,
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
    PROMPT,
    ROOF,
    TOOLS,
    WEST,
    batch_marker,
    batch_request,
    readings,
    title_request,
)

COMPRESSOR = "agent.conversation_compression"


def home(session: Session, window: int, reserve: int, **compression: Any) -> Home:
    return Home(PROMPT, TOOLS, window, reserve, compression, [session])


def sidecar_differs(case: Path) -> None:
    """A plugin adds recalled facts to the first question; a quoted fence and an empty sidecar test the rule's edges."""
    h = home(Session("20260201_090000_5a1de1", title="Frost check"), 131072, 8192)
    ask = "Is the east bench safe from frost?"
    recalled = "Is the east bench safe from frost?\n\n<recall>Last year the bench froze at 2 °C.</recall>"
    east = readings("östlich", 4, 6)
    found = "It stays above 4 degrees, so the bench is safe."
    h.process(0.1)
    h.turn(0.9, 0, ask)
    h.add(user_row(1.0, ask, api_content=recalled))
    h.side(1.05, "title_generation", title_request(ask), Spent(48, 0, 9), '{"title": "Frost check"}')
    h.ask(1.1, [user(recalled)], Spent(203, 0, 24), "Let me see.", EAST)
    h.add(calling_row(2.7, "Let me see.", EAST))
    h.add(tool_row(2.8, EAST, east, api_content="[not a user or assistant row: never sent]"))
    first = [user(recalled), calling("Let me see.", EAST), live_result(EAST, east)]
    h.ask(2.9, first, Spent(365, 202, 13), found)
    h.add(answer_row(4.5, found))
    h.turn_ended(4.6, 2, len(found))

    padded = "  What does the fence mean in your notes?  \n"
    quoted = "It opens a quoted note: <memory-context>\nbench froze\n</memory-context> closes it."
    h.turn(9.9, 4, padded.strip())
    h.add(user_row(10.0, padded, api_content=""))
    second = [*first, answer(found), user("What does the fence mean in your notes?")]
    h.ask(10.1, second, Spent(400, 364, 22), quoted)
    h.add(answer_row(11.7, quoted, api_content=quoted))
    h.turn_ended(11.8, 1, len(quoted))

    ask = "Thanks. Anything to do tonight?"
    rest = "Close the vents before sunset."
    h.process(60.0)
    h.turn(61.0, 6, ask)
    h.add(user_row(61.1, ask))
    third = [user(recalled), calling("Let me see.", EAST), loaded_result(EAST, east), answer(found)]
    third += [user("What does the fence mean in your notes?"), answer(quoted), user(ask)]
    h.ask(61.2, third, Spent(437, 259, 8), rest)
    h.add(answer_row(62.8, rest))
    h.turn_ended(62.9, 1, len(rest))
    h.write(case)


def batch_compaction(case: Path) -> None:
    """Three tool turns fill a window of 1200 tokens; the first turn and a half become a summary in the same session."""
    h = home(Session("20260201_090000_ba7c41"), 1200, 256, in_place=True, protect_first_n=0, protect_last_n=2)
    ask1, ask2, ask3 = "How was the night in the east?", "And in the west?", "Compare with the roof."
    east, west, roof = readings("östlich", 6, 24), readings("west", 8, 24), readings("roof", 3, 14)
    found1, found2 = "Cool but never below six degrees.", "Two degrees warmer than the east."
    h.process(0.1)
    h.turn(0.9, 0, ask1)
    q1, t1, r1, a1 = (
        user_row(1.0, ask1),
        calling_row(2.7, "", EAST),
        tool_row(2.8, EAST, east),
        answer_row(4.5, found1),
    )
    h.add(q1)
    turn1 = [user(ask1), calling("", EAST), live_result(EAST, east)]
    h.ask(1.1, turn1[:1], Spent(182, 0, 22), "", EAST)
    h.add(t1, r1)
    h.ask(2.9, turn1, Spent(557, 182, 9), found1)
    h.add(a1)
    h.turn_ended(4.6, 2, len(found1))

    h.turn(9.9, 4, ask2)
    q2, t2, r2, a2 = (
        user_row(10.0, ask2),
        calling_row(11.7, "", WEST),
        tool_row(11.8, WEST, west),
        answer_row(13.5, found2),
    )
    h.add(q2)
    turn2 = [user(ask2), calling("", WEST), live_result(WEST, west)]
    h.ask(10.1, [*turn1, answer(found1), user(ask2)], Spent(582, 556, 20), "", WEST)
    h.add(t2, r2)
    h.ask(11.9, [*turn1, answer(found1), *turn2], Spent(950, 582, 8), found2)
    h.add(a2)
    h.turn_ended(13.6, 2, len(found2))

    h.turn(19.9, 8, ask3)
    q3, t3, r3 = user_row(20.0, ask3), calling_row(21.7, "One moment.", ROOF), tool_row(21.8, ROOF, roof)
    h.add(q3)
    before = [*turn1, answer(found1), *turn2, answer(found2), user(ask3)]
    h.ask(20.1, before, Spent(975, 949, 16), "One moment.", ROOF)
    h.add(t3, r3)

    summary = "The user asked about the night. East: never below six degrees. West was being read next."
    marker = batch_marker(summary)
    h.note(
        21.9,
        COMPRESSOR,
        f"context compression started: session={h.session.id} messages=11 tokens=~1,110 model=fern-mini focus=None",
        named=False,
    )
    h.side(22.0, "compression", batch_request(f"{ask1}\n{east}\n{found1}\n{ask2}"), Spent(364, 0, 27), summary)
    h.archive()
    h.add(user_row(23.6, marker), t2, r2, a2, q3, t3, r3)
    h.note(
        23.7,
        COMPRESSOR,
        f"context compression done: session={h.session.id} messages=11->7 rough_tokens=~760 awaiting_real_usage=true",
        named=False,
    )
    found3 = "The roof is the coldest of the three."
    after = [
        user(marker),
        *turn2[1:],
        answer(found2),
        user(ask3),
        calling("One moment.", ROOF),
        live_result(ROOF, roof),
    ]
    h.ask(23.8, after, Spent(886, 173, 9), found3)
    h.add(answer_row(25.4, found3))
    h.turn_ended(25.5, 2, len(found3))

    ask4, found4 = "Good. Where do the seedlings go?", "To the west bench, it is the warmest."
    h.turn(29.9, 8, ask4)
    h.add(user_row(30.0, ask4))
    h.ask(30.1, [*after, answer(found3), user(ask4)], Spent(917, 885, 9), found4)
    h.add(answer_row(31.7, found4))
    h.turn_ended(31.8, 1, len(found4))
    h.write(case)


def rotation(case: Path) -> None:
    """The same pressure with ``in_place: false``: the compacted list goes to a child session, the parent keeps its rows."""
    parent = Session("20260201_090000_0a7a70")
    h = home(parent, 1000, 256, in_place=False, protect_first_n=1, protect_last_n=2)
    ask1, ask2 = "Did the heater run last night?", "Is the west warm enough for basil?"
    east, west = readings("östlich", 9, 44), readings("west", 14, 30)
    found1, found2 = "Yes, the readings jump after four.", "Just about: it keeps fourteen degrees."
    h.process(0.1)
    h.turn(0.9, 0, ask1)
    q1 = user_row(1.0, ask1)
    h.add(q1)
    turn1 = [user(ask1), calling("", EAST), live_result(EAST, east)]
    h.ask(1.1, turn1[:1], Spent(181, 0, 22), "", EAST)
    h.add(calling_row(2.7, "", EAST), tool_row(2.8, EAST, east))
    h.ask(2.9, turn1, Spent(796, 181, 9), found1)
    h.add(answer_row(4.5, found1))
    h.turn_ended(4.6, 2, len(found1))

    h.turn(9.9, 4, ask2)
    q2, t2, r2 = user_row(10.0, ask2), calling_row(11.7, "", WEST), tool_row(11.8, WEST, west)
    h.add(q2)
    h.ask(10.1, [*turn1, answer(found1), user(ask2)], Spent(825, 795, 20), "", WEST)
    h.add(t2, r2)

    summary = "The user asked whether the heater ran. It did, after four in the morning."
    marker = batch_marker(summary)
    h.note(
        11.9,
        COMPRESSOR,
        f"context compression started: session={parent.id} messages=7 tokens=~1,240 model=fern-mini focus=None",
        named=False,
    )
    h.side(12.0, "compression", batch_request(f"{east}\n{found1}"), Spent(590, 0, 18), summary)
    parent.ended, parent.end_reason = 13.5, "compression"
    child = Session("20260201_090013_c41d71", started=13.5, parent=parent.id)
    h.sessions.append(child)
    h.add(q1, answer_row(13.6, marker, None), q2, t2, r2)
    h.note(
        13.7,
        COMPRESSOR,
        f"context compression done: session={child.id} messages=7->5 rough_tokens=~700 awaiting_real_usage=true",
        named=False,
    )
    after = [user(ask1), answer(marker), user(ask2), calling("", WEST), live_result(WEST, west)]
    h.ask(13.8, after, Spent(712, 187, 10), found2)
    h.add(answer_row(15.4, found2))
    h.turn_ended(15.5, 2, len(found2))

    ask3, found3 = "Then I will sow it today.", "Cover the tray for the first week."
    h.turn(19.9, 6, ask3)
    h.add(user_row(20.0, ask3))
    h.ask(20.1, [*after, answer(found2), user(ask3)], Spent(740, 711, 9), found3)
    h.add(answer_row(21.7, found3))
    h.turn_ended(21.8, 1, len(found3))
    h.write(case)


def tail_tool_call_lost(case: Path) -> None:
    """The last reply brings its text and a diary call at once; the row keeps the call and an empty content."""
    h = home(Session("20260201_090000_7a1105"), 131072, 8192)
    ask1, east = "Should I water the ferns?", readings("östlich", 18, 8)
    found1 = "Not yet, the air is humid enough."
    h.process(0.1)
    h.turn(0.9, 0, ask1)
    h.add(user_row(1.0, ask1))
    turn1 = [user(ask1), calling("", EAST), live_result(EAST, east)]
    h.ask(1.1, turn1[:1], Spent(181, 0, 22), "", EAST)
    h.add(calling_row(2.7, "", EAST), tool_row(2.8, EAST, east))
    h.ask(2.9, turn1, Spent(364, 181, 9), found1)
    h.add(answer_row(4.5, found1))
    h.turn_ended(4.6, 2, len(found1))

    ask2, west = "And the west side? Please keep a note.", readings("west", 21, 8)
    told = "Water the west side this evening: it is three degrees warmer and much drier there."
    diary = Call("call_diary04", "diary", '{"line": "water west tonight"}', '{"line":"water west tonight"}')
    h.turn(9.9, 4, ask2)
    h.add(user_row(10.0, ask2))
    turn2 = [*turn1, answer(found1), user(ask2)]
    h.ask(10.1, turn2, Spent(396, 363, 20), "", WEST)
    h.add(calling_row(11.7, "", WEST), tool_row(11.8, WEST, west))
    h.ask(11.9, [*turn2, calling("", WEST), live_result(WEST, west)], Spent(572, 396, 39), told, diary)
    h.add(calling_row(13.5, "", diary))
    h.turn_ended(13.6, 2, len(told))
    h.write(case)


CASES = (sidecar_differs, batch_compaction, rotation, tail_tool_call_lost)
