"""An answer and what came until the next one, made fit for one target model (omp.md §4.1, §4.5).

Results follow their calls whenever they came; calls without a result are not sent; an answer that failed is left out
with its results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ctxscope.agents.omp import wording
from ctxscope.agents.omp.items import Item, before_interruption
from ctxscope.agents.omp.spelling import Lead
from ctxscope.agents.pi.texts import blocks, string
from ctxscope.agents.pi.transform import LONGEST_ID, Target, is_same

_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_CHAT_ID = 40
OFFICIAL = "anthropic"
"""Anthropic's own provider: it signs thinking, takes none unsigned, and takes ids of its own form alone."""
Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Msg:
    """One message for the target."""

    role: str
    content: Any
    item: Item
    tool_id: str = ""
    lead: Lead | None = None
    native: Sequence[Any] | None = None
    """Items of the provider's own, sent as they came."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An answer, or the start of the context, with all that followed until the next answer."""

    items: tuple[Item, ...]
    latest: bool
    """It holds the newest answer there is."""
    repeats: tuple[int, ...] = ()
    """For each tool call of the answer, how many earlier calls had its id."""
    known: frozenset[str] = frozenset()
    """Ids of the turn's results whose calls stand in earlier turns."""
    leads: tuple[tuple[int, Lead], ...] = ()
    """Reminders, by index of the item in the turn."""


@dataclass(slots=True)
class _Made:
    target: Target
    leads: Mapping[int, Lead]
    found: list[Msg] = field(default_factory=list)

    def add(self, role: str, content: Any, item: Item, at: int, **more: Any) -> None:
        lead = self.leads.get(at) if role == "user" else None
        self.found.append(Msg(role, content, item, lead=lead, **more))


def prepared(turn: Turn, target: Target) -> list[Msg]:
    """The messages of a turn for a target, in the order they are sent."""
    made = _Made(target, dict(turn.leads))
    first = turn.items[0] if _is_sent(turn.items) else None
    rest = list(enumerate(turn.items))[1 if first is not None else 0 :]
    ids = _ids(first.message, turn.repeats) if first is not None else {}
    results = _results(rest, ids)
    if first is not None:
        answer = _answer(first, turn, set(results), target)
        if answer:
            renamed = {old: _fit(new, first.message, target) for old, new in ids.items()}
            content = [{**b, "id": renamed[_id(b)]} if b.get("type") == "toolCall" else b for b in answer]
            made.add("assistant", content, first, -1, native=native_items(first.message, target))
            for name, item in results.items():
                made.add("toolResult", item.message.get("content"), item, -1, tool_id=renamed[name])
    _others(made, rest, set(ids), turn.known)
    return made.found


def blinded(msg: Msg) -> Msg:
    """A message for a model that takes no images: a notice stands for those that follow one another."""
    parts = list(blocks(msg.content)) if msg.role != "assistant" else []
    if not any(b.get("type") == "image" for b in parts):
        return msg
    notice = {"type": "text", "text": wording.NO_VISION}
    found: list[Block] = []
    for block in parts:
        shown = notice if block.get("type") == "image" else block
        found += [] if shown is notice and found and found[-1] is notice else [shown]
    return replace(msg, content=found)


def _is_sent(items: Sequence[Item]) -> bool:
    """Whether a turn begins with an answer that requests carry; one that failed needs a note behind it."""
    if not items or items[0].role != "assistant":
        return False
    if items[0].failed and len(items) > 1 and items[1].note:
        return True
    return items[0].survives and not items[0].absent


def _results(rest: Sequence[tuple[int, Item]], ids: Mapping[str, str]) -> dict[str, Item]:
    """The first result of each call, by the call's id, in the order they came."""
    found: dict[str, Item] = {}
    for _, item in rest:
        name = string(item.message.get("toolCallId"))
        if item.role == "toolResult" and name in ids:
            found.setdefault(name, item)
    return found


def _others(made: _Made, rest: Sequence[tuple[int, Item]], ids: set[str], known: frozenset[str]) -> None:
    """What stands behind the answer and its results."""
    dropped: set[str] = set()
    for at, item in rest:
        if item.role == "assistant":
            dropped |= {_id(b) for b in blocks(item.message.get("content")) if b.get("type") == "toolCall"}
        elif item.role != "toolResult":
            made.add(item.role, item.message.get("content"), item, at)
        elif string(item.message.get("toolCallId")) not in ids | dropped | known:
            text = wording.stale_result(item.message)
            if text:
                made.found.append(Msg("user", text, item))


def _id(block: Block) -> str:
    return string(block.get("id"))


