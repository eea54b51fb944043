"""Outputs of shells and patches that are logged as JSON and sent as text (0.98; rule from source, compared with 0.98).

Where a request offers ``apply_patch`` as a free-form tool, the client tells the model their exit code, time and text
line by line instead of the JSON object it keeps. Other requests, a local compaction among them, carry them as logged.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from typing import Any

from ctxscope.wire import json_text
from ctxscope.wire.blocks import listed, mapped, string

PATCH = "apply_patch"
SHELLS = frozenset({"shell", "container.exec", PATCH})
"""Functions whose outputs are told so."""
_TOTAL = re.compile(r"Total output lines: \+?([0-9]+)\n\n?")
_INTEGER = range(-(2**31), 2**31)


def called(item: Mapping[str, Any]) -> str | None:
    """The call id of a call whose output is told so; ``None`` for any other item."""
    kind, name = item.get("type"), item.get("name")
    if kind == "local_shell_call":
        return string(item.get("call_id")) or string(item.get("id")) or None
    if (kind == "custom_tool_call" and name == PATCH) or (kind == "function_call" and string(name) in SHELLS):
        return string(item.get("call_id")) or None
    return None


def is_free_form(tools: Any) -> bool:
    """Whether a request's parsed tools offer patches as a free-form tool."""
    return any(mapped(t).get("type") == "custom" and mapped(t).get("name") == PATCH for t in listed(tools))


def told(output: Any) -> str | None:
    """An output as the model is told it; ``None`` for one that is no such JSON object."""
    if not isinstance(output, str) or not output.lstrip().startswith("{"):
        return None
    try:
        said = mapped(json_text.loads(output))
    except ValueError:
        return None
    about = mapped(said.get("metadata"))
    text, code, seconds = said.get("output"), about.get("exit_code"), about.get("duration_seconds")
    if not isinstance(text, str) or not isinstance(code, int) or isinstance(code, bool) or code not in _INTEGER:
        return None
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return None
    lines = [f"Exit code: {code}", f"Wall time: {short(seconds)} seconds"]
    total = _TOTAL.match(text)
    if total is not None:
        lines.append(f"Total output lines: {int(total[1])}")
        text = text[total.end() :]
    return "\n".join([*lines, "Output:", text])


def short(value: float) -> str:
    """A number of four bytes in the fewest digits that tell it, without an exponent, as Rust prints one."""
    try:
        (near,) = struct.unpack("f", struct.pack("f", value))
    except (OverflowError, struct.error):
        near = math.inf
    if math.isinf(near):
        return "inf" if value > 0 else "-inf"
    for digits in range(1, 10):
        text = f"{near:.{digits}g}"
        if struct.pack("f", float(text)) == struct.pack("f", near):
            return f"{float(text):.{max(0, digits - 1 - _exponent(text))}f}"
    return repr(near)


def _exponent(text: str) -> int:
    return math.floor(math.log10(abs(float(text)))) if float(text) else 0
