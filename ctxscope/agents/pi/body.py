"""A whole request body out of a point of the log, key by key in pi's order (pi.md §4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.pi import anthropic, chat, forms, google, limits, responses
from ctxscope.agents.pi.fold import Fold, Form, Renderer, fold, mark_of
from ctxscope.agents.pi.head import Head
from ctxscope.agents.pi.learning import EFFORTS, OPTIONS, target_of
from ctxscope.agents.pi.points import level_of, node_of, session_of
from ctxscope.agents.pi.texts import spelled
from ctxscope.agents.pi.thread import Continued, continued_id, thread_before, thread_from
from ctxscope.agents.pi.transform import Target
from ctxscope.agents.pi.tree import Node
from ctxscope.model import Config, Learned, Piece, Point, Rebuilt

NO_LIMIT = "the output cap is not known without models.json or a recording"
NO_HEAD = "system prompt and tools of version 0.73 are not known without a recording"
NO_CONFIG = "the generation set-up of a Google model is not known without a recording"
RENDERERS: Mapping[str, Any] = {
    "anthropic-messages": anthropic,
    "openai-completions": chat,
    "openai-responses": responses,
    "google-generative-ai": google,
}
LEAST_OUTPUT = 16
"""Smallest max_output_tokens that Responses accept."""

Pieces = tuple[Piece, ...]


@dataclass(eq=False)
class Draft:
    """A body being put together: its keys and their values, and what is missing."""

    log: Log
    point: Point
    node: Node | None
    config: Config
    learned: Learned
    target: Target
    choice: Mapping[str, Any]
    fields: dict[str, Pieces]
    notices: list[str]

    @property
    def head(self) -> Head:
        """System prompt and tools: the first system message's alone where later changes stay in place."""
        if self.node is None:
            return Head()
        heads = self.node.trail.heads[: self.node.length + 1]
        if self.choice.get("native"):
            return next((h for h in heads if h.tools or h.parts()), heads[-1])
        return heads[-1]

    @property
    def level(self) -> str:
        """The thinking level on the path."""
        return level_of(self.point)

    def effort(self) -> Piece | None:
        """The word for the level, as the model's table has it, as learned, else the level's own; ``None`` for none."""
        level, path = self.level, EFFORTS[self.target.api]
        table = self.config.values.get("efforts", {}).get((self.target.provider, self.target.model), {})
        value = self.learned.values.get(path)
        word = forms.usual_effort(self.target.api, level)
        if level in table:
            word = table[level]
        elif value is not None and value.data is not None:
            return Piece(value.data, value.provenance, path=path)
        elif level == "off":
            word = self.choice.get("effort off", word)
        if word is None:
            return None
        place = self.point.data["level_place"]
        return Piece(spelled(word), "logged", place) if word == level and place else Piece(spelled(word))

    def put(self, key: str, value: Any) -> None:
        """A key whose value is a constant or follows from a rule."""
        self.fields[key] = (Piece(spelled(value)),)

    def take(self, key: str, path: str = "") -> bool:
        """A key whose value was learned; False where it was not, or where it was learned that there is none."""
        value = self.learned.values.get(path or f"/{key}")
        if value is None or value.data is None:
            return False
        self.fields[key] = (Piece(value.data, value.provenance, path=path or f"/{key}"),)
        return True

    def model(self) -> None:
        """The model's name, from the answer or the last model_change."""
        self.fields["model"] = (Piece(spelled(self.point.data["model"]), "logged", self.point.data["model_place"]),)


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:
    """The request the log implies; ``None`` for an API that is not rebuilt."""
    choice: dict[str, Any] = dict(learned.choice)
    if not point.data.get("api"):
        apis = config.values.get("apis", {})
        choice["api"] = choice.get("api") or apis.get((point.data.get("provider"), point.data.get("model")))
    target = target_of(point, choice)
    if target.api not in RENDERERS:
        return None
    choice = {**forms.defaults(target), **choice}
    draft = Draft(log, point, node_of(log, point), config, learned, target, choice, {}, [])
    _WRITERS[target.api](draft)
    return Rebuilt(_joined(_with_options(draft)), "body", tuple(draft.notices))


