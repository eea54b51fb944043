"""The Codex samples: what each session says, what its rollout keeps, what crossed the wire."""

from __future__ import annotations

from pathlib import Path

from tests.samples.codex_form import (
    Session,
    Tokens,
    given,
    prompt,
    recording,
    reply,
    say,
    summarized,
    think,
    use,
    uuid7,
    uuid_of,
    write_config,
)
from tests.samples.codex_texts import GIVEN, table

ENVELOPES = ("Z3JlZW4tMQ" * 90, "Z3JlZW4tMg" * 90, "Z3JlZW4tMw" * 90)
"""Opaque reasoning bytes; base64 of nothing in particular."""


def local_compaction(case: Path) -> None:
    """Two turns by two processes; in the second one the history is compacted before the tool's answer is sent.

    The rollout holds a summary as a message right before the compaction, and base instructions of which two sections
    are not sent. Metadata comes in another order in each request.
    """
    log, wire = Session(uuid7(0, 1)), recording()
    wire.headers |= log.headers()
    log.meta(0.0)
    log.begin(0.1, uuid7(0.1, 2))
    log.settings(0.15)
    log.user(0.2, "How warm are the beds? Only the ones above 24 °C — danke ☀")
    look = [
        think(1, "The sensors know.", ENVELOPES[0]),
        say(2, "I read the sensors."),
        use(3, "exec_command", '{"cmd": "sensors --all"}'),
    ]
    tokens = Tokens(1210, 0, 40, 9)
    wire.add(0.3, log.body(), reply("resp_gh01", look, tokens))
    log.answer(1.8, "resp_gh01", look, tokens)
    log.output(1.9, look[2], table(24))
    told = [say(4, "Beds 02, 07, 11, 16 and 20 are above 24 °C; bed 11 is the warmest.")]
    tokens = Tokens(1980, 1208, 22)
    wire.add(2.0, log.body(), reply("resp_gh02", told, tokens))
    log.answer(3.5, "resp_gh02", told, tokens)
    log.end(3.6, told[0]["content"][0]["text"])

    log.settings(60.0)
    log.begin(60.1, uuid7(60.1, 5))
    log.user(60.2, "Open the vents of those five, one notch each.")
    move = [
        think(5, "One command does it.", ENVELOPES[1]),
        use(6, "exec_command", '{"cmd": "vents --open 02,07,11,16,20"}'),
    ]
    tokens = Tokens(52000, 1978, 31, 4)
    wire.add(60.3, log.body(), reply("resp_gh03", move, tokens))
    log.answer(61.8, "resp_gh03", move, tokens)
    log.output(61.9, move[1], "5 vents moved\n")

    before = log.history[:]
    words = "Asked: which beds are above 24 °C (02, 07, 11, 16, 20). Then: open their vents one notch; done, 5 moved."
    summary = [say(7, words)]
    tokens = Tokens(2100, 0, 35)
    wire.add(62.0, log.body(prompt(), summary=True), reply("resp_gh04", summary, tokens))
    log.answer(63.5, "resp_gh04", summary, tokens)
    passthrough = before[0].keys() - given("", "").keys()
    again = {k: {"turn_id": log.turn} for k in passthrough}
    kept = [
        before[2],
        {**given(uuid_of("msg", 63.5, 8), "developer", GIVEN[0]), **again},
        {**given(uuid_of("msg", 63.5, 9), "user", GIVEN[1]), **again},
        next(i for i in before[3:] if i.get("role") == "user"),
        {**given(uuid_of("msg", 63.5, 10), "user", summarized(words)), **again},
    ]
    log.compacted(63.6, summarized(words), kept, "resp_gh04")
    done = [say(8, "Done: five vents stand one notch further open.")]
    tokens = Tokens(1490, 620, 12)
    wire.add(63.7, log.body(), reply("resp_gh05", done, tokens))
    log.answer(65.2, "resp_gh05", done, tokens)
    log.end(65.3, done[0]["content"][0]["text"])

    write_config(case / "log", 50000)
    log.write(case / "log")
    wire.write(case / "wire")


CASES = (local_compaction,)
