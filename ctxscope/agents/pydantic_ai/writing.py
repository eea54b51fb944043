"""What the two APIs' renderers share: results, arguments and thinking in pydantic-ai's spelling (pydantic_ai.md §4).

Rules are those of the library's source at 2.51.0 and 2.68.0; what is beyond them is an ``UnknownPartError``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ctxscope.agents.pydantic_ai.transcript import Part, UnknownPartError
from ctxscope.model import quoted
from ctxscope.wire import json_text
from ctxscope.wire.blocks import mapped, string

INVALID = "INVALID_JSON"
"""Key under which arguments go that are no object."""
ERRORS = ("failed", "retried")
"""Outcomes of a tool that reach the model as an error."""


def spelled(value: Any) -> bytes:
    """A value as the SDKs write it: compact, raw UTF-8, keys as they came."""
    return text(value).encode("utf-8", "surrogatepass")


def text(value: Any) -> str:
    """The same as text; ``null`` for a value nested too deep to be written."""
    try:
        return json_text.py(value)
    except RecursionError:
        return "null"


def arguments(part: Mapping[str, Any]) -> dict[str, Any]:
    """A tool call's arguments as an object."""
    value = part.get("args")
    if isinstance(value, str) and value:
        try:
            parsed = json_text.loads(value)
        except ValueError:
            parsed = None
        return parsed if isinstance(parsed, dict) else {INVALID: value}
    return mapped(value)


def arguments_text(part: Mapping[str, Any], *, verbatim: bool) -> str:
    """The same as chat sends it: written anew, or, up to 2.51, as the model wrote it."""
    value = part.get("args")
    if verbatim and isinstance(value, str) and value and INVALID not in arguments(part):
        return value
    return text(arguments(part))


def result_text(part: Part, *, wrapped: bool) -> str:
    """A tool's result as one text; ``wrapped`` puts an error into an object that says so."""
    value = part.data.get("content")
    said = "" if value is None else value if isinstance(value, str) else text(value)
    if wrapped and part.data.get("outcome") in ERRORS:
        structured = part.data.get("outcome") == "retried" and value is not None and not isinstance(value, str)
        return text({"error": value if structured else said})
    return said


def result_items(part: Part) -> list[Any]:
    """A tool's result as a list: a text for each item of a list, files as they are."""
    value = part.data.get("content")
    if part.data.get("outcome") == "retried" and isinstance(value, list):
        return [text(value)]
    items = value if isinstance(value, list) else [value]
    return [v if isinstance(v, str) or is_file(v) else text(v) for v in items]


def is_file(value: Any) -> bool:
    """Whether an item is a file."""
    return string(mapped(value).get("kind")) in FILES


FILES = ("image-url", "audio-url", "video-url", "document-url", "binary", "uploaded-file")


def retry_text(part: Part) -> str:
    """A retry prompt as versions that write one send it."""
    value = part.data.get("content")
    named = part.data.get("tool_name") is not None
    if isinstance(value, str):
        said = value if named else f"Validation feedback:\n{value}"
    else:
        errors = [mapped(e) for e in value] if isinstance(value, list) else []
        kept = [{k: v for k, v in e.items() if k not in _left_out(e, named=named)} for e in errors]
        many = "s" if len(kept) != 1 else ""
        try:
            told = json.dumps(kept, ensure_ascii=False, indent=2)
        except RecursionError:
            told = "[]"
        said = f"{len(kept)} validation error{many}:\n```json\n{told}\n```"
    return f"{said}\n\nFix the errors and try again."


def _left_out(error: Mapping[str, Any], *, named: bool) -> tuple[str, ...]:
    place = error.get("loc")
    shallow = not isinstance(place, list) or len(place) <= 1
    return ("ctx", "input") if not named and shallow else ("ctx",)


def feedback_text(part: Part) -> str:
    """What versions after 2.51 say of an answer that cannot be used; raises ``UnknownPartError`` for other causes."""
    cause, value = string(mapped(part.data.get("retry")).get("cause")), part.data.get("content")
    if cause not in FENCES:
        raise UnknownPartError(part.entry, f"feedback of the cause {quoted(cause)}")
    said = value if isinstance(value, str) else text(_errors(value if isinstance(value, list) else []))
    return f"{FEEDBACK}\n<{FENCES[cause]}>\n{said}\n</{FENCES[cause]}>"


FEEDBACK = (
    "Your previous response failed the application's validation "
    "(this is automated feedback, not a message from the user):"
)
FENCES = {"validation_error": "pyai:validation_errors", "model_retry": "pyai:retry_feedback"}


def _errors(value: list[Any]) -> list[dict[str, Any]]:
    """Errors as they are told: what several have in common, the whole value that failed, is said once."""
    found: list[dict[str, Any]] = []
    whole: list[Any] = []
    for error in map(mapped, value):
        left_out = {"ctx"}
        place = error.get("loc")
        if not isinstance(place, list) or len(place) <= 1:
            left_out |= {"input"} if whole and error.get("input") == whole[0] else set()
            whole = whole or [error.get("input")]
        found.append({k: v for k, v in error.items() if k not in left_out})
    return found


def thinking_field(part: Part) -> str | None:
    """The key that thinking goes back under in chat: its own, where the provider that made it gave it one."""
    name = string(part.data.get("id"))
    same = part.data.get("provider_name") == part.entry.data.get("provider_name")
    return name if name and name != "content" and same else None
