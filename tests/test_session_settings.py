"""Settings hold keys and passwords: whatever a follower sees of them, no version of one reaches the disk (DESIGN law 7)."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import pytest

import ctxscope
from ctxscope import agents
from ctxscope.model import Place, Record, SessionRef
from ctxscope.session.inspection import Inspection
from ctxscope.sources.kept import KeptVersions
from tests.conftest import SAMPLES
from tests.session_growth import Disk, Moment, pi_moments

AGENT = "log/.pi/agent"
SETTINGS = frozenset(
    ("settings.json", "settings.local.json", "models.json", "models.yml", "config.yml", "config.yaml", "config.toml")
)
WITH_SETTINGS = ("claude_code", "codex", "gemini", "hermes", "kimi", "omp", "pi", "qwen")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of a test."""
    monkeypatch.setenv("CTXSCOPE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def written_below(folder: Path) -> bytes:
    """All that files hold, as it is and unpacked."""
    out = b""
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            out += content
            if path.suffix == ".kept":
                items = [json.loads(zlib.decompress(base64.b64decode(line))) for line in content.splitlines()]
                versions = [item for line in items for item in line if isinstance(item, dict)]
                out += json.dumps(items).encode()
                out += b"".join(base64.b64decode(v["value"]["bytes"]) for v in versions if v["value"] is not None)
    return out


def with_key(disk: Disk, name: str, key: str) -> Moment:
    """A side file of the agent with a key in it, the rest of it as it was."""
    path = disk.folder / AGENT / name
    told = json.loads(path.read_bytes())
    return Moment({f"{AGENT}/{name}": json.dumps({**told, "apiKey": key, "retries": len(key)}).encode()})


def follow(disk: Disk) -> tuple[Inspection, list[Moment]]:
    """One that follows the sample from its end on, its settings changed twice; and the moments of its log."""
    moments = list(pi_moments(SAMPLES / "pi/clean_append"))
    for moment in moments:
        disk.put(moment)
    for name in ("models.json", "settings.json"):
        disk.put(with_key(disk, name, f"sk-first-{name}"))
    followed = ctxscope.open(disk.folder)
    for key in ("sk-second", "sk-the-third"):
        for name in ("models.json", "settings.json"):
            disk.put(with_key(disk, name, f"{key}-{name}"))
        followed.poll()
    return followed, [m for m in moments if any("sessions" in name for name in m.files)]


def test_keys_in_settings_reach_no_file_of_the_data_folder(data: Path, tmp_path: Path):
    followed, _ = follow(Disk(tmp_path / "grown"))
    followed.close()
    assert b"sk-" not in written_below(data)
    assert not (data / "versions").exists()


def test_a_line_rewritten_is_kept_as_ever_and_settings_are_the_newest_in_their_place(data: Path, tmp_path: Path):
    disk = Disk(tmp_path / "grown")
    followed, moments = follow(disk)
    (name, content), *_ = moments[-1].files.items()
    first, second, *rest = content.splitlines(keepends=True)
    disk.put(Moment({name: b"".join([first, json.dumps({**json.loads(second), "again": 1}).encode() + b"\n", *rest])}))
    followed.poll()
    (session,) = followed.assembly.sessions
    followed.close()
    kept = written_below(data)
    assert second.strip() in kept
    assert b'"again": 1' in kept
    assert b"sk-" not in kept
    again = ctxscope.open(disk.folder)
    (log,) = (s.log for s in again.assembly.sessions)
    for key in ("settings", "models"):
        mine = [e for e in session.log.versions if e.source == key]
        (newest,) = [e for e in log.versions if e.source == key]
        assert (len(mine), newest.data) == (3, mine[-1].data)
        assert newest.seq == mine[0].seq
    assert [e.raw for e in log.versions if e.source == "session"] == [
        e.raw for e in session.log.versions if e.source == "session"
    ]
    again.close()


def test_versions_of_settings_kept_before_are_no_observations_and_are_deleted(data: Path, tmp_path: Path):
    disk = Disk(tmp_path / "grown")
    followed, _ = follow(disk)
    (session,) = followed.assembly.sessions
    followed.close()
    mine = [e for e in session.log.versions if e.source == "models"]
    versions = [Record("models", "file", e.place, json.dumps({**e.data}).encode(), n) for n, e in enumerate(mine)]
    line = Record("session", "2", Place(0, "line 2"), b'{"type": "odd"}', 0)
    KeptVersions().keep(session._name, [("models", "file"), *versions, line])
    assert b"sk-" in written_below(data)
    again = ctxscope.open(disk.folder)
    (log,) = (s.log for s in again.assembly.sessions)
    assert [e.data for e in log.versions if e.source == "models"] == [mine[-1].data]
    again.close()
    assert b"sk-" not in written_below(data)
    assert line.value in written_below(data)


@pytest.mark.parametrize("name", agents.names())
def test_every_settings_file_of_an_agent_is_kept_nowhere_and_everything_else_is(name: str, tmp_path: Path):
    specs = agents.load(name).sources(SessionRef(name, "one", (tmp_path / "context.jsonl",), tmp_path))
    assert {s.path.name for s in specs if not s.kept} == {s.path.name for s in specs} & SETTINGS
    assert any(not s.kept for s in specs) == (name in WITH_SETTINGS)
