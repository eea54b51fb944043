"""The reply delivered against the answer stored, and the answer stored against the one a later request echoes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from ctxscope.analysis.prefixes import common_prefix
from ctxscope.analysis.spelling import same, text_cause, text_class
from ctxscope.model import Block, Difference, ReplyVerdict

Blocks = tuple[Block, ...]
_WIDTH = 80
_LIGHT = ("whitespace", "id_regenerated")
"""Classes that must not hide a graver difference behind them, the lightest first."""
_NAMES = {"thinking": "the thinking text", "text": "the text"}


def compare_reply(
    delivered: Blocks | None,
    stored: Blocks | None,
    *,
    has_place: bool = True,
    logged: bool = True,
    complete: bool = True,
) -> ReplyVerdict:
    """What the log kept of what the model said.

    ``delivered`` None: no reply was recorded. ``stored`` None: no answer stands in the log, which is ``missing`` when
    the log has a place for it (``has_place``) and ``not_logged`` when the call itself is not in the log (``logged``
    False) or has none. Texts are compared joined, tool calls by id, name and arguments as values, in order. Thinking,
    envelopes and the ids of items are compared only where both sides have some: agents that never store thinking are
    not wrong about what was said.

    Of a reply whose recording broke off (``complete`` False) the part recorded is compared; when the log agrees with it
    and goes on, the rest is ``not_recorded``, the difference saying from where.
    """
    if not logged or (stored is None and not has_place):
        return ReplyVerdict("not_logged")
    if delivered is None:
        return ReplyVerdict("not_recorded")
    if stored is None:
        return ReplyVerdict("missing")
    if complete:
        return _compare(delivered, stored)
    kept = _as_recorded(delivered, stored)
    verdict = _compare(delivered, kept)
    if kept == stored:
        return verdict
    if verdict.state == "equal":
        return ReplyVerdict("not_recorded", _broken_off(delivered, stored))
    # what goes on behind the recording is no mere beginning of it
    return replace(verdict, state="differs") if verdict.state == "prefix" else verdict


def compare_echo(stored: Blocks | None, echoed: Blocks | None) -> Literal["equal", "differs"] | None:
    """Whether a later request repeats the stored answer; ``None`` when either is not known.

    The ids of items are left aside: clients drop or shorten them by rules of their own.
    """
    if stored is None or echoed is None:
        return None
    one, two = (tuple(replace(b, item_id="") for b in blocks) for blocks in (echoed, stored))
    return "differs" if any(_differences(one, two)) else "equal"


def _compare(delivered: Blocks, stored: Blocks) -> ReplyVerdict:
    found = list(_differences(delivered, stored))
    if not found:
        return ReplyVerdict("equal")
    difference = max(found, key=_gravity)
    said, kept = _text(delivered, "text"), _text(stored, "text")
    if said.strip() and not kept:
        return ReplyVerdict("empty", difference)
    if all(d.cls not in _LIGHT for d in found) and _is_prefix(delivered, stored):
        return ReplyVerdict("prefix", difference)
    return ReplyVerdict("differs", difference)


def _gravity(difference: Difference) -> int:
    return _LIGHT.index(difference.cls) if difference.cls in _LIGHT else len(_LIGHT)


def _is_prefix(delivered: Blocks, stored: Blocks) -> bool:
    """The stored answer is the beginning of the delivered one and no more: a cut text, or later calls left out."""
    said, kept = _text(delivered, "text"), _text(stored, "text")
    calls, kept_calls = _calls(delivered), _calls(stored)
    if not said.startswith(kept) or any(_call(a, b) for a, b in zip(calls, kept_calls, strict=False)):
        return False
    if len(kept_calls) > len(calls) or any(_thinking(delivered, stored)):
        return False
    return bool(kept or kept_calls or not said)


def _differences(delivered: Blocks, stored: Blocks) -> Iterator[Difference]:
    """What differs, in the order thinking, text, tool calls, ids of items; of each kind the first."""
    yield from _thinking(delivered, stored)
    said, kept = _text(delivered, "text"), _text(stored, "text")
    if said != kept:
        yield _text_difference(said, kept, _NAMES["text"], "/text")
    calls, kept_calls = _calls(delivered), _calls(stored)
    parts = ((n, *pair, _call(*pair)) for n, pair in enumerate(zip(calls, kept_calls, strict=False)))
    yield from (_call_difference(call, other, part, n) for n, call, other, part in parts if part)
    yield from _count_difference(calls, kept_calls)
    for kind in _NAMES:
        yield from _item_ids(delivered, stored, kind)


def _thinking(delivered: Blocks, stored: Blocks) -> Iterator[Difference]:
    said, kept = _text(delivered, "thinking"), _text(stored, "thinking")
    if said and kept and said != kept:
        yield _text_difference(said, kept, _NAMES["thinking"], "/thinking")
    for kind in ("thinking", "text", "tool_call"):
        envelopes, kept_envelopes = _envelopes(delivered, kind), _envelopes(stored, kind)
        if envelopes and kept_envelopes and envelopes != kept_envelopes:
            a, b = ("".join(b.envelope for b in blocks) for blocks in (delivered, stored))
            yield _difference(a, b, "opaque", "the opaque reasoning bytes are not the ones delivered", "/envelope")
            return


def _item_ids(delivered: Blocks, stored: Blocks, kind: str) -> Iterator[Difference]:
    """The ids of the items that texts stand in, where they are known on both sides."""
    ids, kept = (list(dict.fromkeys(b.item_id for b in blocks if b.kind == kind)) for blocks in (delivered, stored))
    if len(ids) == len(kept) and ids != kept and "" not in (*ids, *kept):
        cause = f"{_NAMES[kind]} is stored under another item id"
        yield _difference("".join(ids), "".join(kept), "id_regenerated", cause, f"/{kind}/item_id")


def _text(blocks: Blocks, kind: str) -> str:
    return "".join(b.text for b in blocks if b.kind == kind)


def _calls(blocks: Blocks) -> list[Block]:
    return [b for b in blocks if b.kind == "tool_call"]


def _envelopes(blocks: Blocks, kind: str) -> list[str]:
    return [b.envelope for b in blocks if b.envelope and b.kind == kind]


def _call(a: Block, b: Block) -> str | None:
    """Which part of two tool calls differs. An id is compared where both sides have one."""
    if a.name != b.name:
        return "name"
    if a.text != b.text and not same(_arguments(a.text), _arguments(b.text)):
        return "arguments"
    if a.id and b.id and a.id != b.id:
        return "id"
    return "item_id" if a.item_id and b.item_id and a.item_id != b.item_id else None


def _arguments(text: str) -> Any:
    try:
        return json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return text


# --- a recording that broke off --------------------------------------------------------------------------------------


def _as_recorded(delivered: Blocks, stored: Blocks) -> Blocks:
    """The stored answer as far as the recording of the reply goes, where the two agree."""
    room = {k: len(_text(delivered, k)) for k in _NAMES if _text(stored, k).startswith(_text(delivered, k))}
    calls = iter(_calls(delivered))
    kept: list[Block] = []
    for block in stored:
        text = block.text
        if block.kind == "tool_call":
            said = next(calls, None)
            if said is None:
                continue
            text = said.text if _is_cut(said, delivered) else text
        elif block.kind in room:
            text = text[: room[block.kind]]
            room[block.kind] -= len(text)
            if block.text and not text:
                continue
        kept.append(replace(block, text=text))
    return _sealed_as_recorded(delivered, kept)


def _sealed_as_recorded(delivered: Blocks, stored: Sequence[Block]) -> Blocks:
    """The same for envelopes: one may be recorded in part, those behind it are not."""
    known = {kind: iter(_envelopes(delivered, kind)) for kind in ("thinking", "text", "tool_call")}
    kept: list[Block] = []
    for block in stored:
        said = next(known[block.kind], "") if block.envelope and block.kind in known else ""
        kept.append(replace(block, envelope=said) if block.envelope.startswith(said) else block)
    return tuple(kept)


def _is_cut(call: Block, delivered: Blocks) -> bool:
    """Whether the recording may have ended inside a call's arguments: they are no JSON, or still empty."""
    return call is delivered[-1] and not isinstance(_arguments(call.text) or None, dict)


