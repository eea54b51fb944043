"""Processes of Qwen Code 0.21.2 and later side by side: each holds what it read, and an early call knows none of the later."""

from __future__ import annotations

from types import ModuleType

import pytest

from ctxscope.agents import qwen
from ctxscope.agents.qwen import joined, loaded
from ctxscope.agents.qwen.joined import WORDS
from ctxscope.model import Body, Config
from tests.qwen_cases import (
    DATE,
    NEWEST,
    PLACE,
    SKILLS,
    Chat,
    call,
    datas,
    found,
    learned_for,
    rebuilt,
    reminded,
    replied,
    words,
)

BREAK = "low\u2028water"


def test_processes_that_read_up_to_the_same_line_go_on_each_with_what_was_said_in_it() -> None:
    chat = Chat(version=NEWEST)
    chat.user("Look.")
    chat.answer(BREAK)
    chat.user("Again.")
    seen = chat.answer("Seen.")
    chat.user("Third.")
    chat.answer(BREAK)
    for text in ("More.", "Others."):
        chat.user(text, after=seen)
        chat.answer("Yes.")
    held = (words(SKILLS, PLACE, DATE, "Look."), replied(BREAK), words("Again."), replied("Seen."), words("Third."))
    read = (words(SKILLS, PLACE, "Again."), replied("Seen."))
    bodies = [
        *(reminded(*held[:n]) for n in (1, 3, 5)),
        *(reminded(*read, words(DATE, text)) for text in ("More.", "Others.")),
    ]
    assert datas(m for _, m in rebuilt(chat, bodies)) == datas(bodies)


def test_a_process_that_read_the_chat_holds_after_a_rewind_what_is_said_then() -> None:
    chat = Chat(version=NEWEST)
    chat.user("Look.")
    chat.answer("Seen.")
    chat.user("Well?")
    chat.answer(BREAK)
    chat.user("Again.")
    seen = chat.answer("So.")
    chat.user("Third.")
    chat.answer(BREAK)
    chat.user("More.", after=seen)
    yes = chat.answer("Yes.")
    for text in ("This?", "That?"):
        chat.user(text, after=yes)
        chat.answer("No.")
    look, well = words(SKILLS, PLACE, DATE, "Look."), words("Well?")
    held = (look, replied("Seen."), well, replied(BREAK), words("Again."), replied("So."), words("Third."))
    read = (words(SKILLS, PLACE, "Again."), replied("So."), words(DATE, "More."))
    bodies = [
        *(reminded(*held[:n]) for n in (1, 3, 5, 7)),
        reminded(*read),
        *(reminded(*read, replied("Yes."), words(text)) for text in ("This?", "That?")),
    ]
    assert datas(m for _, m in rebuilt(chat, bodies)) == datas(bodies)


def test_a_process_that_lost_the_first_words_begins_with_all_its_reminders() -> None:
    chat = Chat(version=NEWEST)
    chat.user(f"Look at {BREAK}.")
    seen = chat.answer("Seen.")
    chat.user("Again.")
    chat.answer(BREAK)
    chat.user("More.", after=seen)
    chat.answer("Yes.")
    first = words(SKILLS, PLACE, DATE, f"Look at {BREAK}.")
    bodies = [
        reminded(first),
        reminded(first, replied("Seen."), words("Again.")),
        reminded(words(SKILLS, PLACE), replied("Seen."), words(DATE, "More.")),
    ]
    assert datas(m for _, m in rebuilt(chat, bodies)) == datas(bodies)


def taken_up() -> Chat:
    """Three turns; the second may be where another process took the session up."""
    chat = Chat(version=NEWEST)
    chat.user("Look.")
    chat.answer("Seen.")
    chat.user("Again.")
    chat.answer("Yes.")
    chat.user("And on Monday?")
    chat.answer("No.")
    return chat


