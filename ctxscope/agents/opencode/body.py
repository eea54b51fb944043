"""A call's request out of its messages, and what the log never holds out of bodies served before (opencode.md §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.opencode import chat, claude, reminder, summary
from ctxscope.agents.opencode.history import Asked
from ctxscope.agents.opencode.points import asked_at
from ctxscope.agents.opencode.served import BULK, Facts, facts
from ctxscope.agents.opencode.written import CLAUDE, ITEMS, is_marked, written_of
from ctxscope.model import (
    Body,
    CallKind,
    Config,
    Difference,
    Learnable,
    Learned,
    Named,
    Piece,
    Point,
    Rebuilt,
    Value,
)
from ctxscope.wire.json_text import js_string

TITLES, SUMMARIES = b"You are a title generator.", b"You are a context summarization agent."
_SETTING = "decided by settings and the catalogue of models; not logged"
_SYSTEM = "the system prompt is made anew by each process; it is not logged"
SYSTEMS = ("/messages/0", "/messages/1", "/input/0", "/input/1")
QUESTIONS = (
    *("/messages/0/content/0/text", "/messages/1/content", "/messages/2/content"),
    *("/input/1/content/0/text", "/input/2/content/0/text"),
)
"""Where a request for a summary has its text, by API and number of system messages."""
REMINDERS = ("/messages/*/content/*/text", "/input/*/content/*/text")
PARAMETERS = (
    *("max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "thinking", "reasoning_effort"),
    *("output_config", "tool_choice", "parallel_tool_calls", "metadata", "service_tier"),
    *("max_output_tokens", "store", "include", "reasoning", "text"),
)
LEARNABLE = (
    Learnable("/tools", "the agent's own and those of its servers; they are not logged"),
    Learnable("/system", _SYSTEM),
    *(Learnable(path, f"{_SYSTEM}; here it is the first messages") for path in SYSTEMS),
    *(Learnable(path, "what asks for a summary, behind the conversation, is not logged") for path in QUESTIONS),
    *(
        Learnable(path, "plan mode's reminders, behind the newest input for one call, are not logged")
        for path in REMINDERS
    ),
    Learnable("/model", "the provider may know the model by another name than the log"),
    *(Learnable(f"/{name}", _SETTING) for name in PARAMETERS),
)
_TAKEN = ("tools", "system", *PARAMETERS)
_USUAL = {
    "openai-chat": ("model", "messages", "stream", "stream_options"),
    "anthropic-messages": ("model", "messages", "stream"),
    "openai-responses": ("model", "input", "stream"),
}
"""The keys that the log implies, in order."""
_FORMS = {"anthropic-messages": CLAUDE, "openai-responses": ITEMS}
_CONSTANTS = {"stream": b"true", "stream_options": b'{"include_usage":true}'}
NO_RECORDING = "system prompt, parameters and tools are not known without a recording"
INTERLEAVED = "the catalogue of models has reasoning sent back in a field of its own"
_REMINDER = "plan mode puts a reminder behind the newest input, for that call alone; it is not logged"


def named(headers: Mapping[str, str], body: Body) -> Named:  # noqa: ARG001 - the face's signature
    """The session is named in a header of each request."""
    return Named(headers.get("x-session-id") or headers.get("x-opencode-session") or None)


def classify(body: Body) -> CallKind | None:
    """``side`` for a title and ``compaction`` for a summary, by their fixed prompts; ``main`` with tools."""
    for segment in body.segments:
        if segment.kind == "system":
            text = body.data[segment.start : segment.end]
            if TITLES in text:
                return "side"
            if SUMMARIES in text:
                return "compaction"
    return "main" if any(s.kind == "tool" for s in reversed(body.segments)) else None


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """What the first call of its kind that can be read was sent beside its messages, holds for all of the kind.

    A kind is an API, a model, an agent and a variant of the model: each has prompts, tools and parameters of its own.
    """
    if body.api not in BULK:
        return Learned(choice={"api": body.api})
    known: _Taught = shared_memo(log, "opencode.taught").setdefault("kept", _Taught())
    lessons = known.upto(log, point, body, before)
    kind = (body.api, *_kind(point))
    first = lessons.firsts.get(kind)
    source = first.facts if first else facts(log, body.sha256, lambda: body)
    own = first is None or first.at >= len(before)
    provenance: Literal["learned", "echoed"] = "echoed" if own else "learned"
    values = {f"/{k}": Value(source.values[k], provenance) for k in _TAKEN if k in source.values}
    values |= {f"/{BULK[body.api]}/{n}": Value(text, provenance) for n, text in enumerate(source.systems)}
    if point.kind == "compaction":
        values |= _question(point, body, len(source.systems))
    values |= _renamed(lessons.firsts.get((body.api, *asked_at(point).answer.model)), point, len(before))
    form = _FORMS.get(body.api) or lessons.forms.get(kind, "interleaved")
    told = (INTERLEAVED,) if kind in lessons.forms and form == "interleaved" else ()
    notes = {"api": body.api, "form": form, "taught": None if own or first is None else first.point.place.at}
    if asked_at(point).reminder:
        found = reminder.learn(log, point, body, before, form)
        values, notes = {**values, **found}, {**notes, "reminder": next(iter(found), "")}
    return Learned(values, source.keys, told, notes)


def _renamed(first: _First | None, point: Point, calls: int) -> dict[str, Value]:
    """The model's name in requests, where the first call to it had another than the log."""
    sent = first.facts.values.get("model") if first is not None else None
    if first is None or sent is None or sent == js_string(asked_at(point).answer.model[1]).encode():
        return {}
    return {"/model": Value(sent, "echoed" if first.at >= calls else "learned")}


