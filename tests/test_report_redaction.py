"""No secret of a known shape, and no home folder, leaves through a report unasked."""

from __future__ import annotations

import json
import string
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope import report
from ctxscope.model import Block, CallView, Finding, RebuiltVerdict, ReplyVerdict
from ctxscope.report import Options
from ctxscope.report.redaction import Redaction
from tests.report_samples import difference, known_call, snapshot, view

LETTERS = string.ascii_letters + string.digits


def tail(least: int, most: int = 60, alphabet: str = LETTERS) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=least, max_size=most)


SECRETS = st.one_of(
    st.builds("sk-ant-api03-{}".format, tail(20)),
    st.builds("sk-{}".format, tail(20)),
    st.builds("sk-proj-{}".format, tail(20)),
    st.builds("gh{}_{}".format, st.sampled_from("opusr"), tail(36)),
    st.builds("github_pat_{}".format, tail(30)),
    st.builds("xox{}-{}".format, st.sampled_from("abp"), tail(12)),
    st.builds("{}{}".format, st.sampled_from(["AKIA", "ASIA"]), tail(16, 16, string.ascii_uppercase + string.digits)),
    st.builds("AIza{}".format, tail(35, 35)),
    st.builds("glpat-{}".format, tail(20)),
    st.builds("hf_{}".format, tail(34)),
    st.builds("npm_{}".format, tail(36)),
    st.builds("eyJ{}.{}.{}".format, tail(12), tail(12), tail(12)),
    st.builds(r"-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----".format, tail(64, 200)),
)
AROUND = st.sampled_from(["", " ", '"', "\\n", "\\u000a", "\n", "=", ": ", "…", "é", "[", "`"])


