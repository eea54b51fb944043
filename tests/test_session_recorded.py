"""A ``.ctxrec`` through the whole path: it says what the raw folder says, is found by its log, and finds it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import ctxscope
from ctxscope import agents, capture, resources
from ctxscope.capture.events import Chunk, End, Event, Head, Meta, Places, Request
from ctxscope.capture.recorder import Recorder
from ctxscope.capture.writer import Writer
from ctxscope.cli import target
from ctxscope.model import Call, Exchange, Snapshot
from tests.conftest import SAMPLES

PI, HERMES = SAMPLES / "pi" / "clean_append", SAMPLES / "hermes" / "sidecar_differs"
Change = Callable[[Event], Event | None]


def events_of(exchange: Exchange) -> Iterator[Event]:
    n, time = exchange.n, exchange.time
    headers = tuple(exchange.headers.items())
    yield Request(n, time, exchange.method, exchange.path, "https://models.example", headers, exchange.request())
    if exchange.response_bytes is not None:
        yield Head(n, exchange.first_byte or time, exchange.status or 200)
        yield Chunk(n, exchange.end or time, 0, exchange.response())
        yield End(n, exchange.end or time)


def exchanges_of(case: Path) -> list[Exchange]:
    (index,) = case.rglob("index.jsonl")
    return capture.open_recording(index.parent, 0).poll()


def written(case: Path, path: Path, meta: Meta, change: Change = lambda event: event) -> Path:
    """The recording in a sample as a ``.ctxrec``."""
    writer = Writer(path, meta)
    for exchange in exchanges_of(case):
        for event in events_of(exchange):
            changed = change(event)
            if changed is not None:
                writer.write(changed)
    writer.close()
    return path


def snapshot(path: Path, **options: str) -> Snapshot:
    inspection = ctxscope.open(path, **options)
    try:
        return inspection.snapshot
    finally:
        inspection.close()


def essence(calls: tuple[Call, ...]) -> list[object]:
    return [
        (c.session, c.kind, c.turn, c.entry, c.joined_by, c.rebuilt, c.reply, c.cache.verdict, c.cache.cause, c.usage)
        for c in calls
    ]


def log_of(case: Path) -> Path:
    return next(iter([*(case / "log").rglob("state.db"), *(case / "log").rglob("sessions/**/*.jsonl")]))


@pytest.mark.parametrize("case", sorted(p.parent for p in SAMPLES.glob("*/*/expected.json")), ids=lambda c: c.name)
def test_it_says_what_the_raw_folder_says(case, tmp_path):
    for i, folder in enumerate(sorted(p.parent for p in case.rglob("index.jsonl"))):
        written(folder, tmp_path / "recordings" / f"{i}.ctxrec", Meta(1.0))
    again = snapshot(case / "log", recording=str(tmp_path / "recordings"))
    assert essence(again.calls) == essence(snapshot(case).calls)


@pytest.mark.parametrize("case", [PI, HERMES], ids=["pi", "hermes"])
def test_a_log_finds_its_recording_in_the_data_folder_and_the_reverse(case, tmp_path):
    log = shutil.copytree(case / "log", tmp_path / "home")
    first = min(c.time or 0.0 for c in snapshot(case).calls)
    meta = Meta(first, agent=case.parent.name, home=str(log))
    path = written(case, resources.recordings() / "a.ctxrec", meta)
    other = written(case, resources.recordings() / "b.ctxrec", replace(meta, agent="any"))
    file = tmp_path / "home" / log_of(case).relative_to(case / "log")
    by_log, by_recording = snapshot(file), snapshot(path)
    assert by_log.recordings == by_recording.recordings == (str(path),)
    assert essence(by_log.calls) == essence(by_recording.calls)
    assert any(c.rebuilt.state == "equal" for c in by_log.calls)
    assert other.exists()


def test_a_recording_from_before_or_after_a_session_is_not_even_read(tmp_path):
    log = shutil.copytree(PI / "log", tmp_path / "home")
    file = tmp_path / "home" / log_of(PI).relative_to(PI / "log")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    written(PI, resources.recordings() / "late.ctxrec", Meta(1_900_000_000.0, agent="pi", home=str(log)))
    assert snapshot(file).recordings == ()


def test_where_the_log_stood_joins_what_nothing_else_does(tmp_path):
    """Answers cut and requests changed: only the recorder's note is left."""
    before = {c.exchange.n: c for c in snapshot(PI).calls if c.exchange}
    log = str(log_of(PI).resolve())

    def blind(event: Event) -> Event | None:
        if isinstance(event, Request):
            return replace(event, body=event.body.replace(b'"role":"user"', b'"role":"user" '))
        return None

    path = written(PI, tmp_path / "a.ctxrec", Meta(1.0), blind)
    writer = Writer(path, Meta(1.0))
    for n, call in before.items():
        if call.entry is not None:
            stood = int(call.entry.place.removeprefix("line ")) - 1
            writer.write(Places(n, 1.0, ((log, f"line {stood}"),)))
    writer.close()
    found = {c.exchange.n: c for c in snapshot(PI / "log", recording=str(path)).calls if c.exchange}
    joined = {n: c.entry for n, c in found.items() if c.entry is not None}
    assert joined == {n: c.entry for n, c in before.items() if c.entry is not None}
    assert {c.joined_by for c in found.values() if c.entry} == {"place"}


