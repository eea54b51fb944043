"""What a screen has read by workers: one question at a time, and only what answers it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ctxscope.tui import reading
from ctxscope.tui.reading import Answer, Reading
from tests.tui_session import FakeSource


class Asker:
    """A screen that starts nothing itself."""

    def __init__(self) -> None:
        self.begun: list[Callable[[], None]] = []
        self.posted: list[reading.Answered] = []

    def run_worker(self, work: Callable[[], None], **options: Any) -> None:
        assert options == {"group": "words", "exclusive": True, "thread": True}
        self.begun.append(work)

    def post_message(self, message: reading.Answered) -> None:
        self.posted.append(message)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The worker that reads."""
    now = SimpleNamespace(is_cancelled=False)
    monkeypatch.setattr(reading, "get_current_worker", lambda: now)
    return now


@pytest.mark.usefixtures("worker")
def test_only_the_answer_to_the_last_question_is_one():
    asker, one, other = Asker(), FakeSource(), FakeSource()
    words: Reading[str] = Reading(asker, "words")
    words.ask(one, 1, 5, lambda: "of one")
    words.ask(other, 1, 5, lambda: "of the other")
    for work in reversed(asker.begun):
        work()
    assert [words.take(message.answer) for message in asker.posted] == [True, False]
    assert words.known is not None
    assert words.known.found == "of the other"
    assert words.known_of(other, 5) is words.known
    assert words.known_of(one, 5) is words.known_of(other, 6) is None
    words.forget()
    assert [words.take(message.answer) for message in asker.posted] == [False, False]
    assert words.known is None


@pytest.mark.usefixtures("worker")
def test_a_newer_revision_is_asked_for_once_the_answer_is_there():
    asker, source = Asker(), FakeSource()
    words: Reading[str] = Reading(asker, "words")
    for revision in (1, 2, 3):
        words.ask(source, revision, 5, lambda: "found")
    assert len(asker.begun) == 1  # else a session that grows faster than it is read would never show any
    asker.begun[0]()
    assert words.take(asker.posted[0].answer)
    for _ in range(2):
        words.ask(source, 3, 5, lambda: "found later")
    assert len(asker.begun) == 2
    assert words.known_of(source, 5) is asker.posted[0].answer  # shown meanwhile
    words.ask(source, 3, 6, lambda: "of another")
    assert len(asker.begun) == 3


def test_a_cancelled_worker_tells_nothing_and_a_failing_one_why(worker: SimpleNamespace):
    def broken() -> str:
        raise OSError("the disk is gone")

    asker, source = Asker(), FakeSource()
    words: Reading[str] = Reading(asker, "words")
    words.ask(source, 1, 5, broken)
    worker.is_cancelled = True
    asker.begun[0]()
    assert asker.posted == []
    worker.is_cancelled = False
    asker.begun[0]()
    answer: Answer[str] = asker.posted[0].answer
    assert (answer.found, answer.failure) == (None, "the disk is gone")
