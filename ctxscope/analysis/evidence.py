"""Two prompts beside what their provider reported: what it had kept, what it should have read, what its word says.

What was kept is known exactly where reads and writes are reported (prompt_caching §0.1); anything else is a share of the
parent's prompt by bytes. How the provider keeps prompts is in its ``Rules``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ctxscope.analysis.prefixes import common_prefix
from ctxscope.analysis.prompts import Prompt
from ctxscope.analysis.providers.rules import SOON, Rules
from ctxscope.model import CacheVerdict, Confidence, Usage

MINIMUM = 4096
"""The longest prefix that a provider may leave uncached for being short, where it does not say (prompt_caching §2.3)."""

_MESSAGES = (
    *("history_rewritten", "message_inserted", "message_removed", "compaction", "tool_result_pruned"),
    *("image_stripped", "media_changed", "reasoning_stripped_client", "volatile_content"),
    "redecided",
)
_TOOLS = (
    "tool_schema_changed",
    "tool_added",
    "tool_removed",
    "tool_reordered",
    "tool_key_order",
    "param_changed:web_tools",
    "router_or_gateway_rewrite",
)
_REASONS: dict[str, tuple[str, ...]] = {
    "model_changed": ("model_changed", "router_or_gateway_rewrite"),
    "system_changed": ("system_changed", "volatile_content", "param_changed:citations", "router_or_gateway_rewrite"),
    "tools_changed": _TOOLS,
    "messages_changed": _MESSAGES,
    "input_changed": (*_MESSAGES, "system_changed"),
    "context_compacted": ("compaction",),
    "text_format_changed": ("param_changed:text", "param_changed:response_format"),
    "reasoning_effort_changed": ("param_changed:reasoning", "param_changed:reasoning_effort"),
    "verbosity_changed": ("param_changed:verbosity", "param_changed:text"),
    "service_tier_changed": ("param_changed:service_tier",),
    "prompt_cache_key_changed": ("routing_changed", "isolation_changed"),
}
"""The providers' own reasons (prompt_caching §2.5, §3.3), and the causes each agrees with, its nearest name first."""


_LONG_LIVED = b'"1h"'
_COARSE = 50
"""One part in so many by which a share of a prompt by bytes may be off, from one kind of text to another."""
_FEW = 32
"""Tokens that no entry is shorter by than another, as far as seen: a matter of counting."""
_NO_HEADERS: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})


@dataclass(frozen=True, slots=True)
class Around:
    """What is known of a call and its parent beside their prompts; pairs are of the call and of its parent."""

    markers: tuple[str, ...] = ()
    """Kinds of the log's markers right before the call."""
    headers: tuple[Mapping[str, str], Mapping[str, str]] = _NO_HEADERS
    """Of the requests; lower-case names."""
    gap: float | None = None
    """Seconds from the start of the parent's request to the start of the call's."""
    ready: bool = True
    """False when the call began before what its parent writes could be read."""
    evicted_by: int | None = None
    """The call that an engine with slots last served in between, if it is none that goes on from the parent."""
    served_by: tuple[str | None, str | None] = (None, None)
    """Who served them behind a router, where it says so."""
    edits: tuple[str, ...] = ()
    """What the provider says it took out of the request before the model read it."""
    continues: bool = False
    """The call repeats the reply to its parent."""
    branched: bool = False
    """The log shows that this call left the parent's branch on purpose."""
    foreign: bool = False
    """The log shows that the parent belongs to another conversation."""
    upstreams: tuple[str | None, str | None] = (None, None)
    """Hosts they were sent to; ``None`` for a loopback address, behind which anyone may be."""
    given_intact: Callable[[], bool | None] = lambda: None
    """Whether what a curator or gateway was given for the parent is the beginning of what it was given for the call;
    ``None`` where that was not recorded. Dear: asked only of a break."""
    nothing_before: bool = False
    """Nothing was read of what the parent shared with its own parent."""
    kept_within: Callable[[int], tuple[int, int] | None] = lambda _: None
    """The last entry known in so many leading segments of the parent's prompt: its segments and its tokens."""


