"""Lines of a Claude Code transcript, and its side files, as entries (claude_code.md §3).

A line is parsed once when it is read; what the index needs of it is kept as its ``Head``, and the rest is parsed again
where someone looks at it. A transcript is mostly tool results, which nobody may ever look at.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from threading import Lock
from typing import Any, Final

import orjson

from ctxscope.agents.claude_code.dialect import KINDS
from ctxscope.model import Entry, Record
from ctxscope.wire import json_text

SESSION, SETTINGS, AGENT, META = "session", "settings", "agent", "meta"
"""Source keys: the transcript, the home's settings; before a ``:`` and a subagent's id its transcript and its facts."""
UUID_LENGTH: Final = 36
FRESH_LINES, FRESH_BYTES = 4096, 9 * 1024 * 1024
PARSED_LINES: Final = 128
SAID: Final = 160
"""Characters of an answer that a list of calls shows."""
"""Lines whose values are kept after someone looked at them."""

SIDECHAIN, IS_META, SUMMARY, HIDDEN, API_ERROR, SYNTHETIC, HAS_RESULTS, HAS_TEXT, ABORTED = (1 << i for i in range(9))
"""Bits of ``Head.flags``; ``HIDDEN`` is isVisibleInTranscriptOnly (such lines are sent all the same), ``HAS_TEXT`` any content beside tool results."""
_FLAGS = (
    ("isSidechain", SIDECHAIN),
    ("isMeta", IS_META),
    ("isCompactSummary", SUMMARY),
    ("isVisibleInTranscriptOnly", HIDDEN),
    ("isApiErrorMessage", API_ERROR),
    ("isAbortedMidStream", ABORTED),
)
_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class Head:
    """What the index needs of a line; all fields hold nothing where the line says nothing."""

    __slots__ = (
        "agent",
        "flags",
        "kind",
        "message",
        "model",
        "names",
        "parent",
        "ref",
        "request",
        "results",
        "says",
        "starts",
        "stop",
        "sub",
        "usage",
        "uses",
        "uuid",
        "version",
    )

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.names: tuple[str, ...] = _shared_names(tuple(data))
        """Keys of the line's object, in order."""
        self.kind = _text(data.get("type"))
        self.uuid = _text(data.get("uuid"))
        self.parent = _text(data.get("parentUuid"))
        self.version = _text(data.get("version"))
        self.agent = _text(data.get("agentId"))
        """Of the subagent that wrote the line; on a tool result, of the one that made it."""
        self.flags = 0
        self.sub = ""
        """Subtype of a system line, type of an attachment."""
        self.message = self.request = self.ref = self.model = self.stop = self.starts = ""
        self.usage: tuple[int | None, ...] | None = None
        """input, cache read, cache write, output, reasoning."""
        self.uses: tuple[str, ...] = ()
        self.results: tuple[str, ...] = ()
        self.says = ""
        """The beginning of an answer's text, or its tool call in a line."""
        for name, bit in _FLAGS:
            if data.get(name) is True:
                self.flags |= bit
        if self.kind in ("user", "assistant"):
            self._message(data)
        elif self.kind == "system":
            self.sub = _text(data.get("subtype"))
        elif self.kind == "attachment":
            attached = data.get("attachment")
            self.sub = _text(attached.get("type")) if isinstance(attached, dict) else ""
        elif self.kind == "api-request":
            self.ref = _text(data.get("id"))

    def _message(self, data: Mapping[str, Any]) -> None:
        message = data.get("message")
        if not isinstance(message, dict):
            return
        content = message.get("content")
        if self.kind == "user":
            self._user(data, content)
            return
        self.message = _text(message.get("id"))
        self.request = _text(data.get("requestId"))
        self.ref = _text(data.get("requestRef"))
        self.model = _text(message.get("model"))
        self.stop = _text(message.get("stop_reason"))
        if self.model == "<synthetic>":
            self.flags |= SYNTHETIC
        self.usage = _usage(message.get("usage"))
        if isinstance(content, list):
            blocks = [b for b in content if isinstance(b, dict)]
            calls = [b for b in blocks if "input" in b]
            self.uses = tuple(b["id"] for b in calls if isinstance(b.get("id"), str))
            self.says = ", ".join(map(_called, calls)) or _line(
                "".join(t for b in blocks if isinstance(t := b.get("text"), str))
            )

    def _user(self, data: Mapping[str, Any], content: Any) -> None:
        made = data.get("toolUseResult")
        if isinstance(made, dict) and not self.agent:
            self.agent = _text(made.get("agentId"))
        if isinstance(content, str):
            self.flags |= HAS_TEXT
            self.starts = content[:32]
        elif isinstance(content, list):
            results = [b for b in content if isinstance(b, dict) and b.get("type") == "tool_result"]
            self.results = tuple(_text(b.get("tool_use_id")) for b in results)
            if results:
                self.flags |= HAS_RESULTS
            if len(results) < len(content):
                self.flags |= HAS_TEXT
                texts = (b.get("text") for b in content if isinstance(b, dict) and b.get("type") == "text")
                self.starts = next((t[:32] for t in texts if isinstance(t, str)), "")


