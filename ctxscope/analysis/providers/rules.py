"""How one provider caches prompts, for one model: rows of its rules file brought into one value (DESIGN §4, Provider rules)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

Mode = Literal["explicit", "implicit", "slots", "unknown"]
"""Kept where the client marks it · kept by itself · kept for the last prompt of each slot of an engine · not known."""
Boundary = Literal["mark", "message", "unit", "token"]
"""Where what is kept can end: at a mark, at a message, at a multiple of ``step`` tokens, anywhere."""
Level = Literal["all", "system", "messages"]
"""From where on a change loses the prefix."""
Visibility = Literal["benign", "prompt", "routing", "unknown"]
"""The model's prompt is the same · it differs · only the place where it is looked for may · not known."""
Ready = Literal["first_byte", "end"]
"""When what a request writes can be read by another."""
SOON = 180
"""Seconds (prompt_caching §4, Gemini)."""
Known = Literal["documented", "measured", "inferred", "unconfirmed"]

DIFFERENCES = frozenset(
    {
        *("breakpoint", "top_level_order", "whitespace", "escape", "message_key_order", "tool_key_order"),
        *("schema_key_order", "arguments_key_order", "arguments_text", "number_spelling", "form", "tool_call_id"),
        *("null_member", "user_ids", "billing_header"),
    }
)
"""Differences between two bodies that providers treat differently (prompt_caching §6)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One fact of a rules file."""

    what: str
    value: Any
    source: str
    """Where it is said: a document, a package, a measurement."""
    date: date
    """When that was read."""
    known: Known
    models: tuple[str, ...] = ()
    """Globs; empty: every model."""
    apis: tuple[str, ...] = ()
    """Empty: every API."""
    when: str = ""
    """``marked``: only for requests with cache marks, ``unmarked``: only for others."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Of a parameter: ``default``, ``hidden`` and ``defaults``."""


@dataclass(frozen=True, slots=True)
class Param:
    """A request parameter that is rendered into the prompt."""

    loses: Level
    default: Any = None
    """The value that means the same as leaving it out."""
    hidden: tuple[str, ...] = ()
    """Members that change only what comes back."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Members whose explicit default equals leaving them out."""
    sure: bool = False
    """Documented for every model; else reported usage decides."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is known of a provider's prompt cache for one model and API; ``None`` and ``unknown`` say that nothing is."""

    provider: str
    title: str
    mode: Mode = "unknown"
    boundary: Boundary | None = None
    step: int = 1
    """Reads are reported in multiples of so many tokens."""
    slack: int = 0
    """Tokens that a read of an intact prefix may fall short by construction (an interval not reached yet)."""
    tolerance: int = 0
    """Tokens below what is expected that are a matter of counting, not a miss."""
    writes: bool = False
    """Writes are reported, so that a parent's read and write are what an intact prefix reads."""
    promised: bool = True
    """An intact prefix is read; else one read of nothing tells nothing, and only a second within ``SOON`` seconds does."""
    minimum: int | None = None
    """Tokens of the shortest prefix that is kept."""
    ttl: float | None = None
    """Seconds from the start of the request that last wrote or read."""
    ttl_long: float | None = None
    """Seconds of entries for which the client asked for the longer life."""
    ttl_sure: bool = False
    """Nothing is kept longer than documented, or dropped earlier but by accident."""
    lookback: int | None = None
    """Blocks from a mark back, itself counted, among which an earlier entry is looked for."""
    ready: Ready | None = None
    reasoning: Literal["kept", "last_turn", "unknown"] = "unknown"
    """What the provider renders of reasoning of earlier turns once a further input comes."""
    price_write: float | None = None
    """Multiples of the price of an input token."""
    price_write_long: float | None = None
    price_read: float | None = None
    money: float | None = None
    """Price of a million input tokens, only ever the user's word."""
    currency: str = ""
    overhead_message: int | None = None
    """Tokens that the provider says each message costs beside its text."""
    overhead_reply: int | None = None
    """Likewise each request, for the reply's beginning."""
    overhead_tools: tuple[int, int] | None = None
    """Tokens of the instruction that the provider puts beside the tools of a request: where it leaves the choice to the
    model, and where it demands a call."""
    document_page: int | None = None
    """Tokens of a PDF's page, in the resolution taken when the client asks for none."""
    local: bool = False
    """An engine on a machine of the user's: what is lost costs time."""
    params: Mapping[str, Param] = field(default_factory=dict)
    visible: Mapping[str, Visibility] = field(default_factory=dict)
    """By name of ``DIFFERENCES``."""
    routes: tuple[str, ...] = ()
    """Parameters and headers that decide where a prefix is looked for."""
    isolates: tuple[str, ...] = ()
    """Parameters and headers whose other value never reads what this one wrote."""
    rows: Mapping[str, Row] = field(default_factory=dict)
    """By ``what``, the row that a value comes from."""

    def shows(self, difference: str) -> Visibility:
        """Whether the model's prompt shows a difference; where nothing is known of a provider, all but marks may show."""
        return self.visible.get(difference, "benign" if difference == "breakpoint" else "unknown")

    def said(self, what: str) -> str:
        """Where a rule is said, in words; empty when it is no row's."""
        row = self.rows.get(what)
        return f"{row.source}, {row.date.isoformat()}" if row else ""
