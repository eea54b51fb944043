"""What all APIs' bodies have in common for planting: a story that grows, and hands to change it with."""

from __future__ import annotations

import copy
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from tests.planted.pieces import Counted, Prompt
from tests.planted.texts import prose

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answers."""

    text: str
    call: tuple[str, str, JSON] | None = None
    """Id, tool and arguments."""
    thinking: str = ""


def answer(turn: int, seed: str = "main", thinking: bool = False) -> Answer:
    """Of a story: tool calls and plain texts in turn."""
    call = None
    if turn % 2 == 0:
        number = f"{seed}{turn}".encode().hex()[-10:].rjust(10, "0")
        call = (f"call_{number}", "chart_read", {"path": f"maps/{seed}/{turn}.txt", "query": "Café quay", "limit": 40})
    thought = prose(f"{seed} thought {turn}", 500) if thinking else ""
    return Answer(prose(f"{seed} answer {turn}", 260 if call else 520), call, thought)


def news(turn: int, seed: str = "main", accents: bool = False) -> str:
    """What follows answer ``turn``: the result of its tool call, or the user's next words."""
    if turn % 2 == 0:
        return prose(f"{seed} result {turn}", 6400, accents)
    return prose(f"{seed} user {turn}", 1400, accents)


def first_words(seed: str = "main", accents: bool = False) -> str:
    """How a story starts."""
    return prose(f"{seed} user", 1600, accents)


def dumps(body: JSON, **how: Any) -> bytes:
    """A body as most clients spell it."""
    return json.dumps(body, **({"ensure_ascii": False, "separators": (",", ":")} | how)).encode()


def sse(events: list[tuple[str | None, JSON | str]]) -> bytes:
    """Server-sent events: a name and data each."""
    parts = []
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
        parts.append((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
    return "".join(parts).encode()


class Dialect(ABC):
    """One API: how its bodies look. Messages count without those that hold the system text."""

    path: str
    base = 0
    """Messages of the body before the first that is counted."""
    list_name = "messages"
    accents = False

    # --- the story ---
    @abstractmethod
    def opening(self, model: str, system: str, tools: tuple[str, ...], words: str) -> JSON: ...

    @abstractmethod
    def said(self, given: Answer) -> list[JSON]:
        """An answer as the next request echoes it."""

    @abstractmethod
    def told(self, given: Answer, words: str) -> list[JSON]:
        """What follows an answer: the result of its call, or the user's words."""

    def grow(self, body: JSON, given: Answer, words: str) -> JSON:
        """The next body: one answer and what followed it."""
        grown = copy.deepcopy(body)
        grown[self.list_name] += [*self.said(given), *self.told(given, words)]
        return self.marked(grown)

    def marked(self, body: JSON) -> JSON:
        """With cache marks where the client sets them."""
        return body

    # --- the provider's side ---
    @abstractmethod
    def prompt(self, body: JSON, headers: dict[str, str]) -> Prompt: ...

    @abstractmethod
    def generated(self, given: Answer) -> bytes:
        """An answer as the template prints it."""

    @abstractmethod
    def reply(self, body: JSON, counted: Counted, given: Answer, number: str, extra: JSON) -> bytes: ...

    # --- hands ---
    @abstractmethod
    def tool(self, name: str) -> JSON: ...

    @abstractmethod
    def schema_of(self, tool: JSON) -> JSON: ...

    @abstractmethod
    def system(self, body: JSON) -> str: ...

    @abstractmethod
    def set_system(self, body: JSON, text: str) -> None: ...

    @abstractmethod
    def user(self, text: str) -> JSON: ...

    @abstractmethod
    def assistant(self, text: str) -> JSON: ...

    @abstractmethod
    def set_text(self, message: JSON, text: str) -> None:
        """Replace the text of a message, or of the tool result it carries."""

    def tools(self, body: JSON) -> list[JSON]:
        found: list[JSON] = body["tools"]
        return found

    def describe(self, tool: JSON) -> JSON:
        """The object that holds a tool's description."""
        return tool

    def messages(self, body: JSON) -> list[JSON]:
        found: list[JSON] = body[self.list_name]
        return found

    def at(self, index: int) -> int:
        """Place of a message in the list of its body."""
        return index + self.base

    system_path = "/system"

    def tool_path(self, index: int) -> str:
        return f"/tools/{index}"

    def message_path(self, index: int) -> str:
        return f"/{self.list_name}/{self.at(index)}"