def _question(point: Point, body: Body, systems: int) -> dict[str, Value]:
    """What a request for a summary asks, told by that request alone: the user may have put it otherwise."""
    found = summary.asks(body, summary.conversation(asked_at(point)))
    inside = {"openai-chat": f"{max(1, systems)}/content"}.get(body.api or "", f"{systems}/content/0/text")
    return {} if found is None else {f"/{BULK[body.api or '']}/{inside}": Value(found, "echoed")}


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:  # noqa: ARG001 - the face's signature
    """The whole body, key by key as the client has them; ``None`` for other APIs, and for a summary nobody saw asked for."""
    api = learned.choice.get("api") or _likely(point)
    is_asked = point.kind != "compaction" or any(path in learned.values for path in QUESTIONS)
    if api not in BULK or not is_asked:
        return None
    pieces: list[Piece] = []
    for key in learned.keys or _USUAL[api]:
        value = _value(log, point, learned, key, api)
        if value:
            pieces += [Piece(b'%s"%s":' % (b"," if pieces else b"{", key.encode())), *value]
    return Rebuilt((*pieces, Piece(b"}")), "body", () if learned.keys else (NO_RECORDING,))


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:  # noqa: ARG001 - the face's signature
    """A value that is not logged and changed, or a reminder that is not logged."""
    path, taught = difference.path, learned.choice.get("taught")
    top = next((p for p in learned.values if path == p or path.startswith(f"{p}/")), None)
    if top is not None and taught is not None:
        return f"{top[1:]} is not in the log, and the call answered at {taught} was sent another value"
    return _REMINDER if path.startswith(("/messages", "/input")) and asked_at(point).reminder else None


def _kind(point: Point) -> tuple[str, ...]:
    answer = asked_at(point).answer
    return (*answer.model, str(answer.entry.data.get("agent")), str(answer.entry.data.get("variant")), point.lineage)


def _likely(point: Point) -> str:
    """The API of a call nobody recorded."""
    return "anthropic-messages" if "claude" in "/".join(asked_at(point).answer.model) else "openai-chat"


@dataclass(frozen=True, slots=True, eq=False)
class _First:
    at: int
    point: Point
    facts: Facts


