"""The reply delivered against the answer stored, and the answer stored against the one a later request echoes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from ctxscope.analysis.prefixes import common_prefix
from ctxscope.analysis.spelling import same, text_cause, text_class
from ctxscope.model import Block, Difference, ReplyVerdict

Blocks = tuple[Block, ...]
_WIDTH = 80


def compare_reply(
    delivered: Blocks | None, stored: Blocks | None, *, has_place: bool = True, logged: bool = True
) -> ReplyVerdict:
    """What the log kept of what the model said.

    ``delivered`` None: no reply was recorded. ``stored`` None: no answer stands in the log, which is ``missing`` when
    the log has a place for it (``has_place``) and ``not_logged`` when the call itself is not in the log (``logged``
    False) or has none. Texts are compared joined, tool calls by id, name and arguments as values, in order. Thinking
    and envelopes are compared only where both sides have some: agents that never store thinking are not wrong about
    what was said.
    """
    if not logged or (stored is None and not has_place):
        return ReplyVerdict("not_logged")
    if delivered is None:
        return ReplyVerdict("not_recorded")
    if stored is None:
        return ReplyVerdict("missing")
    difference = _first(delivered, stored)
    if difference is None:
        return ReplyVerdict("equal")
    said, kept = _text(delivered, "text"), _text(stored, "text")
    if said.strip() and not kept:
        return ReplyVerdict("empty", difference)
    if _is_prefix(delivered, stored):
        return ReplyVerdict("prefix", difference)
    return ReplyVerdict("differs", difference)


def compare_echo(stored: Blocks | None, echoed: Blocks | None) -> Literal["equal", "differs"] | None:
    """Whether a later request repeats the stored answer; ``None`` when either is not known."""
    if stored is None or echoed is None:
        return None
    return "differs" if _first(echoed, stored) else "equal"


def _is_prefix(delivered: Blocks, stored: Blocks) -> bool:
    """The stored answer is the beginning of the delivered one and no more: a cut text, or later calls left out."""
    said, kept = _text(delivered, "text"), _text(stored, "text")
    calls, kept_calls = _calls(delivered), _calls(stored)
    if not said.startswith(kept) or any(_call(a, b) for a, b in zip(calls, kept_calls, strict=False)):
        return False
    if len(kept_calls) > len(calls) or _thinking(delivered, stored):
        return False
    return bool(kept or kept_calls or not said) and text_class(said, kept) != "whitespace"


def _first(delivered: Blocks, stored: Blocks) -> Difference | None:
    """The first difference in the order thinking, text, tool calls; ``None`` when they agree."""
    found = _thinking(delivered, stored)
    if found:
        return found
    said, kept = _text(delivered, "text"), _text(stored, "text")
    if said != kept:
        return _text_difference(said, kept, "the text", "/text")
    calls, kept_calls = _calls(delivered), _calls(stored)
    for n, (call, kept_call) in enumerate(zip(calls, kept_calls, strict=False)):
        part = _call(call, kept_call)
        if part:
            return _call_difference(call, kept_call, part, n)
    return _count_difference(calls, kept_calls)


def _thinking(delivered: Blocks, stored: Blocks) -> Difference | None:
    said, kept = _text(delivered, "thinking"), _text(stored, "thinking")
    if said and kept and said != kept:
        return _text_difference(said, kept, "the thinking text", "/thinking")
    envelopes, kept_envelopes = _envelopes(delivered), _envelopes(stored)
    if envelopes and kept_envelopes and envelopes != kept_envelopes:
        a, b = "".join(envelopes), "".join(kept_envelopes)
        return _difference(a, b, "opaque", "the opaque reasoning bytes are not the ones delivered", "/envelope")
    return None


def _text(blocks: Blocks, kind: str) -> str:
    return "".join(b.text for b in blocks if b.kind == kind)


def _calls(blocks: Blocks) -> list[Block]:
    return [b for b in blocks if b.kind == "tool_call"]


def _envelopes(blocks: Blocks) -> list[str]:
    return [b.envelope for b in blocks if b.envelope]


def _call(a: Block, b: Block) -> str | None:
    """Which part of two tool calls differs. An id is compared where both sides have one."""
    if a.name != b.name:
        return "name"
    if not same(_arguments(a.text), _arguments(b.text)):
        return "arguments"
    return "id" if a.id and b.id and a.id != b.id else None


def _arguments(text: str) -> Any:
    try:
        return json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return text


def _text_difference(said: str, kept: str, what: str, path: str) -> Difference:
    cls = text_class(said, kept)
    if cls == "whitespace" and said.strip() == kept.strip():
        cause = (
            f"white space around {what} was trimmed" if len(kept) < len(said) else f"white space was added to {what}"
        )
    elif not kept:
        cls, cause = "missing", f"{what} delivered is not in the log"
    elif not said:
        cls, cause = "extra", f"the log holds {what.removeprefix('the ')} that was not delivered"
    elif said.startswith(kept):
        cause = f"the log holds only the beginning of {what} delivered"
    else:
        words = text_cause(cls)
        cause = f"in {what} {words}" if words else f"{what} stored is not the one delivered"
    return _difference(said, kept, cls, cause, path)


def _call_difference(call: Block, kept: Block, part: str, n: int) -> Difference:
    path = f"/tool_calls/{n}/{part}"
    if part == "id":
        return _difference(call.id, kept.id, "id_regenerated", f"tool call {n} is stored under another id", path)
    said, stored = (call.name, kept.name) if part == "name" else (call.text, kept.text)
    return _difference(
        said,
        stored,
        "content",
        f"the {part} of tool call {n} are not the ones delivered"
        if part == "arguments"
        else f"tool call {n} is stored under another name",
        path,
    )


def _count_difference(calls: Sequence[Block], kept: Sequence[Block]) -> Difference | None:
    if len(calls) == len(kept):
        return None
    n = min(len(calls), len(kept))
    path = f"/tool_calls/{n}"
    if len(calls) > n:
        return _difference(calls[n].text, "", "missing", f"tool call {n} was delivered and is not in the log", path)
    return _difference("", kept[n].text, "extra", f"the log holds tool call {n}, which was not delivered", path)


def _difference(said: str, kept: str, cls: str, cause: str, path: str) -> Difference:
    """Offsets count bytes of the part named by ``path``, on the delivered and the stored side."""
    a, b = said.encode("utf-8", "surrogatepass"), kept.encode("utf-8", "surrogatepass")
    at = common_prefix(a, b)
    start = len(a[:at].decode("utf-8", "ignore"))
    low = max(start - _WIDTH // 4, 0)
    return Difference(at, at, None, path, cls, cause, said[low : low + _WIDTH], kept[low : low + _WIDTH])
