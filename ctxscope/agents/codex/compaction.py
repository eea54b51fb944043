"""What a compaction, or a rollback, makes of a history (codex.md §4.4, §4.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from ctxscope.agents.codex.calls import Call, Event
from ctxscope.agents.codex.estimate import text_tokens, tokens
from ctxscope.agents.codex.history import History, Item, history
from ctxscope.agents.codex.items import SUMMARY, is_context, is_user, message, spelled, text_of
from ctxscope.model import Entry, Place
from ctxscope.wire.blocks import listed, mapped, string

if TYPE_CHECKING:
    from ctxscope.agents.codex.fold import Fold

KEPT_TOKENS = 20_000
"""What a local compaction keeps of the user's messages, newest first (source only)."""
NO_SUMMARY = "(no summary available)"


def chained(chain: bytes, item: Item) -> bytes:
    """What stands for all items up to one, whatever lines they are in."""
    return blake2b(chain + spelled(item.bare), digest_size=12).digest()


def take(fold: Fold, entry: Entry, payload: Mapping[str, Any]) -> None:
    """Fold a compaction in: the call that made it, and the history it leaves."""
    call = _call(fold, entry, payload)
    before = fold.history.items[: call.length]
    new = _replacement(before, entry, payload)
    kept = {spelled(i.bare) for i in new.items} | {i.payload["id"] for i in new.items if string(i.payload.get("id"))}
    dropped = (
        i.place for i in before if spelled(i.bare) not in kept and (string(i.payload.get("id")) or None) not in kept
    )
    places = tuple(dict.fromkeys(dropped))
    how = "a summary" if string(payload.get("message")) else "what the server gave"
    where = f"replaced {len(before)} items by {len(new.items)}, {how} among them"
    total = fold.counter.last if fold.counter.estimate is None else None
    fold.events.append(
        Event(
            "compaction", len(fold.calls), where, entry.place, _before(fold, call, total), fold.counter.estimate, places
        )
    )
    fold.history, fold.answering = new, None


def _before(fold: Fold, call: Call, newest: int | None) -> int | None:
    """Tokens before: all that the last call reported."""
    for earlier in reversed(fold.calls[: fold.calls.index(call)]):
        if earlier.usage is not None and earlier.kind != "compaction":
            found = earlier.usage.get("total_tokens")
            return found if isinstance(found, int) else None
    return newest


def _call(fold: Fold, entry: Entry, payload: Mapping[str, Any]) -> Call:
    """The call that made the compaction: its answer stands right before it, or the compaction is all there is of it."""
    last = fold.calls[-1] if fold.calls else None
    if last is not None and _is_its_answer(fold, last, payload):
        last.kind = "compaction"
        last.changes += 1
        fold.asks = fold.asked_before
        return last
    call = fold.call(entry, entry.key)
    call.kind = "compaction"
    call.answers.append(entry)
    call.items.extend(_said(payload, alone=fold.records))
    name = string(payload.get("compaction_response_id"))
    call.response_id, call.response_place = name or None, entry.place if name else None
    newest = mapped(payload.get("latest_token_usage_record"))
    told = mapped(newest.get("usage")) if name and newest.get("response_id") == name else None
    call.usage, fold.unclaimed = told or fold.unclaimed, None
    call.fingerprint = blake2b(fold.chain + spelled(string(payload.get("message"))), digest_size=12).hexdigest()
    fold.calls.append(call)
    return call


def _is_its_answer(fold: Fold, last: Call, payload: Mapping[str, Any]) -> bool:
    """Whether the last answer is the summary itself, which 0.171 logs as an item right before."""
    if last.history is not fold.history or last.end != len(fold.history.items) or not last.answers:
        return False
    name = payload.get("compaction_response_id")
    if name and last.response_id:
        return bool(name == last.response_id)
    item = last.items[-1]
    if item.get("type") in ("compaction", "compaction_summary", "context_compaction"):
        return True
    said, summary = text_of(item), string(payload.get("message"))
    return item.get("role") == "assistant" and bool(said) and summary.endswith(said)


def _said(payload: Mapping[str, Any], *, alone: bool) -> Iterator[Mapping[str, Any]]:
    """What came back, as far as the compaction holds it: the text behind the line that introduces it, or items.

    Newer versions take one item (``alone``) from the server and build the rest, older ones take all as it came.
    """
    summary = string(payload.get("message"))
    if summary:
        text = summary.partition("\n")[2] if summary.startswith(SUMMARY) else summary
        yield {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        return
    for item in map(mapped, listed(payload.get("replacement_history"))):
        if not alone or "compaction" in string(item.get("type")):
            yield item


def _replacement(before: Sequence[Item], entry: Entry, payload: Mapping[str, Any]) -> History:
    """The history after: as the compaction says, or, where it says only the summary, by 0.98's rule."""
    given = payload.get("replacement_history")
    if isinstance(given, list):
        return history(Item(entry, item) for item in given if isinstance(item, Mapping))
    users = [i for i in before if is_user(i.payload)]
    first = next((n for n, i in enumerate(before) if i is users[0]), 0) if users else len(before)
    summary = Item(entry, message(string(payload.get("message")) or NO_SUMMARY), made=True)
    return history([*before[:first], *_kept(users), summary])


def _kept(users: Sequence[Item]) -> list[Item]:
    """The user's messages, newest first up to a limit; the last one that is kept may be cut."""
    kept: list[Item] = []
    left = KEPT_TOKENS
    for item in reversed(users):
        text = text_of(item.payload)
        size = text_tokens(text)
        if left <= 0:
            break
        whole = message(text if size <= left else _cut(text, left))
        kept.append(item if whole == item.payload else Item(item.entry, whole, made=True))
        left -= size
    return kept[::-1]


def _cut(text: str, limit: int) -> str:
    """A text cut in its middle to so many tokens, as Codex does (source only)."""
    data, room = text.encode("utf-8", "surrogatepass"), limit * 4
    head, tail = (
        data[: room // 2].decode("utf-8", "ignore"),
        data[len(data) - (room - room // 2) :].decode("utf-8", "ignore"),
    )
    return f"{head}…{tokens(len(data) - room)} tokens truncated…{tail}"


def roll_back(fold: Fold, entry: Entry, count: int) -> None:
    """Drop the last ``count`` inputs and all that followed, with the context given right before them (source only)."""
    items = fold.history.items
    inputs = [n for n, i in enumerate(items) if is_user(i.payload)]
    if count <= 0 or not inputs:
        return
    cut = inputs[-count] if count < len(inputs) else inputs[0]
    while cut > inputs[0] and is_context(items[cut - 1].payload):
        cut -= 1
    dropped: tuple[Place, ...] = tuple(dict.fromkeys(i.place for i in items[cut:]))
    kept = (c for c in reversed(fold.calls) if c.history is fold.history and c.end <= cut and c.kind == "main")
    left = next(kept, None)
    fold.branch = left.key if left is not None else None
    fold.history = fold.history.cut(cut)
    where = f"went back before the last {'input' if count == 1 else f'{count} inputs'}"
    fold.events.append(Event("rewind", len(fold.calls), where, entry.place, dropped=dropped))
