"""The fixed texts pi puts around what its log holds, and how it spells text into a body (pi.md §4.2, §4.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.wire.json_text import js, js_string

_SURROGATE = re.compile("[\ud800-\udfff]")
NO_RESULT = "No result provided"
NO_OUTPUT = "(no tool output)"
SEE_IMAGE = "(see attached image)"
RESULT_IMAGES = "Attached image(s) from tool result:"
IMAGE_OMITTED = "(image omitted: model does not support images)"
SUMMARIZER = "You are a context summarization assistant"
"""How the system prompt of pi's summary requests begins."""

_BRANCH = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{}</summary>"
_COMPACTION = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n{}\n</summary>"
)


def clean(text: str) -> str:
    """A text as pi sends it: lone surrogates removed."""
    return text if text.isascii() else _SURROGATE.sub("", text)


def quoted(text: str) -> bytes:
    """A text as a JSON string of the body."""
    return js_string(clean(text)).encode()


def spelled(value: Any) -> bytes:
    """A parsed value as ``JSON.stringify`` writes it."""
    return js(value).encode("utf-8", "surrogatepass")


def string(value: Any) -> str:
    """A field that should be a string, or nothing."""
    return value if isinstance(value, str) else ""


def blocks(content: Any) -> Sequence[Mapping[str, Any]]:
    """A message's content as a list of blocks; a string is one text block."""
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    return tuple(b for b in content if isinstance(b, Mapping)) if isinstance(content, Sequence) else ()


def joined_text(content: Any) -> str:
    """The text blocks of a content, one a line."""
    return "\n".join(string(b.get("text")) for b in blocks(content) if b.get("type") == "text")


def images(content: Any) -> list[Mapping[str, Any]]:
    """The image blocks of a content."""
    return [b for b in blocks(content) if b.get("type") == "image"]


def branch_summary(summary: str) -> str:
    """What the model reads of a branch the user came back from; no newline stands before the closing tag."""
    return _BRANCH.format(summary)


def compaction_summary(summary: str) -> str:
    """What the model reads instead of the history a compaction dropped."""
    return _COMPACTION.format(summary)


def bash_execution(message: Mapping[str, Any]) -> str:
    """What the model reads of a command the user ran."""
    text = f"Ran `{string(message.get('command'))}`\n"
    output = string(message.get("output"))
    text += f"```\n{output}\n```" if output else "(no output)"
    code = message.get("exitCode")
    if message.get("cancelled"):
        text += "\n\n(command cancelled)"
    elif code is not None and code != 0:
        text += f"\n\nCommand exited with code {js(code)}"
    if message.get("truncated") and message.get("fullOutputPath"):
        text += f"\n\n[Output truncated. Full output: {message['fullOutputPath']}]"
    return text
