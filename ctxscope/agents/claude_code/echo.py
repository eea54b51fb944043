"""Messages as the chain implies them, with what only a served body shows: reminders, and which of two forms was sent.

A block the log holds is written from the log, whatever was served at its place. Taken from the served body are only
text blocks the client added itself (``<system-reminder>``), such text at the end of a tool's result, and whether a
lone text is a string or a block (claude_code.md §4.2 step 5, §4.3). What of a reminder a logged attachment holds is
written from the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.claude_code import texts
from ctxscope.agents.claude_code.attached import listing, split
from ctxscope.agents.claude_code.lines import IS_META
from ctxscope.agents.claude_code.messages import (
    Form,
    Message,
    Unit,
    by_rule,
    joined,
    marked,
    may_be_marked,
    sent,
    without_plan,
    written,
)
from ctxscope.agents.claude_code.served import ServedMessage
from ctxscope.agents.claude_code.texts import quoted, spelled, string
from ctxscope.agents.claude_code.tree import Node, Tree
from ctxscope.model import Piece

Block = list[Piece]
_SYSTEM_MESSAGES = (2, 1, 300)
"""The first version that sends attachments as messages of role ``system`` (claude_code.md §3)."""


@dataclass(eq=False, slots=True)
class Writer:
    """Writes one message beside the served one."""

    message: Message
    served: ServedMessage
    form: Form
    index: int
    """Its number in the request."""
    mark: bool
    model: str
    """The request's."""
    tree: Tree

    def pieces(self) -> list[Piece]:
        """The message."""
        content = self.served.content
        if isinstance(content, str) or self._lone:
            return self._single(content)
        blocks = list(self._blocks(content))
        if not blocks:
            return by_rule(self.message, self.form, mark=self.mark)
        if self.mark and may_be_marked(self._last_kind()):
            blocks[-1] = marked(blocks[-1], self.form.mark)
        return joined(self.message.role, blocks)

    @property
    def _lone(self) -> bool:
        """Whether both sides are one text."""
        units, content = self.message.units, self.served.content
        return len(units) == len(content) == 1 and units[0].text is not None and content[0].get("type") == "text"

    @property
    def path(self) -> str:
        """JSON pointer of its content."""
        return f"/messages/{self.index}/content"

    def _last_kind(self) -> str:
        return string(self.served.content[-1].get("type")) if self.served.content else ""

    def _single(self, content: Any) -> list[Piece]:
        """A lone text: the form is the served one's, the text the log's."""
        units = self.message.units
        if len(units) != 1 or units[0].text is None:
            return by_rule(self.message, self.form, mark=self.mark)
        usual = units[0].bare and not self.mark
        unit = units[0]
        words = self._words(unit, content if isinstance(content, str) else string(content[0].get("text")))
        if (isinstance(content, str) == usual and words == unit.text) or self.message.role != "user":
            return by_rule(self.message, self.form, mark=self.mark)
        text = Piece(quoted(words), "logged", unit.node.entry.place)
        head = Piece(b'{"role":"%s","content":' % self.message.role.encode())
        if isinstance(content, str):
            return [head, text, Piece(b"}")]
        opened = Piece(b'[{"type":"text","text":', "echoed", path=self.path)
        block = [opened, text, Piece(b"}", "echoed", path=self.path)]
        block = marked(block, self.form.mark) if self.mark else block
        return [head, *block, Piece(b"]", "echoed", path=self.path), Piece(b"}")]

    def _blocks(self, content: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
        waiting = list(self.message.units)
        attached = [n for n in self.message.attached if n.head.sub]
        for i, (value, raw) in enumerate(zip(content, self.served.raw, strict=True)):
            text = string(value.get("text")) if value.get("type") == "text" else ""
            while waiting and waiting[0].thought and not _is_thought(value) and self._drops(waiting[0]):
                waiting.pop(0)
            unit = waiting[0] if waiting else None
            if self._is_added(text, unit, attached):
                yield split(raw, text, attached, f"{self.path}/{i}", self.tree.restored, self.tree.listed)
            elif unit is not None:
                waiting.pop(0)
                follows = i + 1 < len(content) and content[i + 1].get("type") == "text"
                yield self._unit(unit, value, f"{self.path}/{i}", follows=follows)
        for unit in waiting:
            if not (unit.thought and self._drops(unit)):
                yield written(unit)

    def _drops(self, unit: Unit) -> bool:
        """Thinking of another model than the request's is not sent (claude_code.md §5, model switch)."""
        return bool(self.model) and unit.node.head.model != self.model

    def _is_added(self, text: str, unit: Unit | None, attached: Sequence[Node]) -> bool:
        """Whether a served text is the client's own and not the next one the log holds."""
        if not text or self.message.role != "user":
            return False
        if unit is not None and unit.text is not None:
            words = self._words(unit, text)
            if text in (unit.text, unit.text + "\n") or (words != unit.text and len(words) == len(text.rstrip("\n"))):
                return False
        if texts.is_reminder(text):
            return True
        return any(n.head.sub == "queued_command" and _prompt(n) in text for n in attached if _prompt(n))

    def _words(self, unit: Unit, served: str) -> str:
        """The text of a line beside the served one: what the client itself wrote it may send inside a reminder."""
        own = unit.text or ""
        wrap = bool(unit.node.head.flags & IS_META) and texts.is_reminder(served) and not texts.is_reminder(own)
        alike = len(texts.wrapped(own)) == len(served.rstrip("\n"))
        return texts.wrapped(own) if wrap and alike else own

    def _unit(self, unit: Unit, value: Mapping[str, Any], path: str, *, follows: bool) -> Block:
        if unit.kind == "tool_result" and value.get("type") == "tool_result":
            return self._result(unit, value, path)
        block = without_plan(sent(unit.block, value), value)
        if unit.text is not None:
            served = string(value.get("text"))
            words = self._words(unit, served)
            newline = self.form.newline and follows and served.endswith("\n") and not words.endswith("\n")
            block = {**block, "text": words + "\n" * newline}
        return [Piece(spelled(block), "logged", unit.node.entry.place)]

    def _result(self, unit: Unit, value: Mapping[str, Any], path: str) -> Block:
        """A tool's result: reminders at the end of its text are the client's; it trims the text before them."""
        own, served = unit.block.get("content"), value.get("content")
        place = unit.node.entry.place
        if served == texts.CLEARED and own != served and unit.block.get("tool_use_id") in self.tree.cleared:
            return [Piece(spelled({**unit.block, "content": texts.CLEARED}))]
        if isinstance(own, str) and isinstance(served, str):
            at = texts.added_from(own, served)
            if at is None:
                return written(unit)
            kept = own if own == served[:at] else texts.trimmed(own)
            before, _, after = spelled({**unit.block, "content": "\0"}).partition(b'"\\u0000"')
            tail = served[at:] if kept else served[at:].lstrip("\n")
            added = listing(tail, self.message.attached, self.tree.listed, self.tree.restored)
            return [
                Piece(before + b'"' + quoted(kept)[1:-1], "logged", place),
                *(added or [Piece(quoted(tail)[1:-1], "echoed", path=f"{path}/content")]),
                Piece(b'"' + after, "logged", place),
            ]
        if isinstance(own, list) and isinstance(served, list):
            return self._result_blocks(unit, own, served, path)
        return written(unit)

    def _result_blocks(self, unit: Unit, own: Sequence[Any], served: Sequence[Any], path: str) -> Block:
        place = unit.node.entry.place
        if len(served) <= len(own):
            return written(unit)
        before, _, after = spelled({**unit.block, "content": "\0"}).partition(b'"\\u0000"')
        out = [Piece(before + b"[", "logged", place)]
        waiting = list(own)
        for i, block in enumerate(served):
            text = string(block.get("text")) if isinstance(block, Mapping) else ""
            comma = b"," if i else b""
            if texts.is_reminder(text) and not (waiting and waiting[0] == block):
                out.append(Piece(comma + spelled(block), "echoed", path=f"{path}/content/{i}"))
            elif waiting:
                out.append(Piece(comma + spelled(waiting.pop(0)), "logged", place))
        out += [Piece(b"," + spelled(b), "logged", place) for b in waiting]
        return [*out, Piece(b"]" + after, "logged", place)]


def echoed_whole(message: ServedMessage, raw: bytes, index: int, version: str | None) -> list[Piece] | None:
    """A message the chain does not imply, if it is all the client's own: only reminders or, in 2.1.30x, of role system."""
    systems = tuple(int(n) for n in re.findall(r"[0-9]{1,9}", version or "")[:3]) >= _SYSTEM_MESSAGES
    own = (message.role == "system" and systems) or (message.role == "user" and is_added(message))
    return [Piece(raw, "echoed", path=f"/messages/{index}/content")] if own else None


def is_added(message: ServedMessage) -> bool:
    """Whether a message holds nothing but reminders."""
    blocks = message.content if isinstance(message.content, list) else [texts.text_block(message.content)]
    return bool(blocks) and all(b.get("type") == "text" and texts.is_reminder(string(b.get("text"))) for b in blocks)


def _is_thought(value: Mapping[str, Any]) -> bool:
    return value.get("type") in ("thinking", "redacted_thinking")


def _prompt(node: Node) -> str:
    return string(texts.mapped(node.entry.data.get("attachment")).get("prompt"))
