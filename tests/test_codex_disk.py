"""Where rollouts lie, what names them, and the bundled sample."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxscope.agents import codex
from tests.codex_cases import body_of, log_of, seen
from tests.codex_lines import (
    message,
    old,
)
from tests.samples import codex_cases


def test_a_compressed_rollout_is_read_like_a_plain_one(tmp_path: Path):
    zstd = pytest.importorskip("backports.zstd")
    codex_cases.local_compaction(tmp_path / "case")
    plain = next((tmp_path / "case").rglob("rollout-*.jsonl"))
    data = plain.read_bytes()
    (whole,) = codex.discover(tmp_path / "case" / "log")
    packed = plain.with_name(plain.name + ".zst")
    packed.write_bytes(zstd.compress(data[:5000]) + zstd.compress(data[5000:]))
    assert [r.paths[0] for r in codex.discover(tmp_path / "case" / "log")] == [plain]
    plain.unlink()
    (found,) = codex.discover(tmp_path / "case" / "log")
    assert (found.id, found.paths[0]) == (whole.id, packed)
    snapshot, views = seen(tmp_path / "case")
    assert [v.call.rebuilt.state for v in views.values()] == ["equal"] * 5
    assert {m.kind for m in snapshot.markers} == {"resume", "compaction"}


def test_limits_are_those_of_the_settings_and_the_window_is_the_logged_one():
    lines = [
        *old(message("user", "one")),
        b'{"type":"event_msg","payload":{"type":"task_started","model_context_window":1000}}',
    ]
    assert (codex.config(log_of(lines)).window, codex.config(log_of(lines)).threshold) == (1000, 900)
    with_limit = codex.config(log_of(lines, b"model_auto_compact_token_limit = 50"))
    assert (with_limit.window, with_limit.threshold) == (1000, 50)
    assert codex.config(log_of(lines, b"no = = toml")).threshold == 900


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"thread-id": "t", "session-id": "s"}, "t"),
        ({"session_id": "s"}, "s"),
        ({}, "key"),
    ],
)
def test_a_request_names_its_thread(headers: dict[str, str], name: str):
    body = body_of(b'{"model":"m","input":[],"stream":true,"prompt_cache_key":"key"}')
    assert codex.named(headers, body).session == name
    assert codex.named({}, body_of(b'{"model":"m","input":[]}')).session is None


def test_the_sample_is_what_its_module_writes(tmp_path: Path):
    for make in codex_cases.CASES:
        make(tmp_path / make.__name__)
        bundled = Path(__file__).parents[1] / "sample_sessions" / "codex" / make.__name__
        for path in sorted(p for p in (tmp_path / make.__name__).rglob("*") if p.is_file()):
            assert (bundled / path.relative_to(tmp_path / make.__name__)).read_bytes() == path.read_bytes()
