"""What a planted transition is: exchanges as a tee-proxy would leave them, and what a judge of caches must say of each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SURE = frozenset({"confirmed", "consistent"})
"""The bytes show the cause and the usage agrees."""
LIKELY = frozenset({"consistent", "ambiguous"})
"""A cause without proof: best-effort caches, routing, what another source contradicts."""
UNSURE = frozenset({"ambiguous", "not_measurable"})
"""Several causes explain it, or nothing is reported."""
ANY = frozenset({"confirmed", "consistent", "ambiguous", "not_measurable"})

SPELLINGS: dict[str, frozenset[str]] = {
    f"param_changed:{names[0]}": frozenset(f"param_changed:{name}" for name in names)
    for names in (
        ("thinking", "thinking.type", "thinking.budget_tokens", "budget", "enable_thinking", "chat_template_kwargs"),
        ("effort", "output_config.effort", "output_config", "reasoning.effort", "reasoning_effort", "reasoning"),
        ("disable_parallel_tool_use", "disable_parallel", "tool_choice.disable_parallel_tool_use", "tool_choice"),
        ("verbosity", "text.verbosity", "text"),
        ("format", "text.format", "response_format", "output_format", "output_config.format", "text"),
        ("betas", "anthropic-beta", "anthropic_beta"),
        ("citations", "citations.enabled"),
        ("web_search", "web", "web_tools", "web tools", "tools"),
        ("images", "images presence", "has_images", "image"),
    )
}
"""Spellings of one cause: §12 C10 names fields loosely (``effort`` for ``output_config.effort``)."""


@dataclass(frozen=True, slots=True)
class Planted:
    """One exchange of a raw folder (DESIGN §5); times in seconds since 1970."""

    n: int
    t: float
    t_first: float
    t_end: float
    path: str
    headers: dict[str, str]
    request: bytes
    response: bytes
    status: int = 200

    def line(self) -> dict[str, Any]:
        """Its line of ``index.jsonl``."""
        return {
            "n": self.n,
            "t": self.t,
            "method": "POST",
            "path": self.path,
            "headers": self.headers,
            "status": self.status,
            "t_first": self.t_first,
            "t_end": self.t_end,
        }


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be said of exchange ``n``; ``None`` is "not looked at". Of a ``warm`` call no cause may be named."""

    n: int
    verdict: str
    """``cold``, ``warm``, ``break``, ``miss``, ``unknown``."""
    cause: str | None = None
    candidates: tuple[str, ...] = ()
    """Every name the facts allow, ``cause`` among them; where ``confidence`` is only ``ambiguous``, naming one is not enough."""
    confidence: frozenset[str] = ANY
    parent: int | None = None
    path: str | None = None
    """Where the break lies, as far down as the facts decide: the judge's own may go deeper (``/system/1/text``)."""
    expected_read: int | tuple[int, int] | None = None
    """What the provider's rules let the call read: exact, or from lowest to highest where they leave it open."""
    lost: int | None = None
    """Tokens read less than the untouched parent prefix would have given, where the rules make that exact."""
    also: frozenset[str] = frozenset()
    """Other verdicts that the reference allows; never one that it forbids."""


@dataclass(frozen=True, slots=True)
class Transition:
    """A recording with a planted change (or, of ``APPENDS``, without one)."""

    name: str
    """``provider/what``, unique."""
    provider: str
    """Key of the capability matrix (§1); for a loopback host nothing on the wire tells it, so a test has to."""
    exchanges: tuple[Planted, ...]
    expect: tuple[Expected, ...]
    stands_on: str = ""
    """The sentence of the reference it stands on, with its section."""


def write(folder: Path, transition: Transition) -> Path:
    """The transition as a raw folder under ``folder``; gives the folder to open."""
    wire = folder / "wire"
    wire.mkdir(parents=True)
    lines = []
    for each in transition.exchanges:
        (wire / f"{each.n:04d}.req").write_bytes(each.request)
        (wire / f"{each.n:04d}.res").write_bytes(each.response)
        lines.append(json.dumps(each.line()) + "\n")
    (wire / "index.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder
