"""The Markdown report says in words what is known, and log text in it is never markup."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from ctxscope import report
from ctxscope.model import (
    CacheCost,
    CacheVerdict,
    Compacted,
    Compaction,
    Finding,
    Marker,
    Place,
    RebuiltVerdict,
    Snapshot,
    Stop,
    quoted,
)
from ctxscope.report import Options
from ctxscope.report.text import code, code_cell, fenced, prose, visible, visible_lines
from tests.report_samples import AT, COMPACTION, SIDECARS, difference, known_call, snapshot, unknown_call, view

ALIVE = [
    "https://evil.example/x #12",
    "see http://evil.example and www.evil.example/x",
    "ask @someone or me@evil.example",
    "a/b#3 GH-3 !4 %5 deadbeef1 $x^2$ :tada: &copy;",
    "bare evil.example/x",
    "ftp://evil.example|mailto:me@evil.example",
]
HOSTILE = [
    *ALIVE,
    "# heading #",
    "- item",
    "+ item",
    "1. item",
    "12) item",
    "---",
    "===",
    "    indented",
    "a\\| b \\\\| c",
    "`` ` ``` ` `` #1 `",
    "````` ~~~~~ `````",
    "```\n# not a heading\n```",
    "~~~~\n````` `` ` \\` x",
    "a | b | c\n|---|---|",
    "![x](http://example.org/x.png) [y](javascript:1) <img src=x> <!-- ",
    "https://example.org @someone #12 &lt;b&gt;",
    "\x1b]52;c;aGk=\x07 \x9b2J \x00 \u202e \u2028 \ud800 \x85",
    "* _b_ __c__ ~~d~~ \\",
    "[bold]x[/bold] [@click=app.quit]y[/]",
    "\r\n\r\n# x\n\n- y\n> z",
    "`",
]


def rendered(shown: Snapshot, options: Options | None = None, text: str = "three plums") -> str:
    calls = {call.n: call for call in shown.calls}
    return report.load("md").render(
        shown,
        lambda n: view(calls[n], delivered=text),
        options or Options(title="orchard", command="ctxscope report x"),
    )


def structure(markdown: str) -> Counter:
    """How many blocks and spans of each kind a Markdown reader sees that links whatever looks like an address.

    Words may stand as code: that is how they are kept from being anything else.
    """
    tokens = MarkdownIt("gfm-like").parse(markdown)
    spans = [inner for token in tokens for inner in token.children or ()]
    return Counter(token.type for token in (*tokens, *spans) if token.type not in ("text", "softbreak", "code_inline"))


def words(markdown: str) -> str:
    """All that a Markdown reader shows as text outside of code."""
    tokens = MarkdownIt("gfm-like").parse(markdown)
    return " ".join(inner.content for token in tokens for inner in token.children or () if inner.type == "text")


def hostile(text: str) -> Snapshot:
    call = replace(known_call(2, first=difference(text, text, text), what=text), model=text, lineage=text)
    cache = replace(call.cache, why=text, facts=(text,), provider_says=text, candidates=(text,), cause=None, path=text)
    session = replace(snapshot().sessions[0], agent=text, agent_version=text, hypotheses=(text,))
    return snapshot(
        replace(call, cache=cache, stop=Stop(text, "truncated"), tokens=replace(call.tokens, gap=(text,))),
        sessions=(session,),
        markers=(Marker("compaction", None, False, text, Place(0, text)),),
        findings=(Finding("CTX101", "warning", (2,), text, text, text),),
        notices=(text,),
        costs=(CacheCost(text, "break", text, (2,), 5, True, 6.0, 0.5, text, text),),
        uses=(replace(snapshot().uses[0], session=text),),
        compactions=(replace(COMPACTION, words=(text,), told=replace(COMPACTION.told, setting=text)),),
        break_rates=(replace(snapshot().break_rates[0], session=text, setting=text),),
        sidecars=tuple(replace(each, role=text, place=Place(0, text)) for each in SIDECARS),
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_changes_nothing_of_the_structure(text):
    plain = structure(rendered(hostile("plums"), Options(title="plums", command="plums"), text="plums"))
    assert structure(rendered(hostile(text), Options(title=text, command=text), text=text)) == plain
    assert plain["table_open"] == 6  # calls, losses, tokens, sidecars, compactions, a ledger
    assert not {"link_open", "image", "html_inline", "html_block"} & set(plain)


@pytest.mark.parametrize("text", ALIVE)
def test_what_a_host_would_bring_to_life_stands_only_as_code(text):
    shown = words(rendered(hostile(text), Options(title=text), text=text))
    assert not re.search(r"://|www\.|[#@$]|evil|:tada:|gh-3|deadbeef1|[!%]\d|&copy", shown, re.IGNORECASE)


@pytest.mark.parametrize(
    "text", ["tool_key_order in message 3, block 1", "it's 5 % of 1,200 tokens: (all) now", "v0.20"]
)
def test_ordinary_words_stay_words(text):
    assert "`" not in prose(text)
    assert words(prose(text)) == text


@pytest.mark.parametrize("text", ["a\\|b", "|", "a|", "\\|`|`` |", "x\\\\|y"])
def test_a_cell_stays_one_cell_however_backslashes_are_read(text):
    for cell in (prose(text), code_cell(text)):
        rows = [cell.replace("\\\\", ""), cell]  # with and without an escaped backslash being one before a pipe
        assert all(re.search(r"(?<!\\)\|", row) is None for row in rows)


@pytest.mark.parametrize("text", ["```", "`````\n# x\n`````", "~~~", "```sh\n``` ````"])
def test_no_run_of_ticks_ends_a_fence(text):
    assert [t.type for t in MarkdownIt("gfm-like").parse(fenced(text))] == ["fence"]
    assert MarkdownIt("gfm-like").parse(fenced(text))[0].content == text + "\n"


@pytest.mark.parametrize("text", HOSTILE)
def test_no_control_or_format_character_remains(text):
    out = rendered(hostile(text), Options(title=text), text=text)
    assert not [c for c in out if c != "\n" and not c.isprintable()]


def test_the_summary_says_how_many_of_what():
    words = rendered(snapshot()).split("\n\n")[1]
    assert words.startswith(
        "2 calls; 1 joined to a log (1 by id). Rebuilt from the log: 0 equal, 1 differing. Not to be told: 1 not supported."
    )
    assert f"The first difference is in call 2, byte {AT}, at `/messages/0/content`: the text differs." in words
    assert "1 stored in part, 1 echoed differently" in words
    assert "Cache: 1 break, 0 missed, 1 unknown; ≈150 tokens lost." in words
    assert "50.8 % logged" in words


def test_a_call_of_which_nothing_is_known_has_dashes_and_no_zero():
    row = next(line for line in rendered(snapshot(unknown_call())).splitlines() if line.startswith("| 1 "))
    assert row == "| 1 | – | main | – | not supported | – | not recorded | – | – | – | – |"


def test_a_call_that_differs_shows_all_its_sides():
    out = rendered(snapshot())
    section = out[out.index("### Call 2") : out.index("## Markers")]
    for piece in (
        "```\ncount the plums\n```",
        "```\ncount the pears\n```",
        "delivered\n\n```\nthree plums\n```",
        "echoed in call 3\n\n```\nthree!\n```",
        "**Cache: break** by `compaction`, consistent: a summary replaced 4 messages",
        "expected ≈100 to ≈200, reported 0, lost ≈150",
        "- log: line 4\n- recording: exchange 2\n",
        "| reported | 300 | – | – | – | – |\n",
    ):
        assert piece in section


def test_an_equal_call_has_a_row_and_no_section():
    fine = known_call(2)
    equal = type(fine)(
        **{
            **{name: getattr(fine, name) for name in fine.__slots__},
            "rebuilt": RebuiltVerdict("equal", "body"),
            "reply": unknown_call().reply,
            "cache": CacheVerdict("warm"),
            "stop": Stop("a|b", "complete"),
        }
    )
    out = rendered(snapshot(equal))
    assert "### Call" not in out
    assert r"| equal | – | not recorded | warm | 300 | 290 | `a`\|`b` complete |" in out


def test_of_several_files_the_one_is_named():
    shown = snapshot(known_call(2), recordings=("/srv/a/wire", "/srv/b/wire"))
    assert "recording: exchange 2 of `/srv/a/wire`" in rendered(shown)


@pytest.mark.parametrize(("estimated", "lost"), [(True, "≈150"), (False, "150")])
def test_lost_tokens_are_marked_as_they_are_known(estimated, lost):
    call = known_call(2)
    out = rendered(snapshot(replace(call, cache=replace(call.cache, confidence="confirmed", lost_estimated=estimated))))
    assert f"reported 0, lost {lost}\n" in out
    assert f"; {lost} tokens lost." in out


def test_a_loss_that_is_unknown_is_not_left_out_of_the_summary():
    call = known_call(3)
    unknown = replace(call, cache=replace(call.cache, lost_tokens=None))
    assert "2 breaks, 0 missed; ≈150 tokens lost, the loss of 1 is unknown." in rendered(
        snapshot(known_call(2), unknown)
    )


def test_estimates_are_marked_as_such():
    out = rendered(snapshot())
    assert "| naive | ≈310 |" in out
    assert (
        "compaction before call 2 (line 3), **not logged**, ≈900 → ≈300 tokens, dropped 2: line 1, line 2: 4 messages became a summary"
        in out
    )


def test_a_ledger_has_a_row_for_each_count_and_a_column_for_each_part_that_any_has():
    out = rendered(snapshot())
    section = out[out.index("### Call 2") : out.index("## Markers")]
    assert (
        "| tokens | in all | system | text | tool calls | envelope |\n"
        "|---|--:|--:|--:|--:|--:|\n"
        "| reported | 300 | – | – | – | – |\n"
        "| visible | 290 | 100 | 190 | – | (40) |\n"
        "| rebuilt | 291 | – | – | – | – |\n"
        "| naive | ≈310 | – | – | – | – |\n"
        "| Hermes 0.20 | ≈305 | 100 | 205 | – | – |\n"
        "| Hermes 0.19 (from the formula, not verified) | ≈5,505 | 100 | 205 | 1,200 | 4,000 |\n"
    ) in section
    assert "In parentheses: no text that the model sees" in section


def test_envelopes_documents_and_what_is_added_stand_in_a_ledger_as_they_are_known():
    call = known_call(2)
    parts = replace(call.tokens.parts, documents=None, overhead=496)
    told = {"envelope_bytes": 1234, "overhead_for": "the tools", "overhead_from": "a page, 2026-08-22"}
    out = rendered(snapshot(replace(call, tokens=replace(call.tokens, parts=parts, **told))))
    assert "| tokens | in all | system | text | tool calls | documents | overhead | envelope |\n" in out
    assert "| visible | 290 | 100 | 190 | – | (–) | (≈496) | (40) |\n" in out
    assert "1,234 bytes of opaque reasoning" in out
    assert "Overhead: what the provider says it adds for the tools; more is not told (a page, 2026-08-22)." in out
    unsaid = rendered(snapshot(replace(call, tokens=replace(call.tokens, envelope_bytes=0))))
    assert "Overhead" not in unsaid
    assert "opaque reasoning" not in unsaid


def test_counts_of_every_call_stand_beside_each_other_and_the_furthest_apart_are_explained():
    first, second = known_call(1), known_call(2)
    low = replace(first.tokens, agent=120, gap=("it under-counts by 180",))
    out = rendered(snapshot(replace(first, tokens=low), second))
    section = out[out.index("## Tokens") : out.index("## Compactions")]
    assert "| 1 | 300 | 290 | 120 | 0.40 | 0.97 |\n| 2 | 300 | 290 | 305 | 1.02 | 0.97 |" in section
    assert "Call 2:\n\n- Hermes 0.20 estimates 305" in section
    assert "Call 1:\n\n- it under-counts by 180" in section
    assert "## Tokens" not in rendered(snapshot(unknown_call()))


def test_calls_of_a_log_alone_are_measured_by_what_it_rebuilds_and_the_columns_say_so():
    call = known_call(1)
    alone = replace(call, tokens=replace(call.tokens, reported=None, visible=None, rebuilt=200, agent=100))
    out = rendered(snapshot(alone))
    head = "| call | reported | rebuilt | the agent's estimate | estimate ÷ rebuilt | rebuilt ÷ reported |"
    assert head in out
    assert "| 1 | – | 200 | 100 | 0.50 | – |" in out
    billed = replace(alone, tokens=replace(alone.tokens, reported=400))
    out = rendered(snapshot(billed))
    assert head.replace("estimate ÷ rebuilt", "estimate ÷ reported") in out
    assert "| 1 | 400 | 200 | 100 | 0.25 | 0.50 |" in out


def test_where_only_some_calls_were_served_each_rebuilt_count_says_so():
    served, logged = known_call(1), known_call(2)
    alone = replace(logged.tokens, reported=None, visible=None, rebuilt=200, agent=100)
    unbilled = replace(served.tokens, reported=None)
    section = rendered(snapshot(replace(served, tokens=unbilled), replace(logged, tokens=alone)))
    text = "visible or rebuilt"
    assert f"| call | reported | {text} | the agent's estimate | estimate ÷ {text} | {text} ÷ reported |" in section
    assert "| 1 | – | 290 | 305 | 1.05 | – |\n| 2 | – | 200 rebuilt | 100 | 0.50 | – |" in section
    billed = rendered(snapshot(served, replace(logged, tokens=replace(alone, reported=400))))
    assert "| 1 | 300 | 290 | 305 | 1.02 | 0.97 |\n| 2 | 400 | 200 rebuilt | 100 | 0.25 | 0.50 |" in billed


def test_an_event_of_which_no_figure_is_known_is_told_in_words_and_has_no_row():
    strip = Compaction(Compacted(Marker("strip", None, True, "images")))
    out = rendered(snapshot(compactions=(COMPACTION, strip)))
    assert "- strip at the end: how much it left out is not known." in out
    assert "| strip" not in out
    assert "| compaction" in out
    alone = rendered(snapshot(compactions=(strip,)))
    section = alone[alone.index("## Compactions") :]
    assert "- strip at the end: how much it left out is not known." in section
    assert "| event |" not in section


def test_sidecars_that_are_not_what_they_stand_for_are_listed_and_the_others_counted():
    out = rendered(snapshot())
    section = out[out.index("## Sidecars") : out.index("## Compactions")]
    assert "| row 5 | user | yes | longer | 2 | ≈4 | ≈9 | ≈+5 | +12 | 9 |" in section
    assert "| row 6 | user | yes | as long | 2 | ≈4 | ≈3 | ≈-1 | +0 | 0 |" in section
    assert (
        "| row 7 | tool | no: its role sends none | shorter | 2 | ≈8 and – of images | ≈1 | (≈-7) | -26 | 0 |"
        in section
    )
    assert "row 4" not in section
    assert "Equal to the message they stand beside: 1 of 4." in section
    assert "Those that the agent's rule sends with call 2 are 16 tokens in place of 12." in section
    assert "## Sidecars" not in rendered(snapshot(sidecars=()))


def test_the_report_ends_with_the_command_that_gives_it_again():
    assert rendered(snapshot()).endswith("## Reproduce\n\n```sh\nctxscope report x\n```\n")


def test_without_content_no_text_of_the_session_remains():
    notices = ("line 9 is torn", f"line 8: the call failed: {quoted('no plums « today')}")
    out = rendered(snapshot(notices=notices), Options(content="none"))
    assert "plums" not in out
    assert "prefix changed" not in out
    assert "/messages/0/content" in out
    assert "- line 9 is torn\n- line 8: the call failed: «…»" in out


def test_escapes_name_what_they_stand_for():
    assert visible("a\x1b\x9b\u202e\ud800\t\n\ufe0fé") == r"a\x1b\x9b\u{202e}\u{d800}\t\n\u{fe0f}é"
    assert visible_lines("a\nb\r") == "a\nb\\r"
    assert fenced("a ```` b").startswith("`````\n")
    assert code("`") == "`` ` ``"
    assert code("") == "–"
    assert prose("tool_key_order *x* @me &amp; & b") == r"tool_key_order \*x\* `@me &amp;` & b"