def _ids(message: Block, repeats: Sequence[int]) -> dict[str, str]:
    """The ids of an answer's calls, and what they are sent as: one that an earlier call had is told apart."""
    calls = [_id(b) for b in blocks(message.get("content")) if b.get("type") == "toolCall"]
    found: dict[str, str] = {}
    for i, name in enumerate(calls):
        times = repeats[i] if i < len(repeats) else 0
        suffix = f"_dup{times}" if times else ""
        parts = name.split("|") if suffix else [name]
        found.setdefault(name, "|".join(p[: LONGEST_ID - len(suffix)] + suffix for p in parts))
    return found


def _fit(name: str, message: Block, target: Target) -> str:
    """A call's id as the target's API takes it."""
    if target.api == "anthropic-messages" and not (is_same(message, target) and target.provider != OFFICIAL):
        return _FORBIDDEN.sub("_", name)[:LONGEST_ID]
    if is_same(message, target) or target.api in ("openai-responses", "anthropic-messages"):
        return name
    call = name.partition("|")[0]
    if target.api == "openai-completions":
        call = _FORBIDDEN.sub("_", call)[:_CHAT_ID] if call != name else name
        return call[:_CHAT_ID] if target.provider == "openai" else call
    return _FORBIDDEN.sub("_", name)[:LONGEST_ID]


def native_items(message: Block, target: Target) -> Sequence[Any] | None:
    """Items that Responses replay as they came: only to the provider that gave them."""
    payload = message.get("providerPayload")
    if target.api != "openai-responses" or not isinstance(payload, Mapping):
        return None
    found = payload.get("items")
    same = message.get("api") == target.api and message.get("model") == target.model
    owner = payload.get("provider") or message.get("provider") or target.provider
    fits = (
        same
        and payload.get("dt") is True
        and payload.get("type") == "openaiResponsesHistory"
        and owner == target.provider
    )
    return found if fits and isinstance(found, list) else None


def _answer(item: Item, turn: Turn, results: set[str], target: Target) -> list[Block]:
    """An answer's blocks as the target may see them; none where nothing of it is sent."""
    message = item.message
    content: list[Block] = list(blocks(message.get("content")))
    if item.failed:
        noted = len(turn.items) > 1 and turn.items[1].note
        content = before_interruption(content) if noted or item.interrupted else content
        if item.live and content and content[-1] is _last(message):
            content[-1] = _unsigned(content[-1])  # its signature may be half of one
    elif any(b.get("type") == "toolCall" and _id(b) not in results for b in content):
        content = [_unsigned(b) for b in content if _stays(b, results)]
    abandoned = (
        not item.failed and message.get("stopReason") != "toolUse" and any(b.get("type") == "toolCall" for b in content)
    )
    same = is_same(message, target)
    if target.api == "anthropic-messages" and message.get("api") == "anthropic-messages":
        exempt = abandoned and turn.latest and message.get("provider") == target.provider
        return [b for b in (_replayed(b, abandoned and not exempt) for b in content) if b is not None]
    return [b for block in content for b in _carried(block, target, same=same)]


def _stays(block: Block, results: set[str]) -> bool:
    """Whether a block stays in an answer of which a call is taken away."""
    kind = block.get("type")
    return kind != "redactedThinking" and (kind != "toolCall" or _id(block) in results)


def _unsigned(block: Block) -> Block:
    return {k: v for k, v in block.items() if k != "thinkingSignature"} if block.get("type") == "thinking" else block


def _last(message: Block) -> Block | None:
    return next(reversed(list(blocks(message.get("content")))), None)


def _replayed(block: Block, unsign: bool) -> Block | None:
    """A block between two models of Anthropic's API."""
    if block.get("type") != "thinking":
        return None if block.get("type") == "image" else block
    block = _unsigned(block) if unsign else block
    return block if block.get("thinkingSignature") or string(block.get("thinking")).strip() else None


def _carried(block: Block, target: Target, *, same: bool) -> list[Block]:
    """A block for an API that is not its own, or one that signs nothing: thinking of another model becomes text."""
    kind = block.get("type")
    if kind == "redactedThinking":
        return [block] if same else []
    if kind in ("image", "fallback", "anthropicServerTool"):
        return []
    if kind == "toolCall":
        return [block if same else {k: v for k, v in block.items() if k != "thoughtSignature"}]
    if kind != "thinking":
        return [block if same else {"type": kind, "text": block.get("text")}]
    if same and block.get("thinkingSignature"):
        return [block]
    text = string(block.get("thinking"))
    if not text.strip():
        return []
    if target.api == "anthropic-messages":
        return [_unsigned(block)]
    if same and target.api != "google-generative-ai":
        return [block]
    return [{"type": "text", "text": wording.demoted(text, target.model), "demoted": True}]
