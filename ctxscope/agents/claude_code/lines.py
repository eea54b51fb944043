"""Lines of a Claude Code transcript, and its side files, as entries (claude_code.md §3).

A line is parsed once when it is read; what the index needs of it is kept as its ``Head``, and the rest is parsed again
where someone looks at it. A transcript is mostly tool results, which nobody may ever look at.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from threading import Lock
from typing import Any, Final, TypeVar

import orjson

from ctxscope.agents.claude_code.dialect import KINDS
from ctxscope.model import Entry, Record, Usage
from ctxscope.wire import json_text
from ctxscope.wire.anthropic_messages import diagnostics_of

SESSION, SETTINGS, AGENT, META = "session", "settings", "agent", "meta"
"""Source keys: the transcript, the home's settings; before a ``:`` and a subagent's id its transcript and its facts."""
UUID_LENGTH: Final = 36
FRESH_LINES, FRESH_BYTES = 4096, 9 * 1024 * 1024
PARSED_LINES: Final = 128
"""Lines whose values are kept after someone looked at them."""
SAID: Final = 160
"""Characters of an answer that a list of calls shows."""

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
Shared = TypeVar("Shared")
_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class Head:
    """What the index needs of a line; all fields hold nothing where the line says nothing.

    Fields of messages stand here as nothing, once for all lines; lines that may say them have them as their own.
    """

    __slots__ = ("agent", "flags", "kind", "names", "parent", "sub", "uuid", "version")

    message = request = ref = model = stop = cached = ""
    usage: Usage | None = None
    uses: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    says = ""
    """The beginning of an answer's text, or its tool call in a line."""
    starts = ""
    """The beginning of an input's text."""

    def __init__(self, data: Mapping[str, Any], kind: str) -> None:
        form = _form(tuple(data))
        self.names = form.names
        """Keys of the line's object, in order."""
        self.kind = kind
        self.uuid = _name(data.get("uuid"))
        self.parent = _name(data.get("parentUuid"))
        self.version = _word(data.get("version"))
        self.agent = _word(data.get("agentId"))
        """Of the subagent that wrote the line; on a tool result, of the one that made it."""
        self.flags = 0
        self.sub = ""
        """Subtype of a system line, type of an attachment."""
        for name, bit in form.flags:
            if data[name] is True:
                self.flags |= bit
        if kind == "system":
            self.sub = _word(data.get("subtype"))
        elif kind == "attachment":
            attached = data.get("attachment")
            self.sub = _word(attached.get("type")) if isinstance(attached, dict) else ""


class AnswerHead(Head):
    """The head of a line of an answer."""

    __slots__ = ("cached", "message", "model", "ref", "request", "says", "stop", "usage", "uses")

    def __init__(self, data: Mapping[str, Any], kind: str) -> None:
        super().__init__(data, kind)
        told = data.get("message")
        message = told if isinstance(told, dict) else {}
        self.message = _name(message.get("id"))
        self.request = _name(data.get("requestId")) if message else ""
        self.ref = _name(data.get("requestRef")) if message else ""
        self.model = _word(message.get("model"))
        self.stop = _word(message.get("stop_reason"))
        if self.model == "<synthetic>":
            self.flags |= SYNTHETIC
        self.usage = _usage(message.get("usage"))
        told = message.get("diagnostics")
        self.cached = _word(diagnostics_of(told)) if told else ""
        """What the API says became of its cache."""
        content = message.get("content")
        blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
        calls = [b for b in blocks if "input" in b]
        self.uses = tuple([_name(b["id"]) for b in calls if isinstance(b.get("id"), str)])
        self.says = ", ".join(map(_called, calls)) or _line(
            "".join([t for b in blocks if isinstance(t := b.get("text"), str)])
        )


class InputHead(Head):
    """The head of a user line: a prompt, a tool's result, what the client put there."""

    __slots__ = ("results", "starts")

    def __init__(self, data: Mapping[str, Any], kind: str) -> None:
        super().__init__(data, kind)
        self.results, self.starts = (), ""
        message = data.get("message")
        if not isinstance(message, dict):
            return
        content, made = message.get("content"), data.get("toolUseResult")
        if isinstance(made, dict) and not self.agent:
            self.agent = _word(made.get("agentId"))
        if isinstance(content, str):
            self.flags |= HAS_TEXT
            self.starts = content[:32]
        elif isinstance(content, list):
            results = [b for b in content if isinstance(b, dict) and b.get("type") == "tool_result"]
            self.results = tuple([_name(b.get("tool_use_id")) for b in results])
            if results:
                self.flags |= HAS_RESULTS
            if len(results) < len(content):
                self.flags |= HAS_TEXT
                texts = (b.get("text") for b in content if isinstance(b, dict) and b.get("type") == "text")
                self.starts = next((t[:32] for t in texts if isinstance(t, str)), "")


