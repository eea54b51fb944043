"""Writes long sessions to disk, spelled by the samples' own writers, so that every call of theirs must be ``equal``."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.samples import hermes_form, hermes_texts
from tests.samples.pi_form import (
    THINKING_LOW,
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
from tests.samples.pi_texts import CWD, SECTIONS, SYSTEM, TOOLS_LOGGED, TOOLS_SERVED
from tests.samples.recording import compact

WORDS = [
    "gauge",
    "north",
    "mole",
    "tide",
    "water",
    "level",
    "harbour",
    "light",
    "fog",
    "keel",
    "anchor",
    "«Flut»",
    "spring",
    "neap",
    "rope",
    "chart",
    "buoy",
    "251",
    "cm",
]
CALLS_A_TURN = 10
LONG = 10_000
"""Longer texts repeat themselves: it takes too long to make them otherwise, and no log is read faster for it."""
CLOCK = "2026-02-01T09:00:00Z"


@dataclass(frozen=True)
class Step:
    """One model call: what is asked or returned to the model, and its answer."""

    n: int
    given: str
    """The user's text, or the tool's result."""
    opens_turn: bool
    parts: tuple[Think | Say | Use, ...]

    @property
    def stop(self) -> str:
        return "tool_use" if isinstance(self.parts[-1], Use) else "end_turn"


def steps(calls: int, text_bytes: int, seed: int = 7) -> Iterator[Step]:
    """``calls`` steps in turns of ten; each adds about ``text_bytes`` bytes of text to the conversation."""
    rng = random.Random(seed)
    for n in range(calls):
        place = n % CALLS_A_TURN
        given = _prose(rng, text_bytes if place else 60)
        if place == CALLS_A_TURN - 1:
            parts: tuple[Think | Say | Use, ...] = (Say(_prose(rng, 90)),)
        else:
            think = Think(_prose(rng, 60), f"{rng.getrandbits(480):0120x}")
            parts = (think, Use(f"toolu_b{n:06d}", "grep_log", compact({"pattern": _prose(rng, 20), "limit": n})))
        yield Step(n, given, place == 0, parts)


def write_session(
    case: Path, calls: int, text_bytes: int, *, wire: bool = True, clock: bool = False, compact_every: int = 0
) -> int:
    """A session of ``calls`` calls under ``case``; gives the bytes sent in all (0 without ``wire``).

    ``clock``: the system prompt served changes with each call, as a volatile prompt does. ``compact_every``: calls after
    which the history becomes a summary; only for a log ``wire`` does not show.
    """
    log = SessionFile("019c186e-2e80-7a01-8c11-5b2f0e9d4b0b", CWD, "low")
    log.start(("b0000001", "b0000002", "b0000003"), SECTIONS, TOOLS_LOGGED)
    writer = recording()
    folder = case / "wire"
    folder.mkdir(parents=True)
    sent, before = 0, None
    earlier = ""
    """The messages before the last one, each followed by a comma."""
    for step in steps(calls, text_bytes):
        at, response = 1.0 + 10 * step.n, f"msg_b{step.n:06d}"
        if compact_every and step.n and step.n % compact_every == 0:
            log.entry("compaction", f"d{step.n:07d}", at, summary="…", firstKeptEntryId="", tokensBefore=50 * step.n)
        last = _given(log, step, before, at)
        tokens = Tokens(50 * step.n, 50, 40, 5)  # far from the window, where the output cap shrinks
        log.answer(f"c{step.n:07d}", at + 2, list(step.parts), tokens, response=response, stop=step.stop)
        if wire:
            system = f"{SYSTEM}\nNow: {CLOCK[:-4]}{step.n:04d}" if clock else SYSTEM
            data = body([last], system, TOOLS_SERVED, max_tokens=16000, thinking=THINKING_LOW)
            data = data.replace('"messages":[', '"messages":[' + earlier, 1)
            n = writer.add(at + 0.02, data, reply(response, list(step.parts), tokens, step.stop))
            request, answer = writer.bodies.pop()
            (folder / f"{n:04d}.req").write_bytes(request)
            (folder / f"{n:04d}.res").write_bytes(answer)
            sent += len(request)
        earlier += f"{compact(last)},{compact(assistant(*step.parts))},"
        before = step
    if wire:
        (folder / "index.jsonl").write_text("".join(f"{line}\n" for line in writer.lines), encoding="utf-8")
    else:
        folder.rmdir()
    log.write(case / "home")
    write_home(case / "home", 16000, "low")
    return sent


def _given(log: SessionFile, step: Step, before: Step | None, at: float) -> dict[str, object]:
    """Log what a call is given, and its message."""
    if step.opens_turn or before is None:
        log.user(f"a{step.n:07d}", at, step.given)
        return user(step.given)
    use = before.parts[-1]
    assert isinstance(use, Use)
    log.result(f"a{step.n:07d}", at, use, step.given)
    return results((use.id, step.given))


def _prose(rng: random.Random, size: int) -> str:
    if size > LONG:
        part = _prose(rng, LONG)
        return (part * (size // LONG + 1))[:size]
    words: list[str] = []
    left = size
    while left > 0:
        words.append(rng.choice(WORDS))
        left -= len(words[-1]) + 1
    return " ".join(words)


def write_hermes_session(case: Path, calls: int, text_bytes: int) -> int:
    """The same conversation as ``write_session`` in a Hermes home on chat completions; gives the bytes sent in all."""
    home = hermes_form.Home(
        hermes_texts.PROMPT,
        hermes_texts.TOOLS,
        1_000_000,
        8192,
        {},
        [hermes_form.Session("20260201_090000_be4c40", title="A long watch")],
    )
    folder = case / "wire"
    folder.mkdir(parents=True)
    home.process(0.1)
    sent, messages, before = 0, [], None
    for step in steps(calls, text_bytes):
        at = 1.0 + 10 * step.n
        if step.opens_turn or before is None:
            home.turn(at - 0.1, len(messages), step.given[:20])
            home.add(hermes_form.user_row(at, step.given))
            messages.append(hermes_form.user(step.given))
        else:
            home.add(hermes_form.tool_row(at, before, step.given))
            messages.append(hermes_form.live_result(before, step.given))
        last = step.parts[-1]
        before = _hermes_call(last) if isinstance(last, Use) else None
        text = last.text if isinstance(last, Say) else ""
        spent = hermes_form.Spent(50 * step.n + 50, 50 * step.n, 40)
        home.ask(at + 0.1, messages, spent, text, before)
        request, answer = home.wire.bodies.pop()
        n = len(home.wire.lines)
        (folder / f"{n:04d}.req").write_bytes(request)
        (folder / f"{n:04d}.res").write_bytes(answer)
        sent += len(request)
        if before is None:
            home.add(hermes_form.answer_row(at + 1.7, text))
            messages.append(hermes_form.answer(text))
        else:
            home.add(hermes_form.calling_row(at + 1.7, text, before))
            messages.append(hermes_form.calling(text, before))
    home.write(case)
    return sent


def _hermes_call(use: Use) -> hermes_form.Call:
    resent = json.dumps(use.arguments, sort_keys=True, separators=(",", ":"))  # as it re-sends them, in ASCII
    return hermes_form.Call(use.id.replace("toolu_", "call_"), use.name, use.spelled, resent)
