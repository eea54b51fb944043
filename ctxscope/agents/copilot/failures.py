"""What a failed tool tells the model in the run that called it, which the log shortens (measured with 1.0.102).

The log keeps a short message and, of most, the length of what was told. From the next run on the short message is sent.
A text is put together where the log says enough; where it says only how the text begins, and how long it is, the rest
can be taken from the first body that carries it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.copilot.spelling import spelled
from ctxscope.agents.copilot.trail import Request
from ctxscope.wire.blocks import mapped, number, string

_FULL: Mapping[str, tuple[str, ...]] = {
    "Path does not exist": ("Path {path} does not exist. Please provide a valid path.",),
    "Path not absolute": ('Path "{written}" is not absolute. Please provide an absolute path.',),
    "Path already exists": (
        "Path {path} already exists as a file. Use `view` to check contents then edit it.",
        "Path {path} already exists as a directory. Use `view` to check contents then edit it.",
    ),
    "Parent directory does not exist": (
        "Parent directory {parent} does not exist. You need to create it before creating the file.",
    ),
    "No match found": (
        "No match found: old_str not found in {path}; no changes made; you might want to try again with correct old_str",
    ),
    "Agent not found": ("No agent found with agent_id: {agent}. The agent may have been cleared or never existed.",),
}
"""By the message logged, the texts told; of several, the one with the length logged."""
_BEGINS: Mapping[str, str] = {
    "Multiple matches found": "Ambiguous match for old_str in {path}: ",
    "Invalid view_range": "Invalid view_range: ",
    "view_range out of bounds": "Invalid view_range: ",
    "Skill not found: {skill}": 'Skill "{skill}" not found.',
}
_LEADS: Mapping[str, str] = {
    "grep": "Error: ",
    "glob": "Error: ",
    "sql": "SQL Error: ",
    "web_fetch": "Failed to fetch {url}: ",
    "semantic_code_search": "Failed to query GitHub Code Search: ",
}
"""By tool, what stands before the message."""
_UNREADABLE = (
    "The arguments for the tool call '{tool}' were not valid JSON. The arguments have been cleared. Arguments: "
)
_UNHANDLED = "Unhandled error: "


@dataclass(frozen=True, slots=True)
class Told:
    """What a failed tool told the model."""

    text: str
    """All of it, or how it begins."""
    length: int | None = None
    """Characters, where the log says so."""
    is_whole: bool = True
    end: str = ""
    """How it ends, where only parts of it are known."""

    def fits(self, text: str) -> bool:
        """Whether a text may be what was told."""
        if self.is_whole:
            return text == self.text
        has_parts = text.startswith(self.text) and text[len(self.text) :].endswith(self.end)
        return has_parts and self.length in (None, *_lengths(text))


def told(result: Mapping[str, Any], request: Request) -> Told | None:
    """What the failed tool told in its own run; ``None`` where the log's message is what was told."""
    error, telemetry = mapped(result.get("error")), mapped(result.get("toolTelemetry"))
    message = string(error.get("message"))
    if not message or error.get("code") != "failure":
        return None
    length = number(mapped(telemetry.get("metrics")), "resultForLlmLength")
    if length is not None and length in _lengths(message):
        return None
    properties = mapped(telemetry.get("properties"))
    if properties.get("wasSyntaxError") == "true":
        return Told(_UNREADABLE.format(tool=request.name), end=f". JSON parse error: {message}", is_whole=False)
    if not properties:
        return Told(f"Invalid input: {message}", length)
    names = _names(request)
    begins = {key.format_map(names): text for key, text in _BEGINS.items()}
    if message in _FULL:
        texts = [text.format_map(names) for text in _FULL[message]]
        return Told(next((t for t in texts if length in _lengths(t)), texts[0]), length)
    if message in begins:
        return Told(begins[message].format_map(names), length, is_whole=False)
    if message.startswith(_UNHANDLED):
        return Told(
            f"Failed to execute with arguments: {_arguments(request, names)} due to error: {message[len(_UNHANDLED) :]}",
            length,
        )
    lead = _LEADS.get(request.name)
    return Told(lead.format_map(names) + message, length) if lead is not None else None


def _names(request: Request) -> Mapping[str, str]:
    told = mapped(request.arguments)
    written = string(told.get("path"))
    path = posixpath.normpath(posixpath.join(request.directory, written)) if written else ""
    return {
        "path": path,
        "written": written,
        "parent": posixpath.dirname(path),
        "agent": string(told.get("agent_id")),
        "skill": string(told.get("skill")),
        "url": string(told.get("url")),
    }


def _arguments(request: Request, names: Mapping[str, str]) -> str:
    path = {"path": names["path"]} if names["written"] else {}
    return spelled({**mapped(request.arguments), **path, "command": request.name})


def _lengths(text: str) -> tuple[int, int]:
    """Of a text in characters and in UTF-16 units; what the log counts is not known."""
    return len(text), len(text.encode("utf-16-le", "surrogatepass")) // 2
