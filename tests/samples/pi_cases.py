"""The pi samples: what each session says, what its log keeps, what crossed the wire."""

from __future__ import annotations

from pathlib import Path

from tests.samples.pi_form import (
    THINKING_LOW,
    THINKING_OFF,
    Say,
    SessionFile,
    Think,
    Tokens,
    Use,
    assistant,
    body,
    recording,
    reply,
    results,
    user,
    write_home,
)
from tests.samples.pi_texts import (
    CWD,
    SECTIONS,
    SYSTEM,
    TOOLS_LOGGED,
    TOOLS_SERVED,
    TOOLS_SERVED_REORDERED,
    levels,
)

SIGNATURES = ("dGlkZS0x" * 12, "dGlkZS0y" * 12, "dGlkZS0z" * 12)
"""Opaque reasoning bytes; base64 of nothing in particular."""


def clean_append(case: Path) -> None:
    """Three turns with thinking, two parallel tool calls and characters beyond ASCII; each call extends the last."""
    log = SessionFile("019c186e-2e80-7a01-8c11-5b2f0e9d4a31", CWD, "low")
    log.start(("a1c20f01", "a1c20f02", "a1c20f03"), SECTIONS, TOOLS_LOGGED)
    wire = recording()
    limits = {"max_tokens": 16000, "thinking": THINKING_LOW}

    ask = "When is high water at the north mole today? The sign says «Hochwasser 6 Uhr»."
    first = [
        Think("Both the gauge and the log may know.", SIGNATURES[0]),
        Say("I will look at both."),
        Use("toolu_clean01", "gauge", '{"station": "north-mole", "day": "2026-02-01"}'),
        Use("toolu_clean02", "grep_log", '{"pattern": "high water", "limit": 3}'),
    ]
    readings, found = levels(140, 60), "tides/2026-02.md:4: high water 06:10 — 251 cm\n"
    log.user("a1c20f04", 1.0, ask)
    messages = [user(ask)]
    tokens = Tokens(0, 366, 96, 11)
    wire.add(1.02, body(messages, SYSTEM, TOOLS_SERVED, **limits), reply("msg_clean01", first, tokens, "tool_use"))
    log.answer("a1c20f05", 2.5, first, tokens, response="msg_clean01", stop="tool_use")
    log.result("a1c20f06", 2.6, first[2], readings)
    log.result("a1c20f07", 2.61, first[3], found)

    second = [Think("The log is clear.", SIGNATURES[1]), Say("High water is at 06:10 with 251 cm (tides/2026-02.md).")]
    messages += [assistant(*first), results(("toolu_clean01", readings), ("toolu_clean02", found))]
    tokens = Tokens(366, 1199, 31, 5)
    wire.add(2.65, body(messages, SYSTEM, TOOLS_SERVED, **limits), reply("msg_clean02", second, tokens, "end_turn"))
    log.answer("a1c20f08", 4.1, second, tokens, response="msg_clean02", stop="end_turn")

    ask = "Danke! Please note that down 🌊."
    third = [Use("toolu_clean03", "jot", '{"line": "high water 06:10, 251 cm — confirmed ✓"}')]
    log.user("a1c20f09", 9.0, ask)
    messages += [assistant(*second), user(ask)]
    tokens = Tokens(1565, 136, 40)
    wire.add(9.02, body(messages, SYSTEM, TOOLS_SERVED, **limits), reply("msg_clean03", third, tokens, "tool_use"))
    log.answer("a1c20f0a", 10.5, third, tokens, response="msg_clean03", stop="tool_use")
    log.result("a1c20f0b", 10.6, third[0], "1 line added")

    fourth = [Say("Noted on today's page.")]
    messages += [assistant(*third), results(("toolu_clean03", "1 line added"))]
    tokens = Tokens(1701, 78, 8)
    wire.add(10.64, body(messages, SYSTEM, TOOLS_SERVED, **limits), reply("msg_clean04", fourth, tokens, "end_turn"))
    log.answer("a1c20f0c", 12.1, fourth, tokens, response="msg_clean04", stop="end_turn")

    write_home(case / "log", 16000, "low")
    log.write(case / "log")
    wire.write(case / "wire")


