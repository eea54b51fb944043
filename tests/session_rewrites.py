"""Sessions whose logs are rewritten so that the files end up holding less than a follower saw."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.conftest import SAMPLES
from tests.samples.hermes_cases import home
from tests.samples.hermes_form import (
    Home,
    Session,
    Spent,
    answer,
    answer_row,
    calling,
    calling_row,
    live_result,
    loaded_result,
    tool_row,
    user,
    user_row,
)
from tests.samples.hermes_texts import EAST
from tests.session_growth import Moment, pi_moments

LONG = " ".join(["The readings of the night, one a minute, none of them out of the ordinary."] * 8)


def _exchange(h: Home, at: float, before: list[dict[str, Any]], ask: str, found: str) -> list[dict[str, Any]]:
    """One turn without tools; the messages after it."""
    h.turn(at - 0.1, len(before), ask)
    h.add(user_row(at, ask))
    messages = [*before, user(ask)]
    h.ask(at + 0.1, messages, Spent(200, 0, 9), found)
    h.add(answer_row(at + 2, found))
    h.turn_ended(at + 2.1, 1, len(found))
    return [*messages, answer(found)]


def prompt_rebuilt(case: Path) -> None:
    """The prompt is made anew, and the row of the old one, which no session refers to any more, is deleted."""
    h = home(Session("20260201_090000_9b0317"), 131072, 8192)
    h.process(0.1)
    told = _exchange(h, 1.0, [], f"Is it warm? {LONG}", "It is.")
    told = _exchange(h, 11.0, told, "And dry?", "That too.")
    h.prompt = h.prompt.replace(h.prompt.split()[0], "Henceforth", 1)
    h.process(19.0)
    told = _exchange(h, 21.0, told, "Who are you now?", "The same, in other words.")
    _exchange(h, 31.0, told, "Good.", "Good.")
    h.write(case)


def tools_bound_late(case: Path) -> None:
    """A server's tools arrive after the first call; ``session_<id>.json`` holds only the newest list."""
    h = home(Session("20260201_090000_700150"), 131072, 8192)
    *h.tools, late = h.tools
    h.process(0.1)
    told = _exchange(h, 1.0, [], "What can you do?", "Read.")
    h.tools = [*h.tools, late]
    told = _exchange(h, 11.0, told, "And now?", "Write, too.")
    _exchange(h, 21.0, told, "Fine.", "Fine.")
    h.write(case)


def retried(case: Path) -> None:
    """A retry deletes every row and inserts what is left of the list under new ids."""
    h = home(Session("20260201_090000_4e7417"), 131072, 8192)
    h.process(0.1)
    told = _exchange(h, 1.0, [], f"Count the pots. {LONG}", "Eleven.")
    _exchange(h, 11.0, told, "Count again.", "Twelve?")
    left = [{k: v for k, v in row.items() if k != "id"} for row in h.rows[:2]]
    h.rows.clear()
    h.add(*left, user_row(20.0, "Count again."))
    h.ask(20.1, [*told, user("Count again.")], Spent(220, 0, 9), "Eleven.")
    h.add(answer_row(22.0, "Eleven."))
    h.write(case)


def undone(case: Path) -> None:
    """An undo takes the last turn back, twice; rows stay, marked as rewound."""
    h = home(Session("20260201_090000_0d0e0d"), 131072, 8192)
    h.process(0.1)
    told = _exchange(h, 1.0, [], "Name a fern.", "Maidenhair.")
    for at, ask, found in ((11.0, "Another.", "Staghorn."), (21.0, "One more.", "Bracken.")):
        _exchange(h, at, told, ask, found)
        for row in h.rows[-2:]:
            row["active"] = 0
    _exchange(h, 31.0, told, "Thank you.", "With pleasure.")
    h.write(case)


def filled_in(case: Path) -> None:
    """``api_content`` is put into a row already written, before the call that sends it."""
    h = home(Session("20260201_090000_f111ed"), 131072, 8192)
    h.process(0.1)
    ask, sent, found = f"Frost tonight? {LONG}", "Frost tonight?\n\n<recall>The bench froze in May.</recall>", "No."
    h.turn(0.9, 0, ask)
    h.add(user_row(1.0, ask))
    h.rows[-1]["api_content"] = sent
    h.ask(1.1, [user(sent)], Spent(200, 0, 9), found)
    h.add(answer_row(3.0, found))
    _exchange(h, 11.0, [user(sent), answer(found)], "Sure?", "Sure.")
    h.write(case)