def test_a_place_does_not_outweigh_an_answer(tmp_path):
    """A session that goes on in a child: a place noted too early, in the parent's rows, must not give the child's call away."""
    case = SAMPLES / "hermes" / "rotation"
    before = {c.exchange.n: c.entry for c in snapshot(case).calls if c.exchange}
    database = str(log_of(case).resolve())
    for exchange in exchanges_of(case):
        path = tmp_path / f"{exchange.n}.ctxrec"
        writer = Writer(path, Meta(1.0))
        request, *rest = events_of(exchange)
        for event in (request, Places(exchange.n, exchange.time, ((database, "row 7"),)), *rest):
            writer.write(event)
        writer.close()
        (call,) = (c for c in snapshot(case / "log", recording=str(path)).calls if c.exchange)
        assert call.entry == before[exchange.n]


def test_the_recording_process_notes_the_line_before_each_answer(tmp_path):
    home = tmp_path / "home"
    joined = {c.exchange.n: c.entry for c in snapshot(PI).calls if c.exchange and c.entry}
    lines = log_of(PI).read_bytes().splitlines(keepends=True)
    log = home / log_of(PI).relative_to(PI / "log")
    log.parent.mkdir(parents=True)
    later, path = time.time() + 3600, tmp_path / "a.ctxrec"  # a place noted after the reply began would not count
    source = [replace(e, time=later, first_byte=later + 1, end=later + 2) for e in exchanges_of(PI)]
    recorder = Recorder(path, Meta(0.0, agent="pi", home=str(home)), lambda _: None, process="ctxscope.session.placing")
    for told, exchange in enumerate(source, 1):
        entry = joined.get(exchange.n)
        if entry is not None:
            log.write_bytes(b"".join(lines[: int(entry.place.removeprefix("line ")) - 1]))
        for event in events_of(exchange):
            recorder(event)
        with recorder._changed:
            assert recorder._changed.wait_for(lambda told=told: recorder.stored.requests >= told, 30)
    assert recorder.close().lost == 0
    found = {e.n: e.places for e in capture.open_recording(path, 0).poll() if e.n in joined}
    expected = {n: f"line {int(entry.place.removeprefix('line ')) - 1}" for n, entry in joined.items()}
    assert found == {n: ((str(log.resolve()), at),) for n, at in expected.items()}


def respelled(event: Event) -> Event:
    if not isinstance(event, Request):
        return event
    value = json.loads(event.body)
    body = json.dumps(dict(sorted(value.items())), ensure_ascii=False, separators=(",", ":")).encode()
    return replace(event, body=body, fidelity="parsed")


@pytest.mark.parametrize("case", [PI, HERMES], ids=["pi", "hermes"])
def test_a_recording_of_values_is_compared_by_value(case, tmp_path):
    path = written(case, tmp_path / "a.ctxrec", Meta(1.0, source="har", notes=("order is not kept",)), respelled)
    exact, loose = snapshot(case), snapshot(case / "log", recording=str(path))
    assert [c.rebuilt.state for c in loose.calls] == [c.rebuilt.state for c in exact.calls]
    equal = [c for c in loose.calls if c.rebuilt.state == "equal"]
    assert equal
    assert {(c.rebuilt.scope, c.rebuilt.coverage) for c in equal} == {("semantic", None)}
    assert all(c.exchange and c.exchange.fidelity == "parsed" for c in equal)


