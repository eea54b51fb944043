"""Outputs that 0.98 logs as JSON and sends as text, and what else a request leaves out of what is logged."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.agents.codex import shell_outputs
from tests.codex_cases import log_of, rebuilt
from tests.codex_lines import Row, count, message, old

PATCH: Row = {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}}
SHELL: Row = {"type": "function", "name": "shell", "parameters": {}}
CALLED = (
    "response_item",
    {"type": "custom_tool_call", "call_id": "a", "name": "apply_patch", "input": "*** Begin Patch"},
)


def kept(text: str, code: int = 0, seconds: float = 0.1) -> str:
    return json.dumps({"output": text, "metadata": {"exit_code": code, "duration_seconds": seconds}})


def request(said: str, tools: list[Row]) -> tuple[list[bytes], bytes]:
    """A rollout with one patch, and the request that tells of its output as given."""
    output = ("response_item", {"type": "custom_tool_call_output", "call_id": "a", "output": kept("Done.\n")})
    lines = old(message("user", "mend it"), CALLED, count(9), output, message("assistant", "Mended."), count(20))
    items = [json.loads(lines[n])["payload"] for n in (1, 2, 4)]
    items[2]["output"] = said
    body = {
        "model": "m",
        "instructions": "Be exact.",
        "input": items,
        "tools": tools,
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "thread",
    }
    return lines, json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("tools", "said", "same"),
    [
        ([SHELL, PATCH], "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nDone.\n", True),
        ([SHELL, PATCH], "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nDone.\n", False),
        ([SHELL, PATCH], kept("Done.\n"), False),
        ([SHELL], kept("Done.\n"), True),
        ([], kept("Done.\n"), True),
    ],
)
def test_a_patch_that_is_free_text_is_answered_in_text(tools: list[Row], said: str, same: bool):
    lines, served = request(said, tools)
    ((_, data, found),) = rebuilt(log_of(lines), {"line:6": served}).values()
    assert (data == served) == same
    assert {p.provenance for p in found.pieces if b"custom_tool_call_output" in p.data} == {"logged"}


def test_outputs_are_told_line_by_line():
    assert shell_outputs.told(kept("Total output lines: 512\n\nab", 3, 12.5)) == (
        "Exit code: 3\nWall time: 12.5 seconds\nTotal output lines: 512\nOutput:\nab"
    )
    assert shell_outputs.told(kept("Total output lines: many\nab")).endswith("Output:\nTotal output lines: many\nab")


@pytest.mark.parametrize(
    "output",
    ["text", "{", "[]", '{"output":1}', kept("a", seconds=True), kept("a", code=2**31), kept("a", code=1.5), [], None],
)
def test_another_output_is_told_as_it_is(output: object):
    assert shell_outputs.told(output) is None


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_number_is_told_in_the_fewest_digits(value: float):
    text = shell_outputs.short(value)
    assert "e" not in text
    assert struct.pack("f", float(text)) == struct.pack("f", value)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.1, "0.1"), (30.0, "30"), (12345.7, "12345.7"), (1e10, "10000000000")]
)
def test_numbers_are_told_as_rust_prints_them(value: float, text: str):
    assert shell_outputs.short(value) == text
