"""Two prompts beside what their provider reported: what it had kept, what it should have read, what its word says.

What was kept is known exactly where reads and writes are reported and the client sets the marks (prompt_caching §0.1);
anything else is a share of the parent's prompt by bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ctxscope.analysis.prefixes import common_prefix
from ctxscope.analysis.prompts import Prompt
from ctxscope.model import CacheVerdict, Confidence, Usage

STEP, SLACK = 128, 2048
"""Automatic caches report multiples of 128 tokens and may lag one interval of 2048 behind (prompt_caching §3.2, §3.4)."""
UNIT = 256
"""Tokens below what was kept that are no miss while the read ends at no entry.

Anthropic reads end where an earlier mark was written (§1 "exact block boundary"), so a number between two entries is
another host's count; the coarsest unit that one which speaks this API reports reads in is 256 (§1, §12: Kimi).
"""
MINIMUM = 4096
"""The longest prefix that Anthropic may leave uncached for being short (prompt_caching §2.3)."""

_MESSAGES = (
    *("history_rewritten", "message_inserted", "message_removed", "compaction", "tool_result_pruned"),
    *("image_stripped", "media_changed", "reasoning_stripped_client", "volatile_content"),
)
_TOOLS = ("tool_schema_changed", "tool_added", "tool_removed", "tool_reordered", "tool_key_order", "param_changed:web")
_REASONS: dict[str, tuple[str, ...]] = {
    "model_changed": ("model_changed",),
    "system_changed": ("system_changed", "volatile_content", "param_changed:citations"),
    "tools_changed": _TOOLS,
    "messages_changed": _MESSAGES,
    "input_changed": (*_MESSAGES, "system_changed"),
    "context_compacted": ("compaction",),
    "text_format_changed": ("param_changed:text", "param_changed:response_format"),
    "reasoning_effort_changed": ("param_changed:reasoning", "param_changed:reasoning_effort"),
    "verbosity_changed": ("param_changed:verbosity", "param_changed:text"),
    "service_tier_changed": ("param_changed:service_tier",),
    "prompt_cache_key_changed": ("routing_changed",),
}
"""The providers' own reasons (prompt_caching §2.5, §3.3), and the causes each agrees with, its nearest name first."""