def test_another_value_differs_at_its_leaf(tmp_path):
    def changed(event: Event) -> Event:
        event = respelled(event)
        if isinstance(event, Request):
            value = json.loads(event.body)
            value["messages"][0]["content"] = "another question altogether"
            return replace(event, body=json.dumps(value, separators=(",", ":")).encode())
        return event

    path = written(PI, tmp_path / "a.ctxrec", Meta(1.0), changed)
    joined = [c for c in snapshot(PI / "log", recording=str(path)).calls if c.exchange and c.entry]
    assert joined
    differences = [c.rebuilt.first_difference for c in joined]
    assert all(d and d.path.startswith("/messages/0/content") for d in differences)


def test_both_sides_of_a_pair_are_the_same_calls_once(tmp_path):
    home = shutil.copytree(PI / "log", tmp_path / "home")
    written(PI, home / "in.ctxrec", Meta(1.0, side="in", pair="p"))
    written(PI, home / "out.ctxrec", Meta(1.0, side="out", pair="p"))
    both = snapshot(home)
    assert len(both.calls) == len(snapshot(PI).calls)
    assert any("inbound side of pair p" in notice for notice in both.notices)


def test_a_followed_recording_without_a_session_takes_in_the_one_that_begins(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    file = home / log_of(PI).relative_to(PI / "log")
    source = exchanges_of(PI)
    path = resources.recordings() / "live.ctxrec"
    writer = Writer(path, Meta(source[0].time, agent="pi", home=str(home)))
    inspection = ctxscope.open(path)
    try:
        assert inspection.snapshot.calls == ()
        shutil.copytree(PI / "log", home, dirs_exist_ok=True)
        for exchange in source:
            writer.write(next(events_of(exchange)))
            writer.write(Places(exchange.n, exchange.time, ((str(file.resolve()), "line 2"),)))
            for event in list(events_of(exchange))[1:]:
                writer.write(event)
        inspection.poll()
        inspection.poll()
        calls = inspection.snapshot.calls
        assert [c.rebuilt.state for c in calls if c.exchange and c.kind == "main"].count("equal") >= 1
    finally:
        inspection.close()
        writer.close()


def test_last_is_the_recording_of_an_agent_whose_logs_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = written(PI, resources.recordings() / "a.ctxrec", Meta(1.0, agent="any", home=str(tmp_path)))
    assert target.resolve("last").path == path
    assert [c.kind for c in snapshot(path).calls] == [c.kind for c in snapshot(PI).calls if c.exchange]


def test_a_recording_that_joins_no_session_shows_none(tmp_path):
    home = shutil.copytree(HERMES / "log", tmp_path / "home")
    path = written(PI, resources.recordings() / "a.ctxrec", Meta(1.0, agent="any", home=str(home)))
    found = snapshot(path)
    assert found.sessions == ()
    assert all(c.exchange for c in found.calls)


def test_a_database_that_lies_in_its_write_ahead_log_alone_is_its_agents(tmp_path):
    home = shutil.copytree(HERMES / "log", tmp_path / "home")
    database = next(home.rglob("state.db"))
    young = tmp_path / "young" / ".hermes" / "state.db"
    young.parent.mkdir(parents=True)
    subprocess.run([sys.executable, "-c", _COPY_AND_DIE, database, young], check=True)
    assert young.with_name("state.db-wal").exists()
    assert agents.load("hermes").claims(young, young.read_bytes()) < 0.5
    assert len(snapshot(young).calls) == len(snapshot(database).calls) > 0


_COPY_AND_DIE = """
import os, sqlite3, sys
old, new = sqlite3.connect(sys.argv[1]), sqlite3.connect(sys.argv[2])
new.execute("PRAGMA journal_mode=WAL")
new.execute("PRAGMA wal_autocheckpoint=0")
for name, sql in old.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"):
    new.execute(sql)
    rows = old.execute(f'SELECT * FROM "{name}"').fetchall()
    if rows:
        new.executemany(f'INSERT INTO "{name}" VALUES ({",".join("?" * len(rows[0]))})', rows)
new.commit()
os._exit(0)
"""
"""Nothing is checkpointed where nobody closes the database."""