def tool_keys_reordered(case: Path) -> None:
    """The third request spells ``grep_log``'s two properties in the other order; the log knows only the first order."""
    log = SessionFile("019c186e-2e80-7a02-9d22-6c301fae5b42", CWD, "off")
    log.start(("b2d31001", "b2d31002", "b2d31003"), SECTIONS, TOOLS_LOGGED)
    wire = recording()
    limits = {"max_tokens": 16000, "thinking": THINKING_OFF}

    ask, readings = "Give me the morning levels at the south pier.", levels(121, 90)
    first = [Use("toolu_keys01", "gauge", '{"station": "south-pier", "day": "2026-02-01"}')]
    log.user("b2d31004", 1.0, ask)
    messages = [user(ask)]
    tokens = Tokens(0, 354, 44)
    wire.add(1.02, body(messages, SYSTEM, TOOLS_SERVED, **limits), reply("msg_keys01", first, tokens, "tool_use"))
    log.answer("b2d31005", 2.5, first, tokens, response="msg_keys01", stop="tool_use")
    log.result("b2d31006", 2.6, first[0], readings)

    second = [Say("The level falls from 121 cm until about eight and rises again before noon.")]
    messages += [assistant(*first), results(("toolu_keys01", readings))]
    tokens = Tokens(354, 1514, 22)
    wire.add(2.65, body(messages, SYSTEM, TOOLS_SERVED, **limits), reply("msg_keys02", second, tokens, "end_turn"))
    log.answer("b2d31007", 4.1, second, tokens, response="msg_keys02", stop="end_turn")

    ask = "Is that unusual for February?"
    third = [Say("No, the log shows the same curve in earlier years.")]
    log.user("b2d31008", 20.0, ask)
    messages += [assistant(*second), user(ask)]
    tokens = Tokens(0, 1920, 14)
    changed = body(messages, SYSTEM, TOOLS_SERVED_REORDERED, **limits)
    wire.add(20.02, changed, reply("msg_keys03", third, tokens, "end_turn"))
    log.answer("b2d31009", 21.5, third, tokens, response="msg_keys03", stop="end_turn")

    write_home(case / "log", 16000, "off")
    log.write(case / "log")
    wire.write(case / "wire")


def clock_in_system(case: Path) -> None:
    """An extension puts the time of day into the system prompt at each call; pi logged the prompt of the first one."""

    def clock(time: str) -> str:
        return (
            f"<project_context>\nHarbour office. Local time: {time}. Ask before you close a gate.\n</project_context>"
        )

    def system(time: str) -> str:
        return SYSTEM.replace("<cwd>", clock(time) + "\n\n<cwd>")

    log = SessionFile("019c186e-2e80-7a03-ae33-7d4120bf6c53", CWD, "off")
    sections = {k: SECTIONS[k] for k in ("preamble", "tools", "rules")}
    sections |= {"project_context": clock("09:00:01"), "cwd": SECTIONS["cwd"]}
    log.start(("c3e42101", "c3e42102", "c3e42103"), sections, TOOLS_LOGGED)
    wire = recording()
    limits = {"max_tokens": 16000, "thinking": THINKING_OFF}

    ask, readings = "Can the ferry pass gate 2 within the hour?", levels(160, 90)
    first = [Say("Let me read the gauge."), Use("toolu_clock01", "gauge", '{"station": "gate-2", "day": "2026-02-01"}')]
    log.user("c3e42104", 1.0, ask)
    messages = [user(ask)]
    tokens = Tokens(0, 385, 52)
    sent = body(messages, system("09:00:01"), TOOLS_SERVED, **limits)
    wire.add(1.02, sent, reply("msg_clock01", first, tokens, "tool_use"))
    log.answer("c3e42105", 2.5, first, tokens, response="msg_clock01", stop="tool_use")
    log.result("c3e42106", 2.6, first[1], readings)

    second = [Say("Yes, the gate has 160 cm and the level is rising.")]
    messages += [assistant(*first), results(("toolu_clock01", readings))]
    tokens = Tokens(232, 1679, 16)
    sent = body(messages, system("09:00:02"), TOOLS_SERVED, **limits)
    wire.add(2.65, sent, reply("msg_clock02", second, tokens, "end_turn"))
    log.answer("c3e42107", 4.1, second, tokens, response="msg_clock02", stop="end_turn")

    ask = "And the evening one?"
    third = [Say("That one too, with 40 cm to spare.")]
    log.user("c3e42108", 30.0, ask)
    messages += [assistant(*second), user(ask)]
    tokens = Tokens(232, 1728, 13)
    sent = body(messages, system("09:00:30"), TOOLS_SERVED, **limits)
    wire.add(30.02, sent, reply("msg_clock03", third, tokens, "end_turn"))
    log.answer("c3e42109", 31.5, third, tokens, response="msg_clock03", stop="end_turn")

    write_home(case / "log", 16000, "off")
    log.write(case / "log")
    wire.write(case / "wire")