def _fold(draft: Draft) -> Fold | None:
    node = draft.node
    if node is None:
        return None
    mark = mark_of(draft.choice) if draft.target.api == "anthropic-messages" else None
    images = bool(draft.choice.get("images", True))
    form = Form(draft.target, mark, bool(draft.choice.get("native")), images)
    renderer: Renderer = RENDERERS[draft.target.api]
    return fold(node.trail, form, renderer, shared_memo(draft.log, "pi.rendered"))


def _messages(draft: Draft, first: Pieces = (), skip: int = 0) -> Pieces:
    """The conversation's array; ``first`` stands before the messages, ``skip`` of them are left out."""
    folded = _fold(draft)
    rest = folded.request(draft.node.length, skip) if folded and draft.node else ()
    comma = (Piece(b","),) if first and rest else ()
    return (Piece(b"["), *first, *comma, *rest, Piece(b"]"))


def _cap(draft: Draft, key: str, budget: int = 0) -> int | None:
    """Put the output cap: from the model's known limits, else as learned; ``None`` where neither says."""
    known = draft.config.values.get("limits", {}).get((draft.target.provider, draft.target.model))
    if known is not None:
        estimate = draft.node.trail.estimates[draft.node.length].request if draft.node else 0
        cap = limits.cap(known, estimate, budget, old=draft.target.old)
        cap = max(LEAST_OUTPUT, cap) if key == "max_output_tokens" else cap
        draft.put(key, cap)
        return cap
    if draft.take(key):
        raw = draft.learned.values[f"/{key}"].data or b""
        return int(raw) if raw.isdigit() else None
    draft.notices.append(NO_LIMIT)
    return None


def _head(draft: Draft, key: str, written: Pieces) -> None:
    """System or tools: as logged, or as learned for a version that does not log them."""
    if written:
        draft.fields[key] = written
    elif draft.target.old and not draft.take(key) and not draft.learned.keys and NO_HEAD not in draft.notices:
        draft.notices.append(NO_HEAD)


def _anthropic(draft: Draft) -> None:
    choice, cache = draft.choice, mark_of(draft.choice)
    budgets = draft.config.values.get("budgets", limits.BUDGETS)
    budget = 0 if choice.get("reasoning") is False else limits.budget_for(draft.level, budgets)
    adaptive = "/thinking" in draft.learned.values
    continued = _continued(draft)
    folded = _fold(draft)
    skip = folded.count(continued.length) + 1 if continued and folded else 0
    draft.model()
    draft.fields["messages"] = _messages(draft, skip=skip)
    cap = _cap(draft, "max_tokens", 0 if adaptive else budget)
    draft.put("stream", value=True)
    if continued is None:
        _head(draft, "system", anthropic.system(draft.head, cache))
        value = draft.learned.values.get("/tools") if choice.get("native") else None
        last = Piece(value.data, value.provenance, path="/tools") if value and value.data else None
        _head(draft, "tools", anthropic.tools(draft.head, cache, eager=bool(choice["eager"]), last=last))
    if adaptive:
        draft.take("thinking")
    elif choice.get("reasoning") is not False:
        _thinking(draft, cap, budget)
    if choice.get("threads"):
        _thread(draft)


def _thinking(draft: Draft, cap: int | None, budget: int) -> None:
    if not budget:
        draft.put("thinking", {"type": "disabled"})
        return
    tokens = budget if cap is None else limits.budget_within(cap, budget, old=draft.target.old)
    draft.put("thinking", {"type": "enabled", "budget_tokens": tokens, "display": "summarized"})


def _continued(draft: Draft) -> Continued | None:
    """The thread the request continues: as served where that was learned, else as the log suggests."""
    if not draft.choice.get("threads") or draft.node is None:
        return None
    served = draft.learned.values.get("/thread")
    if served is not None and served.data is not None:
        return thread_from(draft.node, continued_id(served.data))
    return thread_before(draft.node)