def _broken_off(delivered: Blocks, stored: Blocks) -> Difference:
    """Where the recording ends and the log goes on."""
    for kind, what in _NAMES.items():
        said, kept = _text(delivered, kind), _text(stored, kind)
        if len(said) < len(kept):
            return _unrecorded(said, kept, f"{'in' if said else 'before'} {what}", f"/{kind}")
    calls, kept_calls = _calls(delivered), _calls(stored)
    n = len(calls)
    if n < len(kept_calls):
        return _unrecorded("", kept_calls[n].text, f"before tool call {n}", f"/tool_calls/{n}")
    if calls and _is_cut(calls[-1], delivered):
        said, kept = calls[-1].text, kept_calls[n - 1].text
        return _unrecorded(said, kept, f"in the arguments of tool call {n - 1}", f"/tool_calls/{n - 1}/arguments")
    a, b = ("".join(block.envelope for block in blocks) for blocks in (delivered, stored))
    return _unrecorded(a, b, "in the opaque reasoning bytes", "/envelope")


def _unrecorded(said: str, kept: str, place: str, path: str) -> Difference:
    cause = f"the recording of the reply breaks off {place}; the log goes on"
    return _difference(said, kept, "extra", cause, path)


# --- differences -----------------------------------------------------------------------------------------------------


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
    if part == "item_id":
        cause = f"tool call {n} is stored under another item id"
        return _difference(call.item_id, kept.item_id, "id_regenerated", cause, path)
    if part == "name":
        return _difference(call.name, kept.name, "content", f"tool call {n} is stored under another name", path)
    return _difference(
        call.text, kept.text, "content", f"the arguments of tool call {n} are not the ones delivered", path
    )


def _count_difference(calls: Sequence[Block], kept: Sequence[Block]) -> Iterator[Difference]:
    n = min(len(calls), len(kept))
    path = f"/tool_calls/{n}"
    if len(calls) > n:
        yield _difference(calls[n].text, "", "missing", f"tool call {n} was delivered and is not in the log", path)
    elif len(kept) > n:
        yield _difference("", kept[n].text, "extra", f"the log holds tool call {n}, which was not delivered", path)


def _difference(said: str, kept: str, cls: str, cause: str, path: str) -> Difference:
    """Offsets count bytes of the part named by ``path``, on the delivered and the stored side."""
    a, b = said.encode("utf-8", "surrogatepass"), kept.encode("utf-8", "surrogatepass")
    at = common_prefix(a, b)
    start = len(a[:at].decode("utf-8", "ignore"))
    low = max(start - _WIDTH // 4, 0)
    return Difference(at, at, None, path, cls, cause, said[low : low + _WIDTH], kept[low : low + _WIDTH])
