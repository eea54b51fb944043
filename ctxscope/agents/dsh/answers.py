"""What a log keeps of an answer: its blocks, why it ended, what it cost (dsh.md §3, §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents.dsh import streams
from ctxscope.agents.dsh.lines import PACKED
from ctxscope.agents.dsh.texts import blocks, listed, mapped, spelled, string, whole
from ctxscope.model import Block, Entry, Stop, StopState, Usage
from ctxscope.wire import json_text

_STOPS: Mapping[str, StopState] = {
    "stop": "complete",
    "tool-calls": "complete",
    "max-tokens": "truncated",
    "content-filter": "blocked",
    "aborted": "incomplete",
    "error": "error",
}
ATTEMPTS = ("assistant/attempt", "assistant/chunk", *PACKED, "llm/retry")
"""Records of an attempt that came to nothing: v4 keeps its stream in the first, v0 the events of it before the last."""


def message_of(entry: Entry) -> Mapping[str, Any]:
    """The message a surface event carries; a user's is the data itself."""
    data = mapped(entry.data.get("data"))
    return data if entry.kind == "user/message" else mapped(data.get("message"))


def role_of(entry: Entry) -> str:
    """Whose message a surface event carries, as the message says; the event's type where it says nothing."""
    return string(message_of(entry).get("role")) or entry.kind.partition("/")[0]


def signatures(message: Mapping[str, Any]) -> Sequence[str]:
    """The opaque bytes beside each block of an answer, empty where there are none (v4)."""
    state = mapped(mapped(message.get("source")).get("replayState"))
    return [string(mapped(b).get("signature")) for b in listed(state.get("blocks"))]


def stored(entry: Entry, parts: Sequence[Entry] = ()) -> tuple[Block, ...] | None:
    """The answer as a record keeps it; ``None`` where it keeps none. ``parts``: v0's events of its stream.

    Of an answer that was cut the stream has what the message dropped: a tool call that is not whole.
    """
    data = mapped(entry.data.get("data"))
    came = streams.assembled(streams.rows(data) or streams.rows_of(parts))
    if entry.kind == "assistant/message":
        message = message_of(entry)
        signed = signatures(message)
        content = listed(message.get("content"))
        kept = {string(mapped(b).get("id")) for b in content}
        dropped = [b for b in came if b.get("type") == "tool-call" and string(b.get("id")) not in kept]
        found = [_block(b, signed[i] if i < len(signed) else "") for i, b in enumerate([*content, *dropped])]
        return tuple(b for b in found if b is not None)
    if entry.kind in ATTEMPTS:
        return tuple(b for b in (_block(one, "") for one in came) if b is not None) or None
    if entry.kind == "compaction/summary":
        kept = data.get("rawOutput", data.get("summary"))
        return tuple(b for b in (_block(one, "") for one in blocks(kept)) if b is not None)
    if entry.kind == "session/title":
        return (Block("text", string(data.get("title"))),)
    return None


def _block(block: Any, signature: str) -> Block | None:
    fields = mapped(block)
    kind = fields.get("type")
    if kind == "text":
        return Block("text", string(fields.get("text")))
    if kind == "reasoning":
        return Block("thinking", string(fields.get("text")), envelope=signature)
    if kind == "tool-call":
        name, call = string(fields.get("name")), string(fields.get("id"))
        return Block("tool_call", _arguments(string(fields.get("arguments"))), call, name, signature)
    return Block("other") if fields else None


def _arguments(raw: str) -> str:
    """Arguments as compact JSON with sorted keys; what is none stays as it is."""
    try:
        return spelled(_sorted(json_text.loads(raw))).decode("utf-8", "replace")
    except (ValueError, RecursionError):
        return raw


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _sorted(value[k]) for k in sorted(value)}
    return [_sorted(v) for v in value] if isinstance(value, list) else value


def stop(entry: Entry, parts: Sequence[Entry] = ()) -> Stop | None:
    """Why an answer ended. ``parts``: v0 tells it in the events of the stream."""
    kind = streams.finish(streams.rows(mapped(entry.data.get("data"))) or streams.rows_of(parts))
    return Stop(kind, _STOPS.get(kind, "unknown")) if kind is not None else None


def ended_well(parts: Sequence[Entry]) -> bool:
    """Whether the last events of a stream say that it was not cut."""
    return _STOPS.get(streams.finish(streams.rows_of(parts)) or "") == "complete"


def usage(entry: Entry) -> Usage | None:
    """Tokens as the provider reported them, in disjoint parts; ``None`` where nothing was."""
    said = mapped(mapped(entry.data.get("data")).get("usage"))
    names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens", "reasoningTokens")
    found = [whole(said.get(name)) for name in names]
    return None if all(n is None for n in found) else Usage(*found)
