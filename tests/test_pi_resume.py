"""What pi would send if it were started anew: behind the file's last entry, in a message thread of its own."""

from __future__ import annotations

import json

from ctxscope import wire
from ctxscope.agents import Log, at_hand, pi
from ctxscope.agents.pi.limits import clamp
from ctxscope.agents.pi.points import node_of
from ctxscope.model import NEXT_INPUT, Body, Learned, Point
from ctxscope.wire.body import make_body
from tests.pi_sessions import CHAT, Script, call, log_of, text
from tests.resumed_logs import foretold, resumed

INPUT = {"type": "text", "text": NEXT_INPUT}


def talked(*, old: bool = False) -> Script:
    script = Script().begin()
    if not old:
        script.system(preamble="help")
    script.user("ask")
    script.assistant(text("answer"), total=10)
    return script


def said(body: dict[str, object]) -> list[str]:
    """Role and last text of each message."""
    told = []
    for message in body["messages"]:
        content = message["content"]
        block = content if isinstance(content, str) else content[-1].get("text", content[-1].get("content"))
        told.append(f"{message['role'][0]}:{block}")
    return told


def served(log: Log, value: dict[str, object] | None = None) -> list[tuple[Point, Body]]:
    """The calls of a log, served as they are rebuilt, the last one with other values."""
    found = []
    for point in pi.requests(log):
        made = pi.rebuild(log, point, pi.config(log), Learned())
        assert made is not None
        found.append((point, json.loads(made.data)))
    found[-1][1].update(value or {})
    return [(p, make_body(json.dumps(v).encode(), wire.by_name("anthropic-messages"))) for p, v in found]


def test_the_next_input_stands_behind_the_last_entry_of_the_file() -> None:
    assert said(foretold(pi, talked().log())) == ["u:ask", "a:answer", f"u:{NEXT_INPUT}"]


def test_it_goes_on_there_wherever_the_old_process_stood() -> None:
    script = talked()
    first = script.rows[4]["id"]
    script.user("left", after=first)
    script.assistant(text("other"), total=10)
    assert said(foretold(pi, script.log()))[-2:] == ["a:other", f"u:{NEXT_INPUT}"]


def test_an_input_nobody_answered_is_sent_with_the_next_one() -> None:
    script = talked()
    script.user("and then")
    assert said(foretold(pi, script.log()))[-2:] == ["u:and then", f"u:{NEXT_INPUT}"]


def test_a_tool_call_without_a_result_gets_one_that_says_so() -> None:
    script = talked()
    script.user("look")
    script.assistant(call("c1"), stop="toolUse", total=10)
    assert said(foretold(pi, script.log()))[-2:] == ["u:No result provided", f"u:{NEXT_INPUT}"]


def test_a_file_of_the_first_version_goes_on_by_its_order() -> None:
    rows = [dict(row) for row in talked().rows]
    for row in rows[1:]:
        del row["id"], row["parentId"]
    log = log_of(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    assert said(foretold(pi, log)) == ["u:ask", "a:answer", f"u:{NEXT_INPUT}"]


def test_a_thread_is_begun_anew_with_all_that_was_said() -> None:
    log = talked().log()
    calls = served(log, {"thread": {"type": "create"}})
    found = foretold(pi, log, calls)
    assert found["thread"] == {"type": "create"}
    assert said(found) == ["u:ask", "a:answer", f"u:{NEXT_INPUT}"]
    assert "system" in found
    assert [c for c in resumed(pi, log, calls).changes if "thread is begun anew" in c]
    assert not resumed(pi, log, served(log)).changes
    script = talked()
    script.add("context_edit", targetId=script.rows[-2]["id"], replacement=None)
    edited = script.log()
    assert not resumed(pi, edited, served(edited, {"thread": {"type": "create"}})).changes  # anew in any case


def test_the_cap_is_the_next_requests_own_and_not_that_of_the_last() -> None:
    script = Script().begin("off")
    script.system(preamble="help")
    for size in (1000, 100_000, 120_000):
        script.user("x" * size)
        script.assistant(text("so"), total=0)
    log = script.log()
    window = 100_000
    estimates = [node_of(log, p) for p in pi.requests(log)]
    caps = [clamp(64_000, window, n.trail.estimates[n.length].request) for n in estimates if n is not None]
    assert caps[-1] < caps[0]
    calls = [
        (
            p,
            make_body(
                json.dumps({**json.loads(b.data), "max_tokens": cap}).encode(), wire.by_name("anthropic-messages")
            ),
        )
        for (p, b), cap in zip(served(log), caps, strict=True)
    ]
    assert foretold(pi, log, calls)["max_tokens"] < caps[-1]


def test_what_is_made_anew_is_said() -> None:
    old = talked(old=True)
    del old.rows[-1]["message"]["rawStopReason"]
    assert any("system prompt is made anew" in words for words in resumed(pi, old.log()).unknown)
    log = talked().log()
    assert any("patched" in words for words in resumed(pi, log, served(log)).unknown)


def test_nothing_is_foretold_of_a_file_that_names_no_model() -> None:
    assert pi.resume(Script(CHAT).log(), at_hand()) is None
    assert pi.resume(log_of(b""), at_hand()) is None
