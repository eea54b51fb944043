"""A request body out of a point of the log: from its record where there is one, else from the chain."""

from __future__ import annotations

from collections.abc import Sequence

from ctxscope.agents import Log
from ctxscope.agents.claude_code import exact
from ctxscope.agents.claude_code.chain import Conversation, unserved
from ctxscope.agents.claude_code.exact import billing_pieces, body_of
from ctxscope.agents.claude_code.learning import (
    BILLING_PATH,
    PARAMS,
    asked_model,
    default_form,
    is_other_model,
    split_billing,
)
from ctxscope.agents.claude_code.messages import Form
from ctxscope.agents.claude_code.metadata import metadata
from ctxscope.agents.claude_code.records import record_of
from ctxscope.agents.claude_code.restarted import restarted
from ctxscope.agents.claude_code.texts import spelled, string
from ctxscope.model import Learned, Piece, Point, Rebuilt

NO_HEAD = "system prompt, tools and parameters are not known without a recording: this version does not log them"
_ORDERS = (
    (("0.", "1."), ("model", "messages", "temperature", "system", "tools", "metadata", "max_tokens", "stream")),
    (("2.0.",), ("model", "messages", "system", "tools", "metadata", "max_tokens", "stream")),
)
_ORDER = ("model", "messages", "system", "tools", "metadata", "max_tokens", "thinking", "context_management",
          "output_config", "stream")  # fmt: skip
"""Top-level order by version (claude_code.md §4.3)."""


def rebuild(log: Log, point: Point, learned: Learned) -> Rebuilt | None:
    """The request the log implies."""
    record = record_of(log, point)
    if record is not None:
        made = exact.rebuild(log, point, record, learned)
        if made is not None:
            return made
    return _from_chain(log, point, learned)


def _from_chain(log: Log, point: Point, learned: Learned) -> Rebuilt:
    version = str(point.data.get("version") or "")
    usual = next((order for starts, order in _ORDERS if version.startswith(starts)), _ORDER)
    fields: dict[str, Sequence[Piece]] = {}
    for key in learned.keys or usual:
        pieces = _field(log, point, learned, key)
        if pieces:
            fields[key] = pieces
    notices = () if learned.keys else (NO_HEAD,)
    return Rebuilt(tuple(body_of(fields)), "semantic", notices)


def _field(log: Log, point: Point, learned: Learned, key: str) -> Sequence[Piece]:
    if key == "model":
        return _model(point, learned)
    if key == "messages":
        return (Piece(b"["), *_conversation(log, point, learned), Piece(b"]"))
    if key == "stream":
        return (Piece(b"true"),)
    if key == "metadata":
        return metadata(log, point, learned)
    value = learned.values.get(f"/{key}")
    if value is None or value.data is None:
        return ()
    if key == "system" and BILLING_PATH in learned.values:
        split = split_billing(value.data)
        if split is not None:
            before, _, after = split
            path = "/system"
            return (
                Piece(before, value.provenance, path=path),
                *billing_pieces(learned),
                Piece(after, value.provenance, path=path),
            )
    return (Piece(value.data, value.provenance, path=f"/{key}"),) if key in (*PARAMS, "system", "tools") else ()


def _model(point: Point, learned: Learned) -> Sequence[Piece]:
    """The model as the log has it; by the name it was asked for where that is another one of the same."""
    stored = asked_model(point)
    value = learned.values.get("/model")
    served = value.data.decode("utf-8", "replace").strip('"') if value is not None and value.data else ""
    logged = string(point.answer.data.get("requestedModel")) if point.answer is not None else ""
    if value is not None and value.data and served != stored and not logged and not is_other_model(point, served):
        return (Piece(value.data, value.provenance, path="/model"),)
    place = point.answer.place if point.answer is not None else point.place
    return (Piece(spelled(stored), "logged", place),) if stored else ()


def _conversation(log: Log, point: Point, learned: Learned) -> Sequence[Piece]:
    made = learned.choice.get("conversation")
    if isinstance(made, Conversation):
        return restarted(log, made) if learned.choice.get("restarted") else made.pieces
    form = learned.choice.get("form")
    return unserved(log, point, form if isinstance(form, Form) else default_form(point))
