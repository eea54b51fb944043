"""What was served is altered, the log is not: whatever the log implies and nothing borrowed covers must be told.

The alterations know nothing of an agent: a top-level key taken out of every request, one put in, a block put into the last
request's first message, another model's name.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from ctxscope import agents
from ctxscope.model import Learnable
from tests.agent_cases import ONE_EACH
from tests.conftest import needs_captures
from tests.session_cases import look, unchanged

pytestmark = needs_captures
NEW = "zz_new"


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@cache
def equal_before(case: Path) -> frozenset[int]:
    calls = unchanged(case).items()
    return frozenset(n for n, c in calls if c.rebuilt.state == "equal" and c.kind not in ("compaction", "side"))


@cache
def bodies(case: Path) -> dict[int, bytes]:
    return {n: (case / "wire" / f"{n:04d}.req").read_bytes() for n in equal_before(case)}


def altered(case: Path, to: Path, change: Callable[[int, bytes], bytes]) -> set[int]:
    """Open a case with its equal calls' requests changed; those that were changed and still are equal."""
    shutil.copytree(case / "wire", to / "wire", dirs_exist_ok=True)
    changed = set()
    for n, body in bodies(case).items():
        new = change(n, body)
        if new != body:
            changed.add(n)
            path = to / "wire" / f"{n:04d}.req"
            path.chmod(0o600)
            path.write_bytes(new)
    assert changed
    after = look(case / "log", to / "wire")
    return {n for n in changed if after[n].entry is not None and after[n].rebuilt.state == "equal"}


def listed(case: Path) -> tuple[Learnable, ...]:
    return agents.load(case.parent.name).learnable


def with_members(body: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    """A compact body with its top-level members changed; the text of each stays as it was."""
    members: dict[str, bytes] = {}
    text = body.decode("utf-8")
    decoder, at = json.JSONDecoder(), 1
    while text[at] != "}":
        key, at = decoder.raw_decode(text, at)
        start = at + 1
        _, at = decoder.raw_decode(text, start)
        members[key] = text[start:at].encode()
        at += text[at] == ","
    change(members)
    return b"{" + b",".join(json.dumps(k).encode() + b":" + v for k, v in members.items()) + b"}"


def keys(case: Path) -> Iterator[str]:
    """Top-level keys of the requests that are not listed as borrowed as a whole."""
    found = {key for body in bodies(case).values() for key in json.loads(body)}
    yield from sorted(k for k in found if not any(item.path == f"/{k}" for item in listed(case)))


@pytest.mark.parametrize("case", ONE_EACH, ids=lambda p: p.name)
def test_a_request_that_lacks_what_the_log_implies_is_not_equal(case: Path, tmp_path: Path):
    still = {}
    for key in keys(case):
        to = tmp_path / key
        still[key] = altered(case, to, lambda _, body, key=key: with_members(body, lambda m: m.pop(key, None)))
        shutil.rmtree(to)
    assert {key: calls for key, calls in still.items() if calls} == {}


@pytest.mark.parametrize("case", ONE_EACH, ids=lambda p: p.name)
def test_a_request_with_a_member_nobody_knows_is_not_equal(case: Path, tmp_path: Path):
    assert altered(case, tmp_path, lambda _, body: body.rstrip()[:-1] + f',"{NEW}":1}}'.encode()) == set()


@pytest.mark.parametrize("case", ONE_EACH, ids=lambda p: p.name)
def test_a_message_that_the_log_does_not_imply_is_told(case: Path, tmp_path: Path):
    last = max(equal_before(case))

    def twice(n: int, body: bytes) -> bytes:
        def change(members: dict[str, bytes]) -> None:
            for name in ("messages", "input", "contents"):
                if name in members and n == last:
                    items = json.loads(members[name])
                    first = next(i for i, item in enumerate(items) if item.get("role") == "user")
                    members[name] = json.dumps(
                        [*items[: first + 1], {**items[first]}, *items[first + 1 :]],
                        ensure_ascii=False,
                        separators=(",", ":"),
                    ).encode("utf-8", "surrogatepass")

        return with_members(body, change)

    assert altered(case, tmp_path, twice) == set()


@pytest.mark.parametrize("case", ONE_EACH, ids=lambda p: p.name)
def test_a_changed_word_in_the_last_message_is_told(case: Path, tmp_path: Path):
    """In every request: its last message cannot have been taught by an earlier one."""

    def longer(_: int, body: bytes) -> bytes:
        def change(members: dict[str, bytes]) -> None:
            for name in ("messages", "input", "contents"):
                if name in members:
                    items = json.loads(members[name])
                    at = max(
                        i for i, item in enumerate(items) if item.get("role") in ("user", "tool") or "output" in item
                    )
                    items[at] = _louder(items[at])
                    members[name] = json.dumps(items, ensure_ascii=False, separators=(",", ":")).encode(
                        "utf-8", "surrogatepass"
                    )

        return with_members(body, change)

    assert altered(case, tmp_path, longer) == set()


def _louder(value: object) -> object:
    """A message with its first text changed."""
    done = False

    def walk(part: object, key: str = "") -> object:
        nonlocal done
        if (
            isinstance(part, str)
            and key in ("text", "content", "output", "")
            and not done
            and len(part) > 1
            and "<system-reminder>" not in part
        ):
            done = True
            return f"{part[:-1]}~"
        if isinstance(part, dict):
            return {
                k: walk(v, k) if k in ("content", "text", "output", "parts", "functionResponse", "response") else v
                for k, v in part.items()
            }
        return [walk(p, key) for p in part] if isinstance(part, list) else part

    return walk(value)
