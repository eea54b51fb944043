"""One call in a Markdown report: what was served, what came back, what the cache did."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ctxscope.model import CacheVerdict, Call, Difference, Snapshot
from ctxscope.report.excerpts import Shown
from ctxscope.report.md_tokens import ledger_lines, reasons
from ctxscope.report.text import code, fenced, number, prose


def call_section(call: Call, safe: Shown) -> str:
    """The section of one call of ``safe.snapshot``, which says where its sides lie."""
    parts = [_heading(call), _origin(call, safe.snapshot)]
    parts += _rebuilt(call, safe)
    parts += _reply(call, safe)
    parts += [cache_lines(call.cache, call.parent), ledger_lines(call.tokens), reasons(call.tokens)]
    return "\n\n".join(part for part in parts if part)


def _heading(call: Call) -> str:
    turn = f", turn {call.turn}" if call.turn is not None else ""
    model = f", {prose(call.model)}" if call.model else ""
    return f"### Call {call.n}{turn}, {call.kind}{model}"


def _origin(call: Call, snapshot: Snapshot) -> str:
    lines = [f"- what: {code(call.what)}"] if call.what else []
    session = next((s for s in snapshot.sessions if s.id == call.session), None)
    if session and len(snapshot.sessions) > 1:
        lines.append(f"- session: {code(session.id)}")
    if call.entry:
        lines.append(f"- log: {prose(call.entry.place)}{_one_of(session.log if session else (), call.entry.log)}")
    if call.exchange:
        lines.append(f"- recording: exchange {call.exchange.n}{_one_of(snapshot.recordings, call.exchange.recording)}")
        lines += [f"- {prose(words)}" for words in call.exchange.words]
    if call.request_sha256:
        lines.append(f"- request: {number(call.request_bytes)} bytes, sha256 {code(call.request_sha256)}")
    if call.joined_by:
        lines.append(f"- joined by {call.joined_by}")
    return "\n".join(lines)


def _one_of(paths: Sequence[str], index: int) -> str:
    """Which of several files; a single one is named with the session."""
    return f" of {code(paths[index])}" if len(paths) > 1 and index < len(paths) else ""


def _rebuilt(call: Call, safe: Shown) -> list[str]:
    verdict = call.rebuilt
    scope = f" (compared: {verdict.scope})" if verdict.scope else ""
    parts = [f"**Request: {verdict.state.replace('_', ' ')}**{scope}"]
    if verdict.first_difference:
        parts[0] += f", {_where(verdict.first_difference)}"
        if safe.excerpts:
            both = verdict.first_difference
            parts += ["served", fenced(both.served), "rebuilt", fenced(both.rebuilt)]
    if verdict.coverage:
        shares = dataclasses.asdict(verdict.coverage)
        external = shares.pop("external")
        told = ", ".join(f"{k} {number(v)}" for k, v in shares.items())
        beyond = f" (of what is logged, {number(external)} restored from a store outside the log)" if external else ""
        parts.append(f"Served bytes by where they come from: {told}{beyond}.")
    parts += [prose(remark) for remark in call.remarks]
    return parts


def _where(difference: Difference) -> str:
    order = f" ({number(difference.prefix_offset)} in cache order)" if difference.prefix_offset is not None else ""
    cause = prose(difference.cause)
    return f"first at byte {number(difference.raw_offset)}{order}, {code(difference.path)}: {prose(difference.cls)}: {cause}"


def _reply(call: Call, safe: Shown) -> list[str]:
    verdict = call.reply
    echo = f", its echo {'is ' if verdict.echo == 'equal' else ''}{verdict.echo}" if verdict.echo else ""
    parts = [f"**Reply: {verdict.state.replace('_', ' ')}**{echo}"]
    if verdict.first_difference:
        parts[0] += f", {_where(verdict.first_difference)}"
    sides = safe.replies.get(call.n)
    if sides is None:
        return parts
    echoed = f"echoed in call {sides.echoed_n}" if sides.echoed_n is not None else "echoed"
    for name, text in (("delivered", sides.delivered), ("stored", sides.stored), (echoed, sides.echoed)):
        if text is not None:
            parts += [name, fenced(text)] if text else [f"{name}: empty"]
    return parts


def cache_lines(cache: CacheVerdict, parent: int | None) -> str:
    """A verdict against call ``parent``, and what it rests on."""
    cause = f" by {code(cache.cause)}" if cache.cause else ""
    lines = [f"**Cache: {cache.verdict}**{cause}, {cache.confidence.replace('_', ' ')}"]
    lines[0] += f": {prose(cache.why)}" if cache.why else ""
    if cache.candidates and cache.candidates != (cache.cause,):
        lines.append(f"- candidates: {', '.join(code(name) for name in cache.candidates)}")
    if cache.path is not None:
        order = f", {number(cache.prefix_offset)} bytes in cache order" if cache.prefix_offset is not None else ""
        lines.append(f"- at {code(cache.path)}{order}, against call {number(parent)}")
    if cache.expected_read or cache.reported_read is not None:
        lowest, highest = cache.expected_read or (None, None)
        expected = number(lowest, estimated=True) + (
            f" to {number(highest, estimated=True)}" if lowest != highest else ""
        )
        lost = (
            "" if cache.lost_tokens is None else f", lost {number(cache.lost_tokens, estimated=cache.lost_estimated)}"
        )
        lines.append(f"- tokens read: expected {expected}, reported {number(cache.reported_read)}{lost}")
    if cache.seconds is not None:
        by = "by the engine's own timings" if cache.seconds_from == "timings" else "by the time to the first byte"
        lines.append(
            f"- processed again: {number(cache.lost_tokens, estimated=cache.lost_estimated)} tokens, ≈{cache.seconds:.1f} s {by}"
        )
    if cache.provider_says:
        lines.append(f"- the provider says: {prose(cache.provider_says)}")
    lines += [f"- fact: {prose(fact)}" for fact in cache.facts]
    return "\n".join(lines)
