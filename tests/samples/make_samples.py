"""Writes ``sample_sessions/``: ``python -m tests.samples.make_samples [FOLDER]``.

Imports nothing of ctxscope: logs and bodies are spelled by hand, so that a wrong rebuild fails against them. The same
bytes come out at every run. ``expected.json`` and ``README.md`` are written by people and left alone.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.samples import (
    claude_code_cases,
    codex_cases,
    copilot_cases,
    dsh_cases,
    gemini_cases,
    hermes_cases,
    hermes_micro_cases,
    hermes_phantom_cases,
    kimi_cases,
    messages_cases,
    omp_cases,
    opencode_cases,
    pi_cases,
    pi_length_cases,
    pydantic_ai_cases,
    qwen_cases,
)

ROOT = Path(__file__).resolve().parents[2]
AGENTS = {
    "claude_code": claude_code_cases.CASES,
    "codex": codex_cases.CASES,
    "copilot": copilot_cases.CASES,
    "dsh": dsh_cases.CASES,
    "gemini": gemini_cases.CASES,
    "hermes": hermes_cases.CASES + hermes_micro_cases.CASES + hermes_phantom_cases.CASES,
    "kimi": kimi_cases.CASES,
    "messages": messages_cases.CASES,
    "omp": omp_cases.CASES,
    "opencode": opencode_cases.CASES,
    "pi": pi_cases.CASES + pi_length_cases.CASES,
    "pydantic_ai": pydantic_ai_cases.CASES,
    "qwen": qwen_cases.CASES,
}


def write_all(target: Path) -> None:
    """Writes every case anew below ``target``, keeping the files that people wrote."""
    for agent, cases in AGENTS.items():
        for make in cases:
            case = target / agent / make.__name__
            case.mkdir(parents=True, exist_ok=True)
            for old in case.iterdir():
                if old.is_dir():
                    shutil.rmtree(old)
            make(case)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "sample_sessions")
