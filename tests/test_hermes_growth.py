"""What was asked of a Hermes log before never changes what it answers."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hermes_rows import Written, as_if, call

Step = tuple[str, str, bool]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["user", "says", "calls", "tool", "thinks"]), st.sampled_from(["a", "b", ""]), st.booleans()
    ),
    max_size=14,
)


def write(log: Written, steps: Sequence[Step]) -> None:
    for kind, text, flag in steps:
        if kind == "user":
            log.user(text, api_content="sidecar" if flag else None)
        elif kind == "says":
            log.says(f" {text} ", finish_reason="verification_required" if flag else "stop")
        elif kind == "calls":
            log.says(text, tool_calls=call("a") if flag else [*call("a"), *call("b")])
        elif kind == "tool":
            log.tool("b" if flag else "a")
        else:
            log.says("", reasoning="hm")


@settings(max_examples=150, deadline=None)
@given(STEPS, st.sampled_from(["openai-chat", "anthropic-messages", "openai-responses"]))
def test_a_request_is_the_same_whether_earlier_ones_were_asked_for_or_not(steps: list[Step], api: str) -> None:
    learned = as_if(api, loaded_before=3)  # type: ignore[arg-type]  # one of the three
    grown = Written()
    for step in steps:
        write(grown, [step])
        for at in range(len(grown.points)):
            grown.rebuilt(learned, at)
    for at, point in enumerate(grown.points):
        fresh = Written()
        write(fresh, steps)
        assert fresh.points[at].key == point.key
        assert fresh.rebuilt(learned, at).data == grown.rebuilt(learned, at).data
