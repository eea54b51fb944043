"""What a person should look at: coded, located statements from judged calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ctxscope.analysis.windows import window_findings
from ctxscope.model import Call, Compaction, Finding, Point, ReplyVerdict, Severity, quoted


def findings_of(
    calls: Sequence[Call],
    dead: Sequence[tuple[str, Point, str | None]],
    compactions: Sequence[Compaction] = (),
    refused: Mapping[int, str] | None = None,
) -> list[Finding]:
    """What a person should look at, by code.

    ``dead``: inputs that no call followed, each with its session's id and what the agent itself wrote of it.
    ``refused``: by number of a call that ended in an error, what was said of it.
    """
    found = [f for call in calls for f in _call_findings(call)]
    for session, point, line in dead:
        words = f"; the agent wrote {quoted(line)}" if line else ""
        message = f"{point.place}: an input that no call followed"
        found.append(Finding("CTX104", "warning", (), None, message, f"session {session}{words}"))
    return [*found, *window_findings(calls, compactions, refused or {}, dead)]


def _call_findings(call: Call) -> Iterable[Finding]:
    here = (call.n,)
    difference = call.rebuilt.first_difference
    if call.rebuilt.state == "differs" and difference is not None:
        yield Finding(
            "CTX101", "error", here, difference.path, f"served and rebuilt part: {difference.cause}", difference.served
        )
    if call.cache.verdict == "break":
        yield Finding("CTX201", "warning", here, call.cache.path, f"cache break: {call.cache.cause}", call.cache.why)
    if call.reply.state in ("differs", "empty", "prefix", "missing"):
        lost = call.reply.first_difference
        message = f"the reply stored is not the reply delivered ({call.reply.state})"
        yield Finding(
            "CTX102",
            _gravity(call.reply),
            here,
            lost.path if lost else None,
            message,
            lost.cause if lost else "",
        )
    if call.reply.echo == "differs":
        yield Finding(
            "CTX103", "info", here, None, "the next request does not repeat the stored reply as it stands", ""
        )
    if call.stop is not None and call.stop.state == "truncated":
        yield Finding(
            "CTX301",
            "warning",
            here,
            None,
            f"the reply was cut ({call.stop.reason})",
            "at the cap" if call.at_cap else "",
        )


def _gravity(reply: ReplyVerdict) -> Severity:
    """How grave it is that a reply is not stored as delivered: agents trim white space, which loses nothing said."""
    if reply.first_difference is not None and reply.first_difference.cls == "whitespace":
        return "info"
    return "warning" if reply.state == "missing" else "error"
