"""A logged value beside a served one: the log's words, in the form that the log cannot tell.

Taken from the served value are: marks and opaque signatures where the log has none (learnable), the list form of a text
that a cache mark causes, the order of keys where the log's store sorts them, and the spelling where no client's form fits
the session. Whatever else differs stays as the log has it, so that it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ctxscope.agents.messages.pieces import Pieces
from ctxscope.agents.messages.spelling import RAW, Spelling, ordered
from ctxscope.agents.messages.tree import Node
from ctxscope.wire import json_text

MARKS = ("cache_control", "prompt_cache_breakpoint")
SIGNATURES = ("signature", "thoughtSignature", "thought_signature", "encrypted_content", "extra_content")
_TEXT_BLOCK = frozenset({"type", "text", *MARKS})


@dataclass(frozen=True, slots=True)
class Rules:
    """How a session's log is compared."""

    spelling: Spelling = RAW
    by_value: bool = False
    """No client's form fits: what is equal in value is taken as spelled."""
    ordered: bool = True
    """The log's key order is the client's."""

    def same(self, logged: Node, served: Node) -> bool:
        """Whether two values are equal, spelling aside."""
        form = RAW.text if self.ordered else ordered
        return form(logged.raw) == form(served.raw)

    def taken(self, logged: Node, served: Node) -> bytes:
        """An equal value as it is to be written."""
        if self.by_value:
            return served.raw
        return self.spelling.text(logged.raw if self.ordered else served.raw)


def merge(out: Pieces, logged: Node, served: Node | None, rules: Rules, path: str) -> None:
    """Write a logged value into ``out``; ``path`` is the pointer at which it is served."""
    if served is None:
        out.logged(rules.spelling.text(logged.raw))
    elif rules.same(logged, served):
        out.logged(rules.taken(logged, served))
    elif logged.kind == served.kind == "object":
        _objects(out, logged, served, rules, path)
    elif logged.kind == served.kind == "array":
        _arrays(out, logged, served, rules, path)
    elif logged.is_string and _is_marked_text(served):
        _marked_text(out, logged, served, rules, path)
    else:
        out.logged(rules.spelling.text(logged.raw))


def _objects(out: Pieces, logged: Node, served: Node, rules: Rules, path: str) -> None:
    mine, theirs = logged.fields, served.fields
    borrowed = [k for k in theirs if k not in mine and k in (*MARKS, *SIGNATURES)]
    keys = _ordered_keys(list(mine), list(theirs), borrowed, rules)

    def write(key: str) -> None:
        if key in mine:
            merge(out, mine[key], theirs.get(key), rules, f"{path}/{key}")
        else:
            out.borrowed(theirs[key].raw, f"{path}/{key}")

    if rules.by_value and keys == [k for k, _ in served.members]:
        _in_gaps(out, served, [n for _, n in served.members], lambda i: write(keys[i]))
        return
    out.logged(b"{")
    for number, key in enumerate(keys):
        lead = rules.spelling.comma if number else b""
        out.logged(lead + rules.spelling.string(key).encode() + rules.spelling.colon)
        write(key)
    out.logged(b"}")


def _ordered_keys(mine: list[str], theirs: list[str], borrowed: list[str], rules: Rules) -> list[str]:
    """Keys in the log's order, or where that is not told in the served one; a borrowed key follows the one it follows there."""
    if not rules.ordered:
        return [*(k for k in theirs if k in mine or k in borrowed), *(k for k in mine if k not in theirs)]
    keys = list(mine)
    for key in borrowed:
        at = theirs.index(key)
        before = theirs[at - 1] if at else None
        keys.insert(keys.index(before) + 1 if before in keys else 0 if before is None else len(keys), key)
    return keys


def _arrays(out: Pieces, logged: Node, served: Node, rules: Rules, path: str) -> None:
    theirs = served.items

    def write(at: int) -> None:
        merge(out, logged.items[at], theirs[at] if at < len(theirs) else None, rules, f"{path}/{at}")

    if rules.by_value and len(theirs) == len(logged.items):
        _in_gaps(out, served, theirs, write)
        return
    out.logged(b"[")
    for at in range(len(logged.items)):
        out.logged(rules.spelling.comma if at else b"")
        write(at)
    out.logged(b"]")


def _in_gaps(out: Pieces, served: Node, inner: Sequence[Node], write: Callable[[int], None]) -> None:
    """Write members or items between what stands around them in the served value."""
    at = served.start
    for number, node in enumerate(inner):
        out.logged(served.data[at : node.start])
        write(number)
        at = node.end
    out.logged(served.data[at : served.end])


def _is_marked_text(served: Node) -> bool:
    """Whether a list stands for a text because of a cache mark on it."""
    if len(served.items) != 1:
        return False
    fields = served.items[0].fields
    return fields.keys() <= _TEXT_BLOCK and any(k in fields for k in MARKS) and {"type", "text"} <= fields.keys()


def _marked_text(out: Pieces, logged: Node, served: Node, rules: Rules, path: str) -> None:
    block = served.items[0]

    def write(at: int) -> None:
        key, node = block.members[at]
        if key == "text":
            merge(out, logged, node, rules, f"{path}/0/text")
        elif key in MARKS:
            out.borrowed(node.raw, f"{path}/0/{key}")
        else:
            out.constant(node.raw if node.value == "text" else b'"text"')

    if rules.by_value:
        out.constant(served.data[served.start : block.start])
        _in_gaps(out, block, [n for _, n in block.members], write)
        out.constant(served.data[block.end : served.end])
        return
    out.constant(b"[{")
    for at, (key, _) in enumerate(block.members):
        out.constant((rules.spelling.comma if at else b"") + json_text.js_string(key).encode() + rules.spelling.colon)
        write(at)
    out.constant(b"}]")
