"""Hosts nobody knows that speak Anthropic's or OpenAI's API: the bytes decide a break, little else can be known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.planted.changes import Family, changed, volatile
from tests.planted.families import stranger_chat, stranger_messages
from tests.planted.shapes import ANY, UNSURE, Transition

_OUT = (
    "tool_key_order",
    "compaction_users_kept",
    "system_grew",
    "tool_description",
    "history_rewritten_first",
    "message_removed",
)
"""Left out: visibility is not known there (§6), or shown elsewhere."""
_BOTH = (("third_party_messages", stranger_messages), ("third_party_chat", stranger_chat))
_WEAK = UNSURE | frozenset({"consistent"})


def transitions() -> Iterator[Transition]:
    for prefix, family in _BOTH:
        yield from changed(prefix, family, *_OUT)
        yield from volatile(prefix, family, "clock")
        yield _nothing_read(prefix, family, 20.0)
        yield _nothing_read(prefix, family, 2400.0)
        yield _append(prefix, family)
    yield _silent()
    yield _silent_break()


def _append(prefix: str, family: Family) -> Transition:
    tape = family()
    body = tape.begin()
    call = tape.ask(body)
    tape.note(tape.warm(call, 3))
    return tape.done(f"{prefix}/append", "DESIGN 2: warm is intact and read as expected")


def _nothing_read(prefix: str, family: Family, gap: float) -> Transition:
    """Intact, and nothing was read: whether a life ended, another server answered or it was evicted is not known."""
    tape = family()
    body = tape.begin()
    tape.rules.forget()
    call = tape.ask(body, after=gap)
    names = ("ttl_expired", "routing_changed", "unexplained_miss")
    told = tape.missed(call, None, *names, confidence=_WEAK)
    tape.note(told)
    return tape.done(f"{prefix}/nothing_read_after_{gap:.0f}s", "§1 has no row for it: ambiguous, all causes named")


def _silent() -> Transition:
    tape = stranger_chat(silent=True)
    body = tape.begin()
    call = tape.ask(body)
    tape.note(replace(tape.warm(call, 3), confidence=ANY))
    return tape.done("third_party_chat/not_reported_append", "DESIGN 2: warm, or not reported")


def _silent_break() -> Transition:
    tape = stranger_chat(silent=True)
    body = tape.begin()
    text = tape.dialect.system(body)
    tape.dialect.set_system(body, text.replace(". ", "; ", 1))
    call = tape.ask(body)
    tape.note(tape.broken(call, "system_changed", "/messages/0", confidence=_WEAK))
    return tape.done("third_party_chat/not_reported_system_changed", "§12 C03; nothing reported measures it")
