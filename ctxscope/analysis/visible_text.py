"""The text a model sees in a segment, by what it is: never JSON escapes, base64 images or opaque reasoning bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from ctxscope.analysis.spelling import without_breakpoints
from ctxscope.model import Body, Segment

Part = Literal["system", "tools", "text", "tool_calls", "tool_results", "thinking", "envelope"]
_PART_OF_BLOCK: dict[str, Part] = {"thinking": "thinking", "tool_call": "tool_calls", "tool_result": "tool_results"}
_ENVELOPES = ("signature", "encrypted_content", "thoughtSignature", "thought_signature")
_SCHEMAS = ("input_schema", "parameters", "parametersJsonSchema", "inputSchema", "schema", "format")
THINKING = frozenset({"thinking", "reasoning_content", "reasoning", "reasoning_text", "reasoning_details"})
"""Members of a message or block that hold reasoning."""
_BASE64 = frozenset({"data", "file_data", "image_url", "url", "source", "inlineData", "inline_data", "image"})
"""Members that hold media or where it lies; their bytes are no text."""
_NAMES = frozenset(
    {"type", "role", "id", "name", "tool_use_id", "tool_call_id", "call_id", "mimeType", "status", "format"}
)
"""Members that say what a block is; a provider renders them as markup, not as text."""
_TAG = ("media_type", "mimeType", "mime_type")


@dataclass(slots=True)
class VisibleText:
    """What a segment holds, ready to be counted."""

    texts: list[tuple[Part, str]] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    """Base64 of each image, or its data URL; empty text for one that stands elsewhere."""

    def add(self, part: Part, text: Any) -> None:
        """Take a text; thinking that the message repeats in another member is taken once."""
        if not isinstance(text, str) or not text:
            return
        if part == "thinking" and text in "".join(t for p, t in self.texts if p == "thinking"):
            return
        self.texts.append((part, text))


def visible_text(body: Body, segment: Segment) -> VisibleText:
    """The visible text of one segment of the prompt; nothing for parameters."""
    found = VisibleText()
    if segment.kind == "param":
        return found
    raw = body.data[segment.start : segment.end]
    value = _parsed(raw)
    if value is None:
        return found
    if segment.kind == "tool":
        _tool(value, found)
    else:
        part: Part = "system" if segment.kind == "system" else _PART_OF_BLOCK.get(segment.block, "text")
        _value(value, part, found)
    return found


def _parsed(raw: bytes) -> Any:
    try:
        return without_breakpoints(orjson.loads(raw))
    except (orjson.JSONDecodeError, RecursionError):
        text = raw.decode("utf-8", "surrogateescape")
    try:
        return without_breakpoints(json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return text


def compact(value: Any) -> str:
    """A value as compact JSON; a text stays as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _tool(value: Any, found: VisibleText) -> None:
    """Name, description and schema; a tool the provider defines itself has none and is taken whole."""
    if not isinstance(value, Mapping):
        found.add("tools", compact(value))
        return
    group = value.get("functionDeclarations") or value.get("function_declarations") or value.get("tools")
    if isinstance(group, list):
        for item in group:
            _tool(item, found)
        return
    inner = value.get("function")
    tool = inner if isinstance(inner, Mapping) else value
    schema = next((tool[k] for k in _SCHEMAS if k in tool), None)
    if schema is None and "description" not in tool:
        found.add("tools", compact(value))
        return
    found.add("tools", tool.get("name"))
    found.add("tools", tool.get("description"))
    if schema is not None:
        found.add("tools", compact(schema))


def _value(value: Any, part: Part, found: VisibleText) -> None:
    if isinstance(value, str):
        found.add(part, value)
    elif isinstance(value, list):
        for item in value:
            _value(item, part, found)
    elif isinstance(value, Mapping):
        _block(value, part, found)


def _block(block: Mapping[str, Any], part: Part, found: VisibleText) -> None:
    """A content block, a Gemini part, an input item or a whole message, told apart by their own members."""
    for key in _ENVELOPES:
        found.add("envelope", block.get(key))
    kind = str(block.get("type", ""))
    if kind in ("redacted_thinking", "reasoning.encrypted"):
        found.add("envelope", block.get("data"))
    elif kind in ("thinking", "reasoning", "reasoning_text", "summary_text") or kind.startswith("reasoning."):
        for key in ("thinking", "text", "summary", "content"):
            _value(block.get(key), "thinking", found)
    elif _is_image(block):
        found.images.append(_image_data(block))
    elif kind == "tool_result":
        _value(block.get("content"), "tool_results", found)
    elif kind.endswith("_call_output"):
        _value(block.get("output"), "tool_results", found)
    elif not _call(block, kind, found):
        _members(block, part, found)


def _call(block: Mapping[str, Any], kind: str, found: VisibleText) -> bool:
    """A tool call of any API; whether it is one."""
    inner: Any = block.get("functionCall") or block.get("function")
    call = inner if isinstance(inner, Mapping) else block
    named = isinstance(call.get("name"), str)
    if not named or not (call is inner or kind.endswith(("tool_use", "_call"))):
        return False
    found.add("tool_calls", call["name"])
    for key in ("input", "arguments", "args"):
        if key in call:
            found.add("tool_calls", compact(call[key]))
    return True


def _members(block: Mapping[str, Any], part: Part, found: VisibleText) -> None:
    """Any other object: its text, its nested content, what is left of its strings."""
    response = block.get("functionResponse")
    if isinstance(response, Mapping):
        found.add("tool_results", response.get("name"))
        found.add("tool_results", compact(response.get("response", "")))
        return
    if block.get("role") in ("tool", "function"):
        part = "tool_results"
    for key, item in block.items():
        if key in THINKING or (key == "text" and block.get("thought") is True):
            _value(item, "thinking", found)
        elif key == "tool_calls":
            _value(item, "tool_calls", found)
        elif key not in _BASE64 and key not in _NAMES and key not in _ENVELOPES:
            _value(item, part, found)


def _is_image(block: Mapping[str, Any]) -> bool:
    if block.get("type") in ("image", "image_url", "input_image"):
        return True
    inline = block.get("inlineData") or block.get("inline_data")
    return isinstance(inline, Mapping) and any(str(inline.get(k, "")).startswith("image/") for k in _TAG)


def _image_data(block: Mapping[str, Any]) -> str:
    """Base64 or data URL of an image block of any API."""
    for key in ("source", "image_url", "inlineData", "inline_data"):
        inner = block.get(key)
        if isinstance(inner, str):
            return inner
        if isinstance(inner, Mapping):
            data = inner.get("data") or inner.get("url") or ""
            return data if isinstance(data, str) else ""
    return ""
