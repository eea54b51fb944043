"""The fixed texts omp puts around what its log holds (omp.md §4.2, §4.3, §5); how it spells JSON is pi's way."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents.pi.texts import blocks, string
from ctxscope.wire.json_text import js

STEERING = (
    "<system-notice>\nUser interjection during work: priority; supersedes conflicting prior instructions. Re-read; "
    "ensure current work reflects user intent.\n</system-notice>\n"
)
CONTINUE = "Continue."
"""What stands for a user where an answer would come last, or two answers in a row."""
SUMMARY_ASKED = "<conversation>"
"""How the one message of a summary request begins."""
HANDOFF_ASKED = "<critical>\\nWrite a handoff document for another instance of yourself."
"""How the last message of a request for a handoff document begins, as spelled in JSON."""
IMAGE_ASKED = "Image-analysis assistant. "
"""How the prompt of a request begins that describes an image for a model that takes none."""
SUPERSEDED = "[Superseded by a newer read of this file]"
USELESS = "[Uneventful result elided]"
IMAGE_REMOVED = "[image removed]"
TRUNCATED = re.compile(r"\[Output truncated - \d+ tokens\]")
SHAKEN = re.compile(r"\[shaken ~\d+ tokens — recover: artifact://(\d+) \(region (\d+)\)\]")
BARE_SHAKEN = re.compile(r"\[shaken ~\d+ tokens\]")
NO_RESULT = "No result provided"
NO_OUTPUT = "[No tool output recorded: the tool call was interrupted before it produced a result.]"
"""The output of a call that is replayed as it came although its result never was."""
TOOL_FAILED = "Tool failed with no output."
TOOL_IMAGES = "Attached image(s) from the tool result(s) above:"
TOOL_IMAGE = "Tool result image:"
OMITTED = "[image omitted: model does not support vision]"
NO_VISION = "[image omitted: the active model does not support image input]"
_FAMILY = re.compile(
    r"\b(?:claude|anthropic|gemini|gemma|glm|kimi|qwen|deepseek|minimax|gpt|chatgpt|codex|openai|o[134](?=$|[-.]))"
)
"""By which the name of a model tells its family (the catalogue of 18.2.3, simplified)."""
HIDDEN_TYPES = {"prewalk-plan", "vibe-mode-context"}
"""Types of custom messages that never reach the model."""
INTERRUPTED_BY_USER = "Interrupted by user"
"""What an answer says that the user broke off."""
INTERRUPTED = "interrupted-thinking"
"""Type of the note that keeps an interrupted answer in the context."""

_SUMMARY = (
    "Prior model work/tool state available.\nMUST build on prior work; NEVER duplicate prior work.\n\n"
    "<summary>\n{}\n</summary>"
)
_HANDOFF = (
    "Context replaced. The <handoff> below is a handoff document a prior instance of you wrote from the full "
    "conversation. It is your own working memory, not user input.\n"
    "- First person inside it refers to you (the prior instance).\n"
    '- "Next Steps" is your own resumed plan; re-check it against the latest user message before acting.\n'
    "- The handoff already exists and is complete: NEVER write another handoff document unless the user explicitly "
    "asks.\nMUST build on prior work; NEVER duplicate prior work.\n\n<handoff>\n{}\n</handoff>"
)
_BRANCH = "Branch-return summary:\n\n<summary>\n{}\n</summary>"
_BELOW = "\n-------------- imaged middle below\n"
_ABOVE = "-------------- imaged middle above\n"
_OMITTED = "\n-------------- middle history omitted above\n"
_HIDING = str.maketrans({"█": "\n", "\x0e": None, "\x0f": None})


def compaction_summary(summary: str, method: str) -> str:
    """What the model reads instead of the history a compaction dropped."""
    template = _HANDOFF if method == "handoff" else _SUMMARY
    return template.replace("{}", summary, 1)


def branch_summary(summary: str) -> str:
    """What the model reads of a branch the user came back from."""
    return _BRANCH.replace("{}", summary, 1)


def archive_blocks(archive: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A snapcompact archive as text and image blocks, oldest history first."""
    frames = blocks(archive.get("frames"))
    head, tail = (clear(string(archive.get(k))) for k in ("textHead", "textTail"))
    found: list[dict[str, Any]] = []
    if head:
        found.append({"type": "text", "text": head + (_BELOW if frames else "")})
    found += [{"type": "image", "data": f.get("data"), "mimeType": f.get("mimeType")} for f in frames]
    if not tail:
        return found
    cut = archive.get("truncatedChars")
    lead = _ABOVE if frames else _OMITTED if isinstance(cut, int) and cut > 0 else ""
    if found and found[-1]["type"] == "text":
        found[-1]["text"] += lead + tail
    else:
        found.append({"type": "text", "text": lead + tail})
    return found


def clear(text: str) -> str:
    """Archived text as the model reads it: marks of the frame printer undone."""
    return text.translate(_HIDING)


def steered(content: Any) -> Any:
    """A user message's content that came while the model worked: its texts in one envelope, images behind."""
    if isinstance(content, str):
        return STEERING + content if content else content
    parts = blocks(content)
    text = "\n".join(string(b.get("text")) for b in parts if b.get("type") == "text")
    if not text:
        return content
    return [{"type": "text", "text": STEERING + text}, *(b for b in parts if b.get("type") == "image")]


def python_execution(message: Mapping[str, Any]) -> str:
    """What the model reads of Python the user ran (source only)."""
    text = f"Ran Python:\n```python\n{string(message.get('code'))}\n```\n"
    output = string(message.get("output"))
    text += f"Output:\n```\n{output}\n```" if output else "(no output)"
    code = message.get("exitCode")
    if message.get("cancelled"):
        text += "\n\n(execution cancelled)"
    elif code is not None and code != 0:
        text += f"\n\nExecution failed with code {js(code)}"
    return text


def mentioned(files: Sequence[Mapping[str, Any]]) -> str:
    """Files the user named in a message, with their content (source only)."""
    shown = []
    for file in files:
        content = string(file.get("content"))
        inner = f"\n{content}\n" if content else "\n"
        shown.append(f'<file path="{string(file.get("path"))}">{inner}</file>')
    return "\n".join(shown)


def stale_result(message: Mapping[str, Any]) -> str:
    """What is left of a tool result whose call is no longer in the context; empty where it has no text (source only)."""
    said = [string(b.get("text")) for b in blocks(message.get("content")) if b.get("type") == "text"]
    said = [t for t in said if t.strip()]
    if not said:
        return ""
    failed = ' is-error="true"' if message.get("isError") else ""
    name = f'tool="{string(message.get("toolName"))}" id="{string(message.get("toolCallId"))}"{failed}'
    return f"<stale-tool-result {name}>\n" + "\n".join(said) + "\n</stale-tool-result>"


def demoted(thinking: str, model: str) -> str:
    """Another model's thinking as text, in the idiom of the target's family, without the line break behind it."""
    family = _FAMILY.search(model.lower())
    if family is None or family[0] == "minimax":
        return f"<thinking>\n{thinking}\n</thinking>"
    if family[0] in ("claude", "anthropic"):
        return thinking
    return f"```thinking\n{thinking}\n```" if family[0] == "gemini" else f"<think>\n{thinking}\n</think>"
