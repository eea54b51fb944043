"""What a line that replaces all messages means: the first context, a compression, a resume, a failed call taken back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ctxscope.agents.gemini.history import Turn
from ctxscope.model import Place

ACKNOWLEDGED = "Got it. Thanks for the additional context!"
"""The model's part behind a summary."""
CONTEXT = "<session_context>"
"""How the first message of every history begins."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that rewrote or restored the history."""

    kind: str
    """As ``Marker.kind``."""
    place: Place
    where: str
    before: int
    """How many calls came before it."""
    dropped: tuple[Place, ...] = ()
    tokens: int | None = None
    """Prompt tokens of the last answer before it."""
    doubled: int = 0
    """Tool results that the history holds more than once since."""


def of_set(
    old: Sequence[Turn], new: Sequence[Turn], seen: Collection[str], *, resumed: bool
) -> tuple[str, str, tuple[Place, ...]] | None:
    """Kind, words and dropped places of a replacement; ``None`` for a process that sets out.

    ``seen``: ids of messages so far. ``resumed``: a process or a compression began a chat anew.
    """
    if is_first(new):
        return None
    summary = next((t for t in new if t.role == "model" and _text(t) == ACKNOWLEDGED and t.id not in seen), None)
    if summary is not None:
        dropped = _dropped(old, len(new) - 3)
        return "compaction", "replaced the history's beginning by a summary", dropped
    if resumed:
        return "resume", f"a new process took the session up{_doubled(new)}", ()
    gone = {t.id for t in old if t.id} - {t.id for t in new}
    if gone and len(new) < len(old):
        places = tuple(dict.fromkeys(t.entry.place for t in old if t.id in gone and t.entry is not None))
        return "rewind", "took back the messages of a call that failed or was cancelled", places
    return ("prune", "rewrote messages of the history", ()) if len(new) == len(old) else None


def is_first(turns: Sequence[Turn]) -> bool:
    """Whether a history is the context alone that every process begins with."""
    return not turns or (len(turns) == 1 and _text(turns[0]).startswith(CONTEXT))


def doubled(turns: Sequence[Turn]) -> int:
    """How many tool results a history holds more than once."""
    return sum(n > 1 for n in _responses(turns).values())


def _doubled(turns: Sequence[Turn]) -> str:
    found = doubled(turns)
    most = max(_responses(turns).values(), default=0)
    times = {2: "twice", 3: "three times"}.get(most, f"up to {most} times")
    many = f"; {found} tool {'result is' if found == 1 else 'results are'} sent {times}" if found else ""
    unsigned = sum(
        1
        for t in turns
        if t.role == "model"
        for p in t.parts
        if p.get("functionCall") and not p.get("thoughtSignature")
    )
    lost = (
        "the signature of a tool call is lost" if unsigned == 1 else f"the signatures of {unsigned} tool calls are lost"
    )
    return many + (f"; {lost}" if unsigned else "")


def _responses(turns: Sequence[Turn]) -> Counter[str]:
    answers = (p.get("functionResponse") for t in turns for p in t.parts)
    return Counter(str(a.get("id")) for a in answers if isinstance(a, dict) and a.get("id"))


def _dropped(old: Sequence[Turn], kept: int) -> tuple[Place, ...]:
    """Places of the messages a summary stands for: all but the context and the last contents."""
    contents: list[list[Turn]] = []
    for turn in old[1:]:
        if contents and contents[-1][0].role == turn.role:
            contents[-1].append(turn)
        else:
            contents.append([turn])
    gone = contents[: len(contents) - kept] if kept > 0 else contents
    return tuple(dict.fromkeys(t.entry.place for turns in gone for t in turns if t.entry is not None))


def _text(turn: Turn) -> str:
    return "".join(str(p.get("text") or "") for p in turn.parts)
