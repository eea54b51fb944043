"""Messages as opencode gives them to a model, whatever the API: roles and blocks (opencode.md §4; checked with 1.18.33)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.opencode.history import Said, cleared_at, mapped
from ctxscope.model import Entry, Piece

ASKS_SUMMARY = "What did we do so far?"
SUBTASK = "The following tool was executed by the user"
CLEARED = "[Old tool result content cleared]"
INTERRUPTED = "[Tool execution was interrupted]"
ATTACHED = "Attached media from tool result:"
UNSENT = ("text/plain", "application/x-directory")
"""Files whose content is logged as texts beside them."""
ABORTED = "MessageAbortedError"
_LONE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a message: ``text``, ``reasoning``, ``call``, ``result`` or ``file``."""

    kind: str
    entry: Entry
    text: str = ""
    """Text; a result's text; a file's URL."""
    id: str = ""
    """Of the call."""
    name: str = ""
    """Of the tool; a file's MIME type."""
    input: Any = None
    failed: bool = False
    extra: Mapping[str, Any] | None = None
    """What the provider left with it (a signature), where the same model is asked again."""
    is_logged: bool = True
    """Its text stands in the entry; else it is a constant of the agent's."""
    files: tuple[Block, ...] = ()
    """Of a result, where the API takes files there."""
    learned: Piece | None = None
    """Its text as spelled, where it stands in no log."""


@dataclass(frozen=True, slots=True)
class Speech:
    """A message to a model."""

    role: str
    """``user``, ``assistant`` or ``tool``."""
    blocks: tuple[Block, ...]


def speeches(said: Said, model: tuple[str, str], moment: float, *, takes_files: bool) -> Iterator[Speech]:
    """What one message of the log is sent as, to a model, outputs cleared by ``moment`` left out.

    ``takes_files``: the API takes files in the results of tools.
    """
    if said.entry.kind == "user":
        blocks = tuple(_input(said))
        if blocks:
            yield Speech("user", blocks)
    elif said.entry.kind == "assistant" and not _is_void(said):
        yield from _answer(said, moment, takes_files=takes_files, same=said.model == model)


def clean(text: str) -> str:
    """A text as sent: lone surrogates become U+FFFD."""
    return text if text.isascii() else _LONE.sub("\ufffd", text)


def text_in(entry: Entry, name: str = "text") -> str:
    """A field that should hold a text, or nothing."""
    value = entry.data.get(name)
    return value if isinstance(value, str) else ""


def _input(said: Said) -> Iterator[Block]:
    for part in said.parts:
        if part.kind == "text" and not part.data.get("ignored") and text_in(part):
            yield Block("text", part, text_in(part))
        elif part.kind == "file" and part.data.get("mime") not in UNSENT:
            yield _file(part, part.data)
        elif part.kind in ("compaction", "subtask"):
            text = ASKS_SUMMARY if part.kind == "compaction" else SUBTASK
            yield Block("text", part, text, is_logged=False)


def _is_void(said: Said) -> bool:
    """Whether an answer is left out: it failed, but for one that was aborted after something had come."""
    error = said.entry.data.get("error")
    if not error:
        return False
    came = any(p.kind not in ("step-start", "reasoning") for p in said.parts)
    return mapped(error).get("name") != ABORTED or not came


def _answer(said: Said, moment: float, *, takes_files: bool, same: bool) -> Iterator[Speech]:
    """Each step as an answer and the results of its tools, then the files those left."""
    about = (mapped(mapped(part.data.get("metadata")).get("anthropic")) for part in said.parts)
    empty = " " if any(one.get("signature") for one in about) else ""
    files: list[Block] = []
    for step in _steps(said):
        results: list[Block] = []
        blocks: list[Block] = []
        for part in step:
            if part.kind == "tool":
                result, left = _result(part, mapped(part.data.get("state")), moment, takes_files=takes_files)
                results.append(result)
                files += left
            blocks += _said(part, empty, same=same)
        if blocks:
            yield Speech("assistant", tuple(blocks))
        if results:
            yield Speech("tool", tuple(results))
    if files:
        first = Block("text", files[0].entry, ATTACHED, is_logged=False)
        yield Speech("user", (first, *files))


def _steps(said: Said) -> Iterator[list[Entry]]:
    step: list[Entry] = []
    for part in said.parts:
        if part.kind == "step-start":
            yield step
            step = []
        step.append(part)
    yield step


def _said(part: Entry, empty: str, *, same: bool) -> Iterator[Block]:
    """What a part of an answer is sent as; of another model's answer nothing that only that provider understands."""
    extra = mapped(part.data.get("metadata")) if same else None
    if part.kind == "text":
        yield Block("text", part, text_in(part) or empty, extra=extra)
    elif part.kind == "reasoning" and same:
        yield Block("reasoning", part, text_in(part), extra=extra)
    elif part.kind == "reasoning" and text_in(part).strip():
        yield Block("text", part, text_in(part))
    elif part.kind == "tool":
        given = mapped(part.data.get("state")).get("input")
        yield Block("call", part, "", text_in(part, "callID"), text_in(part, "tool"), given, extra=extra)


def _result(part: Entry, state: Mapping[str, Any], moment: float, *, takes_files: bool) -> tuple[Block, list[Block]]:
    """The result of a tool, and the files that must follow in a message of their own."""
    name, called, status = text_in(part, "tool"), text_in(part, "callID"), state.get("status")
    if status == "completed":
        gone = cleared_at(part)
        if gone and gone <= moment:
            return Block("result", part, CLEARED, called, name, is_logged=False), []
        listed = state.get("attachments")
        files = [_file(part, f) for f in listed if isinstance(f, dict)] if isinstance(listed, list) else []
        later = [f for f in files if _is_media(f.name) and not takes_files]
        inside = tuple(f for f in files if f not in later)
        output = state.get("output")
        return Block("result", part, output if isinstance(output, str) else "", called, name, files=inside), later
    if status == "error":
        about = mapped(state.get("metadata"))
        output = about.get("output") if about.get("interrupted") is True else None
        if isinstance(output, str):
            return Block("result", part, output, called, name), []
        error = state.get("error")
        return Block("result", part, error if isinstance(error, str) else "", called, name, failed=True), []
    return Block("result", part, INTERRUPTED, called, name, failed=True, is_logged=False), []


def _file(entry: Entry, file: Mapping[str, Any]) -> Block:
    url, mime, name = (file.get(key) for key in ("url", "mime", "filename"))
    extra = {"filename": name} if isinstance(name, str) else None
    return Block("file", entry, str(url), "", str(mime), extra=extra)


def _is_media(mime: str) -> bool:
    return mime.startswith("image/") or mime == "application/pdf"
