"""What a stored history does not hold, taken from served bodies: parameters, tools, the name of the model asked for.

Kinds are requests to one model by one API; the first body of a kind holds for those after it (pydantic_ai.md §4).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.pydantic_ai import anthropic, chat, files, filling, writing
from ctxscope.agents.pydantic_ai.points import transcript_of
from ctxscope.agents.pydantic_ai.transcript import Transcript
from ctxscope.model import Body, Learnable, Learned, Point, Value
from ctxscope.wire import json_text
from ctxscope.wire.blocks import listed, mapped, parsed, string
from ctxscope.wire.raw_object import readable_members

CAPS = ("max_tokens", "max_completion_tokens")
PARAMS = (
    *CAPS,
    "stream",
    "stream_options",
    "thinking",
    "tool_choice",
    "tools",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "stop",
    "seed",
    "user",
    "metadata",
    "store",
    "service_tier",
    "output_config",
    "response_format",
    "reasoning_effort",
    "verbosity",
    "parallel_tool_calls",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "prompt_cache_key",
    "context_management",
    "container",
    "mcp_servers",
)
_PARAM = "the history holds no parameters; those of the first request to the model hold"
NOTICES = ("Mid-conversation system messages from the application", "When a user message, a file or a tool result")
"""How the text begins that says what frames mean, a constant of versions after 2.51."""
LEARNABLE = (
    *(Learnable(f"/{name}", _PARAM) for name in PARAMS if name not in (*CAPS, "tools")),
    *(Learnable(f"/{name}", "the history never says which output cap was sent, nor who chose it") for name in CAPS),
    Learnable("/tools", "the history holds no definitions of tools; those of the first request to the model hold"),
    *(
        Learnable(path, f"only what says, once there is a frame, what frames mean («{NOTICES[0]} …», «{NOTICES[1]} …»)")
        for path in (chat.NOTICE, anthropic.NOTICE)
    ),
    Learnable("/model", "the history names the model that answered, which need not be the name that was asked for"),
)
KEYS: Mapping[str, tuple[str, ...]] = {
    "openai-chat": ("model", "stream", "messages", "tool_choice", "tools"),
    "anthropic-messages": ("max_tokens", "messages", "model", "stream", "system", "thinking", "tool_choice", "tools"),
}
"""Top-level keys in the order they are sent where no body shows it."""
_PREFIXED = b"<pyai:"
_HELD = ("messages", "system")
_NUMBER = re.compile(rb"[1-9][0-9]{0,15}")


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A thing and the joined call that showed it first."""

    at: int
    point: Point
    value: Any


