"""What a transcript says went wrong, what of it is not known, and what should be there and is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.claude_code import dialect
from ctxscope.agents.claude_code.lines import API_ERROR, head_of
from ctxscope.agents.claude_code.markers import After, hooks_around
from ctxscope.agents.claude_code.points import requests
from ctxscope.agents.claude_code.settings import hooks, matches
from ctxscope.agents.claude_code.stored import is_placeholder
from ctxscope.agents.claude_code.texts import mapped, string
from ctxscope.agents.claude_code.tree import Node, tree
from ctxscope.agents.reading import drift
from ctxscope.model import Entry, quoted


def _version(entry: Entry) -> str | None:
    return head_of(entry).version or None


def _kind(entry: Entry) -> str:
    return head_of(entry).kind


DIALECT = drift.Dialect(
    "Claude Code",
    dialect.KINDS,
    dialect.COMMON,
    dialect.VERSIONS,
    kind=_kind,
    version=_version,
    sources=("session", "agent"),
)


@dataclass
class _Seen:
    """What lines so far told."""

    upto: int = 0
    broken: list[str] = field(default_factory=list)


def notices(log: Log) -> Sequence[str]:
    """In log order, then what concerns the whole."""
    seen: _Seen = shared_memo(log, "claude_code.notices").setdefault("seen", _Seen())
    for entry in log.versions[seen.upto :]:
        if entry.kind == "unknown" and not entry.data:
            seen.broken.append(f"{entry.source} {entry.place}: not a JSON object; Claude Code skips it too")
    seen.upto = len(log.versions)
    return (*drift.notices(log, DIALECT), *seen.broken, *_lost(log), *_failed(log), *_placeholders(log), *_hooks(log))


def _lost(log: Log) -> Iterator[str]:
    lost = tree(log).lost
    if len(lost) == 1:
        yield f"{lost[0].entry.place}: its parent line is not in the log"
    elif lost:
        yield f"{len(lost)} lines have a parent that is not in the log, the first at {lost[0].entry.place}"


def _failed(log: Log) -> Iterator[str]:
    for node in tree(log).errors:
        if node.head.flags & API_ERROR:
            yield f"{node.entry.place}: the client gave up a call: {quoted(_text(node))}"


def _text(node: Node) -> str:
    content = mapped(node.entry.data.get("message")).get("content")
    if isinstance(content, str):
        return content[:200]
    blocks = content if isinstance(content, list) else []
    return next((string(mapped(b).get("text")) for b in blocks), "")[:200]


def _placeholders(log: Log) -> Iterator[str]:
    """Versions 2.1.12 to 2.1.17 store the tokens of an answer's first event on every line (claude_code.md §3 rule 2)."""
    count = 0
    for point in requests(log):
        group = point.data.get("group")
        usage = point.stored_usage
        if group is not None and usage is not None and usage.output is None:
            rows = [u.output for n in group.nodes if (u := n.head.usage) is not None and u.output is not None]
            count += bool(rows) and is_placeholder(group, max(rows))
    if count:
        told = "an answer's" if count == 1 else f"{count} answers'"
        yield f"{told} output tokens are those of the first event of the stream and count for nothing; they are unknown"


def _hooks(log: Log) -> Iterator[str]:
    """A compaction that configured hooks should have run at, without a record of any."""
    configured = list(hooks(log))
    if not configured:
        return
    grown = tree(log)
    after = After(requests(log))
    for boundaries in grown.boundaries.values():
        for boundary in boundaries:
            node = boundary.node
            words = {"PreCompact": boundary.trigger, "PostCompact": boundary.trigger, "SessionStart": "compact"}
            due = sorted({event for event, matcher in configured if event in words and matches(matcher, words[event])})
            if due and not hooks_around(grown, node, after.answers(node)):
                yield (
                    f"{node.entry.place}: the settings have hooks for a compaction ({', '.join(due)}), "
                    "and the log has no record that one ran"
                )
