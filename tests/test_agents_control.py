"""The control, for every agent: one letter of a logged text replaced wherever the log says it is found where it was sent.

Words are drawn from what was served, so that the test knows nothing of any log's form.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from ctxscope import wire
from ctxscope.model import Call
from tests.agent_cases import NEWER, copied, rewrite, texts
from tests.conftest import needs_captures
from tests.session_cases import look, parts_of, served, unchanged

pytestmark = needs_captures
PLAIN = re.compile(r"[A-Za-z0-9 ,.;:()=+*#_-]{16,}")
"""Text that every log and every API spells alike, and that does not stand in a request by chance."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LONGEST = 60
EMBEDDED = "dsh_session_log"
"""The one parameter in which an agent sends its log along."""
KINDS = {"user": ("user", "text"), "assistant": ("assistant", "text"), "tool": ("", "tool_result")}


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@cache
def said(folder: Path, n: int) -> bytes:
    """What a request says that its log implies: its messages, and the log it carries."""
    body = served(folder, n)
    bounds = pairwise([*parts_of(body), (len(body.data), "")])
    return b"".join(body.data[a:b] for (a, name), (b, _) in bounds if name in ("messages", EMBEDDED))


@cache
def logged(folder: Path) -> bytes:
    return b"\0".join(text for _, text in texts(folder / "log"))


def words(folder: Path, role: str, calls: Mapping[int, Call]) -> Iterator[str]:
    """Words that equal calls carried in blocks of a role, and nowhere but in messages; at random."""
    found: dict[str, None] = {}
    wanted_role, kind = KINDS[role]
    for n, call in calls.items():
        api = wire.by_name(call.api) if call.api and call.rebuilt.state == "equal" else None
        for message in api.messages(served(folder, n)) if api else ():
            for block in message.blocks:
                if block.kind == kind and wanted_role in (message.role, ""):
                    found |= dict.fromkeys(m[0].strip()[:LONGEST].strip() for m in PLAIN.finditer(block.text))
    order = list(found)
    random.Random(f"{folder.name} {role}").shuffle(order)
    yield from (w for w in order if len(w) >= 16)


def drawn(folder: Path, role: str) -> tuple[str, set[int]] | None:
    calls = {n: c for n, c in unchanged(folder).items() if c.entry is not None}
    for chosen in words(folder, role, calls):
        around = chosen.encode()
        held = {n for n in calls if around in said(folder, n)}
        elsewhere = any(served(folder, n).data.count(around) != said(folder, n).count(around) for n in calls)
        if held and not elsewhere and around in logged(folder) and any(c in LETTERS for c in chosen):
            return chosen, held
    return None


@pytest.mark.parametrize("role", list(KINDS))
@pytest.mark.parametrize("case", NEWER, ids=lambda p: p.name)
def test_one_changed_letter_is_found_in_exactly_the_calls_that_hold_it(case: Path, role: str, tmp_path: Path):
    before = unchanged(case)
    found = drawn(case, role)
    if found is None:
        pytest.skip(f"no equal call carries a {role} text that its log spells the same way")
    around, held = found
    at = random.Random(around).choice([i for i, c in enumerate(around) if c in LETTERS])
    new = next(c for c in LETTERS if c != around[at])
    old, other = around.encode(), f"{around[:at]}{new}{around[at + 1 :]}".encode()
    assert rewrite(copied(case, tmp_path), lambda text: text.replace(old, other))
    after = look(tmp_path / "log", case / "wire")
    assert pairs(after.values()) == pairs(before.values())
    for n, call in before.items():
        now = after[n].rebuilt
        if n not in held:
            assert now == call.rebuilt, n
            continue
        assert now.state == "differs", (n, now)
        if call.rebuilt.state == "equal":
            assert now.first_difference is not None
            start = now.first_difference.raw_offset - at
            assert served(case, n).data[start : start + len(old)] == old, (n, now.first_difference)


def pairs(calls: Iterable[Call]) -> Counter[str]:
    return Counter(json.dumps([str(c.exchange), c.session, str(c.entry), c.kind]) for c in calls)
