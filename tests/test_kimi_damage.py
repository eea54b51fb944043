"""Kimi CLI's files that are damaged, newer than known, or still being written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxscope.agents import kimi
from ctxscope.model import Config, Learned, Place, Record
from ctxscope.session.fold import SessionLog
from tests.kimi_cases import (
    FIRST,
    METADATA,
    SAMPLE,
    SUMMARY,
    answered,
    checkpoint,
    copied,
    event,
    folder_in,
    messages,
    put,
    read,
    system,
    told,
    user,
)


def test_what_is_not_known_is_counted_and_changes_nothing(tmp_path: Path):
    folder = folder_in(tmp_path)
    put(folder / "context.jsonl", FIRST)
    put(folder / "wire.jsonl", [METADATA, *answered("m1", "a", "c1"), *answered("m2", "b")])
    plain = read(tmp_path).log
    assert kimi.notices(plain) == ()
    odd = [{"role": "_later", "x": 1}, *({**dict(reversed(r.items())), "new": True} for r in FIRST), "{torn", "7"]
    put(folder / "context.jsonl", odd)
    newer = {"protocol_version": "2.0", "type": "metadata", "more": 1}
    put(folder / "wire.jsonl", [newer, event("Sparkle"), *answered("m1", "a", "c1"), *answered("m2", "b")])
    log = read(tmp_path).log
    assert [messages(log, p) for p in kimi.requests(log)] == [messages(plain, p) for p in kimi.requests(plain)]
    assert [p.ids for p in kimi.requests(log)] == [p.ids for p in kimi.requests(plain)]
    assert list(kimi.notices(log)) == [
        "2 lines could not be read; the first is context.jsonl line 10",
        "written by wire protocol «2.0», newer than any known here; read like 1.9",
        "2 records of a kind that is not known: «Sparkle» (1), «_later» (1); the first at line 1",
        f"9 fields of records not known: {', '.join(_fields())}; the first at line 2",
    ]


def _fields() -> list[str]:
    counts = {
        "_checkpoint.new": 3,
        "assistant.new": 2,
        "_system_prompt.new": 1,
        "metadata.more": 1,
        "tool.new": 1,
        "user.new": 1,
    }
    return [f"«{name}» ({n})" for name, n in counts.items()]


def test_answers_whose_events_are_missing_are_told_by_file(tmp_path: Path):
    folder = folder_in(tmp_path)
    put(folder / "context.jsonl", FIRST)
    events = [METADATA, *answered("m1", "a", "c1"), *answered("m2", "b")]
    put(folder / "wire.jsonl", events)
    assert kimi.notices(read(tmp_path).log) == ()
    whole = (folder / "wire.jsonl").read_bytes()
    (folder / "wire.jsonl").write_bytes(whole[:-20])
    (told,) = kimi.notices(read(tmp_path).log)
    assert told.startswith("1 answer without an event in wire.jsonl, the first at context.jsonl line 8: ids and usage")
    (folder / "wire.jsonl").unlink()
    (lost,) = kimi.notices(read(tmp_path).log)
    assert lost.startswith("2 answers without an event in wire.jsonl, the first at context.jsonl line 5")
    put(folder / "wire.jsonl", [METADATA, event("TurnBegin", user_input=[0, None])])
    assert len(kimi.notices(read(tmp_path).log)) == 1


def test_rows_alone_under_another_name_miss_no_events(tmp_path: Path):
    put(tmp_path / "saved.jsonl", FIRST)
    (ref,) = kimi.refs(tmp_path / "saved.jsonl", tmp_path)
    session = SessionLog.open(ref)
    session.poll()
    assert len(kimi.requests(session.log)) == 2
    assert kimi.notices(session.log) == ()


def test_every_beginning_of_the_files_is_read_and_leads_to_the_same_end(tmp_path: Path):
    whole = read(copied(SAMPLE, tmp_path / "whole") / "log")
    grown = copied(SAMPLE, tmp_path / "grown") / "log"
    paths = [*sorted(grown.rglob("context*.jsonl"), reverse=True), *grown.rglob("wire.jsonl")]
    texts = {path: path.read_bytes().splitlines(keepends=True) for path in paths}
    for path in paths:
        path.write_bytes(texts[path][0])
    session = read(grown)
    for path in paths:
        for n in range(1, len(texts[path]) + 1):
            path.write_bytes(b"".join(texts[path][:n]))
            session.poll()
            kimi.markers(session.log)
            for point in kimi.requests(session.log)[-2:]:
                assert messages(session.log, point)
    assert told(session.log) == told(whole.log)
    assert [p.ids for p in kimi.requests(session.log)] == [p.ids for p in kimi.requests(whole.log)]


ROWS = [
    json.loads(x)
    for p in sorted(SAMPLE.rglob("*.jsonl"))
    if p.name != "index.jsonl"
    for x in p.read_bytes().splitlines()
]
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.builds(dict, type=st.integers()),
)


@st.composite
def _broken(draw: st.DrawFn) -> Any:
    """A row of the sample with some field of it, at some depth, replaced or taken away."""
    row = json.loads(json.dumps(draw(st.sampled_from(ROWS))))
    at: Any = row
    for _ in range(draw(st.integers(1, 4))):
        keys = list(at) if isinstance(at, dict) else list(range(len(at))) if isinstance(at, list) else []
        if not keys:
            break
        key = draw(st.sampled_from(keys))
        if isinstance(at[key], dict | list) and draw(st.booleans()):
            at = at[key]
        elif draw(st.booleans()):
            at[key] = draw(JUNK)
        elif isinstance(at, dict):
            del at[key]
    return row


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(rows=st.lists(_broken(), max_size=12), events=st.lists(_broken(), max_size=6))
def test_fields_of_any_kind_are_read_somehow(tmp_path: Path, rows: list[Any], events: list[Any]):
    folder = folder_in(tmp_path)
    put(folder / "context_1.jsonl", [system(), checkpoint(0), *rows])
    put(folder / "context.jsonl", [system(), checkpoint(0), user(SUMMARY), *rows, checkpoint(1), *rows])
    put(folder / "wire.jsonl", [METADATA, *events])
    log = read(tmp_path).log
    kimi.config(log)
    kimi.notices(log)
    kimi.markers(log)
    for point in kimi.requests(log):
        assert kimi.rebuild(log, point, Config(), Learned()) is not None
        kimi.estimates(log, point)
        kimi.naive(log, point)


@given(value=st.binary(max_size=60), source=st.sampled_from(["context", "context:1", "wire", "config", "context:ab:2"]))
def test_any_bytes_are_an_entry(value: bytes, source: str):
    record = Record(source, "3", Place(0, "line 3"), value)
    (entry,) = kimi.entries(record)
    assert entry.source == source
    (gone,) = kimi.entries(Record(source, "3", Place(0, "line 3"), None))
    assert gone.kind == "gone"
