"""Recorded Hermes cases as logs: rows as of a request or of the end, fed through the agent's own ``entries``."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from ctxscope.agents import Log, at_hand, hermes
from ctxscope.model import Body, Place, Point, Record, SessionRef
from ctxscope.wire import detect
from ctxscope.wire.body import make_body
from tests.conftest import CAPTURES

Rows = list[dict[str, Any]]
FOLDER = CAPTURES / "hermes"
CASES = sorted(p.name for p in FOLDER.iterdir()) if FOLDER.is_dir() else []
_KEYS = {"schema": "version", "prompts": "hash"}


@dataclass
class Tables:
    """Rows of the tables a session consists of."""

    session: Rows = field(default_factory=list)
    messages: Rows = field(default_factory=list)
    prompts: Rows = field(default_factory=list)
    schema: Rows = field(default_factory=list)


class Follower:
    """A log that is fed tables again and again, as a reader would feed it."""

    def __init__(self, ref: SessionRef) -> None:
        self.log = Log(ref)
        self._known: dict[tuple[str, str], Any] = {}
        self._seq = 0

    def feed(self, record: Record) -> None:
        for entry in hermes.entries(record):
            self._seq += 1
            self.log.add(replace(entry, seq=self._seq))

    def tables(self, tables: Tables) -> None:
        for source in ("schema", "messages", "session", "prompts"):
            rows = {str(r[_KEYS.get(source, "id")]): r for r in getattr(tables, source)}
            for key in [k for s, k in self._known if s == source and k not in rows]:
                del self._known[source, key]
                self.feed(Record(source, key, Place(0, f"row {key}"), None))
            for key, row in rows.items():
                if self._known.get((source, key)) != row:
                    self._known[source, key] = row
                    self.feed(Record(source, key, Place(0, f"row {key}"), row))

    def file(self, source: str, path: Path) -> None:
        if path.is_file():
            self.feed(Record(source, "file", Place(1, "file"), path.read_bytes()))

    def lines(self, path: Path) -> None:
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            self.feed(Record("agent_log", str(number), Place(2, f"line {number}"), line))


@dataclass
class Case:
    """One recorded case."""

    name: str

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def home(self) -> Path:
        return self.folder / "log" / ".hermes"

    @cached_property
    def about(self) -> dict[str, Any]:
        return json.loads((self.folder / "case.json").read_text())

    @cached_property
    def final(self) -> Tables:
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch) / "state.db"
            shutil.copyfile(self.home / "state.db", copy)
            copy.chmod(0o600)
            base = sqlite3.connect(copy)
            base.row_factory = sqlite3.Row
            names = {r[0] for r in base.execute("select name from sqlite_master")}
            read = lambda t: [dict(r) for r in base.execute(f"select * from {t}")] if t in names else []  # noqa: E731
            tables = Tables(read("sessions"), read("messages"), read("system_prompts"), read("schema_version"))
            base.close()
        return tables

    @property
    def snaps(self) -> dict[int, Path]:
        return {int(p.name[:4]): p for p in sorted((self.folder / "snap").glob("[0-9]*.json.gz"))}

    def as_of(self, n: int) -> Tables:
        """Rows at the arrival of a request; prompt texts, cut there, from the final database."""
        snap = json.loads(gzip.decompress(self.snaps[n].read_bytes()))
        columns = list(self.final.messages[0])
        prompts = {p["hash"]: p for p in self.final.prompts}
        texts = {s["id"]: s["system_prompt"] for s in self.final.session}
        sessions = [
            {**s, **({"system_prompt": _whole(texts[s["id"]], s["system_prompt"])} if s.get("system_prompt") else {})}
            for s in snap["sessions"]
        ]
        return Tables(
            sessions,
            [{c: m.get(c) for c in columns} for m in snap["messages"]],
            [
                known
                for p in snap.get("system_prompts", ())
                if (known := prompts.get(p["hash"])) and _whole(known["prompt"], p["prompt"])
            ],
            self.final.schema,
        )

    def ref(self, session: str) -> SessionRef:
        row = next(s for s in self.final.session if s["id"] == session)
        return SessionRef(
            "hermes", session, (self.home / "state.db",), self.folder / "log", parent=row["parent_session_id"]
        )

    def follower(self, session: str, *, agent_log: bool = True) -> Follower:
        follower = Follower(self.ref(session))
        follower.file("config", self.home / "config.yaml")
        follower.file("snapshot", self.home / "sessions" / f"session_{session}.json")
        if agent_log:
            follower.lines(self.home / "logs" / "agent.log")
        return follower

    @cached_property
    def index(self) -> dict[int, dict[str, Any]]:
        lines = (self.folder / "wire" / "index.jsonl").read_text().splitlines()
        return {e["n"]: e for e in map(json.loads, lines)}

    def body(self, n: int) -> Body:
        return _body(self.name, n)

    def reply(self, n: int) -> Any:
        entry = self.index[n]
        api = detect(entry["path"], {}, (self.folder / "wire" / f"{n:04d}.req").read_bytes())
        assert api is not None
        return api.reply((self.folder / "wire" / f"{n:04d}.res").read_bytes(), entry.get("res_headers") or {})


def _whole(text: str | None, cut: Mapping[str, Any]) -> str | None:
    """A text of the final database when it is the one a snapshot cut to length and sha1."""
    if text is None or len(text) != cut["len"] or hashlib.sha1(text.encode()).hexdigest() != cut["sha1"]:  # noqa: S324
        return None
    return text


@lru_cache(maxsize=2000)
def _body(name: str, n: int) -> Body:
    case = Case(name)
    data = (case.folder / "wire" / f"{n:04d}.req").read_bytes()
    entry = case.index[n]
    return make_body(data, detect(entry["path"], {}, data))


def of_session(tables: Tables, session: str) -> Tables:
    return Tables(
        [s for s in tables.session if s["id"] == session],
        [m for m in tables.messages if m["session_id"] == session],
        tables.prompts,
        tables.schema,
    )


def followed(case: Case, *, agent_log: bool = True) -> Iterator[tuple[int, Body, bytes, Log, Point, Any]]:
    """(n, served, rebuilt, log, point, learned) of each main call as of its arrival."""
    followers: dict[str, Follower] = {}
    before: dict[str, list[tuple[Point, Body]]] = {}
    mains = case.about["wire"]["main"]
    for n in sorted(case.snaps):
        tables = case.as_of(n)
        if not tables.messages:
            continue
        session = max(tables.messages, key=lambda m: m["id"])["session_id"]
        if session not in followers:
            followers[session] = case.follower(session, agent_log=agent_log)
        follower = followers[session]
        follower.tables(of_session(tables, session))
        if n not in mains:
            continue
        point = hermes.requests(follower.log)[-1]
        body = case.body(n)
        earlier = before.setdefault(session, [])
        yield n, body, *_rebuilt(follower.log, point, body, earlier)
        earlier.append((point, body))


def cold(
    case: Case, tables: Tables | None = None, *, agent_log: bool = True, joined: Mapping[int, str] | None = None
) -> list[tuple[int, Body, bytes, Log, Point, Any]]:
    """The same from the final database alone; ``joined`` (point keys by n) else points aligned by their answers."""
    tables = tables or case.final
    out: list[tuple[int, Body, bytes, Log, Point, Any]] = []
    for session in [s["id"] for s in tables.session]:
        follower = case.follower(session, agent_log=agent_log)
        follower.tables(of_session(tables, session))
        earlier: list[tuple[Point, Body]] = []
        points = hermes.requests(follower.log)
        by_key = {p.key: p for p in points}
        pairs = [(n, by_key[k]) for n, k in joined.items() if k in by_key] if joined else aligned(case, points)
        for n, point in pairs:
            body = case.body(n)
            out.append((n, body, *_rebuilt(follower.log, point, body, earlier)))
            earlier.append((point, body))
    return sorted(out, key=lambda row: row[0])


def aligned(case: Case, points: Sequence[Point]) -> list[tuple[int, Point]]:
    """Main calls and points whose answer is the reply: by tool-call ids, else by text, in order."""
    out: list[tuple[int, Point]] = []
    start = 0
    for n in case.about["wire"]["main"]:
        reply = case.reply(n)
        calls = {b.id for b in reply.blocks if b.kind == "tool_call"}
        for k in range(start, len(points)):
            point = points[k]
            text = "".join(b.text for b in point.blocks or () if b.kind == "text")
            if point.answer is None or (reply.stop.state == "truncated" and calls):
                continue
            if (calls & point.ids) if calls else (not point.ids and text.strip() == reply.text.strip()):
                out.append((n, point))
                start = k + 1
                break
    return out


def _rebuilt(
    log: Log, point: Point, body: Body, earlier: Sequence[tuple[Point, Body]]
) -> tuple[bytes, Log, Point, Any]:
    learned = hermes.learn(log, point, body, at_hand(earlier))
    made = hermes.rebuild(log, point, hermes.config(log), learned)
    assert made is not None
    return made.data, log, point, (learned, made)
