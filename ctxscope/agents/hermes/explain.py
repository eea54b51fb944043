"""Why served and rebuilt part, where this agent is known for it (hermes.md §5, §8, §9)."""

from __future__ import annotations

from ctxscope.agents import Log
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.prompts import tools_of
from ctxscope.model import Difference, Point

SCREENSHOT = "[screenshot]"
_MESSAGES = ("/messages", "/input")


def explain(log: Log, point: Point, difference: Difference) -> str | None:
    """The cause in words, when the agent is known for it."""
    path = difference.path
    if path.startswith(_MESSAGES):
        return _in_messages(log, point, difference)
    if path.startswith("/tools") and tools_of(log, point) is not None:
        return "tools: the session's JSON snapshot holds another tool list than was served (late MCP binding, or it is stale)"
    if path.startswith(("/system", "/instructions")):
        return (
            "system prompt: the one the log holds for this call is not the one served (rebuilt, or added to when sent)"
        )
    if path.startswith("/model"):
        return "model switch: the session row keeps the first model"
    return None


def _in_messages(log: Log, point: Point, difference: Difference) -> str | None:
    around = difference.served + difference.rebuilt
    texts = [str(e.data.get("content") or "") for e in point.context if e.kind in {"user", "tool"}]
    pictures = ("image_url", "input_image", "base64", "data:image")
    if any(SCREENSHOT in t for t in texts) and (SCREENSHOT in around or any(w in around for w in pictures)):
        return f"image turn: the row keeps only {SCREENSHOT} instead of the image part"
    if point.answer is None and point.context and point.context[-1].kind == "user" and _adds_assistant(difference):
        return (
            "length continuation: the partial assistant row and the continuation nudge are only written after the call"
        )
    if difference.cls in {"key_order", "form", "missing", "extra"} and reading_of(log).turns:
        return "live or loaded form: the process that made the call had read these rows back, or had not"
    return None


def _adds_assistant(difference: Difference) -> bool:
    """Whether the served request goes on with an assistant message where the rebuilt one ends."""
    return '"role":"assistant"' in difference.served and '"role":"assistant"' not in difference.rebuilt