def reply_cut_4096(case: Path) -> None:
    """A long table stops at the cap of 4096 tokens; pi 1.6 edits the cut answer out of the context and goes on."""
    log = SessionFile("019c186e-2e80-7a04-bf44-8e5231c07d64", CWD, "off")
    log.start(("d4f53201", "d4f53202", "d4f53203"), SECTIONS, TOOLS_LOGGED)
    wire = recording()
    limits = {"max_tokens": 4096, "thinking": THINKING_OFF}

    ask = "Print a correction table: number, square, cube, from 1 to 1000."
    rows = [f"{k} {k * k} {k * k * k}" for k in range(1, 471)]
    first = [Say("\n".join(rows) + "\n471 221")]
    log.user("d4f53204", 1.0, ask)
    tokens = Tokens(0, 363, 4096)
    sent = body([user(ask)], SYSTEM, TOOLS_SERVED, **limits)
    wire.add(1.02, sent, reply("msg_cut01", first, tokens, "max_tokens"), took=60.0)
    log.answer("d4f53205", 61.1, first, tokens, response="msg_cut01", stop="max_tokens")
    log.entry("context_edit", "d4f53206", 61.1, targetId="d4f53205", replacement=None)

    again = "It ends in the middle of a line. Only up to 5 then."
    second = [Say("1 1 1\n2 4 8\n3 9 27\n4 16 64\n5 25 125")]
    log.user("d4f53207", 90.0, again)
    tokens = Tokens(363, 31, 30)
    sent = body([user(ask), user(again)], SYSTEM, TOOLS_SERVED, **limits)
    wire.add(90.02, sent, reply("msg_cut02", second, tokens, "end_turn"))
    log.answer("d4f53208", 91.5, second, tokens, response="msg_cut02", stop="end_turn")

    write_home(case / "log", 4096, "off")
    log.write(case / "log")
    wire.write(case / "wire")


def two_recordings(case: Path) -> None:
    """The tee was stopped and started again in the middle of one session: its numbers begin anew."""
    log = SessionFile("019c186e-2e80-7a05-8055-9f6342d18e75", CWD, "off")
    log.start(("e5064301", "e5064302", "e5064303"), SECTIONS, TOOLS_LOGGED)
    before, after = recording(), recording()
    limits = {"max_tokens": 16000, "thinking": THINKING_OFF}

    ask, found = "Who wrote the last entry?", "tides/2026-01.md:88: gate 3 greased (Ines)\n"
    first = [Use("toolu_twice01", "grep_log", '{"pattern": "greased", "limit": 1}')]
    log.user("e5064304", 1.0, ask)
    messages = [user(ask)]
    tokens = Tokens(0, 351, 41)
    before.add(1.02, body(messages, SYSTEM, TOOLS_SERVED, **limits), reply("msg_twice01", first, tokens, "tool_use"))
    log.answer("e5064305", 2.5, first, tokens, response="msg_twice01", stop="tool_use")
    log.result("e5064306", 2.6, first[0], found)

    second = [Say("Ines did: she greased gate 3 (tides/2026-01.md).")]
    messages += [assistant(*first), results(("toolu_twice01", found))]
    tokens = Tokens(351, 90, 17)
    before.add(2.65, body(messages, SYSTEM, TOOLS_SERVED, **limits), reply("msg_twice02", second, tokens, "end_turn"))
    log.answer("e5064307", 4.1, second, tokens, response="msg_twice02", stop="end_turn")

    ask = "Add that I checked it."
    third = [Use("toolu_twice02", "jot", '{"line": "gate 3 checked (Ada)"}')]
    log.user("e5064308", 70.0, ask)
    messages += [assistant(*second), user(ask)]
    tokens = Tokens(441, 56, 33)
    after.add(70.02, body(messages, SYSTEM, TOOLS_SERVED, **limits), reply("msg_twice03", third, tokens, "tool_use"))
    log.answer("e5064309", 71.5, third, tokens, response="msg_twice03", stop="tool_use")
    log.result("e506430a", 71.6, third[0], "1 line added")

    fourth = [Say("Done, under your name.")]
    messages += [assistant(*third), results(("toolu_twice02", "1 line added"))]
    tokens = Tokens(497, 74, 8)
    after.add(71.65, body(messages, SYSTEM, TOOLS_SERVED, **limits), reply("msg_twice04", fourth, tokens, "end_turn"))
    log.answer("e506430b", 73.1, fourth, tokens, response="msg_twice04", stop="end_turn")

    write_home(case / "log", 16000, "off")
    log.write(case / "log")
    before.write(case / "rec_a" / "wire")
    after.write(case / "rec_b" / "wire")


