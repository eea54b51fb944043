"""Which session a whole request in a log belongs to, where a file may hold several.

Ids that the log states come first. Requests without one belong together when a later one repeats answers of an earlier
one, or begins with the same input while no answer is known yet; a table exported a row per chat so gives a session a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ctxscope.agents.messages.shapes import about
from ctxscope.model import Entry


@dataclass(eq=False, slots=True)
class Group:
    """One session's requests so far."""

    name: str
    answers: set[str] = field(default_factory=set)
    first_input: bytes = b""


@dataclass(eq=False, slots=True)
class Grouper:
    """Told every entry of a file in order, names the session of each."""

    stem: str
    """Name of the file: that of its first session, where it states no id."""
    groups: list[Group] = field(default_factory=list)
    stated: dict[str, Group] = field(default_factory=dict)
    by_answer: dict[str, Group] = field(default_factory=dict)
    by_input: dict[bytes, Group] = field(default_factory=dict)
    """Sessions by their first input, while they have no answer."""
    by_unit: dict[str, Group] = field(default_factory=dict)
    """Sessions by entry: one that is written anew is still that one's."""

    def name(self, entry: Entry) -> str:
        """The session of an entry; of one that is no request, the first there is."""
        stated = entry.data.get("session")
        if entry.kind in ("unknown", "span", "gone") or (entry.kind != "request" and not stated):
            return self.groups[0].name if self.groups else self.stem
        texts = entry.data["state"].messages if entry.kind == "request" else ()
        group = self._stated(str(stated)) if stated else self.by_unit.get(entry.key) or self._like(entry, texts)
        self.by_unit[entry.key] = group
        answers = [a.identity for a in map(about, texts) if a.sort == "output"]
        group.answers.update(answers)
        if not stated:
            self.by_answer.update((answer, group) for answer in answers if answer not in self.by_answer)
            if group.answers:
                self.by_input.pop(group.first_input, None)
        return group.name

    def _stated(self, name: str) -> Group:
        if name not in self.stated:
            self.stated[name] = Group(name)
            self.groups.append(self.stated[name])
        return self.stated[name]

    def _like(self, entry: Entry, texts: tuple[bytes, ...]) -> Group:
        for text in reversed(texts):
            told = about(text)
            if told.sort == "output" and told.identity in self.by_answer:
                return self.by_answer[told.identity]
        first = next((t for t in texts if about(t).sort == "input"), b"")
        found = self.by_input.get(first)
        if found is None:
            unstated = [g for g in self.groups if g.name not in self.stated]
            name = self.stem if not unstated else f"{self.stem}-{entry.place.number or len(self.groups) + 1}"
            found = self.by_input[first] = Group(name, first_input=first)
            self.groups.append(found)
        return found
