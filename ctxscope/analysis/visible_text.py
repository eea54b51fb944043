"""The text a model sees in a segment, by what it is: never JSON escapes, base64 images or opaque reasoning bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import orjson

from ctxscope.analysis.pdf_pages import pdf_pages
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


class Image(NamedTuple):
    """An image as the model is given it."""

    data: str
    """Base64 or a data URL; empty for one that stands elsewhere."""
    detail: str = ""
    """How closely the model is to look, where the client says it (OpenAI)."""


@dataclass(slots=True)
class VisibleText:
    """What a segment holds, ready to be counted."""

    texts: list[tuple[Part, str]] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    documents: list[int | None] = field(default_factory=list)
    """Documents, sounds and files given by name: the pages of each, ``None`` where nothing here tells them."""

    @property
    def text(self) -> str:
        """All of it, a line end between."""
        return "\n".join(words for _, words in self.texts)

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
    value = parsed(body, segment)
    if value is None:
        return found
    part: Part = "system" if segment.kind == "system" else _PART_OF_BLOCK.get(segment.block, "text")
    try:
        if segment.kind == "tool":
            _tool(value, found)
        else:
            _value(value, part, found)
    except RecursionError:  # nests too deep to be taken apart: then all of it stands for its text
        found = VisibleText()
        found.add(part, body.data[segment.start : segment.end].decode("utf-8", "replace"))
    return found


def visible_content(content: Any) -> VisibleText:
    """The visible text of a message's content that stands in no request: a text, or parts as clients spell them."""
    found = VisibleText()
    try:
        _value(content, "text", found)
    except RecursionError:  # nests deeper than any request that was ever sent
        found = VisibleText(documents=[None])
    return found


def parsed(body: Body, segment: Segment) -> Any:
    """A segment's value without cache marks; its text where it is no JSON that can be read. Never raises."""
    raw = body.data[segment.start : segment.end]
    try:
        return without_breakpoints(orjson.loads(raw))
    except (orjson.JSONDecodeError, RecursionError):
        text = raw.decode("utf-8", "surrogateescape")
    try:
        return without_breakpoints(json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return text


def spelled(value: Any, raw: bytes, *, sort_keys: bool = False) -> str:
    """A parsed value as one text, key order included unless sorted; ``raw``, what it was, where it nests too deep."""
    try:
        return json.dumps(value, sort_keys=sort_keys)
    except RecursionError:
        return raw.decode("latin-1")


def compact(value: Any) -> str:
    """A value as compact JSON; a text stays as it is. ``""`` for what nests too deep to be spelled."""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return ""


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
        found.images.append(_image(block))
    elif _is_file(block, kind):
        _file(block, found)
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
        _value(response.get("parts"), "tool_results", found)
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
    if block.get("type") in ("image", "image_url", "input_image", "computer_screenshot", "image_generation_call"):
        return True
    inline = block.get("inlineData") or block.get("inline_data")
    return isinstance(inline, Mapping) and any(str(inline.get(k, "")).startswith("image/") for k in _TAG)


def _image(block: Mapping[str, Any]) -> Image:
    """An image block of any API; of a picture that the model made nobody tells what it costs to send it again."""
    for key in ("source", "image_url", "inlineData", "inline_data"):
        inner = block.get(key)
        if isinstance(inner, str):
            return Image(inner, _detail(block))
        if isinstance(inner, Mapping):
            data = inner.get("data") or inner.get("url") or ""
            return Image(data if isinstance(data, str) else "", _detail(inner))
    return Image("", _detail(block))


def _detail(block: Mapping[str, Any]) -> str:
    detail = block.get("detail")
    return detail if isinstance(detail, str) else ""


def _is_file(block: Mapping[str, Any], kind: str) -> bool:
    named = ("inlineData", "inline_data", "fileData", "file_data")
    return kind in ("document", "input_file", "file", "input_audio") or any(
        isinstance(block.get(key), Mapping) for key in named
    )


def _file(block: Mapping[str, Any], found: VisibleText) -> None:
    """A document given as text is text; of any other file only what the client writes about it is, whatever its size."""
    source = block.get("source")
    kind = source.get("type") if isinstance(source, Mapping) else None
    if isinstance(source, Mapping) and kind in ("text", "content"):
        _value(source.get("data") if kind == "text" else source.get("content"), "text", found)
    else:
        found.documents.append(_pages(block))
    for key in ("title", "context"):
        found.add("text", block.get(key))


def _pages(block: Mapping[str, Any]) -> int | None:
    """Pages of a PDF that a Gemini part holds, unless the client asks for them in another resolution than the default."""
    inline = block.get("inlineData") or block.get("inline_data")
    if not isinstance(inline, Mapping) or "mediaResolution" in block or "media_resolution" in block:
        return None
    data, kinds = inline.get("data"), [inline.get(tag) for tag in _TAG]
    return pdf_pages(data) if isinstance(data, str) and "application/pdf" in kinds else None
