"""Fixed texts of Claude Code that its log and its requests are told by, and how it spells text into a body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctxscope.wire.json_text import js, js_string

REMINDER, REMINDER_END = "<system-reminder>", "</system-reminder>"
"""Around what the client adds to a conversation on its own."""
SUMMARY_STARTS = "This session is being continued"
"""How the text that stands for a compacted conversation begins (claude_code.md §5)."""
COMPACTION_PROMPTS = ("CRITICAL: Respond with TEXT ONLY", "Your task is to create a detailed summary")
"""How the last message of a compaction's request begins (claude_code.md §5)."""
CUT_PROMPT = "Output token limit hit."
"""How the message begins by which the client asks for the rest of a cut answer (§5)."""
BILLING = "x-anthropic-billing-header:"
CLEARED = "[Old tool result content cleared]"
_REMINDERS = re.compile(r"(?:\s*<system-reminder>.*?</system-reminder>)+\s*", re.DOTALL)
_HALVES = re.compile("[\ud800-\udfff]")
_BLANK = (
    " \t\n\r\v\f\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What String.prototype.trim takes away."""


def string(value: Any) -> str:
    """A field that should be a string, or nothing."""
    return value if isinstance(value, str) else ""


def trimmed(text: str) -> str:
    """A text as String.prototype.trim leaves it."""
    return text.strip(_BLANK)


def is_text(block: Any) -> bool:
    """Whether a block is a text."""
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)


def well_formed(value: Any) -> Any:
    """A value as a version with request records sends it: halves of surrogate pairs, which its lines keep, replaced."""
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {well_formed(k): well_formed(v) for k, v in value.items()}
    return [well_formed(v) for v in value] if isinstance(value, list) else value


def is_reminder(text: str) -> bool:
    """Whether a text is nothing but what the client added."""
    return text.startswith(REMINDER) and text.rstrip().endswith(REMINDER_END)


def wrapped(text: str) -> str:
    """A text of the client's own as newer versions send it: inside a reminder, though logged bare (§4.2, residue)."""
    return f"{REMINDER}\n{text}\n{REMINDER_END}"


def reminders_from(text: str) -> int | None:
    """Where in a tool result's text the reminders begin that end it, with the blank line before; ``None``: nowhere."""
    if not text.rstrip().endswith(REMINDER_END):
        return None
    at = 0 if text.startswith(REMINDER) else text.find(f"\n\n{REMINDER}")
    while at >= 0:
        if _REMINDERS.fullmatch(text, at):
            return at
        at = text.find(f"\n\n{REMINDER}", at + 1)
    return None


def added_from(own: str, sent: str) -> int | None:
    """Where in a tool's result as sent the reminders begin that the client put behind the logged one; ``None``: nowhere.

    A result may end in reminders of its own (a file's, up to 2.0): then what stands behind as much text is added.
    """
    at = reminders_from(sent)
    if at is None or reminders_from(own) is None:
        return at
    ends = (len(own), len(trimmed(own)))
    return next((n for n in ends if sent.startswith(f"\n\n{REMINDER}", n) and _REMINDERS.fullmatch(sent, n)), None)


def spelled(value: Any) -> bytes:
    """A parsed value as ``JSON.stringify`` writes it."""
    return js(value).encode("utf-8", "surrogatepass")


def quoted(text: str) -> bytes:
    """A text as a JSON string of the body."""
    return js_string(text).encode("utf-8", "surrogatepass")


def text_block(text: str) -> dict[str, Any]:
    """A text as a block."""
    return {"type": "text", "text": text}


def mapped(value: Any) -> Mapping[str, Any]:
    """A field that should be an object, or an empty one."""
    return value if isinstance(value, Mapping) else {}