@dataclass(frozen=True, slots=True)
class Case:
    """A call beside its parent, with all that is known of both."""

    mine: Prompt
    theirs: Prompt
    depth: int
    """Segments both prompts begin with."""
    usage: Usage | None
    parent_usage: Usage | None
    markers: tuple[str, ...] = ()
    """Kinds of the log's markers right before the call."""
    betas: tuple[str | None, str | None] = (None, None)
    """The ``anthropic-beta`` header of the call and of its parent."""
    gap: float | None = None
    """Seconds from the start of the parent's request to the start of the call's."""

    @property
    def marked(self) -> bool:
        """The parent's client set marks, and its provider keeps nothing without them."""
        theirs = self.theirs
        return theirs.api == "anthropic-messages" and bool(theirs.marks or theirs.marked_whole)

    @property
    def unmarked(self) -> bool:
        """The parent asked for nothing to be kept, and nothing was.

        Some hosts that speak Anthropic's API keep what bears no mark, and show it by a read; where no read is reported
        at all, only the bytes can tell.
        """
        if self.theirs.api != "anthropic-messages" or self.marked:
            return False
        before = self.parent_usage.cache_read if self.parent_usage else None
        if before or (self.read and not self.mine.marks and not self.mine.marked_whole):
            return False
        return before is not None or self.read is not None

    @property
    def boundary(self) -> int:
        """Segments of the parent's prompt up to the last place where its provider could have kept it."""
        if self.unmarked or self.exact == 0:
            return 0
        if self.marked and not self.theirs.marked_whole:
            return self.theirs.marks[-1] + 1
        return len(self.theirs.segments)

    @property
    def read(self) -> int | None:
        """Tokens the provider read from its cache, as reported."""
        return self.usage.cache_read if self.usage else None

    @property
    def exact(self) -> int | None:
        """Tokens the provider kept of the parent, when it said so: what it read plus what it wrote."""
        usage = self.parent_usage
        if not self.marked or usage is None or usage.cache_read is None or usage.cache_write is None:
            return None
        return usage.cache_read + usage.cache_write

    @property
    def expected(self) -> tuple[int, int] | None:
        """Tokens that should be read when the parent's prompt is intact; never more than the call sends."""
        told = self.usage is not None and None not in (self.usage.input, self.usage.cache_read)
        sent = self.usage.reported if self.usage and told else None
        kept = self.exact if self.marked else self.parent_usage.reported if self.parent_usage else None
        if kept is None:
            return None
        most = kept if sent is None else min(kept, sent)
        return (most, most) if self.marked else (max(0, (most - SLACK) // STEP * STEP), most)

    @property
    def short(self) -> bool:
        """Less was read than should have been, by more than a host's rounding."""
        expected, read = self.expected, self.read
        if read is None or expected is None or read >= expected[0]:
            return False
        entry = self.parent_usage.cache_read if self.parent_usage else None
        return not self.marked or read in (0, entry) or expected[0] - read > UNIT

    @property
    def whole(self) -> bool:
        """All that was kept of the parent was read: nothing that changed can have mattered to the provider."""
        expected, read = self.expected, self.read
        return bool(read) and expected is not None and expected[0] > 0 and not self.short

    def tokens(self, size: int) -> int | None:
        """Prompt bytes as tokens, by what the parent's prompt really cost; ``None`` when that was not reported."""
        total = self.theirs.size()
        reported = self.parent_usage.reported if self.parent_usage else None
        return round(size * reported / total) if reported and total else None

    def inside(self, at: int) -> int:
        """Equal bytes at the start of segment ``at`` of both prompts, as sent."""
        if at >= min(len(self.mine.segments), len(self.theirs.segments)):
            return 0
        new, old = self.mine.segments[at], self.theirs.segments[at]
        room = min(new.end - new.start, old.end - old.start, new.prompt_bytes, old.prompt_bytes)
        return common_prefix(self.mine.load().data, self.theirs.load().data, new.start, old.start, room)


def lost(case: Case, at: int) -> tuple[int | None, bool]:
    """Tokens kept of the parent that a break at segment ``at`` costs, and whether that is an estimate."""
    if case.exact is not None and case.read is not None:
        return max(0, case.exact - case.read), False
    return case.tokens(case.theirs.size(at, case.boundary)), True


def confidence(case: Case, left: int | None, *, sure: bool) -> Confidence:
    """Of a break with one cause. ``left``: tokens before the change; ``sure``: the bytes leave no doubt of the cause.

    ``confirmed`` covers the break and its cause: the cause is sure, and what was read ends before the change.
    """
    read, exact = case.read, case.exact
    if exact is not None and read is not None and read >= exact:
        return "ambiguous"
    agrees = read is not None and left is not None and read <= left + UNIT
    return "confirmed" if sure and agrees else "consistent"


def heeded(verdict: CacheVerdict, says: str | None) -> CacheVerdict:
    """A verdict beside the provider's own word: evidence, not truth; where they disagree, both are named."""
    verdict = replace(verdict, provider_says=says)
    reason = _reason(says)
    if reason is None or verdict.confidence == "not_measurable":
        return verdict
    agreeing = _REASONS.get(reason, ())
    if verdict.verdict == "break" and verdict.cause in agreeing:
        sure = verdict.cause != "history_rewritten" and len(verdict.candidates) == 1
        return replace(verdict, confidence="confirmed") if sure else verdict
    if reason == "cache_hit" and verdict.verdict == "warm":
        return replace(verdict, confidence="confirmed")
    why = f"{verdict.why}; the provider says otherwise: {reason}"
    named = verdict.candidates or ((verdict.cause,) if verdict.cause else ())
    named += tuple(name for name in agreeing[:1] if name not in named)
    return replace(verdict, confidence="ambiguous", candidates=named, why=why)


def _reason(says: str | None) -> str | None:
    """The reason in a provider's word (``tools_changed (700 tokens)``, ``cache_miss: input_changed``), if it gives one."""
    words = (says or "").partition(" (")[0]
    reason = words.partition(": ")[2] or words
    return reason if reason in _REASONS or reason == "cache_hit" else None
