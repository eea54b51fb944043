"""Why served and rebuilt part, where this agent is known for it (hermes.md §5, §8, §9)."""

from __future__ import annotations

from collections.abc import Mapping

from ctxscope.agents import Log
from ctxscope.agents.hermes.envelope import ENVELOPE
from ctxscope.agents.hermes.prompts import tools_of
from ctxscope.agents.hermes.rows import SCREENSHOT
from ctxscope.agents.hermes.runs import rows_among
from ctxscope.model import Difference, Learned, Point

_MESSAGES = ("/messages", "/input")
_KEY_OF_MESSAGE = 3
"""Slashes in the path of a message's own key."""


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """The cause in words, when the agent is known for it."""
    path = difference.path
    if path.startswith("/model"):
        return "model switch: the session row keeps the first model"
    held = _held(difference, learned)
    if held is not None:
        return held
    if path.startswith(_MESSAGES):
        return _in_messages(point, difference)
    if path.startswith("/tools") and tools_of(log, point) is not None:
        return "tools: the session's JSON snapshot holds another tool list than was served (late MCP binding, or it is stale)"
    if path.startswith(("/system", "/instructions")):
        return (
            "system prompt: the one the log holds for this call is not the one served (rebuilt, or added to when sent)"
        )
    return None


def _held(difference: Difference, learned: Learned) -> str | None:
    """The call that taught a value, or that there is none, where served and rebuilt part at it."""
    taught: Mapping[str, str] = learned.choice.get("taught", {})
    name = difference.path.partition("/")[2].partition("/")[0]
    for path in (f"/{name}", "/messages/0"):
        if path in taught and (difference.path == path or difference.path.startswith(f"{path}/")):
            was = "with it" if difference.cls == "missing" and difference.path == path else "with another value"
            return f"{path[1:]} is not in the log, and the call answered at {taught[path]} was sent {was}"
    pinned = learned.choice.get("pinned")
    if pinned and difference.cls == "extra" and difference.path == f"/{name}" and name in ENVELOPE:
        return f"{name} is not in the log, and the call answered at {pinned} was sent without it"
    return None


def _in_messages(point: Point, difference: Difference) -> str | None:
    around = difference.served + difference.rebuilt
    texts = [str(e.data.get("content") or "") for e in point.context if e.kind in {"user", "tool"}]
    pictures = ("image_url", "input_image", "base64", "data:image")
    if any(SCREENSHOT in t for t in texts) and (SCREENSHOT in around or any(w in around for w in pictures)):
        return f"image turn: the row keeps only {SCREENSHOT} instead of the image part"
    if point.answer is None and point.context and point.context[-1].kind == "user" and _goes_on(point, difference):
        return (
            "length continuation: the partial assistant row and the continuation nudge are only written after the call"
        )
    if _is_form(difference):
        return "live or loaded form: the process that made the call had read these rows back, or had not"
    return None


def _is_form(difference: Difference) -> bool:
    """Whether they part where a row read back differs from a live one: a tool's name, where its reasoning stands."""
    if not difference.path.startswith("/messages"):
        return False
    if difference.cls in {"missing", "extra"}:
        return difference.path.endswith("/name") and difference.path.count("/") == _KEY_OF_MESSAGE
    reasons = ('"reasoning_content"', '"reasoning_details"')
    return difference.cls == "key_order" and any(r in difference.served + difference.rebuilt for r in reasons)


def _goes_on(point: Point, difference: Difference) -> bool:
    """Whether the served request goes on with an assistant message where the rebuilt one ends."""
    number = difference.path.split("/")[2:3]
    rows = len(rows_among(point.context))
    ends = difference.cls == "extra" and number and number[0] in {str(rows), str(rows + 1)}  # the prompt may be first
    return bool(ends) and '"assistant"' in difference.served