@dataclass(eq=False)
class _Taught:
    """What a row of joined calls taught, continued with what is asked next."""

    calls: list[tuple[Point, str]] = field(default_factory=list)
    firsts: dict[tuple[str, ...], _First] = field(default_factory=dict)
    """By kind, and by API and model."""
    forms: dict[tuple[str, ...], str] = field(default_factory=dict)
    form_at: dict[tuple[str, ...], int] = field(default_factory=dict)

    def upto(self, log: Log, point: Point, body: Body, before: Before) -> _Taught:
        """What the calls before, and the call itself, taught."""
        told = [*before.told, (point, body.sha256)]
        same = min(len(self.calls), len(told))
        if self.calls[:same] != told[:same]:
            if len(told) == 1:  # a question about one call alone must not cost what is known of them all
                return _Taught().upto(log, point, body, before)
            self._forget(next(i for i in range(same) if self.calls[i] != told[i]))
        if len(self.calls) > len(told):
            return self._shorter(len(told))
        for at in range(len(self.calls), len(told)):
            load = partial(_body, before, at) if at < len(before) else partial(_itself, body)
            self._take(at, told[at], facts(log, told[at][1], load))
        return self

    def _take(self, at: int, call: tuple[Point, str], shown: Facts) -> None:
        self.calls.append(call)
        if shown.api is None:
            return
        kind, model = (shown.api, *_kind(call[0])), asked_at(call[0]).answer.model
        for key in (kind, (shown.api, *model)):
            self.firsts.setdefault(key, _First(at, call[0], shown))
        if shown.form and kind not in self.forms:
            self.forms[kind], self.form_at[kind] = shown.form, at

    def _forget(self, start: int) -> None:
        kept = self._shorter(start)
        self.calls, self.firsts = self.calls[:start], kept.firsts
        self.forms, self.form_at = kept.forms, kept.form_at

    def _shorter(self, length: int) -> _Taught:
        forms = {k: at for k, at in self.form_at.items() if at < length}
        return _Taught(
            self.calls[:length],
            {k: f for k, f in self.firsts.items() if f.at < length},
            {k: self.forms[k] for k in forms},
            forms,
        )


def _body(before: Before, at: int) -> Body:
    return before[at][1]


def _itself(body: Body) -> Body:
    return body


# --- messages --------------------------------------------------------------------------------------------------------


def _value(log: Log, point: Point, learned: Learned, key: str, api: str) -> Sequence[Piece]:
    known = learned.values.get(f"/{key}")
    if known is not None and known.data is not None:
        return (Piece(known.data, known.provenance, path=f"/{key}"),)
    if key == BULK[api]:
        return _messages(log, point, learned, api)
    if key in ("prompt_cache_key", "promptCacheKey"):
        return (Piece(js_string(log.ref.id).encode()),)
    if key == "model":
        answer = asked_at(point).answer
        return (Piece(js_string(answer.model[1]).encode("utf-8", "surrogatepass"), "logged", answer.entry.place),)
    return (Piece(_CONSTANTS[key]),) if key in _CONSTANTS else ()


def _messages(log: Log, point: Point, learned: Learned, api: str) -> tuple[Piece, ...]:
    asked = asked_at(point)
    systems = [(path, learned.values[path]) for path in SYSTEMS if path in learned.values]
    first: list[Piece] = []
    for path, value in systems:
        first += [*([Piece(b",")] if first else []), Piece(value.data or b"", value.provenance, path=path)]
    if point.kind == "compaction":
        rest = _summary_request(asked, learned, api)
    else:
        form = _FORMS.get(api) or learned.choice.get("form", "interleaved")
        path = learned.choice.get("reminder", "")
        known = learned.values.get(path)
        more = None if known is None or known.data is None else Piece(known.data, known.provenance, path=path)
        rest = written_of(log, asked, form).upto(asked.length, more)
    comma = (Piece(b","),) if first and rest else ()
    return (Piece(b"["), *first, *comma, *rest, Piece(b"]"))


def _summary_request(asked: Asked, learned: Learned, api: str) -> tuple[Piece, ...]:
    """The conversation as a text, and what is asked of it, which only the request itself tells."""
    inside = summary.conversation(asked)
    path, value = next((p, learned.values[p]) for p in QUESTIONS if p in learned.values)
    text = (*inside, Piece(value.data or b"", value.provenance, path=path))
    if api == "openai-chat":
        mark = chat.MARK if is_marked(asked.answer.model) else b""
        return (Piece(b'{"role":"user","content":"'), *text, Piece(b'"' + mark + b"}"))
    kind, mark = (b"text", claude.MARK) if api == "anthropic-messages" else (b"input_text", b"")
    return (Piece(b'{"role":"user","content":[{"type":"%s","text":"' % kind), *text, Piece(b'"' + mark + b"}]}"))