@pytest.mark.parametrize("name", report.names())
@given(secret=SECRETS, before=AROUND, after=AROUND)
def test_a_planted_secret_appears_in_no_format(name, secret, before, after):
    text = f"use{before or ' '}{secret}{after or ' '}now"
    body = text.encode()
    call = known_call(1, first=difference(text, text, text, 5), what=text)
    shown = snapshot(call, notices=(text,))
    out = report.load(name).render(
        shown,
        lambda _: view(call, served=body, rebuilt=body, delivered=text, stored=text, echoed=text),
        Options(title=text, command=text),
    )
    middle = secret[len(secret) // 2 :][:12]
    assert middle not in out
    assert "‹" in out


KEY = "sk-ant-api03-" + "Qw3rTy9uIo" * 7
OTHER = KEY[:60] + "Z" + KEY[61:]
BROKEN = KEY[:60] + " " + KEY[61:]
"""As ``KEY`` but for one character, which in ``BROKEN`` ends what looks like a key."""
FAR = "word " * 6000


def excerpt(text: str, at: int) -> str:
    """What an analysis cuts out around a difference: the difference deep inside of it, or at its very start."""
    return text[max(at - 20, 0) : at + 60]


def leaks(out: str) -> list[str]:
    tails = {text[i : i + 8] for text in (KEY, OTHER) for i in range(len("sk-ant-api03-"), len(text) - 7)}
    return [tail for tail in tails if tail in out]


@pytest.mark.parametrize("served", [OTHER, BROKEN])
@pytest.mark.parametrize("before", ["", FAR], ids=["near", "far"])
@pytest.mark.parametrize("name", report.names())
def test_a_letter_that_differs_inside_a_key_shows_nothing_of_it(name, before, served):
    sides = [f'{{"content":"{before}the key is {key} and more"}}' for key in (served, KEY)]
    at = next(i for i, (a, b) in enumerate(zip(*sides, strict=True)) if a != b)
    first = difference(excerpt(sides[0], at), excerpt(sides[1], at), f"it reads {excerpt(sides[0], at)}", at)
    call = known_call(1, first=first)
    call = replace(call, cache=replace(call.cache, why=excerpt(sides[1], at + 9), facts=(excerpt(sides[0], at + 2),)))
    shown = snapshot(
        call,
        findings=(Finding("CTX101", "error", (1,), "/content", first.cause, first.served),),
        notices=(f"the provider said {excerpt(sides[0], at)}",),
    )
    served_body, rebuilt_body = (side.encode() for side in sides)
    out = report.load(name).render(shown, lambda _: view(call, served=served_body, rebuilt=rebuilt_body), Options())
    assert not leaks(out)
    assert "and more" in out


@pytest.mark.parametrize("kept", [OTHER, BROKEN])
@pytest.mark.parametrize("name", report.names())
def test_a_reply_that_differs_inside_a_key_far_down_shows_nothing_of_it(name, kept):
    delivered, stored = (f"{FAR}the key is {key} and more" for key in (KEY, kept))
    at = next(i for i, (a, b) in enumerate(zip(delivered, stored, strict=True)) if a != b)
    call = known_call(1)
    first = replace(difference(excerpt(delivered, at), excerpt(stored, at), at=at), path="/text", other_offset=at)
    call = replace(call, reply=replace(call.reply, state="differs", first_difference=first))
    out = report.load(name).render(
        snapshot(call),
        lambda _: view(call, delivered=delivered, stored=stored, echoed=stored),
        Options(),
    )
    assert not leaks(out)
    assert "and more" in out


def test_a_tool_call_of_a_reply_is_judged_by_its_own_arguments():
    texts = [json.dumps({"note": "x" * 20_000, "token": key}) for key in (KEY, OTHER)]
    at = next(i for i, (a, b) in enumerate(zip(*texts, strict=True)) if a != b)
    first = replace(
        difference(excerpt(texts[0], at), excerpt(texts[1], at), at=at), path="/tool_calls/1/arguments", other_offset=at
    )
    call = known_call(1)
    call = replace(call, reply=replace(call.reply, state="differs", first_difference=first))
    blocks = [(Block("text", "so"), Block("tool_call", "{}", "1", "a"), Block("tool_call", t, "2", "b")) for t in texts]
    shown = replace(view(call), delivered_blocks=blocks[0], stored_blocks=blocks[1])
    assert not leaks(report.load("json").render(snapshot(call), lambda _: shown, Options()))


def test_what_is_shown_in_full_is_shown_as_it_is():
    text = f"the key is {KEY}"
    call = known_call(1, first=difference(text, text))
    out = report.load("json").render(snapshot(call), lambda _: view(call), Options(content="full"))
    assert out.count(KEY) == 2


def test_no_call_is_looked_at_where_nothing_of_it_is_shown():
    def views(n: int) -> CallView:
        raise AssertionError(n)

    same = replace(known_call(1), rebuilt=RebuiltVerdict("equal"), reply=ReplyVerdict("equal"))
    report.load("json").render(snapshot(same), views, Options())
    report.load("md").render(snapshot(same), views, Options())
    report.load("md").render(snapshot(known_call(1)), views, Options(content="none"))


@given(secret=SECRETS, data=st.data())
def test_no_excerpt_cut_out_of_a_body_shows_a_part_of_a_secret(secret, data):
    body = f'{{"content":"the key is {secret} and nothing else"}}'
    start = data.draw(st.integers(0, len(body) - 1))
    end = data.draw(st.integers(start + 1, len(body)))
    redact = Redaction()
    shown = redact.excerpt(body[start:end], redact.around(body.encode(), start))
    pieces = {secret[i : i + 8] for i in range(len(secret) - 7)}
    assert not any(piece in shown for piece in pieces if piece not in "-----BEGIN RSA PRIVATE KEY-----")


def test_what_was_found_says_its_kind_and_length():
    assert Redaction()("key AKIAABCDEFGHIJKLMNOP!") == "key ‹aws-key·20›!"
    assert Redaction()("Authorization: Bearer abcdefgh12345") == "Authorization: Bearer ‹bearer·13›"


@pytest.mark.parametrize("before", ["", " ", "\\n", "\\u000a", '"'])
def test_an_escaped_line_end_before_a_key_is_no_letter(before):
    assert Redaction()(f"x{before}sk-abcdefghijklmnop0123" if before else "sk-abcdefghijklmnop0123").endswith(
        "‹api-key·23›"
    )


@pytest.mark.parametrize(
    "text",
    [
        "a task-list-of-the-many-things-to-do",
        "the disk-usage-of-the-biggest-folder",
        "bearer of good news",
        "a home-made-pie",
        "/srv/home",
        "msg_01ABCdef",
        "shf_x",
    ],
)
def test_ordinary_words_stay(text):
    assert Redaction("/srv/users/ada")(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/ada/plums/x.py", "‹home·9›/plums/x.py"),
        ("/Users/ada", "‹home·10›"),
        (r"C:\\Users\\ada\\x", r"‹home·14›\\x"),
        ("/data/people/bo/x", "‹home·15›/x"),
        ("/data/people/bob/x", "/data/people/bob/x"),
        ("sessions/--home-ada-plums--/a.jsonl", "sessions/‹home·10›-plums--/a.jsonl"),
        ("sessions/-data-people-bo-plums/a", "sessions/‹home·15›-plums/a"),
    ],
)
def test_home_folders_go_in_every_spelling(text, shown):
    assert Redaction("/data/people/bo")(text) == shown


