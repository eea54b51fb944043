"""What a log keeps of an answer: its blocks, why it ended, what it cost (dsh.md §3, §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


def message_of(entry: Entry) -> Mapping[str, Any]:
    """The message a surface event carries; a user's is the data itself."""
    data = mapped(entry.data.get("data"))
    return data if entry.kind == "user/message" else mapped(data.get("message"))


def signatures(message: Mapping[str, Any]) -> Sequence[str]:
    """The opaque bytes beside each block of an answer, empty where there are none (v4)."""
    state = mapped(mapped(message.get("source")).get("replayState"))
    return [string(mapped(b).get("signature")) for b in listed(state.get("blocks"))]


def stored(entry: Entry) -> tuple[Block, ...] | None:
    """The answer as a record keeps it; ``None`` where it keeps none."""
    data = mapped(entry.data.get("data"))
    if entry.kind == "assistant/message":
        message = message_of(entry)
        signed = signatures(message)
        content = listed(message.get("content"))
        found = [_block(b, signed[i] if i < len(signed) else "") for i, b in enumerate(content)]
        return tuple(b for b in found if b is not None)
    if entry.kind == "assistant/attempt":
        ended = [mapped(c.get("block")) for c in chunks(data) if c.get("type") == "block-end"]
        return tuple(b for b in (_block(e, "") for e in ended) if b is not None)
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


def chunks(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The chunks of an answer's stream that are not packed (v3, v4), or of one v0 record."""
    rows = [mapped(row) for row in listed(data.get("stream"))] or [data]
    return [mapped(row.get("chunk")) for row in rows if isinstance(row.get("chunk"), Mapping)]


def stop(entry: Entry, before: Sequence[Entry] = ()) -> Stop | None:
    """Why an answer ended. ``before``: v0 tells it in the chunks that the answer was put together from."""
    told = [c for e in (*before, entry) for c in chunks(mapped(e.data.get("data"))) if c.get("type") == "finish"]
    kind = mapped(told[-1].get("reason")).get("kind") if told else None
    return Stop(kind, _STOPS.get(kind, "unknown")) if isinstance(kind, str) else None


def usage(entry: Entry) -> Usage | None:
    """Tokens as the provider reported them, in disjoint parts; ``None`` where nothing was."""
    said = mapped(mapped(entry.data.get("data")).get("usage"))
    names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens", "reasoningTokens")
    found = [whole(said.get(name)) for name in names]
    return None if all(n is None for n in found) else Usage(*found)
