"""opencode's rows and files that are not known, damaged, or another's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxscope.agents import opencode
from ctxscope.model import Body, Config, CtxscopeError, Learned, Place, Record
from tests.opencode_cases import LOOK, SAMPLE, SESSION, full, messages, opened, read
from tests.samples.opencode_form import text, thought, used

SIGNED = {"metadata": {"anthropic": {"signature": "c2ln"}}}
MARK = {"cache_control": {"type": "ephemeral"}}
ANTHROPIC = "anthropic-messages"


def test_what_is_not_known_is_counted_and_changes_nothing(tmp_path: Path):
    full(tail=False).write(tmp_path / "plain")
    plain = read(tmp_path / "plain").log
    assert opencode.notices(plain) == ()
    rows = full(tail=False)
    for row in (*rows.messages, *rows.parts):
        row["data"] = json.dumps({**dict(reversed(json.loads(row["data"]).items())), "later": 1})
    rows.sessions[0]["version"] = "2.0.0"
    rows.message(SESSION, 20, {"role": "oracle"}, [{"type": "dream"}])
    rows.parts.append({**rows.parts[0], "id": "prt_zzzz", "data": "{torn"})
    rows.write(tmp_path / "odd")
    log = read(tmp_path / "odd").log
    points = [p for p in opencode.requests(log) if p.kind == "main"]
    assert [messages(log, p) for p in points] == [
        messages(plain, p) for p in opencode.requests(plain) if p.kind == "main"
    ]
    torn, newer, kinds, fields = opencode.notices(log)
    assert torn == "1 rows hold no JSON object; the first is row prt_zzzz"
    assert newer == "written by opencode «2.0.0», newer than any known here; read like 1.18.34"
    assert kinds.startswith("2 records of a kind that is not known: «dream» (1), «oracle» (1)")
    assert fields.startswith(f"{len(rows.messages) + len(rows.parts) - 3} fields of records not known: ")


def test_a_session_that_a_request_names_and_what_its_prompts_tell():
    from ctxscope import wire  # noqa: PLC0415 - here alone
    from ctxscope.wire.body import make_body  # noqa: PLC0415 - here alone

    kinds = []
    for n in range(1, 8):
        data = (SAMPLE / "wire" / f"{n:04d}.req").read_bytes()
        kinds.append(opencode.classify(make_body(data, wire.detect("/v1/chat/completions", {}, data))))
    assert kinds == ["side", "main", "main", "main", "main", "compaction", "main"]
    assert opencode.named({"x-session-id": "ses_1"}, Body(b"", None, ())).session == "ses_1"
    assert opencode.named({}, Body(b"", None, ())).session is None


def test_what_is_no_session_is_refused_by_name(tmp_path: Path):
    (tmp_path / "x.json").write_text('{"info":{}}', encoding="utf-8")
    with pytest.raises(CtxscopeError, match=r"x\.json: found neither"):
        list(opencode.refs(tmp_path / "x.json", tmp_path))
    with pytest.raises(CtxscopeError, match="cannot be read"):
        list(opencode.refs(tmp_path / "gone.db", tmp_path))
    assert opencode.claims(tmp_path / "opencode.db", b"SQLite format 3\x00") > 0.5
    assert opencode.claims(tmp_path / "other.db", b"SQLite format 3\x00") == 0
    assert list(opencode.discover(tmp_path)) == []


DATA = [json.loads(r["data"]) for r in (*full(tail=True).messages, *full(tail=True).parts)]
DATA += [used(LOOK, attachments=[{"mime": "image/png", "url": "data:,"}]), thought("t", **SIGNED)]
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.lists(st.integers(), max_size=2)
)


@st.composite
def _broken(draw: st.DrawFn) -> Any:
    """The JSON of a row with some field of it, at some depth, replaced or taken away."""
    data = json.loads(json.dumps(draw(st.sampled_from(DATA))))
    at: Any = data
    for _ in range(draw(st.integers(1, 4))):
        if not isinstance(at, dict) or not at:
            break
        key = draw(st.sampled_from(sorted(at)))
        if isinstance(at[key], dict) and draw(st.booleans()):
            at = at[key]
        elif draw(st.booleans()):
            at[key] = draw(JUNK)
        else:
            del at[key]
    return data


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(rows=st.lists(st.tuples(_broken(), st.lists(_broken(), max_size=4)), max_size=6), junk=JUNK)
def test_fields_of_any_kind_are_read_somehow(tmp_path: Path, rows: list[Any], junk: Any):
    made = full(tail=True)
    for n, (message, parts) in enumerate(rows):
        made.message(SESSION, 20.0 + n, message, parts)
    asked = made.user(SESSION, 90, text("last"))
    made.answer(SESSION, 91, asked, text("end"))
    made.sessions[0]["model"] = str(junk)
    made.write(tmp_path)
    log = read(tmp_path).log
    opencode.config(log)
    opencode.notices(log)
    opencode.markers(log)
    for point in opencode.requests(log):
        for api in ("openai-chat", ANTHROPIC):
            opencode.rebuild(log, point, Config(), Learned(choice={"api": api}))
        opencode.endpoint(log, point)
        opencode.naive(log, point)
        opencode.error_line(log, point)


@given(
    value=st.one_of(
        st.binary(max_size=40), st.dictionaries(st.sampled_from(["id", "data", "message_id", "time_created"]), JUNK)
    )
)
def test_any_value_is_entries(value: Any):
    for source in ("message", "part", "session", "export"):
        assert all(e.place.at for e in opencode.entries(Record(source, "x", Place(0, "row x"), value)))


def test_an_export_with_other_things_in_it_is_read(tmp_path: Path):
    path = tmp_path / "e.json"
    whole = {
        "info": {"id": "ses_1"},
        "messages": [3, {"info": 4, "parts": 5}, {"info": {"id": "msg_1", "role": "user"}, "parts": [{"id": "prt_1"}]}],
    }
    path.write_text(json.dumps(whole), encoding="utf-8")
    (ref,) = opencode.refs(path, tmp_path)
    assert opencode.requests(opened(ref).log) == []
