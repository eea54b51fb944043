"""No secret of a known shape, and no home folder, leaves through a report unasked."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope import report
from ctxscope.report import Options
from ctxscope.report.redaction import Redaction, hide_parts, secrets_near
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


@given(secret=SECRETS, data=st.data())
def test_no_excerpt_cut_out_of_a_body_shows_a_part_of_a_secret(secret, data):
    body = f'{{"content":"the key is {secret} and nothing else"}}'
    start = data.draw(st.integers(0, len(body) - 1))
    end = data.draw(st.integers(start + 1, len(body)))
    shown = Redaction().excerpt(body[start:end], body.encode(), start)
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


def test_a_secret_beyond_the_edges_of_an_excerpt_is_hidden_by_what_the_body_holds():
    found = secrets_near(b'"a":"ghp_0123456789abcdefghijABCDEFGHIJ012345","b":1', 10)
    assert found == [("github-token", "ghp_0123456789abcdefghijABCDEFGHIJ012345")]
    assert hide_parts("…IJ012345 then ghp_01…", found) == "…‹github-token·8› then ‹github-token·6›…"
    assert hide_parts("cdefghij", found) == "‹github-token·8›"
