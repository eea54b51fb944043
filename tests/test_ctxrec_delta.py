"""Bodies as changes of earlier ones, and which earlier one."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.capture import delta, parents
from ctxscope.capture.delta import applied, copied, literal_of, pieces_of
from ctxscope.capture.parents import Parents

BLOCKS = [random.Random(n).randbytes(400 + 150 * n) for n in range(8)] + [b"", b"{}", b"ab" * 300, bytes(700)]
blocks = st.lists(st.sampled_from(BLOCKS), max_size=12)
anything = st.one_of(st.binary(max_size=200), blocks.map(b"".join), st.text("ab", max_size=900).map(str.encode))


def stored(parent: bytes, body: bytes) -> int:
    """Bytes of the body that are stored anew; checks that it comes back."""
    pieces = pieces_of(parent, body)
    literal = literal_of(body, pieces)
    assert applied(parent, pieces, literal) == body
    assert len(literal) == len(body) - copied(pieces)
    copies = [piece for piece in pieces if isinstance(piece, tuple)]
    assert all(at >= 0 and length > 0 and at + length <= len(parent) for at, length in copies)
    return len(literal)


@given(anything, anything)
@settings(deadline=None)
def test_a_body_comes_back_whatever_its_parent(parent: bytes, body: bytes):
    stored(parent, body)


@given(st.permutations(range(8)), st.sampled_from([b"", b"!" * 20, random.Random(99).randbytes(900)]))
@settings(max_examples=40, deadline=None)
def test_blocks_of_the_parent_in_any_order_are_not_stored_again(order: list[int], new: bytes):
    """But for the last few kilobytes, where what follows is nearly always new."""
    large = [random.Random(n).randbytes(18_000 + 1000 * n) for n in range(8)]
    body = b"".join((*(large[n] for n in order[:3]), new, *(large[n] for n in order[3:])))
    assert stored(b"".join(large), body) <= len(new) + delta._APPENDED + 200 * len(order)


def prose(seed: int, size: int) -> str:
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(size // 6)]
    return " ".join(words)[:size]


MESSAGES = [{"role": "user", "content": prose(n, 900)} for n in range(200)]
SYSTEM = prose(1000, 30_000)


def body(messages: list[dict[str, str]], system: str, *, first: str = "system") -> bytes:
    parts = {"system": system, "messages": messages}
    last = "messages" if first == "system" else "system"
    return json.dumps({"model": "m", first: parts[first], last: parts[last], "tools": prose(7, 2000)}).encode()


def clocked(at: str) -> str:
    return f"{SYSTEM[:9000]} It is {at}. {SYSTEM[9000:]}"


@pytest.mark.parametrize("first", ["system", "messages"])
@pytest.mark.parametrize(
    ("then", "now"), [("09:59:59", "10:00:00"), ("9:59", "10:00"), ("Monday", "Wednesday, holiday")]
)
def test_a_clock_in_the_system_prompt_costs_the_clock(first: str, then: str, now: str):
    before = body(MESSAGES[:150], clocked(then), first=first)
    after = body(MESSAGES[:151], clocked(now), first=first)
    assert stored(before, after) < 1300


@pytest.mark.parametrize("every", [1, 2, 20])
def test_pruned_results_cost_what_stands_in_their_place(every: int):
    pruned = [{**m, "content": "[cut]"} if i % every == 0 else m for i, m in enumerate(MESSAGES)]
    assert stored(body(MESSAGES, SYSTEM), body(pruned, SYSTEM)) < 250 * (1 + len(MESSAGES) // every)


def test_however_many_changes_there_are_what_lies_between_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(delta, "_STEPS", ((1000, 1),))
    changed = [{**m, "content": prose(3000 + n, 400) + m["content"][400:]} for n, m in enumerate(MESSAGES)]
    assert stored(body(MESSAGES, SYSTEM), body(changed, SYSTEM)) < 200 * 600


def test_messages_moved_together_are_found():
    assert stored(body(MESSAGES, SYSTEM), body(MESSAGES[100:] + MESSAGES[:100], SYSTEM)) < 500


def test_a_small_difference_is_not_looked_into():
    parent = b'{"a":"' + b"x" * 400 + b'"}'
    assert len(pieces_of(parent, parent.replace(b"x" * 400, b"y" * 200 + b"x" * 200))) <= 3


def test_a_hopeless_pair_is_given_up_after_so_many_probes():
    one, other = random.Random(1).randbytes(2_000_000), random.Random(2).randbytes(2_000_000)
    middle = delta._Middle(one, 0, len(one), other, len(other))
    assert middle.run(0, 0) is None
    assert middle.probes == delta._STEPS[-1][0]
    assert len(middle.places or ()) <= delta._MOST_PLACES + 1


# --- which parent ----------------------------------------------------------------------------------------------------


def keep(kept: Parents, n: int, data: bytes, path: str = "/v1") -> parents.Choice:
    choice = kept.choose(path, data)
    kept.keep(path, n, data, choice.depth)
    return choice


def test_of_conversations_that_interleave_each_goes_on_with_its_own():
    kept = Parents()
    subagent = [{"role": "user", "content": prose(500 + n, 900)} for n in range(100)]
    for n in range(1, 21):
        messages = MESSAGES if n % 2 else subagent
        choice = keep(kept, n, body(messages[: 60 + n], clocked(f"10:00:{n:02d}")))
        assert choice.parent == (n - 2 if n > 2 else None if n == 1 else choice.parent)


def test_of_equally_good_parents_the_latest_is_taken():
    """A clock makes every earlier body differ in the same place; digits it has in common with one say nothing."""
    kept = Parents()
    for n in range(1, 30):
        choice = keep(kept, n, body(MESSAGES[: 100 + n], clocked(f"10:{n // 8:02d}:{n * 7 % 60:02d}")))
        assert choice.parent == (n - 1 or None)


def test_a_body_that_shares_little_stands_whole():
    kept = Parents()
    keep(kept, 1, prose(1, 9000).encode())
    assert keep(kept, 2, prose(2, 9000).encode()) == parents.Choice(None, [9000])
    assert keep(kept, 3, prose(1, 9000).encode(), "/other").parent is None
    assert keep(kept, 4, b"") == parents.Choice(None, [])


def test_so_many_in_a_row_one_stands_whole(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parents, "KEYFRAME", 5)
    kept = Parents()
    found = [keep(kept, n, body(MESSAGES[:n], SYSTEM)).parent for n in range(1, 13)]
    assert [n for n, parent in enumerate(found, 1) if parent is None] == [1, 6, 11]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parents, "MOST_BYTES", 200_000)
    kept = Parents()
    for n in range(60):
        keep(kept, n, prose(n, 30_000).encode(), f"/{n % 50}")
        assert kept._bytes == sum(len(k.body) for k in kept._last) <= 200_000
    for n in range(400):
        keep(kept, n, b"{}", f"/{n}")
    assert len(kept._last) <= parents.MOST_BODIES
    for n in range(40):
        keep(kept, n, body(MESSAGES[:1], ""), "/one")
    assert sum(k.path == "/one" for k in kept._last) == parents.REMEMBERED
