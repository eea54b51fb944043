"""Passes over the whole message list before a call; the log's rows stay as they are (hermes.md §4.2, §4.4).

``repaired`` takes contents as logged; a sidecar goes in its content's place only after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ctxscope.agents.hermes.canonical import SIDECAR, Message, blank, tool_ids

INTERRUPTED = "[response interrupted]"
UNAVAILABLE = "[Result unavailable — see context summary above]"
NAMELESS = "invalid_tool_call"
VERIFICATION = "verification_required"
"""Finish reason of an answer that the next one replaces."""
_THINKING = ("reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items")


def repaired(messages: Iterable[Message]) -> list[Message]:
    """The list with its alternation repaired: assistants merged, unknown tool results dropped, users merged."""
    return merged_users(_known_results(_merged_assistants(messages)))


def sanitised(messages: Sequence[Message], *, final: bool) -> list[Message]:
    """The list a provider accepts: no empty message but the last, no call without result, no result without call.

    ``final``: the last message of ``messages`` is the last of the request.
    """
    out: list[Message] = []
    spared = len(messages) - 1 if final else len(messages)
    for i, message in enumerate(messages):
        named = _named(message)
        if i < spared and _empty(named):
            named = named.changed(content=INTERRUPTED)
        out.append(named)
    return _answered(_unique(out))


def without_thinking_only(messages: Sequence[Message]) -> list[Message]:
    """Assistants that only thought are dropped and the users around them merged."""
    kept = [m for m in messages if not _thinking_only(m)]
    return merged_users(kept) if len(kept) < len(messages) else kept


def merged_users(messages: Iterable[Message]) -> list[Message]:
    """Consecutive users whose contents are texts become one, a blank line between."""
    out: list[Message] = []
    for message in messages:
        last = out[-1] if out else None
        if last is not None and last.role == message.role == "user":
            texts = [last.data.get("content"), message.data.get("content")]
            if all(isinstance(t, str) for t in texts):
                joined = "\n\n".join(t for t in texts if t)
                data = {**last.data, "content": joined}
                data.pop(SIDECAR, None)  # it would send again what stood there before the merge
                out[-1] = Message(data, last.rows + message.rows, last.loaded)
                continue
        out.append(message)
    return out


def _merged_assistants(messages: Iterable[Message]) -> list[Message]:
    out: list[Message] = []
    for message in messages:
        last = out[-1] if out else None
        if last is None or not (last.role == message.role == "assistant") or _interim(last) or _interim(message):
            out.append(message)
        elif last.data.get("finish_reason") == VERIFICATION:
            out[-1] = message
        else:
            out[-1] = _joined(last, message)
    return out


def _interim(message: Message) -> bool:
    """An unfinished Responses answer: its items stand for themselves."""
    return message.data.get("finish_reason") == "incomplete"


def _joined(first: Message, second: Message) -> Message:
    parts = [first.data.get("content"), second.data.get("content")]
    texts = [p.strip() for p in parts if isinstance(p, str) and p.strip()]
    calls = [*(first.data.get("tool_calls") or ()), *(second.data.get("tool_calls") or ())]
    data: dict[str, Any] = {**first.data, "content": "\n".join(texts)}
    if not blank(parts[1]):
        data.pop(SIDECAR, None)
    if calls:
        data["tool_calls"] = calls
    return Message(data, first.rows + second.rows, first.loaded)


def _known_results(messages: Iterable[Message]) -> list[Message]:
    """Tool results whose call the last assistant made, each once; a user message ends what is known."""
    out: list[Message] = []
    known: set[str] = set()
    answered: set[str] = set()
    for message in messages:
        if message.role == "assistant":
            known, answered = set(tool_ids(message)), set()
        elif message.role == "user":
            known = set()
        elif message.role == "tool":
            call = str(message.data.get("tool_call_id"))
            if call not in known or call in answered:
                continue
            answered.add(call)
        out.append(message)
    return out


def _named(message: Message) -> Message:
    calls = message.data.get("tool_calls")
    if not calls:
        return message
    if all(_name(c).strip() for c in calls):
        return message
    fixed = [
        c if _name(c).strip() else {**c, "function": {**(c.get("function") or {}), "name": NAMELESS}} for c in calls
    ]
    return message.changed(tool_calls=fixed)


def _name(call: dict[str, Any]) -> str:
    function = call.get("function")
    return str(function.get("name") or "") if isinstance(function, dict) else ""


def _empty(message: Message) -> bool:
    if message.role == "tool" or message.data.get("tool_calls") or not blank(message.data.get("content")):
        return False
    return not any(message.data.get(k) for k in (*_THINKING, "codex_message_items"))


def _thinking_only(message: Message) -> bool:
    if message.role != "assistant" or message.data.get("tool_calls") or not blank(message.data.get("content")):
        return False
    return any(message.data.get(k) for k in _THINKING)


def _unique(messages: Iterable[Message]) -> list[Message]:
    """Tool calls of one id in one message only once; their results were told apart before."""
    out: list[Message] = []
    for message in messages:
        calls = message.data.get("tool_calls")
        if calls and len({c.get("id") for c in calls}) < len(calls):
            firsts = {c.get("id"): c for c in reversed(calls)}
            out.append(message.changed(tool_calls=[c for c in calls if firsts[c.get("id")] is c]))
        else:
            out.append(message)
    return out


def _answered(messages: Sequence[Message]) -> list[Message]:
    """A stub where a call has no result before the next message that is no result."""
    out: list[Message] = []
    open_calls: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tool":
            call = message.data.get("tool_call_id")
            open_calls = [c for c in open_calls if call not in {c.get("id"), c.get("call_id")}]
        else:
            out += (_stub(c) for c in open_calls)
            open_calls = list(message.data.get("tool_calls") or ())
        out.append(message)
    return [*out, *(_stub(c) for c in open_calls)]


def _stub(call: dict[str, Any]) -> Message:
    data = {"role": "tool", "name": _name(call), "content": UNAVAILABLE, "tool_call_id": call.get("id")}
    return Message(data, (), loaded=False)