def _called(block: dict[str, Any]) -> str:
    try:
        told = orjson.dumps(block["input"], option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # a number of more than 64 bits, half a character
        told = json_text.js(block["input"])
    return f"{_text(block.get('name'))} {told}"[:SAID]


def _line(text: str) -> str:
    return " ".join(text[: 2 * SAID].split())[:SAID]


class Line(Mapping[str, Any]):
    """A line's object: parsed until its head is taken, and again where it is looked at."""

    __slots__ = ("_data", "_head", "raw")

    def __init__(self, raw: bytes, data: dict[str, Any]) -> None:
        self.raw = raw
        self._data: dict[str, Any] | None = data
        self._head: Head | None = None
        _FRESH.add(self)

    def forget(self) -> None:
        """Let go of what was parsed."""
        self._data = None

    @property
    def head(self) -> Head:
        """What the index needs of it; what was parsed for that is let go."""
        if self._head is None:
            self._head = Head(self._value)
            self._data = None
        return self._head

    @property
    def _value(self) -> dict[str, Any]:
        data = self._data
        return data if data is not None else _value(self)

    @property
    def names(self) -> tuple[str, ...]:
        """Its keys, in order."""
        return self._head.names if self._head is not None else tuple(self._value)

    def __getitem__(self, key: str) -> Any:
        return self._value[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, key: object) -> bool:
        return key in self.names

    def get(self, key: str, default: Any = None) -> Any:
        """As of any mapping; what is not there costs nothing."""
        return self._value.get(key, default) if self._head is None or key in self._head.names else default

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Line):
            return self.raw == other.raw or self._value == other._value
        return isinstance(other, Mapping) and dict(self) == dict(other)

    __hash__ = object.__hash__


class _Fresh:
    """Lines just read, parsed until the index has taken their heads; of no more than one poll reads."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque()
        self._bytes = 0
        self._lock = Lock()

    def add(self, line: Line) -> None:
        """Keep one parsed, the oldest no longer."""
        with self._lock:
            self._lines.append(line)
            self._bytes += len(line.raw)
            while len(self._lines) > FRESH_LINES or (self._bytes > FRESH_BYTES and len(self._lines) > 1):
                old = self._lines.popleft()
                self._bytes -= len(old.raw)
                old.forget()


_FRESH = _Fresh()


@lru_cache(PARSED_LINES)
def _value(line: Line) -> dict[str, Any]:
    return parsed(line.raw) or {}


def head_of(entry: Entry) -> Head:
    """What the index needs of an entry."""
    data = entry.data
    return data.head if isinstance(data, Line) else Head(data)


def entries(record: Record) -> Iterator[Entry]:
    """The entry of one record; a line that is no object, or not JSON, is ``unknown``. Never raises.

    A line or a file that left gives kind ``gone``. An entry is known by its uuid, so that it stays itself when its line
    moves, and by its line where it has none.
    """
    value, source = record.value, record.source
    side = source == SETTINGS or source.startswith(META)
    if value is None:
        yield Entry("gone", record.place, source if side else _named(source, f"line:{record.key}"), {}, source=source)
        return
    if not isinstance(value, bytes) or not (side or value.strip()):
        return
    data = parsed(value)
    if side:
        yield Entry(source.partition(":")[0] if data is not None else "unknown", record.place, source, data or {},
                    source=source, raw=value)  # fmt: skip
        return
    if data is None:
        yield Entry("unknown", record.place, _named(source, f"line:{record.key}"), {}, source=source, raw=value)
        return
    name, kind = data.get("uuid"), data.get("type")
    key = _named(source, _text(name) if _is_uuid(name) else f"line:{record.key}")
    kind = kind if isinstance(kind, str) and kind in KINDS else "unknown"
    yield Entry(kind, record.place, key, Line(value, data), written(data.get("timestamp")), source=source, raw=value)


def _is_uuid(name: Any) -> bool:
    """Whether a name can be trusted to be one line's alone: published logs have placeholders there."""
    return isinstance(name, str) and len(name) == UUID_LENGTH and name[8] == name[13] == name[18] == name[23] == "-"


def _named(source: str, key: str) -> str:
    return key if source == SESSION else f"{source.partition(':')[2]}:{key}"


def parsed(value: bytes) -> dict[str, Any] | None:
    """A line as Node reads it: bytes that are no UTF-8 become U+FFFD; ``None`` for what is no object."""
    try:
        data = json_text.loads(value)
    except ValueError:
        try:
            data = json_text.loads(value.decode("utf-8", "replace"))
        except ValueError:
            return None
    return data if isinstance(data, dict) else None


def written(stamp: Any) -> float | None:
    """When a line was written, in seconds; ``None`` where its ISO stamp cannot be read."""
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def _text(value: Any) -> str:
    """A short field, shared with the other lines that hold it; empty where it is no string."""
    return sys.intern(value) if type(value) is str else ""


def _usage(usage: Any) -> tuple[int | None, ...] | None:
    if not isinstance(usage, dict):
        return None
    details = usage.get("output_tokens_details")
    reasoning = details.get("thinking_tokens") if isinstance(details, dict) else None
    return (*(_count(usage.get(name)) for name in _USAGE), _count(reasoning))


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


_NAMES: dict[tuple[str, ...], tuple[str, ...]] = {}
_MOST_NAMES = 4096


def _shared_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """One tuple for all lines of a form; there are few forms, and a hostile log may not make them many."""
    return _NAMES.setdefault(names, names) if len(_NAMES) < _MOST_NAMES else names
