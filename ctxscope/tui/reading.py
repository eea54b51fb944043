"""What a screen has read by a worker: the last question, and the newest answer that came to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from textual.dom import DOMNode
from textual.message import Message
from textual.worker import get_current_worker

from ctxscope.tui import errors
from ctxscope.tui.source import Source

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is asked for, once."""

    source: Source
    revision: int
    """Of the snapshot that was shown."""
    of: object
    """What it is asked of, among all the source has."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer(Generic[Found]):
    """What was found, or why it cannot be read."""

    question: Question
    found: Found | None
    failure: str = ""


class Answered(Message):
    """A worker has an answer."""

    def __init__(self, reading: Reading[Any], answer: Answer[Any]) -> None:
        super().__init__()
        self.reading, self.answer = reading, answer


class Reading(Generic[Found]):
    """Something read in a thread, one question at a time; what answers an earlier question is no answer."""

    def __init__(self, asker: DOMNode, group: str) -> None:
        self._asker, self._group = asker, group
        """Who is told, and the group of its workers that read this."""
        self._asked: Question | None = None
        self.known: Answer[Found] | None = None
        """The newest answer, until it is forgotten."""

    def ask(self, source: Source, revision: int, of: object, read: Callable[[], Found]) -> None:
        """Have it read, unless it was for this revision or is just being read: whoever shows the answer asks again."""
        asked = self._asked
        if asked is not None and asked.source is source and asked.of == of:
            waits = self.known is None or self.known.question is not asked
            if waits or asked.revision == revision:
                return
        self._asked = Question(source, revision, of)
        self._asker.run_worker(partial(self._read, self._asked, read), group=self._group, exclusive=True, thread=True)

    def _read(self, question: Question, read: Callable[[], Found]) -> None:
        worker = get_current_worker()
        try:
            answer = Answer(question, read())
        except Exception as error:  # noqa: BLE001 - whatever a log makes a reader raise, the app lives on
            answer = Answer(question, None, errors.in_words(error))
        if not worker.is_cancelled:
            self._asker.post_message(Answered(self, answer))

    def take(self, answer: Answer[Found]) -> bool:
        """Take over an answer; False when it is none to the last question."""
        if answer.question is not self._asked:
            return False
        self.known = answer
        return True

    def known_of(self, source: Source | None, of: object) -> Answer[Found] | None:
        """The newest answer, if it is about this."""
        known = self.known
        return known if known is not None and known.question.source is source and known.question.of == of else None

    def forget(self) -> None:
        """Let go of all; no answer is waited for any more."""
        self._asked = self.known = None
