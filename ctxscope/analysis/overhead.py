"""What a provider says it makes of a request beside its text: what it adds, and what pages of documents cost (prompt_caching §11).

A provider rarely says all that it adds, so the sum of what it says is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ctxscope.analysis.providers.rules import Rules
from ctxscope.analysis.token_sums import Summed
from ctxscope.model import Segment, TokenParts

_DECIDE = ("overhead_message", "overhead_reply", "overhead_tools", "document_page")
_FORCED = ("any", "tool")
"""Types of an Anthropic ``tool_choice`` that demand a call."""
_DEFAULT = (None, "MEDIA_RESOLUTION_UNSPECIFIED")
Param = Callable[[str], Mapping[str, object]]
"""Gives a parameter of the request that is an object; empty where it has none."""


def with_rules(summed: Summed, segments: Sequence[Segment], rules: Rules, param: Param) -> tuple[TokenParts, str, str]:
    """The parts with what a provider's rules say of documents and overhead; what overhead is for, and who says so."""
    parts = summed.parts
    if parts.documents is None:
        parts = replace(parts, documents=_documents(summed.pages, rules, param))
    told = list(_added(parts, segments, rules, param))
    if not told:
        return parts, "", ""
    tokens, what, said = zip(*told, strict=True)
    return replace(parts, overhead=sum(tokens)), " and ".join(what), "; ".join(dict.fromkeys(said))


def added_by(rules: Rules) -> str:
    """Stands for all that the rules of a provider decide here."""
    return repr([(name, getattr(rules, name), rules.said(name)) for name in _DECIDE if name in rules.rows])


def _documents(pages: int | None, rules: Rules, param: Param) -> int | None:
    """Tokens of documents whose pages are known, unless the request asks for another resolution than the default."""
    if pages is None or rules.document_page is None:
        return None
    for name in ("generationConfig", "generation_config"):
        config = param(name)
        if any(config.get(key) not in _DEFAULT for key in ("mediaResolution", "media_resolution")):
            return None
    return pages * rules.document_page


def _added(
    parts: TokenParts, segments: Sequence[Segment], rules: Rules, param: Param
) -> Iterator[tuple[int, str, str]]:
    """Tokens, what they are for, and who says so."""
    if rules.overhead_message is not None and (count := _messages(segments)):
        yield (
            rules.overhead_message * count,
            f"{count:,} message{'s' if count > 1 else ''}",
            rules.said("overhead_message"),
        )
    if rules.overhead_reply is not None:
        yield rules.overhead_reply, "the reply's beginning", rules.said("overhead_reply")
    if parts.tools and rules.overhead_tools is not None:
        tokens = rules.overhead_tools[param("tool_choice").get("type") in _FORCED]
        yield tokens, "the instruction that goes with tools", rules.said("overhead_tools")


def _messages(segments: Sequence[Segment]) -> int:
    """How many messages a chat request has, those of its system prompt too."""
    last = next((s.path for s in reversed(segments) if s.path.startswith("/messages/")), "")
    return int(last.split("/")[2]) + 1 if last else 0
