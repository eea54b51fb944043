"""OpenAI: prefixes that stayed whole and were not read (reference §3.2, §3.3, §3.4, §12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.planted.changes import Family, tool_added
from tests.planted.dialects import JSON, first_words
from tests.planted.families import gpt54_chat, gpt54_responses, gpt55, gpt56_chat, gpt56_responses
from tests.planted.pieces import Counted
from tests.planted.shapes import ANY, LIKELY, SURE, UNSURE, Transition
from tests.planted.texts import TOOLS, prose, system_text

_ELSEWHERE = frozenset({"cold", "break"})
"""Also right where nothing is shared with what was before: the reference calls that neither a miss nor a break."""
_NEW = (("gpt-5.6/responses", gpt56_responses), ("gpt-5.6/chat", gpt56_chat))
_OLD = (("gpt-5.5/responses", gpt55), ("gpt-5.4/chat", gpt54_chat), ("gpt-5.4/responses", gpt54_responses))


def transitions() -> Iterator[Transition]:
    for prefix, family in _NEW:
        yield from _new_gaps(prefix, family)
        yield _extended(prefix, family)
        yield _key(prefix, family)
        yield _evicted(prefix, family, SURE)
        yield _retry(prefix, family)
    for prefix, family in _OLD:
        yield _evicted(prefix, family, LIKELY)
        yield _retry(prefix, family)
        yield _subagent(prefix, family)
        yield _first(prefix, family)
    yield from _old_gaps()
    yield from _short()
    yield _not_ready()
    yield from _explicit()
    yield _lookback()
    yield from _diagnostics()
    yield _counts_too_much()
    yield _reads_too_much()
    yield _organisation()
    yield _old_key()
    yield _too_fast()
    yield _one_interval()
    yield _head_only()


def _first(prefix: str, family: Family) -> Transition:
    tape = family()
    tape.note(tape.cold(tape.ask(tape.opening())))
    return tape.done(f"{prefix}/first_call_cold", "§12 C01: no earlier call")


def _new_gaps(prefix: str, family: Family) -> Iterator[Transition]:
    for name, gap in (("ttl_expired", 40_000.0), ("ttl_alive", 1500.0)):
        tape = family()
        body = tape.begin()
        call = tape.ask(body, after=gap)
        tape.note(tape.missed(call, "ttl_expired") if gap > 1800 else tape.warm(call, 3))
        yield tape.done(f"{prefix}/{name}", "§3.2: 30m is the least life, from last write or reuse")


def _extended(prefix: str, family: Family) -> Transition:
    """The last message is sent again with more behind its text: its end, where the entry stood, is inside it now."""
    tape = family()
    tape.begin()
    body = tape.calls[-1].body
    message = tape.dialect.messages(body)[tape.dialect.at(4)]
    tape.dialect.set_text(message, prose("main user 1", 1400) + " And look at the lanterns, too.")
    call = tape.ask(body, turn=3)
    assert 0 < call.counted.read < tape.calls[2].counted.kept
    tape.note(tape.missed(call, "boundary_not_preserved", also=frozenset({"break"})))
    return tape.done(f"{prefix}/boundary_not_preserved", "§3.2: no hit when the same message is extended; §12 C28")


def _key(prefix: str, family: Family) -> Transition:
    tape = family()
    body = tape.begin(3, tape.opening() | {"prompt_cache_key": "pier-1"})
    call = tape.ask(body | {"prompt_cache_key": "pier-2"})
    assert call.counted.read == 0
    others = ("isolation_changed", "param_changed:prompt_cache_key")
    tape.note(tape.missed(call, "routing_changed", *others, also=_ELSEWHERE))
    return tape.done(f"{prefix}/key_changed", "§3.2: the key separates; §12 C23 names prompt_cache_key")


def _evicted(prefix: str, family: Family, confidence: frozenset[str]) -> Transition:
    tape = family()
    body = tape.begin()
    tape.rules.forget()
    call = tape.ask(body)
    others = () if confidence == SURE else ("routing_changed", "replica_routing")
    tape.note(tape.missed(call, "unexplained_miss", *others, confidence=confidence))
    return tape.done(f"{prefix}/unexplained_miss", "§12 C31; §3.4: before 5.6 misses with identical prefix are routing")


def _retry(prefix: str, family: Family) -> Transition:
    tape = family()
    body = tape.begin()
    call = tape.ask(body)
    again = tape.ask(body, after=8.0, turn=3)
    tape.note(tape.warm(call, 3), tape.warm(again, 4))
    return tape.done(f"{prefix}/retry_equal_bytes", "§3.2: the same prefix again")


def _subagent(prefix: str, family: Family) -> Transition:
    tape = family()
    body = tape.begin(2)
    sub = tape.dialect.opening(tape.model, system_text(seed="subagent"), TOOLS[2:], first_words("sub"))
    side = tape.ask(sub, after=3.0, turn=1, seed="sub")
    main = tape.ask(body, after=2.0, turn=2)
    last = tape.ask(tape.grown(main, 2), turn=3)
    tape.note(tape.cold(side), tape.warm(main, 2), tape.warm(last, 4))
    return tape.done(f"{prefix}/subagent_between", "§12: search all earlier calls, subagents interleave")


def _old_gaps() -> Iterator[Transition]:
    names = ("unexplained_miss", "routing_changed")
    for prefix, family, retention, gap, sure in (
        ("gpt-5.5/responses", gpt55, "24h", 100_000.0, True),
        ("gpt-5.4/chat", gpt54_chat, "in_memory", 7500.0, True),
        ("gpt-5.4/responses", gpt54_responses, "in_memory", 9000.0, True),
        ("gpt-5.5/responses", gpt55, "24h", 11_000.0, False),
    ):
        tape = family()
        body = tape.begin(3, tape.opening() | {"prompt_cache_retention": retention})
        tape.rules.forget()
        call = tape.ask(body, after=gap)
        allowed = SURE | LIKELY if sure else LIKELY
        tape.note(tape.missed(call, "ttl_expired", *(() if sure else names), confidence=allowed))
        stands_on = "§1, §3.2: in_memory ends after 3600 s, 24h after 86400 s, typically after 1800 s"
        yield tape.done(f"{prefix}/ttl_{'expired' if sure else 'maybe_expired'}", stands_on)


def _short() -> Iterator[Transition]:
    for prefix, family in (*_NEW, _OLD[1]):
        tape = family()
        body = tape.dialect.opening(tape.model, prose("short rules", 500), TOOLS[:1], prose("short wish", 300))
        first = tape.ask(body)
        call = tape.ask(tape.dialect.grow(body, first.answer, prose("short result", 500)))
        assert call.counted.read == 0
        assert call.counted.total < 1024
        tape.note(tape.cold(call, "below_minimum"))
        yield tape.done(f"{prefix}/below_minimum", "§1: 1024 visible tokens")


def _not_ready() -> Transition:
    tape = gpt56_responses()
    first = tape.ask(tape.opening(), wait=5.0, takes=9.0)
    tape.note(tape.cold(first))
    body = tape.opening()
    body["input"].append(tape.dialect.user(prose("twin", 300)))
    call = tape.ask(body, after=1.0, wait=5.0)
    assert call.counted.read == 0
    also = frozenset({"unknown"})
    tape.note(tape.missed(call, "concurrency_not_ready", "unexplained_miss", confidence=SURE | LIKELY, also=also))
    return tape.done("gpt-5.6/responses/concurrency_not_ready", "§12 C26: OpenAI [I]")


def _explicit() -> Iterator[Transition]:
    marked: JSON = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    for name, cause, others in (
        ("explicit_only", "boundary_not_preserved", ("breakpoint_moved", "breakpoint_missing")),
        ("explicit_unmarked", "breakpoint_missing", ("boundary_not_preserved",)),
    ):
        tape = gpt56_responses()
        body = tape.begin(2) | {"prompt_cache_options": {"mode": "explicit"}}
        if name == "explicit_only":
            body["input"][-1]["content"][-1] |= marked
        call = tape.ask(body, turn=2)
        assert call.counted.read == 0
        tape.note(tape.missed(call, cause, *others))
        yield tape.done(
            f"gpt-5.6/responses/{name}", "§3.2: implicit to explicit-only is no hit; explicit without bp caches nothing"
        )
    tape = gpt56_responses()
    opening = tape.opening() | {"prompt_cache_options": {"mode": "explicit"}}
    opening["input"][0]["content"][0] |= marked
    body = tape.begin(3, opening)
    call = tape.ask(body)
    tape.note(tape.warm(call, 3))
    yield tape.done(
        "gpt-5.6/responses/explicit_mark_kept", "§3.2: an explicit bp is read again; text behind it never was"
    )


def _lookback() -> Transition:
    """Ninety short exchanges come between two calls: more than either window of the reference."""
    tape = gpt56_responses()
    tape.begin(2)
    last = tape.calls[-1]
    body = tape.grown(last, 1)
    for number in range(90):
        body["input"] += [tape.dialect.assistant(f"Pier {number}?"), tape.dialect.user(f"Yes, pier {number}.")]
    call = tape.ask(body, turn=2)
    assert call.counted.read == 0
    tape.note(tape.missed(call, "lookback_exceeded", confidence=SURE | LIKELY))
    return tape.done(
        "gpt-5.6/responses/lookback_exceeded", "§3.2: 20 earlier message ends (guide), latest 80 (SDK); C22"
    )


def _diagnostics() -> Iterator[Transition]:
    for name, told, changes, evicts, expected in (
        (
            "agrees",
            {"type": "cache_miss", "reason": "tools_changed"},
            True,
            False,
            ("break", "tool_added", {"confirmed"}),
        ),
        ("disagrees", {"type": "cache_miss", "reason": "verbosity_changed"}, True, False, ("break", "tool_added", ANY)),
        ("not_found", {"type": "comparison_response_not_found"}, True, False, ("break", "tool_added", SURE)),
        ("hit", {"type": "cache_hit"}, False, False, ("warm", None, ANY)),
        ("unavailable_and_evicted", {"type": "unavailable"}, False, True, ("miss", "unexplained_miss", SURE)),
    ):
        tape = gpt56_responses()
        body = tape.begin()
        if changes:
            tool_added(tape.dialect, body)
        if evicts:
            tape.rules.forget()
        body["prompt_cache_options"] = {"comparison_response_id": "resp_" + b"openai03main".hex()[:24]}
        counts = {"cache_missed_tokens": 3700} if told["type"] == "cache_miss" else {}
        call = tape.ask(body, extra={"prompt_cache_diagnostics": told | counts})
        verdict, cause, confidence = expected
        if verdict == "warm":
            tape.note(tape.warm(call, 3))
        elif verdict == "miss":
            tape.note(tape.missed(call, cause, confidence=frozenset(confidence)))
        else:
            tape.note(tape.broken(call, cause, "/tools/2", confidence=frozenset(confidence)))
        yield tape.done(
            f"gpt-5.6/responses/diagnostics_{name}", "§3.3: prompt_cache_diagnostics; §0.2 evidence, not truth"
        )


def _counts_too_much() -> Transition:
    tape = gpt56_chat()
    body = tape.begin()
    before = tape.calls[-1].counted.kept
    call = tape.ask(body, usage=lambda c: Counted(c.total, before, c.total - 200, 0, c.out))
    tape.note(tape.warm(call, 3))
    return tape.done("gpt-5.6/chat/counts_too_much", "§3.4: clamp and warn when cached+write > input")


def _reads_too_much() -> Transition:
    tape = gpt56_responses()
    body = tape.begin()
    tool_added(tape.dialect, body)
    before = tape.calls[-1].counted.kept
    call = tape.ask(body, usage=lambda c: Counted(c.total, before, c.total - before, 0, c.out))
    told = tape.broken(call, "tool_added", "/tools/2", confidence=LIKELY | UNSURE)
    tape.note(replace(told, expected_read=0, lost=0))
    return tape.done("gpt-5.6/responses/read_contradicts_bytes", "§12: got > exp: lower confidence")


def _organisation() -> Transition:
    tape = gpt56_responses()
    tape.headers = {"openai-organization": "org-blue"}
    body = tape.begin()
    tape.rules.forget()
    call = tape.ask(body, headers={"openai-organization": "org-green"})
    tape.note(tape.missed(call, "isolation_changed", also=_ELSEWHERE))
    return tape.done("gpt-5.6/responses/isolation_changed", "§1: isolated by organisation; §12 C29")


def _old_key() -> Transition:
    tape = gpt54_chat()
    body = tape.begin(3, tape.opening() | {"prompt_cache_key": "pier-1"})
    tape.rules.forget()
    call = tape.ask(body | {"prompt_cache_key": "pier-2"})
    tape.note(tape.missed(call, "routing_changed", "unexplained_miss", confidence=SURE | LIKELY))
    return tape.done("gpt-5.4/chat/key_changed", "§3.2: the key is a routing aid; §12 C23")


def _too_fast() -> Transition:
    """Eighteen calls in forty seconds with one key; the last one went elsewhere."""
    tape = gpt54_chat()
    body = tape.begin(18, tape.opening() | {"prompt_cache_key": "pier-1"}, after=2.2, wait=0.4, takes=1.5)
    tape.rules.forget()
    call = tape.ask(body, after=2.2)
    names = ("unexplained_miss", "replica_routing")
    tape.note(tape.missed(call, "routing_changed", *names, confidence=SURE | LIKELY))
    return tape.done("gpt-5.4/chat/too_many_a_minute", "§3.2: more than 15 a minute and key overflow; §12 C23")


def _one_interval() -> Transition:
    tape = gpt54_chat()
    body = tape.begin()
    call = tape.ask(body, usage=lambda c: replace(c, read=c.read - 128))
    tape.note(tape.warm(call, 3))
    return tape.done("gpt-5.4/chat/one_interval_short", "§3.4: one interval of slack; §12 tolerance 128 before 5.5")


def _head_only() -> Transition:
    tape = gpt56_responses()
    tape.begin(2)
    call = tape.ask(tape.opening("other task"), turn=0, seed="other task")
    told = tape.cold(call)
    tape.note(replace(told, also=frozenset({"warm"})))
    return tape.done(
        "gpt-5.6/responses/shares_head_only", "DESIGN 2: another task that shares only the head is no break"
    )