def test_what_a_process_shows_later_says_nothing_of_its_calls_before() -> None:
    said = (words(SKILLS, PLACE, "Look."), replied("Seen."), words(DATE, "Again."))
    monday = words(DATE.replace("Sunday", "Monday"), "And on Monday?")
    bodies = [
        reminded(words(SKILLS, PLACE, DATE, "Look.")),
        reminded(*said),
        reminded(*said, replied("Yes."), monday),
    ]
    told = [learned.hypotheses for learned, _ in rebuilt(taken_up(), bodies)]
    again = [learned.hypotheses for learned, _ in rebuilt(taken_up(), bodies, known=bodies)]
    assert again == told
    assert "changed" not in told[1][0]
    assert told[2][0].endswith(f"{WORDS} changed with it")


def counted(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[int]:
    """One item for each time that a function of a module is called from now on."""
    times: list[int] = []
    real = getattr(module, name)

    def call(*args: object) -> object:
        times.append(1)
        return real(*args)

    monkeypatch.setattr(module, name, call)
    return times


def remembered(taken_up: int | None = None) -> tuple[Chat, list[Body]]:
    """Turns with a memory each before their words, from one of them on in another process, and what was served."""
    chat, said, bodies = Chat(version=NEWEST), [], []
    for n in range(12):
        chat.user(f"Turn {n}.")
        chat.answer(f"Answer {n}.")
        if n == taken_up:
            said = [m for i in range(n) for m in (words(f"Turn {i}."), replied(f"Answer {i}."))]
            said[0] = words(PLACE.replace("A port.", "A harbour."), "Turn 0.")
        own = (f"## Relevant memory\nGauge {n}.", *((DATE,) if n in (0, taken_up) else ()))
        said.append(words(*((SKILLS, PLACE) if not n else ()), *own, f"Turn {n}."))
        bodies.append(reminded(*said))
        said.append(replied(f"Answer {n}."))
    return chat, bodies


def test_words_of_a_new_turn_leave_what_stands_before_them_as_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    written = counted(monkeypatch, joined, "answer")
    chat, bodies = remembered()
    assert datas(m for _, m in rebuilt(chat, bodies)) == datas(bodies)
    assert len(written) == 11


@pytest.mark.parametrize(("taken_up", "more"), [(None, 11), (6, 11 + 5 + 6 + 7 + 4)])
def test_calls_with_words_of_their_turns_are_the_same_in_any_order(
    monkeypatch: pytest.MonkeyPatch, taken_up: int | None, more: int
) -> None:
    """An answer is written anew only where reminders before all of a call's contents were first seen in that call."""
    chat, bodies = remembered(taken_up)
    log, once = chat.log(), [made.pieces for _, made in rebuilt(chat, bodies)]
    assert [b"".join(p.data for p in pieces) for pieces in once] == datas(bodies)
    pairs = list(zip(qwen.requests(log), bodies, strict=True))
    written = counted(monkeypatch, joined, "answer")
    for n in (11, 0, 5, 11, 4, 8, 6, 7, 11, 5, 10, 3):
        made = qwen.rebuild(log, pairs[n][0], Config(), learned_for(log, pairs[: n + 1]))
        assert made is not None
        assert made.pieces == once[n], n
    assert len(written) == more


def test_a_process_that_read_the_chat_reads_and_writes_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = Chat(version=NEWEST)
    chat.user("Write.")
    chat.answer("This is cu", prompt=70)
    chat.answer("This is cut too", prompt=70)
    first = words(SKILLS, PLACE, DATE, "Write.")
    bodies = [reminded(first), reminded(first)]
    chat.user("Look.")
    said = [words(SKILLS, PLACE, "Write."), replied("This is cuThis is cut too"), words(DATE, "Look.")]
    for n in range(8):
        bodies.append(reminded(*said))
        chat.answer("I look.", call(f"c{n}"), prompt=100 + n)
        chat.result(f"c{n}", "212 cm")
        said += [replied("I look.", f"c{n}"), found(f"c{n}", "212 cm")]
    chat.answer("Seen.")
    bodies.append(reminded(*said))
    read, written = counted(monkeypatch, loaded, "_contents"), counted(monkeypatch, joined, "answer")
    assert datas(m for _, m in rebuilt(chat, bodies)) == datas(bodies)
    assert (len(read), len(written)) == (1, 9)