def two_sessions_one_recording(case: Path) -> None:
    """Two pi processes behind one tee; their calls alternate and share nothing but the head."""
    mole = SessionFile("019c186e-2e80-7a06-9166-a07453e29f86", CWD, "off")
    pier = SessionFile("019c186e-39d8-7a07-a277-b18564f3a097", CWD, "off", opened=2.9)
    mole.start(("f6175401", "f6175402", "f6175403"), SECTIONS, TOOLS_LOGGED)
    wire = recording()
    limits = {"max_tokens": 16000, "thinking": THINKING_OFF}

    ask, readings = "Level at the north mole now?", levels(133, 6)
    mole_first = [Use("toolu_mole01", "gauge", '{"station": "north-mole", "day": "2026-02-01"}')]
    mole.user("f6175404", 1.0, ask)
    mole_messages = [user(ask)]
    tokens = Tokens(0, 352, 44)
    sent = body(mole_messages, SYSTEM, TOOLS_SERVED, **limits)
    wire.add(1.02, sent, reply("msg_mole01", mole_first, tokens, "tool_use"))
    mole.answer("f6175405", 2.5, mole_first, tokens, response="msg_mole01", stop="tool_use")
    mole.result("f6175406", 6.0, mole_first[0], readings)

    pier.start(("07286501", "07286502", "07286503"), SECTIONS, TOOLS_LOGGED)
    ask, found = "Any note about the south pier crane?", "tides/2026-01.md:61: crane locked\n"
    pier_first = [Use("toolu_pier01", "grep_log", '{"pattern": "crane", "limit": 5}')]
    pier.user("07286504", 4.0, ask)
    pier_messages = [user(ask)]
    tokens = Tokens(322, 31, 39)
    sent = body(pier_messages, SYSTEM, TOOLS_SERVED, **limits)
    wire.add(4.02, sent, reply("msg_pier01", pier_first, tokens, "tool_use"))
    pier.answer("07286505", 5.5, pier_first, tokens, response="msg_pier01", stop="tool_use")
    pier.result("07286506", 7.5, pier_first[0], found)

    mole_second = [Say("133 cm, falling.")]
    mole_messages += [assistant(*mole_first), results(("toolu_mole01", readings))]
    tokens = Tokens(352, 171, 7)
    sent = body(mole_messages, SYSTEM, TOOLS_SERVED, **limits)
    wire.add(6.05, sent, reply("msg_mole02", mole_second, tokens, "end_turn"))
    mole.answer("f6175407", 7.5, mole_second, tokens, response="msg_mole02", stop="end_turn")

    pier_second = [Say("Yes: it has been locked since January (tides/2026-01.md).")]
    pier_messages += [assistant(*pier_first), results(("toolu_pier01", found))]
    tokens = Tokens(353, 83, 18)
    sent = body(pier_messages, SYSTEM, TOOLS_SERVED, **limits)
    wire.add(7.55, sent, reply("msg_pier02", pier_second, tokens, "end_turn"))
    pier.answer("07286507", 9.0, pier_second, tokens, response="msg_pier02", stop="end_turn")

    write_home(case / "log", 16000, "off")
    mole.write(case / "log")
    pier.write(case / "log")
    wire.write(case / "wire")


CASES = (clean_append, tool_keys_reordered, clock_in_system, reply_cut_4096, two_recordings, two_sessions_one_recording)