_HEADS: Mapping[str, type[Head]] = {"assistant": AnswerHead, "user": InputHead}


def _head(data: Mapping[str, Any]) -> Head:
    kind = _word(data.get("type"))
    return _HEADS.get(kind, Head)(data, kind)


def _called(block: dict[str, Any]) -> str:
    try:
        told = orjson.dumps(block["input"], option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # a number of more than 64 bits, half a character
        told = json_text.js(block["input"])
    return f"{_word(block.get('name'))} {told}"[:SAID]


def _line(text: str) -> str:
    return " ".join(text[: 2 * SAID].split())[:SAID]


class Line(Mapping[str, Any]):
    """A line's object: parsed until its head is taken, and again where it is looked at."""

    __slots__ = ("_head", "_parsed", "raw")

    def __init__(self, raw: bytes, data: dict[str, Any]) -> None:
        self.raw = raw
        self._parsed = [data]
        """The object, while it is new; then nothing."""
        self._head: Head | None = None
        _FRESH.add(self._parsed, len(raw))

    @property
    def head(self) -> Head:
        """What the index needs of it; what was parsed for that is let go."""
        if self._head is None:
            self._head = _head(self._value)
            self._parsed.clear()
        return self._head

    @property
    def _value(self) -> dict[str, Any]:
        for data in self._parsed:
            return data
        return _value(self)

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
    """Objects just parsed, until the index has taken their heads; of no more lines than one poll reads."""

    def __init__(self) -> None:
        self._parsed: deque[tuple[list[dict[str, Any]], int]] = deque()
        self._bytes = 0
        self._lock = Lock()

    def add(self, parsed: list[dict[str, Any]], size: int) -> None:
        """Keep one, the oldest no longer; ``size``: bytes of its line."""
        with self._lock:
            self._parsed.append((parsed, size))
            self._bytes += size
            while len(self._parsed) > FRESH_LINES or (self._bytes > FRESH_BYTES and len(self._parsed) > 1):
                old, length = self._parsed.popleft()
                self._bytes -= length
                old.clear()


_FRESH = _Fresh()


@lru_cache(PARSED_LINES)
def _value(line: Line) -> dict[str, Any]:
    return parsed(line.raw) or {}


def head_of(entry: Entry) -> Head:
    """What the index needs of an entry."""
    data = entry.data
    return data.head if isinstance(data, Line) else _head(data)


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
    key = _named(source, _name(name) if _is_uuid(name) else f"line:{record.key}")
    kind = _word(kind) if isinstance(kind, str) and kind in KINDS else "unknown"
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


def _word(value: Any) -> str:
    """A word of a few that lines have there; empty where it is no string."""
    return sys.intern(value) if type(value) is str else ""


def _name(value: Any) -> str:
    """An id, one object for lines near one another that have it; empty where it is no string."""
    return _shared(value, value) if type(value) is str else ""


def _usage(usage: Any) -> Usage | None:
    """What an answer cost, one object for its lines."""
    if not isinstance(usage, dict):
        return None
    details = usage.get("output_tokens_details")
    reasoning = details.get("thinking_tokens") if isinstance(details, dict) else None
    counts = (*[_count(usage.get(name)) for name in _USAGE], _count(reasoning))
    found: Usage | None = _NEAR.get(counts)
    return _shared(counts, Usage(*counts)) if found is None else found


_NEAR: dict[Any, Any] = {}
_MOST_NEAR = 4096


def _shared(name: Hashable, value: Shared) -> Shared:
    """The value that a line not far before had by this name, or this one."""
    if len(_NEAR) >= _MOST_NEAR:
        _NEAR.clear()
    found: Shared = _NEAR.setdefault(name, value)
    return found


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """The keys of a line, and those of them that are flags: one object for all lines of a form."""

    names: tuple[str, ...]
    flags: tuple[tuple[str, int], ...]


_FORMS: dict[tuple[str, ...], _Form] = {}
_MOST_FORMS = 4096


def _form(names: tuple[str, ...]) -> _Form:
    """There are few forms, and a hostile log may not make them many."""
    found = _FORMS.get(names)
    if found is None:
        found = _Form(names, tuple((name, bit) for name, bit in _FLAGS if name in names))
        if len(_FORMS) < _MOST_FORMS:
            _FORMS[names] = found
    return found