@dataclass(eq=False, slots=True, repr=False)
class Taught:
    """What a row of joined calls taught; of a shorter row, with which it begins, what was held by then."""

    calls: list[tuple[Point, str]] = field(default_factory=list)
    kinds: dict[tuple[str | None, str], Held] = field(default_factory=dict)
    """Top-level members of the first body that can be read, and its system role."""
    verbatim: Held | None = None
    """Whether tool arguments go back as the model wrote them."""
    notices: dict[tuple[str | None, str], Held] = field(default_factory=dict)
    """By kind, what the first body with a frame says of frames before it, and what their names begin with."""
    carried: Held | None = None
    """Whether Anthropic is sent another provider's thinking in a message of the user's."""
    fillings: list[Held] = field(default_factory=list)
    """The rules for empty reasoning that are left, each time there are fewer."""

    def take(self, log: Log, point: Point, load: Callable[[], Body]) -> None:
        """Add the next call."""
        at = len(self.calls) - 1
        spelt = _spelt(transcript_of(log, point), point) if self.verbatim is None else None
        kind = str(point.data["model"])
        self._frames(log, point, load, at)
        self._filling(log, point, load, at)
        self._carried(log, point, load, at)
        if spelt is None and any(model == kind and not _is_other(api, point) for api, model in self.kinds):
            return
        body = load()
        members = readable_members(body.data)
        if body.api not in KEYS or not members.get("messages"):
            return
        self.kinds.setdefault((body.api, kind), Held(at, point, (_told(members), _role(body))))
        if spelt is not None and body.api == "openai-chat":
            raw, anew = (writing.spelled(text) in body.data for text in spelt)
            if raw or anew:
                self.verbatim = Held(at, point, raw)

    def _frames(self, log: Log, point: Point, load: Callable[[], Body], at: int) -> None:
        told, kind = transcript_of(log, point), str(point.data["model"])
        if told is None or any(model == kind and not _is_other(api, point) for api, model in self.notices):
            return
        ends = {chat: files.first_framed(told, chat=chat) for chat in (True, False)}
        starts = {chat: end[0] for chat, end in ends.items() if end is not None}
        away = anthropic.first_foreign(told)
        starts |= {False: min(away, starts.get(False, away))} if away is not None else {}
        units = told.until[point.data["length"]]
        if all(start >= units for start in starts.values()):
            return
        body = load()
        if body.api in KEYS and starts.get(body.api == "openai-chat", units) < units:
            self.notices[body.api, kind] = Held(at, point, (_notice(body), "pyai:" if _PREFIXED in body.data else ""))

    def _filling(self, log: Log, point: Point, load: Callable[[], Body], at: int) -> None:
        told = transcript_of(log, point)
        left = self.left(at)
        if told is None or point.api == "anthropic-messages":
            return
        units = told.until[point.data["length"]]
        if not filling.tells(told, units, left):
            return
        body = load()
        now = filling.consistent(body.data, told, units, left) if body.api == "openai-chat" else left
        if now != left:
            self.fillings.append(Held(at, point, now))

    def _carried(self, log: Log, point: Point, load: Callable[[], Body], at: int) -> None:
        told = transcript_of(log, point)
        if self.carried is None and told is not None and point.api in (None, "anthropic-messages"):
            first = anthropic.first_foreign(told)
            if first is not None and first < told.until[point.data["length"]]:
                body = load()
                if body.api == "anthropic-messages":
                    self.carried = Held(at, point, anthropic.CARRIED[0].encode() in body.data)

    def left(self, at: int) -> frozenset[filling.Rule]:
        """The rules for empty reasoning that all calls up to one agree with."""
        told = (held.value for held in reversed(self.fillings) if held.at <= at)
        found: frozenset[filling.Rule] = next(told, frozenset(filling.RULES))
        return found

    def forget(self, start: int) -> None:
        """Take the calls from ``start`` on out again."""
        self.notices = {k: held for k, held in self.notices.items() if held.at < start}
        self.fillings = [held for held in self.fillings if held.at < start]
        if self.carried is not None and self.carried.at >= start:
            self.carried = None
        del self.calls[start:]
        self.kinds = {k: held for k, held in self.kinds.items() if held.at < start}
        if self.verbatim is not None and self.verbatim.at >= start:
            self.verbatim = None


def _is_other(api: str | None, point: Point) -> bool:
    return point.api is not None and point.api != api


def _told(members: Mapping[str, bytes]) -> dict[str, bytes]:
    return {k: v[:1] if k in _HELD else v for k, v in members.items()}


def _role(body: Body) -> str:
    """The role of the message that holds the system prompt."""
    first = next((s for s in body.segments if s.path == "/messages/0"), None)
    role = string(parsed(body.data[first.start : first.end]).get("role")) if first is not None else ""
    return role if role in ("system", "developer") else "system"


def _spelt(told: Transcript | None, point: Point) -> tuple[str, str] | None:
    """The first tool arguments a request holds that are spelt otherwise when written anew: as they came, and anew."""
    if told is None:
        return None
    if "spelt" not in told.notes:
        found = (
            (at, both)
            for at, entry in enumerate(told.entries)
            for part in map(mapped, listed(entry.data.get("parts")) if entry.kind == "response" else ())
            if (both := tuple(writing.arguments_text(part, verbatim=v) for v in (True, False)))[0] != both[1]
        )
        told.notes["spelt"] = next(found, None)
    first = told.notes["spelt"]
    return first[1] if first is not None and first[0] < point.data["length"] else None