@dataclass(frozen=True, slots=True)
class Case:
    """A call beside its parent, with all that is known of both."""

    mine: Prompt
    theirs: Prompt
    depth: int
    """Segments both prompts begin with, as the provider sees them."""
    usage: Usage | None
    parent_usage: Usage | None
    rules: Rules
    """Of the provider that was asked for the call."""
    around: Around = Around()

    @property
    def marked(self) -> bool:
        """The parent's client set marks, and its provider keeps nothing without them."""
        return _heeds_marks(self.rules, self.theirs) and bool(self.theirs.marks or self.theirs.marked_whole)

    @property
    def unmarked(self) -> bool:
        """The parent asked for nothing to be kept, and nothing was.

        Some hosts that speak Anthropic's API keep what bears no mark, and show it by a read; where no read is reported
        at all, only the bytes can tell.
        """
        mode = self.rules.mode
        if self.marked or mode in ("implicit", "slots"):
            return False
        before = self.parent_usage.cache_read if self.parent_usage else None
        if before or (self.read and not self.mine.marks and not self.mine.marked_whole):
            return False
        if mode == "explicit":
            return True
        return self.theirs.api == "anthropic-messages" and (before is not None or self.read is not None)

    @property
    def boundary(self) -> int:
        """Segments of the parent's prompt up to the last place where its provider could have kept it."""
        if self.unmarked or self.exact == 0 or self.below_minimum:
            return 0
        if self.marked and not self.theirs.marked_whole:
            return self.theirs.marks[-1] + 1
        return len(self.theirs.segments)

    @property
    def below_minimum(self) -> bool:
        """The parent's prompt was too short for its provider to keep, as its reported size and the rules tell."""
        reported = self.parent_usage.reported if self.parent_usage else None
        least = self.rules.minimum
        if not reported or least is None or reported >= least:
            return False
        return not (self.exact or self.read)  # what it kept all the same, it was seen to keep

    @property
    def read(self) -> int | None:
        """Tokens the provider read from its cache, as reported."""
        return self.usage.cache_read if self.usage else None

    @property
    def exact(self) -> int | None:
        """Tokens the provider kept of the parent, when it said so: what it read plus what it wrote."""
        usage = self.parent_usage
        told = self.marked or (self.rules.writes and self.rules.mode == "implicit")
        if not told or usage is None or usage.cache_read is None or usage.cache_write is None:
            return None
        return usage.cache_read + usage.cache_write

    @property
    def expected(self) -> tuple[int, int] | None:
        """Tokens that should be read when the parent's prompt is intact; never more than the call sends."""
        told = self.usage is not None and None not in (self.usage.input, self.usage.cache_read)
        sent = self.usage.reported if self.usage and told else None
        exact = self.exact
        kept = exact if self.marked or exact is not None else self.parent_usage.reported if self.parent_usage else None
        if kept is None:
            return None
        most = kept if sent is None else min(kept, sent)
        if self.marked or exact is not None:
            return most, most
        step = max(1, self.rules.step)
        seen = bool(self.parent_usage and self.parent_usage.cache_read)
        if self.rules.mode == "unknown" and not seen:
            return 0, most  # nothing shows that this host keeps anything
        soon = self.around.gap is not None and self.around.gap <= SOON
        if not (self.rules.promised or (self.around.nothing_before and soon)):
            return 0, most
        return max(0, (most - self.rules.slack) // step * step), most

    def readable(self, at: int) -> tuple[int, int] | None:
        """Tokens that a call can read which goes on from no more than ``at`` segments of its parent's prompt.

        Exact where the last entry in there is known; else from the last known one to what lies before the change.
        """
        left = self.tokens(self.theirs.size(0, at) + self.inside(at))
        known = self.around.kept_within(at) if self.marked or self.rules.writes else None
        if known is None:
            return None if left is None else (0, left)
        best, tokens = known
        if self.marked and not any(best < mark + 1 <= at for mark in self.theirs.marks):
            return tokens, tokens
        return None if left is None else (min(tokens, left), max(tokens, left + left // _COARSE))

    @property
    def short(self) -> bool:
        """Less was read than should have been, by more than a matter of counting."""
        expected, read = self.expected, self.read
        if read is None or expected is None or read >= expected[0]:
            return False
        entry = self.parent_usage.cache_read if self.parent_usage and self.marked else None
        return read in (0, entry) or expected[0] - read > max(self.rules.tolerance, self._least)

    @property
    def _least(self) -> int:
        """Tokens up to which a shortfall is no loss where entries end with blocks: half of the parent's last block, and few.

        A read ends where a block does (prompt_caching §1), so that at least one whole block is lost. Few, because a share
        by bytes makes too much of images and envelopes.
        """
        last = self.boundary
        if self.rules.boundary != "mark" or not last:
            return 0
        return min(_FEW, (self.tokens(self.theirs.size(last - 1, last)) or 0) // 2)

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


def _heeds_marks(rules: Rules, prompt: Prompt) -> bool:
    """Whether marks decide what is kept; of an unknown host that speaks Anthropic's API it is taken so."""
    return rules.mode == "explicit" or (rules.mode == "unknown" and prompt.api == "anthropic-messages")


def asks_longer(prompt: Prompt) -> bool:
    """Whether the last mark of a request asks for the longer life."""
    if prompt.marks:
        return _LONG_LIVED in prompt.sent(prompt.marks[-1])
    whole = next((s for s in prompt.listed if s.path == "/cache_control"), None)
    return whole is not None and _LONG_LIVED in prompt.load().data[whole.start : whole.end]


def kept_by(prompt: Prompt, usage: Usage | None, rules: Rules) -> tuple[int, int] | None:
    """Leading segments that a call's provider keeps, and as how many tokens; ``None`` where it does not say so."""
    if usage is None or usage.cache_read is None or usage.cache_write is None:
        return None
    tokens = usage.cache_read + usage.cache_write
    if _heeds_marks(rules, prompt) and (prompt.marks or prompt.marked_whole):
        return (len(prompt.segments) if prompt.marked_whole else prompt.marks[-1] + 1), tokens
    return (len(prompt.segments), tokens) if rules.writes and rules.mode == "implicit" else None


def lost(case: Case, at: int) -> tuple[int | None, bool]:
    """Tokens kept of the parent that a break at segment ``at`` costs, and whether that is an estimate."""
    if case.exact is not None and case.read is not None:
        return max(0, case.exact - case.read), False
    kept, left = case.tokens(case.theirs.size(0, case.boundary)), case.tokens(case.theirs.size(0, at))
    if kept is None or left is None:
        return None, True
    return max(0, kept - max(left, case.read or 0)), True


def contradicted(case: Case, left: int | None) -> bool:
    """Whether all that was kept of the parent was read, though it ends before: what changed was not seen to matter.

    ``left``: tokens before the change, by a share of bytes where the provider does not report what it keeps.
    """
    read, exact, expected = case.read, case.exact, case.expected
    if read is None or exact is not None:
        return read is not None and exact is not None and read >= exact
    off = max(case.rules.tolerance, case.rules.step)
    if left is None or expected is None:
        return False
    return read + off >= expected[1] and read > left + off + left // _COARSE


def confidence(case: Case, left: int | None, *, sure: bool) -> Confidence:
    """Of a break with one cause. ``left``: tokens before the change; ``sure``: the bytes leave no doubt of the cause.

    ``confirmed`` covers the break and its cause: the cause is sure, and what was read ends before the change.
    """
    read = case.read
    if contradicted(case, left):
        return "ambiguous"
    agrees = read is not None and left is not None and read <= left + max(case.rules.tolerance, case.rules.step)
    return "confirmed" if sure and agrees else "consistent"


def heeded(verdict: CacheVerdict, says: str | None) -> CacheVerdict:
    """A verdict beside the provider's own word: evidence, not truth; where they disagree, both are named."""
    verdict = replace(verdict, provider_says=says)
    reason = _reason(says)
    if reason is None or verdict.confidence == "not_measurable":
        return verdict
    agreeing = _REASONS.get(reason, ())
    if verdict.verdict in ("break", "miss") and verdict.cause in agreeing:
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
