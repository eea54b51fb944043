"""The invented agent set-up that the DeepSeek Harness samples share: a prompt, two tools, the packages of a process."""

from __future__ import annotations

from typing import Any

CWD = "/home/ada/herbarium"
SYSTEM = (
    "You look after the catalogue of a small herbarium. Answer in one or two sentences and name the sheet you used.\n\n"
    "Read a sheet before you speak of it. Latin names stand in <i>italics</i> on the labels; write them plainly."
)
CONTEXT = (
    "Current runtime context. This snapshot supersedes earlier runtime-context snapshots.\n\n"
    f'Current working directory: "{CWD}".'
)
TOOLS: list[dict[str, Any]] = [
    {
        "name": "sheet",
        "description": "Return the label and the notes of one sheet.",
        "parameters": {
            "type": "object",
            "properties": {"number": {"type": "number", "description": "Number on the sheet's corner"}},
            "required": ["number"],
        },
    },
    {
        "name": "subagent",
        "description": "Hand a question to an agent of its own and return what it finds.",
        "parameters": {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]},
    },
]
PACKAGES = {
    "version": 1,
    "packages": [
        {"name": "@deepseek-ai/dsh-core", "version": "0.2.1-rc.2"},
        {"name": "@deepseek-ai/dsh-compaction-basic", "version": "0.2.1-rc.2"},
        {"name": "herbarium-tools", "version": "1.0.3"},
    ],
}
TITLE_SYSTEM = "Give this session a title of about five words. Return the title alone."
TITLE_ASK = "Generate the session title from this JSON array of human messages:\n"
COMPACTOR = (
    "You are now acting as a compaction engine for this catalogue assistant. Write down what was asked, what was found "
    "and what is open, a line each. Output the checkpoint alone."
)
CHECKPOINT = (
    "This is an automatically generated checkpoint condensing an earlier span of the conversation. Go on from it.\n\n"
    "<compacted-summary>"
)
CHECKPOINT_END = "</compacted-summary>"
SIGNATURES = ("aGVyYi0x" * 8, "aGVyYi0y" * 8, "aGVyYi0z" * 8)
"""Opaque reasoning bytes; base64 of nothing in particular."""


def notes(count: int) -> str:
    """A long sheet: measurements, one a line."""
    return "".join(f"leaf {n}: {30 + n % 7} mm — {12 + n % 5} mm\n" for n in range(1, count + 1))
