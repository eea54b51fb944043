"""The Markdown report says in words what is known, and log text in it is never markup."""

from __future__ import annotations

from collections import Counter

import pytest
from markdown_it import MarkdownIt

from ctxscope import report
from ctxscope.model import CacheVerdict, Marker, Place, RebuiltVerdict, Snapshot, Stop
from ctxscope.report import Options
from ctxscope.report.text import code, fenced, prose, visible, visible_lines
from tests.report_samples import AT, difference, known_call, snapshot, unknown_call, view

HOSTILE = [
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
    """How many blocks and spans of each kind a Markdown reader sees."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(markdown)
    spans = [inner for token in tokens for inner in token.children or ()]
    return Counter(token.type for token in (*tokens, *spans) if token.type not in ("text", "softbreak"))


def hostile(text: str) -> Snapshot:
    call = known_call(2, first=difference(text, text, text), what=text)
    return snapshot(call, markers=(Marker("compaction", None, False, text, Place(0, text)),), notices=(text,))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_changes_nothing_of_the_structure(text):
    plain = structure(rendered(hostile("plums"), Options(title="plums", command="plums"), text="plums"))
    assert structure(rendered(hostile(text), Options(title=text, command=text), text=text)) == plain
    assert plain["table_open"] == 1
    assert not {"link_open", "image", "html_inline", "html_block"} & set(plain)


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
        "reported 300, visible 290",
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
    assert r"| equal | – | not recorded | warm | 300 | 290 | `a\|b` complete |" in out


def test_of_several_files_the_one_is_named():
    shown = snapshot(known_call(2), recordings=("/srv/a/wire", "/srv/b/wire"))
    assert "recording: exchange 2 of `/srv/a/wire`" in rendered(shown)


def test_estimates_are_marked_as_such():
    out = rendered(snapshot())
    assert "naive ≈310" in out
    assert (
        "compaction before call 2 (line 3), **not logged**, ≈900 → ≈300 tokens, dropped 2: line 1, line 2: 4 messages became a summary"
        in out
    )


def test_the_report_ends_with_the_command_that_gives_it_again():
    assert rendered(snapshot()).endswith("## Reproduce\n\n```sh\nctxscope report x\n```\n")


def test_without_content_no_text_of_the_session_remains():
    out = rendered(snapshot(), Options(content="none"))
    assert "plums" not in out
    assert "/messages/0/content" in out


def test_escapes_name_what_they_stand_for():
    assert visible("a\x1b\x9b\u202e\ud800\t\n\ufe0fé") == r"a\x1b\x9b\u{202e}\u{d800}\t\n\u{fe0f}é"
    assert visible_lines("a\nb\r") == "a\nb\\r"
    assert fenced("a ```` b").startswith("`````\n")
    assert code("`") == "`` ` ``"
    assert code("") == "–"
    assert prose("tool_key_order *x* @me &amp;") == r"tool_key_order \*x\* &#64;me &amp;amp;"
