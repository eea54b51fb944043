"""Items of the Responses API as a rollout holds them: what each is, what it says, how it is spelled (codex.md §3, §4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from ctxscope.model import Block
from ctxscope.wire import json_text
from ctxscope.wire.blocks import arguments, joined_text, listed, mapped, string

PASSTHROUGH, METADATA = "internal_chat_message_metadata_passthrough", "metadata"
"""Members of an item that the log holds whole and a request in part, or not at all (codex.md §4.7)."""
SUMMARY = "Another language model started"
"""How the message begins that a local compaction puts in place of the history."""
CONTEXT = (
    *("# AGENTS.md instructions", "<environment_context>", "<user_instructions>", "<permissions instructions>"),
    *("<skill>", "<turn_aborted>", "<user_shell_command>", "<subagent_notification>", "<hook_prompt", "<user_action>"),
)
"""How messages begin that Codex itself wrote as the user's (codex.md §4.4; shell command, notification: source only)."""
REVIEWED = "<user_action>"
"""How the message begins that tells of a review; the assistant's message behind it is the reviewer's, given by Codex."""
_ANSWERS = frozenset(
    {
        *("reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"),
        *("image_generation_call", "compaction", "compaction_summary", "context_compaction"),
    }
)
_CALLS = {"function_call": "function_call_output", "local_shell_call": "function_call_output"} | {
    "custom_tool_call": "custom_tool_call_output",
    "tool_search_call": "tool_search_output",
}
"""Type of the output that each type of call must have."""
_OUTPUTS = frozenset(_CALLS.values())


def spelled(value: Any) -> bytes:
    """A parsed value as serde_json writes it: compact, raw Unicode, in the order it was logged."""
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return json_text.py(value).encode("utf-8", "surrogatepass")


def text_of(item: Mapping[str, Any]) -> str:
    """The texts of a message, one behind the other."""
    return "".join(string(mapped(part).get("text")) for part in listed(item.get("content")))


def is_answer(item: Mapping[str, Any]) -> bool:
    """Whether the model wrote an item; a message between agents, which is logged as the assistant's, it did not."""
    kind = item.get("type")
    if kind == "message" and item.get("role") == "assistant":
        return not _between_agents(text_of(item))
    return isinstance(kind, str) and kind in _ANSWERS


def _between_agents(text: str) -> bool:
    if not (text.startswith("{") and '"author"' in text and '"recipient"' in text):
        return False
    try:
        value = json_text.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and "author" in value and "recipient" in value


def is_output(item: Mapping[str, Any]) -> bool:
    """Whether an item is what a tool gave."""
    return string(item.get("type")).endswith("_output")


def is_sent(item: Mapping[str, Any]) -> bool:
    """Whether requests carry such an item at all: snapshots for undoing and system messages stay behind."""
    kind = item.get("type")
    return kind not in ("ghost_snapshot", "compaction_trigger", "other") and item.get("role") != "system"


def is_user(item: Mapping[str, Any]) -> bool:
    """Whether a person wrote an item: a user message that is none of Codex's own."""
    if item.get("type") != "message" or item.get("role") != "user":
        return False
    first = next((string(t) for p in listed(item.get("content")) if (t := mapped(p).get("text"))), "")
    return not first.lstrip().startswith((*CONTEXT, SUMMARY))


def is_context(item: Mapping[str, Any]) -> bool:
    """Whether Codex put a message before an input by itself: instructions, what surrounds it."""
    if item.get("type") != "message":
        return False
    return item.get("role") == "developer" or (item.get("role") == "user" and not is_user(item))


def expected_output(item: Mapping[str, Any]) -> tuple[str, str] | None:
    """Type and call id of the output a call must have; ``None`` for what needs none."""
    kind, call = _CALLS.get(string(item.get("type"))), string(item.get("call_id"))
    return (kind, call) if kind and call else None


def given_output(item: Mapping[str, Any]) -> tuple[str, str] | None:
    """The same of an output, where it must have its call; ``None`` for what needs none."""
    kind, call = string(item.get("type")), string(item.get("call_id"))
    if kind not in _OUTPUTS or not call or item.get("execution") == "server":
        return None
    return kind, call


def message(text: str) -> dict[str, Any]:
    """A user message of one text, as Codex makes it."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def blocks(item: Mapping[str, Any]) -> Iterator[Block]:
    """An item of an answer in the form common to all APIs."""
    kind, name = string(item.get("type")), string(item.get("id"))
    if kind == "reasoning":
        text = joined_text(item.get("summary")) or joined_text(item.get("content"))
        yield Block("thinking", text, envelope=string(item.get("encrypted_content")), item_id=name)
    elif kind.endswith("_call"):
        given = next((item[k] for k in ("arguments", "input", "action") if k in item), None)
        if kind == "local_shell_call":
            given = {k: v for k, v in mapped(given).items() if v is not None}  # Codex keeps what was not given as null
        text = "" if given is None else arguments(given)
        called = string(item.get("call_id")) or name
        yield Block("tool_call", text, called, string(item.get("name")) or kind.removesuffix("_call"), item_id=name)
    elif kind == "message":
        for part in listed(item.get("content")):
            said = mapped(part)
            if said.get("type") == "refusal":
                yield Block("text", string(said.get("refusal")), item_id=name)
            elif string(said.get("type")).endswith("text"):
                yield Block("text", string(said.get("text")), item_id=name)
            else:
                yield Block("image" if said.get("type") == "input_image" else "other", item_id=name)
    else:
        yield Block("other", envelope=string(item.get("encrypted_content")))
