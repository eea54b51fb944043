"""The report of the next request: what would be sent, what the cache would lose, and that nothing secret is shown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ctxscope import report, wire
from ctxscope.analysis.parting import parting
from ctxscope.model import NEXT_INPUT, Body, CacheVerdict, NextRequest
from ctxscope.report import Options
from ctxscope.wire.body import make_body

KEY = "sk-ant-" + "plumtree0" * 4
BROKEN = CacheVerdict(
    "break", "history_rewritten", ("history_rewritten",), "consistent", "/messages/1", 30, lost_tokens=70,
    lost_estimated=True, extra=63.0, why="a message already sent reads differently now",
)  # fmt: skip


def body(second: str, *more: str) -> Body:
    turns = [("user", "hello"), ("assistant", second), *(("user", text) for text in more)]
    told = {"model": "plum-1", "messages": [{"role": role, "content": text} for role, text in turns]}
    return make_body(json.dumps(told).encode(), wire.by_name("openai-chat"))


def request(last: str = "as it was", after: str = "as it is stored") -> NextRequest:
    was, now = body(last), body(after, NEXT_INPUT)
    return NextRequest(
        "s1", "pear", "Pear", now, (), "body", was, 4, previous_served=True, cache=BROKEN, ttl=300.0,
        difference=parting(was, now, "/messages/1"), changes=("answers are cut",), unknown=("the date",),
        hypotheses=("one of two",),
    )  # fmt: skip


def told(one: NextRequest, fmt: str = "md", **options: object) -> str:
    return report.load(fmt).render_next([one], Options(title="orchard", command="ctxscope report x --next", **options))


# --- where two prompts part ------------------------------------------------------------------------------------------


def test_the_first_byte_of_the_segment_that_changed_is_found_on_both_sides():
    was, now = body("as it was"), body("as it is stored", "more")
    found = parting(was, now, "/messages/1")
    assert found is not None
    assert was.data[found.raw_offset :].startswith(b"was")
    assert now.data[found.other_offset :].startswith(b"is stored")
    assert found.cls == "content"


def test_a_segment_that_left_is_missing():
    was, now = body("as it was", "more"), body("as it was")
    found = parting(was, now, "/messages/2")
    assert found is not None
    assert (found.cls, found.rebuilt) == ("missing", "")
    assert found.raw_offset == next(s.start for s in was.segments if s.path == "/messages/2")


@pytest.mark.parametrize("path", ["/messages/0", "/messages/9"])
def test_what_is_the_same_or_was_never_there_parts_nothing(path):
    assert parting(body("x"), body("y"), path) is None


# --- the report ------------------------------------------------------------------------------------------------------


def test_markdown_tells_the_place_the_loss_and_what_is_not_known():
    text = told(request())
    assert "# The next request after a restart: orchard" in text
    assert "**Cache: break** by `history_rewritten`" in text
    assert "against call 4" in text
    assert "5 min after the last request" in text
    assert "\nlast\n" in text
    assert "as it was" in text
    assert "as it is stored" in text
    for words in ("a new process: answers are cut", "not known: the date", "one of two"):
        assert words in text
    assert text.endswith("```sh\nctxscope report x --next\n```\n")


def test_json_has_the_same_and_where_the_input_will_stand():
    one = request()
    (found,) = json.loads(told(one, "json"))["next"]
    assert one.body is not None
    at = found["request"]["input_at"]
    assert one.body.data[at:].startswith(NEXT_INPUT.encode())
    assert found["cache"]["lost_tokens"] == 70
    assert found["cache"]["lost_estimated"] is True
    assert found["last"] == {
        "call": 4, "side": "served", "bytes": len(one.previous.data), "sha256": one.previous.sha256,
    }  # fmt: skip
    assert found["first_difference"]["served"].endswith('as it was"}]}')
    assert found["ttl_seconds"] == 300
    assert (found["changes"], found["unknown"], found["hypotheses"]) == (
        ["answers are cut"],
        ["the date"],
        ["one of two"],
    )


@pytest.mark.parametrize("fmt", ["md", "json"])
def test_no_secret_is_shown_and_without_content_no_excerpt(fmt):
    one = request(f"key {KEY}", f"key {KEY} stored")
    assert KEY[-12:] in told(one, fmt, content="full")
    assert KEY[-12:] not in told(one, fmt)
    bare = told(request(), fmt, content="none")
    assert "as it" not in bare
    assert "/messages/1" in bare


def test_what_is_not_known_says_why_and_shows_no_number():
    text = told(NextRequest("s1", "pear", "Pear", why="what Pear sends after a restart is not known"))
    assert "Not known: what Pear sends after a restart is not known." in text
    assert "bytes" not in text
    (found,) = json.loads(told(NextRequest("s1", "pear", "Pear", why="no"), "json"))["next"]
    assert found["known"] is False
    assert found["request"] == {"bytes": None, "sha256": None, "input_at": None, "scope": None}


def test_without_an_earlier_request_there_is_nothing_to_compare():
    alone = replace(request(), previous=None, previous_n=None, difference=None, cache=CacheVerdict())
    assert "no earlier request is known" in told(alone)


def test_no_session_is_said():
    assert "No session" in report.load("md").render_next([], Options())