def taught(log: Log, point: Point, body: Body, before: Before) -> Taught:
    """What the joined calls up to this one taught, this one included; continued from what was asked before."""
    calls = [*before.told, (point, body.sha256)]
    memo = shared_memo(log, "pydantic_ai.taught")
    kept: Taught | None = memo.get("kept")
    found = kept if kept is not None else Taught()
    same = min(len(found.calls), len(calls))
    if found.calls[:same] != calls[:same]:
        if len(calls) == 1:
            found = Taught()  # a question about one call alone must not cost what is known of them all
        else:
            found.forget(next(i for i in range(same) if found.calls[i] != calls[i]))
    if found is kept or len(calls) > 1 or kept is None:
        memo["kept"] = found
    for at in range(len(found.calls), len(calls)):
        found.calls.append(calls[at])
        if at < len(before) or not _is_foretold(point, body, before):
            found.take(log, calls[at][0], partial(_load, before, at) if at < len(before) else lambda: body)
    return found


def _is_foretold(point: Point, body: Body, before: Before) -> bool:
    """Whether a call is only foretold: nothing was sent, the body is that of the call before it."""
    return point.answer is None and len(before) > 0 and before.told[-1][1] == body.sha256


def _load(before: Before, at: int) -> Body:
    return before[at][1]


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Parameters as the first request to the model had them, and the forms that bodies have shown by now."""
    if body.api not in KEYS:
        return Learned(choice={"api": body.api})
    known, now = taught(log, point, body, before), len(before)
    held = known.kinds.get((body.api, str(point.data["model"])))
    if held is None or held.at > now:
        held = Held(now, point, (_told(readable_members(body.data)), _role(body)))
    members, role = held.value
    source: Literal["learned", "echoed"] = "learned" if held.at < now else "echoed"
    values = {f"/{k}": Value(v, source) for k, v in members.items() if k in PARAMS}
    named = _model(held.point, _name(members.get("model", b"")))
    if named is None:
        values["/model"] = Value(members["model"], source)
    verbatim = known.verbatim is not None and known.verbatim.at <= now and bool(known.verbatim.value)
    choice = {
        "api": body.api,
        "role": role,
        "model": named,
        "verbatim": verbatim,
        "system": _system(body),
        "told": held.point.place.at if held.at < now else None,
        "cap": _cap(body),
    }
    words = ["tool arguments are sent back as the model wrote them"] if verbatim else []
    choice["carried"] = known.carried is not None and known.carried.at <= now and bool(known.carried.value)
    if choice["carried"] and body.api == "anthropic-messages":
        words.append("thinking of another provider is sent in a message of the user's before the answer")
    rules = known.left(now)
    choice["filling"] = rule = next(rule for rule in filling.RULES if rule in rules)
    if rule != "none":
        words.append(filling.RULES[rule])
    said = known.notices.get((body.api, str(point.data["model"])))
    if said is not None and said.at <= now:
        notice, choice["frames"] = said.value
        path = chat.NOTICE if body.api == "openai-chat" else anthropic.NOTICE
        if notice is not None:
            choice["notice_leads"] = notice.startswith(writing.spelled(NOTICES[0])[:-1])
            values[path] = Value(notice, "learned" if said.at < now else "echoed")
    return Learned(values, tuple(members), tuple(words), choice)


def _notice(body: Body) -> bytes | None:
    """What a body says of frames, as a JSON string; ``None`` where it says nothing."""
    for segment in body.segments:
        if segment.kind == "system" or segment.role == "system":
            found = parsed(body.data[segment.start : segment.end])
            text = string(found.get("text")) or string(found.get("content"))
            if text.startswith(NOTICES):
                return writing.spelled(text)
    return None


def _name(raw: bytes) -> str:
    try:
        return string(json_text.loads(raw))
    except ValueError:
        return ""


def _model(point: Point, served: str) -> str | None:
    """Which of the history's two names of a model a request carries: ``asked``, ``model``; ``None`` for neither."""
    return next((name for name in ("asked", "model") if served and point.data[name] == served), None) or (
        None if served else "model"
    )


def _system(body: Body) -> tuple[str, ...]:
    """The texts of a body's system prompt as it splits them, which the history does not tell."""
    found = [body.data[s.start : s.end] for s in body.segments if s.kind == "system"]
    blocks = [parsed(data) for data in found]
    return tuple(string(b.get("text", b.get("content"))) for b in blocks) if all(blocks) else ()


def _cap(body: Body) -> int | None:
    value = {s.path[1:]: body.data[s.start : s.end] for s in body.params or body.segments if s.path[1:] in CAPS}
    raw = next(iter(value.values()), b"")
    return int(raw) if _NUMBER.fullmatch(raw) else None
