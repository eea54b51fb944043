"""What to do about a lost prefix, a line a cause: advice that follows from how prompts are kept, whoever the agent.

The causes are those of the taxonomy (prompt_caching §12). Each line is a clause in lower case without a full stop, plain
words that a terminal and a report can show as they are.
"""

from __future__ import annotations

from types import MappingProxyType

PARAM = "param_changed:"
"""What a cause begins with that names a field of the request (C10)."""
UNKNOWN = "no cause could be named: compare the two prompts, and see whether the provider's rules are known here"

REMEDIES = MappingProxyType(
    {
        "first_call_cold": "nothing to mend: a first call writes; warm up with the head alone where its latency hurts",
        "model_changed": "keep one model and speed for a conversation; give side tasks to another model in calls of their own",
        "system_changed": "freeze the system text at the start; put what changes into the newest user message",
        "volatile_content": "move the clock, id or status behind the last breakpoint, or into the newest user message",
        "tool_added": "offer all tools from the first call on, or add one by a message where the API allows it",
        "tool_removed": "keep the tool listed and forbid its use in words, or by a setting that leaves the prefix alone",
        "tool_reordered": "sort the tools by name, or keep the order of the first call",
        "tool_schema_changed": "freeze definitions for the session; keep dates, paths and lists of files out of them",
        "tool_key_order": "write definitions once and send the same text each time, or sort their keys",
        "json_serialisation_drift": "send again the very text that was sent before, not a value parsed and written anew",
        "history_rewritten": "leave sent messages as they were; add a correction as a new message at the end",
        "message_inserted": "put reminders and notes at the end, behind everything already sent",
        "message_removed": "keep sent messages; when room is needed, drop many at once and seldom",
        "history_truncated": "raise the context limit, or compact once and seldom instead of dropping the oldest each call",
        "compaction": "compact seldom and far down; keep the head, so that at least it is read",
        "tool_result_pruned": "shorten a result before it is first sent, or prune many at once and seldom",
        "image_stripped": "leave sent images in place, or shrink them before they are first sent",
        "media_changed": "send the same bytes each time: encode an image once and keep it",
        "reasoning_stripped_client": "send reasoning back as it came, or let the provider keep it by the response's id",
        "reasoning_stripped_server": "choose a model or setting that keeps reasoning, or expect one loss a turn",
        "assistant_echo_mismatch": "send the answer back as it was delivered: same text, same arguments, same ids",
        "log_mismatch": "nothing lost by itself: log what was sent, so that it can be proved",
        "breakpoint_missing": "set a breakpoint in each call, on the last block that stays the same in the next",
        "breakpoint_moved": "set the breakpoint on the last block that stays the same, and keep the one before it",
        "lookback_exceeded": "set a second breakpoint no more than 19 blocks behind the last",
        "routing_changed": "send one routing key (prompt_cache_key, session id) for a session, and stay with one upstream",
        "below_minimum": "nothing to mend: a prompt this short is not kept; a longer fixed head would be",
        "ttl_expired": "ask for the 1 h lifetime where it is offered, or warm up before the pause is over",
        "concurrency_not_ready": "start the first call alone and the others once its reply has begun",
        "server_context_edit": "let the server clear much at once and seldom, or switch its context editing off",
        "boundary_not_preserved": "end what is sent with a whole message; add a new one instead of extending the last",
        "isolation_changed": "use one key, workspace, region and user id for a session",
        "engine_limit": "give the session a slot of its own (more slots, fewer calls in parallel); keep the model loaded",
        "unexplained_miss": "nothing here to mend: evicted, or sent to another machine; a longer lifetime may help",
        "redecided": "have the curator keep what it sent for each message, and send that again after a restart",
        "router_or_gateway_rewrite": "have the gateway pass bodies on as they are, or keep it to one spelling",
    }
)
"""Remedy by cause."""

_PARAMS = MappingProxyType(
    {
        "betas": "send the same beta header in all calls of a session",
        "citations": "switch citations on for all documents from the first call on, or for none",
        "effort": "choose the effort once a session; change it by a message where the API allows it",
        "images": "keep images out of a cached conversation, or have one in it from the first call on",
        "thinking": "choose thinking and its budget once a session",
        "tool_choice": "leave the tool choice alone; ask for a tool, or for none, in words",
        "web": "switch web tools on or off for the whole session",
    }
)
"""Where a field allows more than to keep it."""


def remedy(cause: str | None) -> str:
    """What to do about a cause; for one without a name, or with a name not known here, how to find out."""
    if cause is None:
        return UNKNOWN
    if cause.startswith(PARAM):
        field = cause.removeprefix(PARAM)
        return _PARAMS.get(field) or f"send the same {field} in all calls of a session" if field else UNKNOWN
    return REMEDIES.get(cause, UNKNOWN)
