"""The control: one letter of one logged entry replaced in a copy of the log is found where, and only where, it was sent."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ctxscope.model import Body, Call
from tests.conftest import needs_captures
from tests.hermes_cases import Case
from tests.session_cases import CASES, given, look, parts_of, served, unchanged

pytestmark = needs_captures
PLAIN = re.compile(r"[A-Za-z0-9 ,.;:()=+*#_-]+")
"""Text that every log and every API spells alike."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TRIES = 200
SEED = 0
UNMISTAKABLE = 16
"""Characters that do not stand in a request by chance."""
SYSTEM = b'"role":"system"'


@dataclass(frozen=True)
class Text:
    """A text of a log that some request may carry."""

    log: Path
    """The file, below the case's folder."""
    where: str
    """Line or row, as a call's entry names it."""
    column: str
    value: str
    span: tuple[int, int]
    """The part of the value that is sent."""

    @property
    def sent(self) -> str:
        return self.value[slice(*self.span)]


@dataclass(frozen=True)
class Letter:
    """One letter of a text, and what stands around it as log and wire spell it, by which it is found again."""

    text: Text
    at: int
    """In the text."""
    around: str
    before: int
    """How much of ``around`` stands before the letter."""
    new: str


def spelled(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def letters(texts: list[Text], rng: random.Random) -> Iterator[Letter]:
    """Letters at random; around each the longest plain text, or all of a text too short to be known by a part."""
    for _ in range(TRIES if texts else 0):
        text = rng.choice(texts)
        first, last = text.span
        at = rng.randrange(first, last)
        old = text.value[at]
        if old not in LETTERS:
            continue
        run = next(m for m in PLAIN.finditer(text.value, first, last) if m.start() <= at < m.end())
        around = run[0].strip()
        before = at - run.end() + len(run[0].lstrip())
        if len(around) < UNMISTAKABLE and last - first < UNMISTAKABLE:
            around, before = spelled(text.sent), len(spelled(text.value[first:at])) - 1
        yield Letter(text, at, around, before, rng.choice([c for c in LETTERS if c != old]))


# --- pi: lines -------------------------------------------------------------------------------------------------------


@cache
def pi_lines(path: Path) -> tuple[bytes, ...]:
    return tuple(path.read_bytes().split(b"\n"))


def pi_texts(folder: Path, role: str) -> Iterator[Text]:
    for path in sorted((folder / "log").rglob("*.jsonl")):
        for number, line in enumerate(pi_lines(path), 1):
            message = json.loads(line).get("message", {}) if line else {}
            if message.get("role") == {"tool": "toolResult"}.get(role, role):
                for column, value in _pi_columns(message):
                    yield Text(path.relative_to(folder), f"line {number}", column, value, (0, len(value)))


def _pi_columns(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    content = message["content"]
    if isinstance(content, str):
        yield "content", content
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "text":
            yield "text", block["text"]
    yield from ((k, v) for k, v in message.get("sections", {}).items() if isinstance(v, str))


def pi_change(folder: Path, copy: Path, letter: Letter) -> None:
    text = letter.text
    lines = list(pi_lines(folder / text.log))
    number = int(text.where.split()[1]) - 1
    spelled = [json.dumps({text.column: v}, ensure_ascii=False, separators=(",", ":"))[1:-1] for v in _both(letter)]
    old, new = (s.encode() for s in spelled)
    assert old in lines[number]
    lines[number] = lines[number].replace(old, new, 1)
    (copy / text.log).write_bytes(b"\n".join(lines))


@cache
def pi_spelled(folder: Path, log: Path, role: str) -> tuple[tuple[int, str], ...]:
    """All texts of a log, or the system texts alone: (line, as it is spelled)."""
    roles = ("system",) if role == "system" else ("user", "assistant", "tool")
    found = [t for r in roles for t in pi_texts(folder, r) if t.log == log]
    return tuple((int(t.where.split()[1]), spelled(t.value)) for t in found)


def pi_holds(folder: Path, role: str, letter: Letter, call: Call, body: bytes) -> bool | None:
    """Whether a call took the words from this line.

    Of a system text the last line before the answer counts, for it replaced the others. Else every line before it, if
    the words were sent as often as those lines say them; ``None`` if not (a branch left, words that stand elsewhere).
    """
    lines = pi_lines(folder / letter.text.log)
    if call.session != json.loads(lines[0])["id"]:
        return False
    assert call.entry is not None
    own, answer = int(letter.text.where.split()[1]), int(call.entry.place.split()[1])
    sent = body.count(letter.around.encode())
    if role == "system":
        patches = [i for i, line in enumerate(lines, 1) if SYSTEM in line and letter.around.encode() in line]
        return bool(sent) and [i for i in patches if i < answer][-1:] == [own]
    said = [(i, text.count(letter.around)) for i, text in pi_spelled(folder, letter.text.log, role) if i < answer]
    if sent == sum(count for _, count in said):
        return any(i == own for i, count in said if count)
    return False if not sent else None


# --- Hermes: rows ----------------------------------------------------------------------------------------------------


@cache
def rows_as_of(name: str, n: int) -> Mapping[int, Mapping[str, Any]]:
    """Rows the agent had in its history when a request arrived."""
    case = Case(name)
    return {m["id"]: m for m in case.as_of(n).messages if m["active"]} if n in case.snaps else {}


def hermes_texts(folder: Path, role: str) -> Iterator[Text]:
    log = Path("log/.hermes/state.db")
    final = Case(folder.name).final
    if role == "system":
        for prompt in final.prompts:
            text = prompt["prompt"]
            yield Text(log, f"system_prompts.hash {prompt['hash']}", "prompt", text, (0, len(text)))
        for session in final.session:
            if text := session.get("system_prompt"):
                yield Text(log, f"sessions.id {session['id']}", "system_prompt", text, (0, len(text)))
    for row in final.messages:
        if row["role"] == role:
            column = next((c for c in ("api_content", "codex_message_items", "content") if row.get(c)), "content")
            value = row[column] or ""
            words = json.dumps(row["content"])[1:-1] if column == "codex_message_items" else value.strip()
            start = value.find(words)
            if start >= 0:
                yield Text(log, f"messages.id {row['id']}", column, value, (start, start + len(words)))


def hermes_change(folder: Path, copy: Path, letter: Letter) -> None:
    del folder
    place, key = letter.text.where.split()
    table, _, name = place.partition(".")
    base = sqlite3.connect(copy / letter.text.log)
    changed = f"UPDATE {table} SET {letter.text.column} = ? WHERE {name} = ?"
    assert base.execute(changed, (_both(letter)[1], int(key) if key.isdigit() else key)).rowcount == 1
    base.commit()
    base.close()


def hermes_holds(folder: Path, role: str, letter: Letter, call: Call, body: bytes) -> bool | None:
    """Whether the row was in the history as the request arrived, or was written behind it.

    ``None``: what rows say and what was sent do not go together (cleaned; or short words that stand everywhere).
    """
    sent = letter.around.encode() in body
    if role == "system":
        return sent
    assert call.exchange is not None
    rows = rows_as_of(folder.name, call.exchange.n)
    saying = [i for i, row in rows.items() if _says(row.get(letter.text.column), letter.around)]
    if bool(saying) != sent and (saying or len(letter.around) < UNMISTAKABLE):
        return None
    return sent and (not saying or int(letter.text.where.split()[1]) in saying)


def _says(value: object, around: str) -> bool:
    return isinstance(value, str) and (around in value or around == spelled(value.strip()))


# --- the control -----------------------------------------------------------------------------------------------------


def _both(letter: Letter) -> tuple[str, str]:
    value = letter.text.value
    return value, value[: letter.at] + letter.new + value[letter.at + 1 :]


AGENTS = {"pi": (pi_texts, pi_holds, pi_change), "hermes": (hermes_texts, hermes_holds, hermes_change)}


@cache
def request(folder: Path, n: int) -> Body:
    """The request a text is looked for in: the effective one, where the body goes on from another."""
    body = served(folder, n)
    continues = any(s.path == "/thread" for s in body.segments) and b'"previous_message_id"' in body.data
    return given(folder, n) if continues else body


@cache
def said(folder: Path, n: int, role: str) -> bytes:
    """What a request said in its messages or, for the role system, in its system prompt."""
    body, part = request(folder, n), "system" if role == "system" else "messages"
    bounds = pairwise([*parts_of(body), (len(body.data), "")])
    return b"".join(body.data[start:end] for (start, name), (end, _) in bounds if name == part)


def drawn(folder: Path, role: str, seed: int) -> tuple[Letter, set[int]] | None:
    """A letter that some equal call sent, and the joined calls that hold its entry."""
    texts, holds, _ = AGENTS[folder.parent.name]
    calls = {n: call for n, call in unchanged(folder).items() if call.entry is not None}
    rng = random.Random(f"{folder.name} {role} {seed}")
    for letter in letters([t for t in texts(folder, role) if t.sent], rng):
        told = {n: holds(folder, role, letter, c, said(folder, n, role)) for n, c in calls.items()}
        held = {n for n, here in told.items() if here}
        if None not in told.values() and any(calls[n].rebuilt.state == "equal" for n in held):
            return letter, held
    return None


def copied(folder: Path, to: Path) -> Path:
    """A copy of a case's log that may be written."""
    shutil.copytree(folder / "log", to / "log")
    for path in (to / "log").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return to


@pytest.mark.parametrize("role", ["user", "assistant", "tool", "system"])
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.parent.name)
def test_one_changed_letter_is_found_in_exactly_the_calls_that_hold_it(case: Path, role: str, tmp_path: Path) -> None:
    folder = case.parent
    before = unchanged(folder)
    found = drawn(folder, role, SEED)
    if found is None:
        logged = any(AGENTS[folder.parent.name][0](folder, role))
        pytest.skip(f"no request carries a {role} text of the log" if logged else f"the log holds no {role} text")
    letter, held = found
    AGENTS[folder.parent.name][2](folder, copied(folder, tmp_path), letter)
    after = look(tmp_path / "log", folder / "wire")
    assert _pairs(after.values()) == _pairs(before.values())
    for n, call in before.items():
        now = after[n].rebuilt
        if n not in held:
            assert now == call.rebuilt
            continue
        assert now.state == "differs"
        if call.rebuilt.state == "equal":
            difference = now.first_difference
            assert difference is not None
            start = difference.raw_offset - letter.before
            # Offsets count in the body; where that goes on from another request, in the effective one.
            around = letter.around.encode()
            here, whole = (b.data[start : start + len(around)] for b in (served(folder, n), request(folder, n)))
            assert around == (here if around in served(folder, n).data else whole)
            assert difference.other_offset == difference.raw_offset


def _pairs(calls: Iterable[Call]) -> list[tuple[object, ...]]:
    return [(c.exchange, c.session, c.entry, c.kind) for c in calls]
