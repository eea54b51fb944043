"""A snapshot as a report may show it: every text redacted by what stands around it, excerpts left out where none is wanted."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ctxscope.model import Block, Call, CallView, Difference, Finding, Snapshot
from ctxscope.report import Options, Views
from ctxscope.report.redaction import Redaction, Surroundings
from ctxscope.report.selection import reply_in_question, select

_BEFORE, _WIDTH = 160, 480
"""Characters of a reply shown before the first difference of its sides, and in all."""
_QUOTED = re.compile("«[^»]*»")
"""Text of a log or a provider inside words of ours (``ctxscope.model.quoted``)."""
_TELLING = 8
"""Characters from which an excerpt is recognised inside another text."""


@dataclass(frozen=True, slots=True)
class ReplySides:
    """A reply as delivered, as stored and as the next request echoes it; ``None`` where that side is absent."""

    delivered: str | None
    stored: str | None
    echoed: str | None
    echoed_n: int | None


@dataclass(frozen=True, slots=True)
class Shown:
    """The part of a snapshot that a report covers, with no text in it that may not be shown."""

    snapshot: Snapshot
    excerpts: bool
    """Whether there are texts of log and wire; without, they are empty and mean "not shown"."""
    replies: Mapping[int, ReplySides]
    """By number of the call, the sides of replies that were not kept as delivered."""
    redact: Redaction
    """For texts that stand beside the snapshot: the title, the command line."""


def shown(snapshot: Snapshot, views: Views, options: Options, *, replies: bool = False) -> Shown:
    """What the options let be seen; ``replies``: the sides of replies too. Raises ``CtxscopeError`` as ``select`` does."""
    redact = Redaction(options.home, active=options.content != "full")
    chosen = select(snapshot, options)
    if options.content == "none":
        return Shown(redact.value(_without_content(chosen)), excerpts=False, replies={}, redact=redact)
    calls = {call.n: call for call in snapshot.calls}
    told = {call.n: _told(call, views, redact, replies=replies) for call in chosen.calls}
    for n in {n for finding in chosen.findings for n in finding.calls if n in calls} - told.keys():
        told[n] = _told(calls[n], views, redact, replies=False)
    everywhere = redact.knowing(secret for one in told.values() for secret in one.known)
    safe = replace(
        everywhere.value(replace(chosen, calls=(), findings=())),
        calls=tuple(told[call.n].call for call in chosen.calls),
        findings=tuple(_finding(f, [told[n] for n in f.calls if n in told], redact) for f in chosen.findings),
    )
    sides = {n: one.replies for n, one in told.items() if one.replies is not None}
    return Shown(safe, excerpts=True, replies=sides, redact=everywhere)


def _without_content(snapshot: Snapshot) -> Snapshot:
    """The snapshot without any text of log or wire; paths, names, numbers and words of ours stay."""
    return replace(
        snapshot,
        calls=tuple(_bare(call) for call in snapshot.calls),
        findings=tuple(replace(finding, evidence="") for finding in snapshot.findings),
        notices=tuple(_QUOTED.sub("«…»", notice) for notice in snapshot.notices),
    )


def _bare(call: Call) -> Call:
    return replace(
        call,
        what="",
        rebuilt=replace(call.rebuilt, first_difference=_mute(call.rebuilt.first_difference)),
        reply=replace(call.reply, first_difference=_mute(call.reply.first_difference)),
        cache=replace(call.cache, provider_says=None),
    )


def _mute(difference: Difference | None) -> Difference | None:
    return difference and replace(difference, served="", rebuilt="")


# --- one call --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Told:
    """One call as it may be shown, and what its bodies taught of secrets."""

    call: Call
    known: tuple[tuple[str, str], ...] = ()
    excerpts: Mapping[str, str] = field(default_factory=dict)
    """What its excerpts became, by what they were."""
    replies: ReplySides | None = None


def _told(call: Call, views: Views, redact: Redaction, *, replies: bool) -> _Told:
    replies = replies and reply_in_question(call)
    differences = [call.rebuilt.first_difference, call.reply.first_difference]
    if not replies and not (redact.active and any(differences)):
        return _Told(redact.value(call))
    view = views(call.n)
    request = _around_request(call, view, redact)
    reply = _around_reply(call, view, redact)
    texts = [_text(blocks) for blocks in (view.delivered_blocks, view.stored_blocks, view.echoed_blocks)]
    known = [secret for around in (*request, *reply) for secret in around.known]
    known += [secret for text in texts if replies and text for secret in redact.known(text)]
    knowing = redact.knowing(known)
    safe = [_redacted(d, sides, knowing) for d, sides in zip(differences, (request, reply), strict=True)]
    excerpts = [
        pair
        for old, new in zip(differences, safe, strict=True)
        if old and new
        for pair in ((old.served, new.served), (old.rebuilt, new.rebuilt))
    ]
    call = replace(
        call,
        rebuilt=replace(call.rebuilt, first_difference=safe[0]),
        reply=replace(call.reply, first_difference=safe[1]),
    )
    sides = _sides([None if t is None else knowing(t) for t in texts], view.echoed_n) if replies else None
    return _Told(knowing.value(call), tuple(known), dict(excerpts), sides)


def _redacted(
    difference: Difference | None, sides: tuple[Surroundings, Surroundings], knowing: Redaction
) -> Difference | None:
    return difference and replace(
        difference,
        served=knowing.excerpt(difference.served, sides[0]),
        rebuilt=knowing.excerpt(difference.rebuilt, sides[1]),
    )


def _finding(finding: Finding, told: Sequence[_Told], redact: Redaction) -> Finding:
    """A finding whose evidence quotes excerpts as they may be shown."""
    evidence = finding.evidence
    for raw, safe in (pair for one in told for pair in one.excerpts.items()):
        if evidence == raw or len(raw) >= _TELLING:
            evidence = evidence.replace(raw, safe) if raw else evidence
    knowing = redact.knowing(secret for one in told for secret in one.known)
    return knowing.value(replace(finding, evidence=evidence))


def _around_request(call: Call, view: CallView, redact: Redaction) -> tuple[Surroundings, Surroundings]:
    difference = call.rebuilt.first_difference
    if difference is None:
        return redact.around(None), redact.around(None)
    return (
        redact.around(view.served.data if view.served else None, difference.raw_offset),
        redact.around(view.rebuilt.data if view.rebuilt else None, difference.other_offset),
    )


def _around_reply(call: Call, view: CallView, redact: Redaction) -> tuple[Surroundings, Surroundings]:
    difference = call.reply.first_difference
    if difference is None:
        return redact.around(None), redact.around(None)
    delivered, stored = (_part(b, difference.path) for b in (view.delivered_blocks, view.stored_blocks))
    return (
        redact.around(delivered, _characters(delivered, difference.raw_offset)),
        redact.around(stored, _characters(stored, difference.other_offset)),
    )


def _part(blocks: Sequence[Block] | None, path: str) -> str:
    """The text of a reply in which the offsets of a difference at ``path`` count (``analysis.replies``)."""
    name, *rest = path.strip("/").split("/")
    blocks = blocks or ()
    if name == "envelope":
        return "".join(b.envelope for b in blocks)
    if name == "tool_calls":
        calls = [b for b in blocks if b.kind == "tool_call"]
        n = int(rest[0]) if rest and rest[0].isdigit() else len(calls)
        call = calls[n] if n < len(calls) else Block("tool_call")
        parts = {"name": call.name, "id": call.id, "item_id": call.item_id}
        return parts.get(rest[-1], call.text) if rest else call.text
    if rest == ["item_id"]:
        return "".join(dict.fromkeys(b.item_id for b in blocks if b.kind == name))
    return "".join(b.text for b in blocks if b.kind == name)


def _characters(text: str, offset: int) -> int:
    """A byte offset of a text as one of characters."""
    return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore"))


# --- replies ---------------------------------------------------------------------------------------------------------


def _text(blocks: Sequence[Block] | None) -> str | None:
    """Blocks as lines a person can read; ``None`` when the side is absent."""
    return None if blocks is None else "\n".join(_line(block) for block in blocks)


def _line(block: Block) -> str:
    if block.kind == "text":
        return block.text
    named = " ".join(part for part in (block.kind, block.name, block.id) if part)
    sealed = f" (envelope of {len(block.envelope)} characters)" if block.envelope else ""
    return f"[{named}{sealed}] {block.text}".rstrip()


def _sides(texts: Sequence[str | None], echoed_n: int | None) -> ReplySides:
    """Delivered, stored and echoed, cut alike around where they first part."""
    there = [text for text in texts if text is not None]
    start = max(len(os.path.commonprefix(there)) - _BEFORE, 0)  # noqa: RUF071 - by character is what is wanted
    delivered, stored, echoed = (None if text is None else _piece(text, start) for text in texts)
    return ReplySides(delivered, stored, echoed, echoed_n)


def _piece(text: str, start: int) -> str:
    start = min(start, max(len(text) - _BEFORE, 0))
    end = start + _WIDTH
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
