"""What attachments put into a request: of a reminder the log's own words are the log's, the rest is the client's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ctxscope.agents.claude_code.texts import REMINDER, mapped, quoted, string
from ctxscope.agents.claude_code.tree import Node
from ctxscope.model import Piece

_SKILLS = f"{REMINDER}\nThe following skills are available for use with the Skill tool:\n\n"
_READ = f"{REMINDER}\nResult of calling the Read tool:\n"
_END = "\n</system-reminder>"
_FIELDS = ("content", "prompt", "text", "snippet", "stdout", "banner")


def listing(
    text: str, attached: Sequence[Node], listed: Sequence[Node], restored: Collection[Node]
) -> list[Piece] | None:
    """The inside of a reminder that lists skills, from the line that has the list.

    A subagent's transcript has no such line; the list is its session's (measured in 2.1.112). One of another length is
    another list.
    """
    at = text.find(_SKILLS)
    end = text.rfind(_END)
    if at < 0 or text[:at].strip() or end < 0:
        return None
    own = [n for n in attached if n.head.sub == "skill_listing"] or listed
    inside = text[at + len(_SKILLS) : end]
    for node in own:
        content = string(mapped(node.entry.data.get("attachment")).get("content"))
        if content and (own is not listed or content.count("\n- ") == inside.count("\n- ")):
            return [
                Piece(quoted(text[:at] + _SKILLS)[1:-1]),
                Piece(quoted(content)[1:-1], "logged", node.entry.place, external=node in restored),
                Piece(quoted(text[end:])[1:-1]),
            ]
    return None


def read(text: str, attached: Sequence[Node], restored: Collection[Node]) -> list[Piece] | None:
    """The inside of a reminder with a file the user named with ``@``, its lines numbered (measured in 2.1.112).

    One of another number of lines is another file.
    """
    if not (text.startswith(_READ) and text.endswith(_END)):
        return None
    inside = text[len(_READ) : -len(_END)]
    files = [(node, found) for node in attached if (found := _numbered(node)) is not None]
    files = [f for f in files if f[1] == inside] or [f for f in files if f[1].count("\n") == inside.count("\n")]
    if not files:
        return None
    node, found = files[0]
    return [
        Piece(quoted(_READ)[1:-1]),
        Piece(quoted(found)[1:-1], "logged", node.entry.place, external=node in restored),
        Piece(quoted(_END)[1:-1]),
    ]


def _numbered(node: Node) -> str | None:
    """The text of an attached file as the model reads it; ``None`` where there is none."""
    file = mapped(mapped(mapped(node.entry.data.get("attachment")).get("content")).get("file"))
    text, first = file.get("content"), file.get("startLine")
    if node.head.sub != "file" or not isinstance(text, str) or type(first) is not int:
        return None
    return "\n".join(f"{first + i}\t{line}" for i, line in enumerate(text.split("\n")))


def told(node: Node) -> Iterator[str]:
    """The texts an attachment holds, in the form they are sent in where the log has that."""
    data = node.entry.data
    rendered = data.get("rendered")
    if isinstance(rendered, list):
        yield from (text for r in rendered if (text := string(mapped(r).get("content"))))
    attached = mapped(data.get("attachment"))
    for name in _FIELDS:
        value = attached.get(name)
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, str) and each:
                yield each
    nested = mapped(attached.get("content"))
    for inner in (nested.get("content"), mapped(nested.get("file")).get("content")):
        if isinstance(inner, str) and inner:
            yield inner


def split(
    raw: bytes, text: str, attached: Sequence[Node], path: str, restored: Collection[Node], listed: Sequence[Node]
) -> list[Piece]:
    """A served reminder: what an attachment of the message says of it is logged, the rest echoed."""
    pieces = listing(text, attached, listed, restored) or read(text, attached, restored)
    if pieces:
        return [Piece(b'{"type":"text","text":"'), *pieces, Piece(b'"}')]
    for node in attached:
        for own in told(node):
            inner = quoted(own)[1:-1]
            at = raw.find(inner)
            if at >= 0:
                return [
                    Piece(raw[:at], "echoed", path=path),
                    Piece(inner, "logged", node.entry.place, external=node in restored),
                    Piece(raw[at + len(inner) :], "echoed", path=path),
                ]
    return [Piece(raw, "echoed", path=path)]
