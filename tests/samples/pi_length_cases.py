"""The pi sample whose estimate sees room where there is none: a text of few characters and many tokens."""

from __future__ import annotations

from pathlib import Path

from tests.samples.pi_form import (
    THINKING_OFF,
    Say,
    SessionFile,
    Tokens,
    Use,
    assistant,
    body,
    recording,
    reply,
    results,
    too_long,
    user,
    write_home,
)
from tests.samples.pi_texts import CWD, SECTIONS, SYSTEM, TOOLS_LOGGED, TOOLS_SERVED, braille

WINDOW, RESERVE, MOST = 14000, 5500, 4096
"""pi compacts above 8,500 tokens, by what the last answer reported and a quarter of the characters since."""


def refused_for_length(case: Path) -> None:
    """Braille is one character and two or three tokens a cell: within one turn the prompt outgrows its window unseen.

    pi asks whether to compact before an input and after a turn, not between a tool's result and the next request. The
    compaction it tries after the error finds nothing older than the 20,000 tokens it keeps, and is skipped silently.
    """
    log = SessionFile("019c186e-2e80-7a08-b388-c27569041ba8", CWD, "off")
    log.start(("a9b86001", "a9b86002", "a9b86003"), SECTIONS, TOOLS_LOGGED)
    wire = recording()

    ask = "Both Braille sheets of the tide table were typed by hand. Where do they differ from the log?"
    first = [Say("I start with sheet 1."), Use("toolu_long01", "grep_log", '{"pattern": "braille/1"}')]
    sheet = braille(1, 52)
    log.user("a9b86004", 1.0, ask)
    messages, tokens = [user(ask)], Tokens(0, 361, 71)
    limits = {"max_tokens": MOST, "thinking": THINKING_OFF}
    wire.add(1.02, body(messages, SYSTEM, TOOLS_SERVED, **limits), reply("msg_long01", first, tokens, "tool_use"))
    log.answer("a9b86005", 2.5, first, tokens, response="msg_long01", stop="tool_use")
    log.result("a9b86006", 2.6, first[1], sheet)

    second = [
        Say("Sheet 1 agrees with the log. Now sheet 2."),
        Use("toolu_long02", "grep_log", '{"pattern": "braille/2"}'),
    ]
    other = braille(2, 34)
    messages += [assistant(*first), results(("toolu_long01", sheet))]
    tokens = Tokens(361, 8400, 75)
    wire.add(2.65, body(messages, SYSTEM, TOOLS_SERVED, **limits), reply("msg_long02", second, tokens, "tool_use"))
    log.answer("a9b86007", 4.1, second, tokens, response="msg_long02", stop="tool_use")
    log.result("a9b86008", 4.2, second[1], other)

    messages += [assistant(*second), results(("toolu_long02", other))]
    limits = {
        "max_tokens": 532,
        "thinking": THINKING_OFF,
    }  # what 14,000 - 9,372, the estimate for the cap, - 4,096 leaves
    error = too_long("req_long03", 14300, WINDOW)
    wire.add(4.25, body(messages, SYSTEM, TOOLS_SERVED, **limits), error, took=0.4, status=400)
    log.failed("a9b86009", 4.7, f"400 {error}")
    log.entry("context_edit", "a9b8600a", 4.7, targetId="a9b86009", replacement=None)

    compaction = {"enabled": True, "reserveTokens": RESERVE, "keepRecentTokens": 20000}
    write_home(case / "log", MOST, "off", window=WINDOW, compaction=compaction)
    log.write(case / "log")
    wire.write(case / "wire")


CASES = (refused_for_length,)
