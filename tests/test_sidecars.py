"""Sidecars: which of them are sent, what they are beside the content they stand for, what that comes to in a call."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ctxscope
from ctxscope.agents import hermes
from ctxscope.analysis.sidecars import in_sum, judged
from ctxscope.analysis.tokens import Counter
from ctxscope.model import Place, Sidecar, SidecarSum
from ctxscope.session.inspection import Inspection
from tests import hermes_cases
from tests.conftest import SAMPLES
from tests.counting import Encoder, counter, encoder, no_network
from tests.hermes_rows import Written, call

FIXTURES = (counter, no_network, encoder)
"""Used by their names, or always."""
TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


def opened(case: Path) -> Inspection:
    inspection = ctxscope.open(case)
    inspection.count()
    return inspection


# --- the rule --------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    role=st.sampled_from(["user", "assistant", "tool"]),
    value=st.none()
    | TEXTS
    | st.integers()
    | st.floats(allow_nan=False)
    | st.binary()
    | st.lists(TEXTS)
    | st.dictionaries(TEXTS, TEXTS),
)
def test_a_text_of_a_user_or_assistant_row_substitutes_and_nothing_else_does(role: str, value: Any):
    log = Written()
    log.user("dig")
    log.says("yes", tool_calls=call("a"))
    more = {"tool_call_id": "a", "tool_name": "dig"} if role == "tool" else {}
    if not more:
        log.tool("a")
    log.row(role, "clean", api_content=value, **more)
    if role == "assistant":
        log.user("next")
    found = hermes.sidecars(log.log, log.points[-1])
    is_sent = isinstance(value, str) and value != "" and role != "tool"
    assert [sidecar.ignored is None for sidecar in found] == ([] if value is None else [is_sent])
    for sidecar in found:
        assert (sidecar.role, sidecar.clean) == (role, "clean")
        assert sidecar.ignored == "role" or sidecar.stored == (value.strip() if isinstance(value, str) else value)


STEP = st.tuples(st.sampled_from(["user", "says", "calls", "thinks"]), st.booleans(), st.booleans())


def write(log: Written, steps: Sequence[tuple[str, bool, bool]]) -> list[str]:
    """Rows by steps, each with words of its own; its sidecars."""
    stored = []
    for i, (kind, has_sidecar, has_words) in enumerate(steps):
        words, sidecar = f"clean-{i}." if has_words else "", f"beside-{i}." if has_sidecar else None
        stored += [sidecar] if sidecar else []
        if kind == "user":
            log.user(words, api_content=sidecar)
        elif kind == "calls":
            log.says(words, tool_calls=call(f"t{i}"), api_content=sidecar)
            log.tool(f"t{i}", api_content=None)
        else:
            log.says(words, api_content=sidecar, **({"reasoning": "hm"} if kind == "thinks" else {}))
    log.user("last")
    return stored


@settings(max_examples=200, deadline=None)
@given(st.lists(STEP, max_size=9))
def test_it_is_told_to_be_sent_where_the_rebuilt_request_holds_it(steps):
    log = Written()
    stored = write(log, steps)
    found = hermes.sidecars(log.log, log.points[-1])
    assert [sidecar.stored for sidecar in found] == stored
    wire = " ".join(str(message["content"]) for message in log.messages())
    assert [s.stored for s in found if s.ignored is None] == [text for text in stored if text in wire]


def test_a_row_has_the_same_object_in_every_call():
    log = Written()
    for n in range(4):
        log.user("one", api_content=f"one and {n}")
        log.says("so")
    told = [hermes.sidecars(log.log, point) for point in log.points]
    assert [len(each) for each in told] == [1, 2, 3, 4]
    assert all(one is other for one, other in zip(told[-1], told[-2], strict=False))


# --- beside the clean content ----------------------------------------------------------------------------------------


COUNTER = Counter()
"""Loads its vocabulary once."""


def beside(counter: Counter, clean: Any, stored: Any, model: str = "gpt-4o"):
    return judged(Sidecar(Place(0, "row 1"), "user", clean, stored), counter, model, "openai-chat")


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_its_relation_and_differences_are_those_of_the_texts(clean: str, stored: str):
    found = beside(COUNTER, clean, stored)
    more = len(stored) - len(clean)
    assert found.relation == (
        "equal" if clean == stored else "longer" if more > 0 else "shorter" if more < 0 else "as_long"
    )
    assert (found.clean.characters, found.sidecar.characters) == (len(clean), len(stored))
    assert (found.clean.bytes, found.sidecar.bytes) == tuple(len(t.encode()) for t in (clean, stored))
    assert (found.differs_at is None) == (clean == stored)
    if found.differs_at is not None:
        at = found.differs_at
        assert clean[:at] == stored[:at]
        assert clean[at : at + 1] != stored[at : at + 1]


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_equal_texts_cost_the_same_and_turned_round_the_difference_changes_its_sign(clean: str, stored: str):
    assert beside(COUNTER, clean, clean).more == 0
    assert beside(COUNTER, clean, stored).more == -beside(COUNTER, stored, clean).more
    assert beside(COUNTER, clean, stored).sidecar.tokens == COUNTER.count(stored, "gpt-4o")


def picture(width: int, height: int) -> str:
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height)
    return "data:image/png;base64," + base64.b64encode(header + bytes(range(256)) * 64).decode()


def test_an_image_is_charged_its_providers_rate_and_its_base64_nothing(counter):
    words = {"type": "text", "text": "Which bird?"}
    pictured = [words, {"type": "image_url", "image_url": {"url": picture(512, 512)}}]
    found = beside(counter, "Which bird?", pictured)
    assert (found.clean.tokens, found.sidecar.tokens) == (found.clean.tokens, found.clean.tokens)
    assert (found.clean.images, found.sidecar.images) == (0, 85 + 170)
    assert found.relation != "equal"
    assert beside(counter, "Which bird?", [words]).relation == "equal"
    assert beside(counter, "", pictured, "unheard-of").sidecar.images is None


def test_what_is_no_text_is_shown_as_written_and_a_deep_one_stops_nothing(counter):
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    assert [beside(counter, "", each).sidecar.characters for each in (17, b"abc", {"text": "four"}, None)] == [
        2,
        3,
        4,
        0,
    ]
    assert beside(counter, "", deep).sidecar.images is None


def test_the_sum_of_a_call_holds_those_that_are_sent_and_counts_the_others(counter):
    sent = [("one", "one"), ("one", "one and more"), ("two", "six"), ("many more words", "few")]
    found = [beside(counter, clean, stored) for clean, stored in sent]
    ignored = judged(Sidecar(Place(0, "row 9"), "tool", "clean", "never", "role"), counter, "gpt-4o", None)
    tokens = (sum(getattr(each, side).tokens for each in found) for side in ("clean", "sidecar"))
    assert in_sum([*found, ignored]) == SidecarSum(1, 1, 1, 1, 1, *tokens)
    assert in_sum([]) is None


# --- real sessions ---------------------------------------------------------------------------------------------------


def test_of_a_recorded_session_every_sidecar_is_listed_and_comes_to_what_was_served():
    name = "f_apicontent_N"
    if name not in hermes_cases.CASES:
        pytest.skip("no captures here")
    inspection = opened(hermes_cases.FOLDER / name)
    found = inspection.snapshot.sidecars
    assert [(s.place.at, s.role, s.relation, s.call) for s in found] == [
        ("row 1", "user", "longer", 2),
        ("row 11", "user", "longer", 7),
        ("row 13", "user", "longer", 8),
        ("row 14", "assistant", "equal", 9),
        ("row 15", "user", "longer", 9),
    ]
    assert all(s.ignored is None and s.differs_at in (None, s.clean.characters) for s in found)
    carrying = [each for each in inspection.snapshot.calls if each.tokens.sidecars is not None]
    assert len(carrying) == 8
    for each in carrying:
        told = inspection.sidecars(each.n)
        assert each.tokens.parts.sidecar == each.tokens.sidecars.sent_tokens
        assert each.tokens.sidecars == in_sum(view.judged for view in told)
        assert {view.judged.place for view in told} <= {s.place for s in found}
    assert told[0].sidecar.startswith("What is here?\n\n<recall")


@pytest.mark.parametrize("case", ["hermes/sidecar_differs", "hermes/compacted_on_phantom_bytes", "copilot/resumed"])
def test_of_a_sample_what_is_sent_is_what_the_served_requests_hold(case):
    for each in opened(SAMPLES / case).snapshot.calls:
        assert each.tokens.parts.sidecar == (each.tokens.sidecars.sent_tokens if each.tokens.sidecars else 0)


def test_what_the_rule_ignores_is_listed_with_the_reason():
    inspection = opened(SAMPLES / "hermes" / "sidecar_differs")
    assert [(s.relation, s.ignored) for s in inspection.snapshot.sidecars] == [
        ("longer", None),
        ("shorter", "role"),
        ("shorter", "empty"),
        ("equal", None),
    ]
    assert opened(SAMPLES / "pi" / "clean_append").snapshot.sidecars == ()


def test_a_call_that_is_not_there_is_refused():
    with pytest.raises(KeyError):
        opened(SAMPLES / "hermes" / "sidecar_differs").sidecars(99)


def test_each_text_is_counted_once_and_never_again_at_the_next_opening(encoder: Encoder):
    case = SAMPLES / "hermes" / "sidecar_differs"
    first = opened(case)
    recalled = [text for text in encoder.texts if "<recall>" in text]
    assert len(recalled) == 2  # as it stands in a request, and beside its row
    first.close()
    once = len(encoder.texts)
    second = opened(case)
    assert len(encoder.texts) == once
    assert second.snapshot.sidecars == first.snapshot.sidecars
