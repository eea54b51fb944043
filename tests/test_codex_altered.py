"""Requests of Codex that carry less, more or other than the log implies: nothing of it may be taken from the wire."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ctxscope.agents import codex
from ctxscope.agents.codex import base
from tests.codex_cases import body_of, log_of, rebuilt
from tests.codex_lines import Row, message, old, short_session
from tests.conftest import CAPTURES, needs_captures
from tests.samples.codex_texts import BASE, BASE_SENT
from tests.session_cases import look

Change = Callable[[Row], Any]


def changed(data: bytes, change: Change) -> bytes:
    request = json.loads(data)
    change(request)
    return json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode()


def states(*changes: Change) -> list[bool]:
    """Of a session's two requests, the last of which so many are changed, whether they are rebuilt as served."""
    session, served = short_session()
    keys = list(served)
    for key, change in zip(keys[len(keys) - len(changes) :], changes, strict=True):
        new = changed(served[key], change)
        assert new != served[key]
        served[key] = new
    made = rebuilt(log_of(line.encode() for line in session.lines), served)
    for _, _, found in made.values():
        borrowed = {p.path for p in found.pieces if p.provenance in ("learned", "echoed")}
        assert all(any(item.covers(path) for item in codex.learnable) for path in borrowed)
    return [made[key][1] == served[key] for key in keys]


def text(change: Callable[[str], str]) -> Change:
    """Another text of the base instructions."""

    def altered(request: Row) -> None:
        part = request["input"][0]["content"][0]
        part["text"] = change(part["text"])

    return altered


def lacking(word: str) -> Callable[[str], str]:
    return lambda sent: "\n".join(line for line in sent.split("\n") if word not in line)


def strange(request: Row) -> None:
    request["zz_new"] = 1


ITEMS: dict[str, Change] = {
    "first line": text(lambda sent: sent.split("\n")[0]),
    "no line with a word": text(lacking("measured")),
    "without its first line": text(lambda sent: sent.partition("\n\n")[2]),
    "half a section": text(lambda sent: sent.replace("Short sentences. ", "")),
    "another text": text(lambda _: "Something else altogether.\nOf two lines."),
    "a line more": text(lambda sent: sent + "Obey."),
    "a foreign member": lambda request: request["input"][0].update(zz_new=1),
    "no type": lambda request: request["input"][0].pop("type"),
    "no role": lambda request: request["input"][0].pop("role"),
    "a part more": lambda request: request["input"][0]["content"].append({"type": "input_text", "text": "Obey."}),
    "a part's member": lambda request: request["input"][0]["content"][0].update(zz_new=1),
    "no item": lambda request: request["input"].pop(0),
    "a member nobody knows": strange,
}


@pytest.mark.parametrize("name", ITEMS)
def test_what_all_requests_carry_otherwise_is_not_learned(name: str):
    assert states(ITEMS[name], ITEMS[name]) == [False, False]


@pytest.mark.parametrize("name", ITEMS)
def test_what_a_later_request_carries_otherwise_differs(name: str):
    assert states(ITEMS[name]) == [True, False]


def metadata(change: Callable[[dict[str, str]], Any]) -> Change:
    return lambda request: change(request["client_metadata"])


def test_names_in_the_client_metadata_are_those_of_the_first_request():
    for change in (
        metadata(lambda m: m.update({"x-evil": "1"})),
        metadata(lambda m: m.clear()),
        metadata(lambda m: m.pop("x-codex-window-id")),
        metadata(lambda m: m.update({"x-codex-installation-id": "another"})),
        lambda request: request.update(client_metadata=None),
        lambda request: request.pop("client_metadata"),
    ):
        assert states(change) == [True, False]
    assert states(metadata(lambda m: m.update({"x-codex-turn-metadata": "of this turn"}))) == [True, True]


def test_the_id_of_the_base_item_is_the_first_requests():
    def nameless(request: Row) -> None:
        del request["input"][0]["id"]

    assert states(nameless, nameless) == [True, True]
    assert states(nameless) == [True, False]


def test_sections_are_left_out_whole():
    whole = base.whole_of(BASE)
    assert base.kept_lines(BASE, BASE) == whole
    assert "lines 7-11, 16-19" in (base.told(base.kept_lines(BASE, BASE_SENT), BASE) or "")
    for word in ("Lists", "more than three", "Look before", "vent"):  # a section lacks a line, or its heading
        assert base.kept_lines(BASE, lacking(word)(BASE)) == whole
    cut = BASE.replace(BASE[BASE.index("## Lists") : BASE.index("## Work")], "")
    assert base.kept_lines(BASE, cut) == ((0, 6), (11, 19)) == base.kept_lines(BASE, cut.replace("reason", "season"))
    fenced = "One.\n\n## A\n\n```sh\n# note\nrun\n```\n\n## B\n\nEnd, and more of what has to be said here."
    assert base.kept_lines(fenced, fenced.replace("# note\nrun\n```\n\n", "")) == base.whole_of(fenced)
    many = "One.\n" + "\n".join(f"## {n}\n\nSomething long to be said of {n}.\n" for n in range(20))
    some = "".join(part for n, part in enumerate(many.split("## ")) if n % 3)
    assert base.kept_lines(many, some) == base.whole_of(many)


def test_instructions_that_are_not_logged_are_still_learned():
    lines = old(message("user", "one"), message("assistant", "a"))
    lines[0] = lines[0].replace(b', "base_instructions": {"text": "Be exact."}', b"")
    assert b"base_instructions" not in lines[0]
    log = log_of(lines)
    (point,) = codex.requests(log)
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one"}]}
    data = json.dumps({"model": "m", "instructions": "Any.", "input": [item], "stream": True}, separators=(",", ":"))
    made = rebuilt(log, {point.key: data.encode()})
    assert made[point.key][1] == body_of(data.encode()).data


@needs_captures
@pytest.mark.parametrize(
    "change",
    [
        text(lambda sent: sent.split("\n")[0]),
        text(lacking("not")),
        text(lambda sent: sent.partition("\n")[2]),
        lambda request: request["input"].pop(0),
        lambda request: request["input"][0].pop("type"),
        lambda request: request["input"][0].update(zz_new=1),
        strange,
    ],
)
def test_a_recorded_session_served_otherwise_differs_in_each_call(change: Change, tmp_path, monkeypatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)
    case = CAPTURES / "codex" / "cx171_a"
    (tmp_path / "wire").mkdir()
    for path in (case / "wire").iterdir():
        data = path.read_bytes()
        (tmp_path / "wire" / path.name).write_bytes(changed(data, change) if path.suffix == ".req" else data)
    calls = look(case / "log", tmp_path / "wire")
    assert [c.rebuilt.state for _, c in sorted(calls.items()) if c.entry is not None] == ["differs"] * 6
