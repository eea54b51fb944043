"""What single entries tell of requests: whether one was made, which answer is which, what of a message is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents.pi.points import TOGETHER_SECONDS
from ctxscope.model import Entry


def together(first: Entry, second: Entry) -> bool:
    """Whether two messages were logged at one time, as queued ones are."""
    return first.time is not None and second.time is not None and abs(second.time - first.time) < TOGETHER_SECONDS


def asked(entry: Entry) -> bool:
    """Whether a request can have asked for this answer.

    An abort between two requests is logged as an empty answer without a duration (measured).
    """
    message = entry.data.get("message")
    if not isinstance(message, Mapping) or message.get("stopReason") != "aborted":
        return True
    return bool(message.get("content") or message.get("responseId")) or "duration" in message


def response_of(entry: Entry) -> str:
    """What tells an answer from others of its time: its response's id, of one without it all it says; empty for none."""
    message = entry.data.get("message")
    if not isinstance(message, Mapping):
        return ""
    name = message.get("responseId")
    if isinstance(name, str) and name:
        return name
    return repr(message.get("content")) if message.get("content") else ""


def content_of(entry: Entry) -> Any:
    """A message's content; what else a rewrite may change is no part of the context."""
    message = entry.data.get("message")
    return (message if isinstance(message, Mapping) else entry.data).get("content")
