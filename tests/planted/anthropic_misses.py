"""Anthropic's API: prefixes that stayed whole and were not read, and gaps that cost nothing (reference §2.3, §12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.planted.dialects import JSON
from tests.planted.families import anthropic
from tests.planted.messages_api import HOUR
from tests.planted.pieces import Counted
from tests.planted.shapes import LIKELY, UNSURE, Transition
from tests.planted.tape import Tape
from tests.planted.texts import TOOLS, prose, system_text


def transitions() -> Iterator[Transition]:
    yield _first()
    yield from _gaps()
    yield _mixed_lives()
    yield from _lookbacks()
    yield from _marks()
    yield from _minimums()
    yield _not_ready()
    yield from _workspaces()
    yield from _evictions()
    yield _retry()
    yield _overloaded()
    yield _subagent()
    yield _prewarmed()
    yield _too_much_read()


def _first() -> Transition:
    tape = anthropic()
    tape.note(tape.cold(tape.ask(tape.opening())))
    return tape.done("anthropic/first_call_cold", "§12 C01: no earlier call")


def _gaps() -> Iterator[Transition]:
    """Silence between the third call's start and the fourth's: seconds, the life asked for, whether it is over."""
    for name, gap, life, over, stands_on in (
        ("ttl_expired_5m", 460.0, None, True, "§2.3: 5m from the start of the request"),
        ("ttl_expired_1h", 4300.0, HOUR, True, "§2.3: 1h"),
        ("ttl_expired_night", 32_000.0, HOUR, True, "§2.3: 1h"),
        ("ttl_alive_1h", 2700.0, HOUR, False, "§2.3: a gap shorter than ttl:1h loses nothing"),
        ("ttl_alive_5m", 285.0, None, False, "§2.3: a gap shorter than 5m loses nothing"),
    ):
        tape = anthropic(head=life or {"type": "ephemeral"}, tail=life or {"type": "ephemeral"})
        body = tape.begin()
        call = tape.ask(body, after=gap)
        tape.note(tape.missed(call, "ttl_expired") if over else tape.warm(call, 3))
        yield tape.done(f"anthropic/{name}", stands_on)
    tape = anthropic()
    body = tape.begin(2)
    last = tape.ask(body, takes=230.0, wait=2.0)
    tape.note(tape.warm(last, 2))
    call = tape.ask(tape.grown(last, 2), after=355.0)
    tape.note(tape.missed(call, "ttl_expired"))
    yield tape.done("anthropic/ttl_generation_counts", "§2.3: measured from request start, so generation time counts")
    tape = anthropic()
    body = tape.begin()
    call = tape.ask(body, after=200.0)
    tape.note(tape.warm(call, 3))
    again = tape.ask(tape.grown(call, 3), after=200.0)
    tape.note(tape.warm(again, 4))
    yield tape.done("anthropic/ttl_refreshed", "§1: refresh yes: each use starts the life anew")
    tape = anthropic()
    tape.rules.grace = 30.0  # type: ignore[attr-defined]
    body = tape.begin()
    call = tape.ask(body, after=312.0)
    tape.note(tape.warm(call, 3))
    yield tape.done("anthropic/ttl_not_yet_deleted", "§2.3: deletion after TTL is prompt 'though not immediately'")


def _mixed_lives() -> Transition:
    tape = anthropic(head=HOUR)
    body = tape.begin()
    call = tape.ask(body, after=1500.0)
    assert 0 < call.counted.read < tape.calls[2].counted.kept
    tape.note(tape.missed(call, "ttl_expired"))
    return tape.done("anthropic/ttl_expired_in_part", "§2.3 TTL order: 1h entries outlive the 5m ones behind them")


def _attached(tape: Tape, count: int) -> JSON:
    """The second body: a plain answer, then words of the user in so many blocks."""
    first = tape.ask(tape.opening(), turn=1)
    tape.note(tape.cold(first))
    body = tape.grown(first, 1)
    body["messages"][-1]["content"] = [{"type": "text", "text": prose(f"file {i}", 240)} for i in range(count)]
    return tape.dialect.marked(body)


def _lookbacks() -> Iterator[Transition]:
    tape = anthropic()
    call = tape.ask(_attached(tape, 27))  # 28 blocks behind the first mark
    tape.note(tape.missed(call, "lookback_exceeded"))
    yield tape.done("anthropic/lookback_exceeded", "§2.3: 20 positions per breakpoint, counting the breakpoint itself")
    tape = anthropic()
    call = tape.ask(_attached(tape, 19))  # exactly 20 positions behind: the window ends one short of it
    tape.note(tape.missed(call, "lookback_exceeded"))
    yield tape.done("anthropic/lookback_by_one", "§2.3: write at 15, next bp at 35: window 35..16, a miss")
    tape = anthropic()
    call = tape.ask(_attached(tape, 18))
    tape.note(tape.warm(call, 1))
    yield tape.done("anthropic/lookback_reached", "§2.3: 19 positions behind is the last one in the window")
    tape = anthropic()
    body = _attached(tape, 27)
    body["messages"][2]["content"][10]["cache_control"] = {"type": "ephemeral"}
    call = tape.ask(body)
    tape.note(tape.warm(call, 1))
    yield tape.done("anthropic/lookback_second_mark", "§2.3: the next explicit bp starts its own window")


def _unmarked(body: JSON) -> JSON:
    for blocks in (body["system"], *(m["content"] for m in body["messages"])):
        for block in blocks:
            block.pop("cache_control", None)
    return body


def _marks() -> Iterator[Transition]:
    tape = anthropic()
    call = tape.ask(_unmarked(tape.begin()))
    tape.note(tape.missed(call, "breakpoint_missing"))
    yield tape.done("anthropic/breakpoint_missing", "§12 C21: no marker; §7 write>0 requires one")
    tape = anthropic()
    body = _unmarked(tape.begin())
    body["tools"][-1]["cache_control"] = {"type": "ephemeral"}
    call = tape.ask(body)
    tape.note(tape.missed(call, "breakpoint_moved", "breakpoint_missing"))
    yield tape.done("anthropic/breakpoint_moved", "§12 C21: fewer markers than before, none at or behind an entry")
    tape = anthropic()
    body = _unmarked(tape.begin())
    body["system"][-1]["cache_control"] = {"type": "ephemeral"}
    call = tape.ask(body)
    assert call.counted.read
    tape.note(tape.missed(call, "breakpoint_missing", "breakpoint_moved"))
    yield tape.done("anthropic/breakpoint_missing_in_part", "§12 C21: fewer markers than before; the head's is read")
    tape = anthropic(tail=None)
    body = tape.opening() | {"cache_control": {"type": "ephemeral"}}
    body = tape.begin(body=body)
    call = tape.ask(body)
    tape.note(tape.warm(call, 3))
    yield tape.done("anthropic/automatic_mark", "§2.3: top-level automatic caching marks the last block")


def _minimums() -> Iterator[Transition]:
    """The same talk, too short for one model and long enough for another."""
    for model, host, provider, short in (
        ("claude-opus-4-5", "api.anthropic.com", "anthropic", True),
        ("claude-haiku-4-5", "api.anthropic.com", "anthropic", True),
        ("claude-opus-5", "api.anthropic.com", "anthropic", False),
    ):
        tape = anthropic(model)
        tape.host, tape.provider = host, provider
        first = tape.ask(tape.opening())
        call = tape.ask(tape.grown(first, 0))
        assert (call.counted.read == 0) is short
        tape.note(tape.cold(call, "below_minimum") if short else tape.warm(call, 1))
        kind = "below_minimum" if short else "above_minimum"
        yield tape.done(f"anthropic/{kind}_{model}", "§2.3 min tokens by model; below min silently uncached")
    tape = anthropic()
    tape.tools, tape.system = TOOLS[:1], "Answer in one word.\nBe kind."
    body = tape.dialect.opening(tape.model, tape.system, tape.tools, "Is the harbour open?")
    first = tape.ask(body)
    body = tape.dialect.grow(first.body, replace(first.answer, text="Yes.", call=None), "And the lock?")
    call = tape.ask(body)
    assert call.counted.kept == 0
    tape.note(tape.cold(call, "below_minimum"))
    yield tape.done("anthropic/below_minimum_tiny", "§2.3: min 512 for Opus 5; creation = read = 0")


def _not_ready() -> Transition:
    tape = anthropic()
    first = tape.ask(tape.opening(), wait=4.0, takes=9.0)
    tape.note(tape.cold(first))
    body = tape.opening()
    body["messages"].append(tape.dialect.user(prose("a second look", 300)))
    call = tape.ask(tape.dialect.marked(body), after=1.0, wait=4.0)
    assert call.counted.read == 0
    tape.note(tape.missed(call, "concurrency_not_ready"))
    third = tape.ask(tape.grown(first, 0), after=14.0)
    tape.note(tape.warm(third))
    return tape.done("anthropic/concurrency_not_ready", "§2.3: an entry exists only after the first response begins")


def _workspaces() -> Iterator[Transition]:
    tape = anthropic()
    tape.headers["anthropic-workspace-id"] = "wrkspc_blue"
    body = tape.begin()
    call = tape.ask(body, headers={"anthropic-workspace-id": "wrkspc_green"})
    assert call.counted.read == 0
    tape.note(tape.missed(call, "isolation_changed", also=frozenset({"cold", "break"})))
    yield tape.done("anthropic/isolation_changed", "§2.3: isolation by workspace on the Claude API; §12 C29")


def _evictions() -> Iterator[Transition]:
    tape = anthropic()
    body = tape.begin()
    tape.rules.forget()
    call = tape.ask(body)
    tape.note(tape.missed(call, "unexplained_miss"))
    yield tape.done("anthropic/unexplained_miss", "§12 C31: exp > 0 and no cause")
    tape = anthropic()
    body = tape.begin()
    left = tape.calls[0].counted.kept
    call = tape.ask(body, usage=lambda c: Counted(c.total, left, c.kept - left, 0, c.out))
    tape.note(tape.missed(call, "unexplained_miss"))
    yield tape.done("anthropic/unexplained_miss_in_part", "§7: read(n+1) < read(n) is the signal, not read == 0")


def _retry() -> Transition:
    tape = anthropic()
    body = tape.begin()
    call = tape.ask(body)
    again = tape.ask(body, after=9.0, turn=3)
    assert again.counted.read == call.counted.kept
    tape.note(tape.warm(call, 3), tape.warm(again, 4))
    return tape.done("anthropic/retry_equal_bytes", "§2.4: the whole prefix is an entry; equal bytes read all of it")


def _overloaded() -> Transition:
    tape = anthropic()
    body = tape.begin()
    error = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    tape.ask(body, failed=(529, error))
    call = tape.ask(body, after=4.0, turn=3)
    assert call.counted.read == tape.calls[2].counted.kept
    tape.note(tape.warm(call))
    return tape.done("anthropic/retry_after_error", "§2.4: entries are those of calls that were answered")


def _subagent() -> Transition:
    tape = anthropic()
    body = tape.begin(2)
    sub = tape.dialect.opening(tape.model, system_text(seed="subagent"), TOOLS[3:], prose("sub task", 1300))
    side = tape.ask(sub, after=3.0, turn=1, seed="sub")
    main = tape.ask(body, after=1.0, turn=2)
    side_again = tape.ask(tape.dialect.grow(side.body, side.answer, prose("sub next", 800)), after=2.0, turn=3)
    last = tape.ask(tape.grown(main, 2), turn=3)
    tape.note(tape.cold(side), tape.warm(main, 2), tape.warm(side_again, 3), tape.warm(last, 4))
    return tape.done("anthropic/subagent_between", "§12: always search all earlier calls, because subagents interleave")


def _prewarmed() -> Transition:
    tape = anthropic(stream=False)
    warmed = tape.ask(tape.opening() | {"max_tokens": 0})
    call = tape.ask(tape.opening(), turn=0)
    assert call.counted.read == warmed.counted.kept
    tape.note(tape.cold(warmed), tape.warm(call, 1))
    return tape.done("anthropic/prewarm", "§2.3: max_tokens 0 writes the cache; the call behind it reads it")


def _too_much_read() -> Transition:
    """The tools changed, and yet all is said to be read: another session's cache, or a field that does not count."""
    tape = anthropic()
    body = tape.begin()
    tape.dialect.tools(body).insert(2, tape.dialect.tool("depth_probe"))
    before = tape.calls[-1].counted.kept
    call = tape.ask(body, usage=lambda c: Counted(c.total, before, c.total - before, 0, c.out))
    told = tape.broken(call, "tool_added", "/tools/2", confidence=LIKELY | UNSURE)
    tape.note(replace(told, expected_read=0, lost=0))
    return tape.done("anthropic/read_contradicts_bytes", "§12: got > exp: lower confidence")
