"""What the program says when an answer was cut even with room for a longer one; no log holds it."""

from __future__ import annotations

from ctxscope.agents.qwen.history import Turn

RECOVERY = (
    "Output token limit hit. Resume directly \u2014 no apology, no recap of what you were doing. Pick up mid-thought if "
    "that is where the cut happened. Break remaining work into smaller pieces."
)
_NAME = "previous_response_suffix"
_SUFFIX = (
    "\n\nThe previous assistant response ended with this exact suffix. Do not repeat any line, table row, code line, or prose "
    "that already appears in it; output only text that comes after this suffix:\n\n"
)
_TAIL = 1200
"""UTF-16 units of the cut answer that are told."""


def question(cut: Turn, *, told: bool) -> str:
    """The question behind a cut answer; ``told``: with the answer's end, as 0.21.2 and later tell it."""
    text = "".join(p["text"] for p in cut.parts if not p.get("thought") and isinstance(p.get("text"), str))
    if not told or not text.strip():
        return RECOVERY
    units = text.encode("utf-16-le", "surrogatepass")[-2 * _TAIL :]
    tail = units.decode("utf-16-le", "surrogatepass")
    for tag in (f"</{_NAME}>", f"<{_NAME}>"):
        tail = tail.replace(tag, f"<\u200b{tag[1:]}")
    return f"{RECOVERY}{_SUFFIX}<{_NAME}>\n{tail}\n</{_NAME}>"
