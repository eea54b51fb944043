"""The report for people: Markdown to read, or to attach to a bug.

Numbers say how they are known: plain is reported or counted, ``≈`` estimated, ``–`` unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ctxscope.model import NO_WINDOW, Call, Finding, Marker, SessionInfo, Snapshot, Window
from ctxscope.report import Options, Views
from ctxscope.report.excerpts import shown
from ctxscope.report.md_cache import cache_section
from ctxscope.report.md_call import call_section
from ctxscope.report.md_compactions import compaction_section
from ctxscope.report.md_next import render_next
from ctxscope.report.md_tokens import sidecar_section, token_section
from ctxscope.report.selection import differs
from ctxscope.report.text import code, code_cell, fenced, number, prose

__all__ = ["render", "render_next", "spell"]

_TOLD = ("equal", "differs")


def render(snapshot: Snapshot, views: Views, options: Options) -> str:
    """The snapshot as a divergence report: summary, table of calls, one section per call that is not as it should be."""
    safe = shown(snapshot, views, options, replies=True)
    chosen, redact = safe.snapshot, safe.redact
    title = prose(redact(options.title)) if options.title else "session"
    parts = [f"# Divergence report: {title}", _summary(chosen, len(snapshot.calls))]
    parts += _section("Sessions", [_session(s, chosen.calls) for s in chosen.sessions])
    parts += ["## Calls", _table(chosen.calls)] if chosen.calls else ["No calls."]
    parts += cache_section(chosen)
    parts += token_section(chosen)
    parts += sidecar_section(chosen)
    parts += compaction_section(chosen)
    parts += [call_section(call, safe) for call in chosen.calls if differs(call)]
    parts += _section("Markers", [_marker(m) for m in chosen.markers])
    parts += _section("Findings", [_finding(f) for f in chosen.findings])
    parts += _section("Notices", [f"- {prose(notice)}" for notice in chosen.notices])
    if options.command:
        parts += ["## Reproduce", fenced(redact(options.command), "sh")]
    return "\n\n".join(parts) + "\n"


def spell(character: str) -> str:
    r"""A character as Python escapes it (``\u2248``)."""
    return character.encode("ascii", "backslashreplace").decode()


def _section(title: str, items: Sequence[str]) -> list[str]:
    return [f"## {title}", "\n".join(items)] if items else []


# --- summary ---------------------------------------------------------------------------------------------------------


def _summary(chosen: Snapshot, whole: int) -> str:
    calls = chosen.calls
    states = Counter(call.rebuilt.state for call in calls)
    joins = Counter(call.joined_by for call in calls if call.joined_by)
    by = f" ({_listed(f'{n} by {how}' for how, n in sorted(joins.items()))})" if joins else ""
    scope = f"{_count(len(calls), 'call')}" + (f" of {whole}" if len(calls) != whole else "")
    words = [f"{scope}; {joins.total()} joined to a log{by}."]
    words.append(f"Rebuilt from the log: {states['equal']} equal, {states['differs']} differing.")
    untold = {state: n for state, n in sorted(states.items()) if state not in _TOLD}
    if untold:
        words.append(f"Not to be told: {_listed(f'{n} {_words(state)}' for state, n in untold.items())}.")
    words += [_first(calls), _replies(calls), _cache(calls), _coverage(calls)]
    if chosen.partial:
        words.append("A writer was in the middle of a line or an exchange.")
    return " ".join(word for word in words if word)


def _first(calls: Sequence[Call]) -> str:
    for call in calls:
        difference = call.rebuilt.first_difference
        if difference:
            return f"The first difference is in call {call.n}, byte {number(difference.raw_offset)}, at {code(difference.path)}: {prose(difference.cause)}."
    return ""


def _replies(calls: Sequence[Call]) -> str:
    states = Counter(call.reply.state for call in calls)
    wrong = [f"{states[s]} {_words(s)}" for s in ("differs", "empty", "prefix", "missing") if states[s]]
    echoed = sum(call.reply.echo == "differs" for call in calls)
    wrong += [f"{echoed} echoed differently"] if echoed else []
    return f"Replies not kept as delivered: {_listed(wrong)}." if wrong else ""


def _cache(calls: Sequence[Call]) -> str:
    verdicts = Counter(call.cache.verdict for call in calls)
    words = f"Cache: {_count(verdicts['break'], 'break')}, {verdicts['miss']} missed"
    words += f", {verdicts['unknown']} unknown" if verdicts["unknown"] else ""
    hit = [c.cache for c in calls if c.cache.verdict in ("break", "miss")]
    known = [c for c in hit if c.lost_tokens is not None]
    lost = sum(c.lost_tokens or 0 for c in known)
    told = [f"{number(lost, estimated=any(c.lost_estimated for c in known))} tokens lost"] if known else []
    told += [f"the loss of {len(hit) - len(known)} is unknown"] if len(known) < len(hit) else []
    return f"{words}; {_listed(told)}." if told else f"{words}."


def _coverage(calls: Sequence[Call]) -> str:
    covers = [call.rebuilt.coverage for call in calls if call.rebuilt.coverage is not None]
    served = sum(c.logged + c.derived + c.learned + c.echoed + c.unknown for c in covers)
    if not served:
        return ""
    shares = (
        (name, sum(getattr(c, name) for c in covers)) for name in ("logged", "derived", "learned", "echoed", "unknown")
    )
    listed = _listed(f"{100 * part / served:.1f} % {name}" for name, part in shares if part)
    return f"Where the {number(served)} served bytes of calls with both sides come from: {listed}."


def _listed(items: Iterable[str]) -> str:
    return ", ".join(items)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _words(state: str) -> str:
    return {
        "empty": "stored empty",
        "prefix": "stored in part",
        "missing": "not stored",
        "differs": "stored differently",
    }.get(state, state.replace("_", " "))


# --- lists and tables ------------------------------------------------------------------------------------------------


def _session(session: SessionInfo, calls: Sequence[Call]) -> str:
    version = f" {prose(session.agent_version)}" if session.agent_version else " of unknown version"
    lines = [f"- {prose(session.agent)}{version}, session {code(session.id)}, compared by {session.scope}"]
    lines += [f"  - directory {code(session.directory)}"] if session.directory else []
    lines += [f"  - log {code(path)}" for path in session.log]
    lines += [f"  - recording {code(path)}" for path in session.recordings]
    lines += _limits(session, calls)
    lines += [f"  - assumed: {prose(choice)}" for choice in session.hypotheses]
    lines += [f"  - borrowed from the wire, {code(item.path)}: {prose(item.reason)}" for item in session.borrowed]
    return "\n".join(lines)


_BY = {"config": "its settings", "log": "its log", "rule": "the agent's rule", "user": "you"}


def _limits(session: SessionInfo, calls: Sequence[Call]) -> list[str]:
    """The window of its last call, and from where on its agent compacts, each with who says so."""
    known = (call.window for call in reversed(calls) if call.session == session.id and call.window != NO_WINDOW)
    config = session.config
    own = next(known, Window(config.window, config.window_by, config.threshold, config.threshold_by))
    words = [f"window {number(own.size)} tokens (by {_BY.get(own.size_by or '', '–')})"] if own.size else []
    above = ", above the window" if own.is_out_of_reach else ""
    by = _BY.get(own.threshold_by or "", "–")
    words += [f"compacts at {number(own.threshold)} (by {by}{above})"] if own.threshold else []
    return [f"  - {', '.join(words)}"] if words else []


_COLUMNS = (
    "call",
    "turn",
    "kind",
    "joined by",
    "rebuilt",
    "first difference",
    "reply",
    "cache",
    "reported",
    "visible",
    "stop",
)


def _table(calls: Sequence[Call]) -> str:
    rule = "|".join("--:" if name in ("call", "turn", "reported", "visible") else "---" for name in _COLUMNS)
    filled = any(call.occupancy is not None for call in calls)
    columns = (*_COLUMNS, *(("window",) if filled else ()))
    rule += "|--:" if filled else ""
    rows = ((*_row(call), _filled(call)) if filled else _row(call) for call in calls)
    return "\n".join([f"| {' | '.join(columns)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)])


def _filled(call: Call) -> str:
    """How full its window is, in percent."""
    known = call.tokens.reported is not None or not call.tokens.estimated
    return "–" if call.occupancy is None else f"{'' if known else '≈'}{100 * call.occupancy:.1f} %"


def _row(call: Call) -> tuple[str, ...]:
    difference, cache, stop = call.rebuilt.first_difference, call.cache, call.stop
    cause = f": {prose(cache.cause or ' or '.join(cache.candidates))}" if cache.cause or cache.candidates else ""
    reason = f"{code_cell(stop.reason)} {stop.state}" if stop and stop.reason else stop.state if stop else "–"
    return (
        str(call.n),
        number(call.turn),
        _kind(call),
        call.joined_by or "–",
        _words_of_rebuilt(call),
        code_cell(difference.path) if difference else "–",
        call.reply.state.replace("_", " "),
        f"{cache.verdict}{cause}" if cache.verdict != "unknown" else "–",
        number(call.tokens.reported),
        number(call.tokens.visible, estimated=call.tokens.estimated),
        reason,
    )


def _kind(call: Call) -> str:
    if call.lineage == "main":
        return call.kind
    return prose(call.lineage) if call.lineage.startswith(call.kind) else f"{call.kind} {prose(call.lineage)}"


def _words_of_rebuilt(call: Call) -> str:
    state = call.rebuilt.state
    return f"**{state}**" if state == "differs" else state.replace("_", " ")


def _marker(marker: Marker) -> str:
    where = "at the end of the log" if marker.call is None else f"before call {marker.call}"
    place = f" ({prose(marker.place.at)})" if marker.place else ""
    tokens = f", {number(marker.before_tokens, estimated=True)} → {number(marker.after_tokens, estimated=True)} tokens"
    known = tokens if (marker.before_tokens, marker.after_tokens) != (None, None) else ""
    dropped = f", dropped {len(marker.dropped)}: {prose(_places(marker))}" if marker.dropped else ""
    logged = "logged" if marker.logged else "**not logged**"
    return f"- {marker.kind.replace('_', ' ')} {where}{place}, {logged}{known}{dropped}: {prose(marker.where)}"


_MOST_PLACES = 12


def _places(marker: Marker) -> str:
    shown = ", ".join(place.at for place in marker.dropped[:_MOST_PLACES])
    return shown + (f" and {len(marker.dropped) - _MOST_PLACES} more" if len(marker.dropped) > _MOST_PLACES else "")


def _finding(finding: Finding) -> str:
    calls = f", call {_listed(str(n) for n in finding.calls)}" if finding.calls else ""
    path = f" at {code(finding.path)}" if finding.path else ""
    evidence = f"\n  {code(finding.evidence)}" if finding.evidence else ""
    return f"- **{prose(finding.code)}** {finding.severity}{calls}{path}: {prose(finding.message)}{evidence}"