def _thread(draft: Draft) -> None:
    if draft.take("thread"):
        return
    continued = _continued(draft)
    if continued is None:
        draft.put("thread", {"type": "create"})
        return
    name = Piece(spelled(continued.message_id), "logged", continued.call.entry.place)
    draft.fields["thread"] = (Piece(b'{"type":"continue","previous_message_id":'), name, Piece(b"}"))


def _first_message(draft: Draft, path: str) -> Pieces:
    """The prompt as the first message, logged or learned."""
    written = chat.system(draft.head, str(draft.choice["role"]))
    if written or not draft.target.old:
        return written
    value = draft.learned.values.get(path)
    if value is not None and value.data is not None:
        return (Piece(value.data, value.provenance, path=path),)
    if not draft.learned.keys:
        draft.notices.append(NO_HEAD)
    return ()


def _session(draft: Draft) -> Pieces:
    name, place = session_of(draft.log, draft.point)
    return (Piece(spelled(name), "logged", place),)


def _chat(draft: Draft) -> None:
    choice = draft.choice
    draft.model()
    draft.fields["messages"] = _messages(draft, _first_message(draft, "/messages/0"))
    draft.put("stream", value=True)
    if choice["session"]:
        draft.fields["prompt_cache_key"] = _session(draft)
    if choice["usage"]:
        draft.put("stream_options", {"include_usage": True})
    if choice["store"]:
        draft.put("store", value=False)
    _cap(draft, str(choice["cap"]))
    _head(draft, "tools", chat.tools(draft.head, strict=choice["strict"]))
    if choice["reasoning"] and (effort := draft.effort()):
        draft.fields["reasoning_effort"] = (effort,)


def _responses(draft: Draft) -> None:
    choice = draft.choice
    draft.model()
    draft.fields["input"] = _messages(draft, _first_message(draft, "/input/0"))
    draft.put("stream", value=True)
    if choice["session"]:
        draft.fields["prompt_cache_key"] = _session(draft)
    if choice["store"]:
        draft.put("store", value=False)
    _cap(draft, "max_output_tokens")
    _head(draft, "tools", responses.tools(draft.head, strict=choice["strict"]))
    if not choice["reasoning"]:
        return
    effort = draft.effort()
    if effort is None:
        return
    if draft.level == "off":
        draft.fields["reasoning"] = (Piece(b'{"effort":'), effort, Piece(b"}"))
        return
    draft.fields["reasoning"] = (Piece(b'{"effort":'), effort, Piece(b',"summary":"auto"}'))
    draft.put("include", ["reasoning.encrypted_content"])


def _google(draft: Draft) -> None:
    draft.fields["contents"] = _messages(draft)
    _head(draft, "systemInstruction", google.system(draft.head))
    _head(draft, "tools", google.tools(draft.head))
    if not draft.take("generationConfig") and not draft.learned.keys:
        draft.notices.append(NO_CONFIG)


_WRITERS = {
    "anthropic-messages": _anthropic,
    "openai-completions": _chat,
    "openai-responses": _responses,
    "google-generative-ai": _google,
}


def _with_options(draft: Draft) -> dict[str, Pieces]:
    """The fields with request options where the served body has them: behind the key they follow there."""
    fields = draft.fields
    for at, key in enumerate(draft.learned.keys):
        if key in OPTIONS and draft.take(key) and at:
            own = fields.pop(key)
            order = list(fields.items())
            place = next((i + 1 for i, (k, _) in enumerate(order) if k == draft.learned.keys[at - 1]), len(order))
            order.insert(place, (key, own))
            draft.fields = fields = dict(order)
    return fields


def _joined(fields: Mapping[str, Pieces]) -> Pieces:
    pieces: list[Piece] = []
    for key, value in fields.items():
        lead = (b"," if pieces else b"{") + spelled(key) + b":"
        pieces += [Piece(lead), *value]
    return (*pieces, Piece(b"}"))