def test_nothing_changes_when_all_content_is_asked_for():
    text = "sk-ant-api03-abcdefghijklmnop in /home/ada"
    assert Redaction("/home/ada", active=False)(text) == text


BODY = '"a":"é ghp_0123456789abcdefghijABCDEFGHIJ012345 ün","b":1'


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [
        (5, 11, "é ‹github-token·4›"),
        (20, 28, "‹github-token·8›"),
        (40, 49, "‹github-token·7› ü"),
        (44, 48, "‹github-token·3› "),
        (47, 50, " ün"),
    ],
)
def test_an_excerpt_is_judged_by_what_the_body_holds_around_it(start, end, shown):
    redact = Redaction()
    around = redact.around(BODY.encode(), len(BODY[: start + 1].encode()))
    assert redact.excerpt(BODY[start:end], around) == shown


def test_an_excerpt_that_ends_inside_a_character_is_still_found_in_its_body():
    redact = Redaction()
    body = f"the key is {KEY} – and more".encode()
    piece = body[60 : body.index("–".encode()) + 2].decode("utf-8", "backslashreplace")
    assert piece.endswith("\\x80")
    assert not leaks(redact.excerpt(piece, redact.around(body, 70)))


def test_an_excerpt_that_is_nowhere_near_is_judged_by_itself_and_by_what_is_known():
    redact = Redaction()
    around = redact.around(f"the key is {KEY}".encode(), 30)
    knowing = redact.knowing(around.known)
    assert knowing.excerpt(f"x{KEY[40:]}y /home/ada", around) == f"x‹anthropic-key·{len(KEY) - 40}›y ‹home·9›"
    assert redact("Qw3rTy9uIo") == "Qw3rTy9uIo"


@pytest.mark.parametrize(
    "name",
    [
        *("telegram.token", "web.secret", "web.bot_token", "web.smtp_pass", "apiKey", "OPENAI_API_KEY", "x-api-key"),
        *("db.pwd", "AccessKeyId", "session.cookie", "auth.credentials", "secrets", "access_tokens", "GITHUB_PAT"),
    ],
)
@pytest.mark.parametrize("value", ["open sesame", 12345, 1.5, ["open", "sesame"], {"open": "sesame"}, ("sesame",)])
def test_whatever_stands_under_a_telling_name_is_hidden(name, value):
    assert Redaction().value({name: value}) == {name: f"‹secret·{len(str(value))}›"}


@pytest.mark.parametrize(
    "name", ["max_tokens", "tokens", "path", "keyboard", "monkey", "passes", "compression.threshold", "tokens.parts"]
)
def test_other_names_tell_nothing(name):
    assert Redaction().value({name: "seven", "inner": {name: [7]}}) == {name: "seven", "inner": {name: [7]}}


def test_nothing_under_a_telling_name_is_nothing_to_hide():
    values = {"api_key": None, "token": "", "auth.secret": False}
    assert Redaction().value(values) == values