def log_rotated(case: Path) -> None:
    """agent.log is full and begins anew, in the middle of the second process."""
    h = home(Session("20260201_090000_1060a7"), 131072, 8192)
    h.process(0.1)
    turn = [calling_row(3.0, "", EAST), tool_row(4.0, EAST, "quiet")]
    h.turn(0.9, 0, "Any wind?")
    h.add(user_row(1.0, "Any wind?"))
    h.ask(1.1, [user("Any wind?")], Spent(180, 0, 20), "", EAST)
    h.add(*turn)
    told = [user("Any wind?"), calling("", EAST)]
    h.ask(5.0, [*told, live_result(EAST, "quiet")], Spent(200, 0, 4), "None.")
    h.add(answer_row(7.0, "None."))
    told += [loaded_result(EAST, "quiet"), answer("None.")]
    h.process(19.0)
    told = _exchange(h, 21.0, told, "Still?", "Still.")
    h.log.clear()
    told = _exchange(h, 31.0, told, "Now?", "A breeze.")
    _exchange(h, 41.0, told, "And now?", "Less.")
    h.write(case)


def billed_late(case: Path) -> None:
    """The session row names the provider only after two turns, one that wants reasoning beside every answer."""
    h = home(Session("20260201_090000_b111ed"), 131072, 8192)
    h.told = {"billing_provider": None, "billing_base_url": None}
    h.turn = lambda *_: None  # agent.log names the provider of a turn, too
    h.process(0.1)
    told = _exchange(h, 1.0, [], "Who serves this?", "Nobody said.")
    told = _exchange(h, 11.0, told, "And now?", "Not yet.")
    h.told = {"billing_provider": "deepseek", "billing_base_url": None}
    told = _exchange(h, 21.0, told, "Now?", "Now.")
    _exchange(h, 31.0, told, "Good.", "Good.")
    h.write(case)


def configured_anew(case: Path) -> None:
    """The same by config.yaml, where the row says nothing."""
    h = home(Session("20260201_090000_c0f165"), 131072, 8192)
    h.told = {"billing_provider": None, "billing_base_url": None}
    h.turn = lambda *_: None  # agent.log names the provider of a turn, too
    h.process(0.1)
    told = _exchange(h, 1.0, [], "Who serves this?", "Nobody said.")
    told = _exchange(h, 11.0, told, "And now?", "Not yet.")
    h.provider = "deepseek"
    told = _exchange(h, 21.0, told, "Now?", "Now.")
    _exchange(h, 31.0, told, "Good.", "Good.")
    h.write(case)


LATE = (billed_late, configured_anew)
"""What comes late bears on calls judged before: neither rebuilds as served, but every follower says so alike."""


def log_last(moments: list[Moment]) -> list[Moment]:
    """The same, agent.log written only after everything else, and naming another provider for every second turn.

    Without the lines that tell of new processes: a turn's line then tells the provider before anything else.
    """
    name = "log/.hermes/logs/agent.log"
    out = [Moment({k: v for k, v in m.files.items() if k != name}, m.tables) for m in moments]
    lines = [line for line in moments[-1].files[name].splitlines(keepends=True) if b"agent_init" not in line]
    turns = [i for i, line in enumerate(lines) if b"conversation turn:" in line]
    for i in turns[1::2]:
        lines[i] = lines[i].replace(b"provider=custom", b"provider=deepseek")
    return [*out, *(Moment({name: b"".join(lines[: i + 1])}) for i in range(len(lines)))]


HERMES = (prompt_rebuilt, tools_bound_late, retried, undone, filled_in, log_rotated)

# --- pi --------------------------------------------------------------------------------------------------------------

Edit = Callable[[list[bytes]], list[bytes]]


def shortened(lines: list[bytes]) -> list[bytes]:
    """Someone cut the file after the second message, and the session went on from there."""
    return lines[:4] + lines[9:]


def migrated(lines: list[bytes]) -> list[bytes]:
    """Every line spelled anew, as when a file of an old version is loaded."""
    return [json.dumps({**json.loads(line), "migrated": True}).encode() + b"\n" for line in lines]


def begun_anew(lines: list[bytes]) -> list[bytes]:
    """All but the header gone, what follows stays."""
    return lines[:1] + lines[7:]


PI = (shortened, migrated, begun_anew)


def edited(edit: Edit, at: int = 9) -> Iterator[Moment]:
    """The pi sample ``clean_append``, its log as ``edit`` leaves it from the ``at``-th line on."""
    for moment in pi_moments(SAMPLES / "pi/clean_append"):
        files = dict(moment.files)
        for name, data in moment.files.items():
            lines = data.splitlines(keepends=True)
            if "sessions" in name and len(lines) >= at:
                files[name] = b"".join(edit(lines))
        yield Moment(files)
