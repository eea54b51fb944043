"""Parents and cache verdicts of a session: the log's branches, stored usage, and the same answer in any batches."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.analysis.providers import Providers
from ctxscope.model import CacheVerdict, Exchange, Place, Point, Usage
from ctxscope.session.caching import Caching
from ctxscope.session.calls import Slot
from ctxscope.session.snapshot import usage_of
from ctxscope.session.traffic import Traffic

MARK = {"cache_control": {"type": "ephemeral"}}
HEAD = {
    "model": "claude-opus-4-5",
    "max_tokens": 9,
    "system": [{"type": "text", "text": "You are terse. " * 20, **MARK}],
}
Verdicts = dict[int, tuple[int | None, CacheVerdict]]


def asked(*texts: str, system: str = "", marked: bool = True) -> bytes:
    """A request whose messages are ``texts`` in turn, the last one marked."""
    content: list[dict[str, Any]] = [{"type": "text", "text": f"{t} " * 30} for t in texts]
    if marked:
        content[-1] |= MARK
    roles = ("user", "assistant")
    told = [{"role": roles[n % 2], "content": [block]} for n, block in enumerate(content)]
    head = HEAD | ({"system": [{"type": "text", "text": system}]} if system else {})
    return json.dumps(head | {"messages": told}).encode()


def answered(usage: Usage | None) -> bytes:
    told = (
        {
            "input_tokens": usage.input,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write,
            "output_tokens": 5,
        }
        if usage
        else None
    )
    return json.dumps(
        {"id": "m", "type": "message", "content": [{"type": "text", "text": "x"}], "usage": told}
    ).encode()


def session(name: str, parent: str | None = None) -> Any:
    return SimpleNamespace(ref=SimpleNamespace(id=name, parent=parent))


def point(key: str, branched_from: str | None = None, **more: Any) -> Point:
    return Point(key, Place(0, key), (), None, branched_from=branched_from, **more)


@dataclass
class Recorded:
    """Traffic that grows, with the slots its calls have."""

    traffic: Traffic = field(default_factory=Traffic)
    slots: list[Slot] = field(default_factory=list)
    bodies: list[int] = field(default_factory=list)
    """Numbers of the exchanges whose request was read."""

    def call(
        self,
        request: bytes,
        usage: Usage | None = None,
        *,
        at: Point | None = None,
        of: Any = None,
        reply: bytes | None = None,
        headers: dict[str, str] | None = None,
        time: float | None = None,
        first_byte: float | None = None,
        status: int = 200,
    ) -> None:
        n = len(self.slots) + 1
        response = answered(usage) if reply is None else reply

        def read() -> bytes:
            self.bodies.append(n)
            return request

        when = 100.0 * n if time is None else time
        exchange = Exchange(
            *(0, n, when, "POST", "/v1/messages", headers or {}, read, lambda: response, len(request), len(response)),
            *(status, first_byte),
        )
        self.traffic.take(exchange)
        heard = self.traffic.heard[0, n]
        self.slots.append(Slot(n, of, heard, at, "id" if at else None, "main", "main", None))

    def judged(self) -> Verdicts:
        return Caching(self.traffic).judge(self.slots, {})


def told(verdicts: Verdicts) -> dict[int, tuple[int | None, str, str | None]]:
    return {n: (parent, v.verdict, v.cause) for n, (parent, v) in verdicts.items()}


# --- what the log says -----------------------------------------------------------------------------------------------


def test_the_parent_is_the_call_the_log_says_it_branched_from():
    one, seen = session("s"), Recorded()
    seen.call(asked("a"), at=point("1"), of=one)
    seen.call(asked("a", "b", "c"), at=point("2"), of=one)
    seen.call(asked("a", "b", "c", "d", "e"), at=point("3"), of=one)
    seen.call(asked("a", "b", "c", "d", "f"), at=point("4", branched_from="2"), of=one)
    seen.call(asked("a", "b", "x"), at=point("5", branched_from="2"), of=one)
    found = seen.judged()
    assert told(found)[4] == (2, "warm", None)
    assert told(found)[5] == (2, "warm", None)
    assert found[5][1].lost_tokens == 0
    assert "a branch left on purpose" in found[5][1].why


def test_a_branch_from_a_call_nobody_recorded_is_still_no_break():
    one, seen = session("s"), Recorded()
    seen.call(asked("a", "b", "c"), at=point("2"), of=one)
    seen.call(asked("a", "b", "x"), at=point("3", branched_from="0"), of=one)
    assert told(seen.judged())[2] == (1, "warm", None)


def test_another_attempt_at_a_branch_repeats_the_first_and_leaves_none():
    one, seen = session("s"), Recorded()
    seen.call(asked("a"), at=point("1"), of=one)
    seen.call(asked("a", "b", "c"), at=point("2"), of=one)
    seen.call(asked("a", "b", "x"), at=point("3", branched_from="1"), of=one)
    seen.call(asked("a", "b", "y"), at=point("3", branched_from="1"), of=one)
    assert told(seen.judged())[4] == (3, "break", "history_rewritten")


def test_a_fork_branched_from_a_call_of_the_session_it_continues():
    old, between = session("old"), session("between", parent="old")
    fork = session("new", parent="between")
    seen = Recorded()
    seen.call(asked("a"), at=point("1"), of=old)
    seen.call(asked("a", "b", "c"), at=point("2"), of=old)
    seen.call(asked("a", "b", "c", "d", "e"), at=point("3"), of=old)
    seen.call(asked("q"), at=point("2"), of=session("another"))
    seen.call(asked("a", "b", "z"), at=point("7", branched_from="1"), of=between)
    seen.call(asked("a", "b", "c", "d", "x"), at=point("4", branched_from="2"), of=fork)
    seen.call(asked("a", "b", "c", "d", "y", "z", "q"), at=point("5"), of=fork)
    found = told(seen.judged())
    assert found[6] == (2, "warm", None)
    assert found[7][:2] == (6, "break")


def test_two_sessions_that_begin_alike_break_nothing_in_each_other():
    one, other, child = session("a"), session("b"), session("c", parent="a")
    seen = Recorded()
    seen.call(asked("a", "b", "c"), at=point("1"), of=one)
    seen.call(asked("a", "b", "x"), at=point("2"), of=other)
    assert told(seen.judged())[2] == (1, "warm", None)
    seen.slots[1] = replace(seen.slots[1], session=child)  # a session that goes on from it lost what was said
    assert told(seen.judged())[2] == (1, "break", "history_rewritten")


def test_an_attempt_that_failed_is_not_told_what_the_one_that_was_stored_cost():
    one, seen = session("s"), Recorded()
    here = point("1", stored_usage=Usage(3, 0, 900))
    seen.call(asked("a"), at=here, of=one, reply=b'{"type":"error","error":{"message":"overloaded"}}')
    seen.call(asked("a"), at=here, of=one, reply=b"")
    seen.slots[0] = replace(seen.slots[0], kind="retry")
    assert [usage_of(slot) for slot in seen.slots] == [None, Usage(3, 0, 900)]


def test_the_usage_the_log_stored_counts_where_none_was_recorded():
    one, seen = session("s"), Recorded()
    seen.call(asked("a"), at=point("1", stored_usage=Usage(3, 0, 900)), of=one, reply=b"")
    seen.call(asked("a", "b", "c"), at=point("2", stored_usage=Usage(3, 0, 950)), of=one, reply=b"")
    parent, verdict = seen.judged()[2]
    assert (parent, verdict.verdict, verdict.lost_tokens, verdict.reported_read) == (1, "miss", 900, 0)


def test_beta_features_come_from_the_headers():
    seen = Recorded()
    seen.call(asked("a"), headers={"anthropic-beta": "one"})
    seen.call(asked("a", "b", "c"), headers={"anthropic-beta": "one,two"})
    assert told(seen.judged())[2] == (1, "break", "param_changed:betas")


def test_what_a_reply_cannot_have_read_is_told():
    seen = Recorded()
    seen.call(asked("a"))
    seen.slots[0] = replace(seen.slots[0])
    seen.slots[0].heard.reply = replace(seen.slots[0].heard.reply, doubts=("more than all",))
    assert seen.judged()[1][1].facts == ("more than all",)


def test_a_clock_at_the_very_beginning_is_judged_against_the_call_before():
    seen = Recorded()
    for minute in range(3):
        texts = "abcde"[: 1 + 2 * minute]
        seen.call(asked(*texts, system=f"10:0{minute}. You are terse."))
    assert told(seen.judged()) == {
        1: (None, "cold", "first_call_cold"),
        2: (1, "break", "volatile_content"),
        3: (2, "break", "volatile_content"),
    }


def test_a_call_that_was_refused_kept_nothing_and_lost_nothing():
    seen = Recorded()
    seen.call(asked("a"), Usage(5, 0, 9000, 5))
    seen.call(asked("b", system="Another system text. " * 40), status=529)
    seen.call(asked("a", "b", "c"), Usage(5, 9000, 50, 5))
    found = seen.judged()
    assert told(found)[3] == (1, "warm", None)
    assert found[2][1].lost_tokens == 0


def test_nobody_rewrites_a_history_before_the_reply_to_it_began():
    seen, kept = Recorded(), Usage(5, 9000, 60, 5)
    seen.call(asked("a"), Usage(5, 0, 9000, 5), time=0.0, first_byte=1.0)
    seen.call(asked("a", "b", "left"), kept, time=10.0, first_byte=12.0)
    seen.call(asked("a", "b", "right"), kept, time=10.1, first_byte=12.0)
    assert told(seen.judged())[3] == (1, "warm", None)


def test_what_a_call_did_not_report_to_keep_is_not_taken_for_nothing():
    seen, plain = Recorded(), "You are terse. " * 20  # no mark but the last one
    seen.call(asked("a", system=plain), Usage(5, 0, None, 5))
    seen.call(asked("a", "b", "c", system=plain), Usage(5, 0, 9000, 5))
    seen.call(asked("a", "x", "y", system=plain), Usage(5, 0, 9000, 5))
    lowest, highest = seen.judged()[3][1].expected_read
    assert lowest == 0
    assert highest > 0


def test_where_a_proxy_listened_tells_nothing_of_the_upstream():
    seen = Recorded()
    seen.call(asked("a"), Usage(5, 0, 9000, 5), headers={"host": "127.0.0.1:4000"})
    seen.call(asked("a", "b", "c"), Usage(5, 0, 9100, 5), headers={"host": "127.0.0.1:5000"})
    found = Caching(seen.traffic, Providers(chosen="anthropic")).judge(seen.slots, {})
    assert told(found)[2] == (1, "miss", "unexplained_miss")


def test_a_count_of_nothing_measures_nothing():
    seen = Recorded()
    for texts in ("a", "abc"):
        seen.call(asked(*texts), Usage(0, 0, 0, 0), headers={"host": "api.anthropic.com"})
    found = seen.judged()[2][1]
    assert (found.verdict, found.confidence, found.cause) == ("unknown", "not_measurable", None)


def test_a_reply_that_begins_while_it_is_followed_says_what_a_fresh_look_says():
    seen, kept = Recorded(), Usage(5, 9000, 60, 5)
    seen.call(asked("a"), Usage(5, 0, 9000, 5), time=0.0, first_byte=1.0)
    seen.call(asked("a", "b", "left"), None, time=10.0)
    seen.call(asked("a", "b", "right"), kept, time=10.1, first_byte=12.0)
    caching = Caching(seen.traffic)
    caching.judge(seen.slots, {})
    late = replace(seen.slots[1].heard.exchange, first_byte=12.0)
    seen.traffic.take(late)
    seen.slots[1] = replace(seen.slots[1], heard=seen.traffic.heard[0, 2])
    found = caching.judge(seen.slots, {})
    assert told(found)[3] == (1, "warm", None)
    assert told(found) == told(Caching(seen.traffic).judge(seen.slots, {}))


def test_another_host_keeps_what_it_was_sent_itself():
    seen = Recorded()
    seen.call(asked("a"), Usage(5, 0, 9000, 5), headers={"host": "api.anthropic.com"})
    seen.call(asked("a", "b", "c"), Usage(5, 0, 9100, 5), headers={"host": "eu.api.anthropic.com"})
    seen.call(asked("a", "b", "c", "d", "e"), Usage(5, 9000, 200, 5), headers={"host": "api.anthropic.com"})
    seen.call(asked("a", "b", "c", "d", "e", "f"), Usage(5, 9100, 300, 5), headers={"host": "eu.api.anthropic.com"})
    seen.call(asked("a", "b", "c", "d", "e", "f", "g"), Usage(5, 0, 9400, 5), headers={"host": "api.anthropic.com"})
    found = told(seen.judged())
    assert found[2][:2] == (1, "miss")
    assert found[3] == (1, "warm", None)
    assert found[4] == (2, "warm", None)
    assert found[5] == (3, "miss", "unexplained_miss")


def test_a_key_that_reads_what_another_kept_shares_its_store():
    seen, one, other = Recorded(), {"x-api-key": "<cut:40:blue>"}, {"x-api-key": "<cut:40:green>"}
    host = {"host": "api.anthropic.com"}
    seen.call(asked("a"), Usage(5, 0, 9000, 5), headers=host | one)
    seen.call(asked("a", "b", "c"), Usage(5, 9000, 600, 5), headers=host | other)
    seen.call(asked("a", "b", "rewritten", "d"), Usage(5, 9000, 700, 5), headers=host | one)
    found = seen.judged()
    assert told(found)[3][:2] == (2, "break")
    assert found[3][1].lost_tokens == 600


def test_a_host_of_which_nothing_is_known_has_not_what_another_was_sent():
    seen = Recorded()
    seen.call(asked("a"), Usage(5, 0, 9000, 5), headers={"host": "api.anthropic.com"})
    seen.call(asked("a", "b", "c"), Usage(5, 0, 9100, 5), headers={"host": "models.example"})
    seen.call(asked("a", "b", "c", "d", "e"), Usage(5, 0, 9200, 5), headers={"host": "models.example"})
    found = told(seen.judged())
    assert found[2] == (1, "miss", "isolation_changed")
    assert found[3] == (2, "miss", None)


# --- growing ---------------------------------------------------------------------------------------------------------


def test_one_more_call_reads_no_body_of_a_call_already_judged():
    seen = Recorded()
    caching = Caching(seen.traffic)
    for n in range(20):
        seen.call(asked(*"abcdefghijklmnopqrstuvwxyz"[: n + 1]))
        before = caching.judge(seen.slots[:-1], {})
        seen.traffic._bodies.clear()
        seen.bodies.clear()
        after = caching.judge(seen.slots, {})
        assert set(seen.bodies) <= {n, n + 1}
        assert all(after[k][1] is verdict for k, (_, verdict) in before.items())
        assert told(after)[n + 1][:2] == (n or None, "warm" if n else "cold")


def test_a_reply_that_comes_later_is_judged_and_nothing_else_again():
    seen = Recorded()
    seen.call(asked("a"), Usage(3, 0, 900))
    seen.call(asked("a", "b", "c"), reply=b"")
    caching = Caching(seen.traffic)
    first = caching.judge(seen.slots, {})
    assert first[2][1].verdict == "warm"
    late = seen.traffic.heard[0, 2].exchange
    response = answered(Usage(3, 0, 950))
    seen.traffic.take(replace(late, response=lambda: response, response_bytes=len(response)))
    seen.slots[1] = replace(seen.slots[1], heard=seen.traffic.heard[0, 2])
    second = caching.judge(seen.slots, {})
    assert second[2][1].verdict == "miss"
    assert second[1][1] is first[1][1]


def test_a_marker_found_later_changes_the_verdict():
    seen = Recorded()
    seen.call(asked("a", "b", "c", "d", "e"))
    seen.call(asked("s"))
    caching = Caching(seen.traffic)
    assert told(caching.judge(seen.slots, {}))[2] == (1, "warm", None)
    assert told(caching.judge(seen.slots, {2: ["compaction"]}))[2] == (1, "break", "compaction")


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from("abc"), min_size=1, max_size=4), st.sampled_from(["", "Be 10:00.", "Be 10:01."])
        ),
        min_size=1,
        max_size=9,
    ),
    st.data(),
)
def test_any_batches_and_any_order_of_arrival_give_the_same_verdicts(calls, data):
    seen = Recorded()
    caching = Caching(seen.traffic)
    times = data.draw(st.permutations(range(1, len(calls) + 1)))
    for (texts, system), time in zip(calls, times, strict=True):
        seen.call(asked(*texts, system=system), Usage(3, 0, 900), time=float(time))
        if data.draw(st.booleans()):
            caching.judge(arrived(seen), {})
    at_once = Caching(seen.traffic).judge(arrived(seen), {})
    assert caching.judge(arrived(seen), {}) == at_once


def arrived(seen: Recorded) -> list[Slot]:
    """The slots numbered by arrival."""
    ordered = sorted(seen.slots, key=lambda s: s.heard.exchange.time if s.heard else 0.0)
    return [replace(slot, n=n) for n, slot in enumerate(ordered, 1)]
