"""The report for programs: JSON, schema 1.

Every key is always there, at every depth; what is unknown is ``null``. Additions are allowed, renames are not.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

import orjson

from ctxscope import __version__
from ctxscope.model import (
    NEXT_INPUT,
    CacheCost,
    CacheUse,
    CacheVerdict,
    Call,
    Coverage,
    Difference,
    ExchangeRef,
    Finding,
    Marker,
    NextRequest,
    SessionInfo,
    Snapshot,
    TokenLedger,
    TokenParts,
    Totals,
    Usage,
)
from ctxscope.report import Options, Views
from ctxscope.report.excerpts import Shown, shown
from ctxscope.report.foretold import foretold
from ctxscope.report.json_compactions import break_rate, compaction, window
from ctxscope.report.json_sidecars import in_sum, sidecar

SCHEMA = 1
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
_BEYOND_ASCII = re.compile(r"[^\x00-\x7e]")
_BEYOND_PLANE_0 = 0xFFFF
_MOST_BITS = 63
"""Longer integers are written as strings: few JSON readers hold them."""


def render(snapshot: Snapshot, views: Views, options: Options) -> str:
    """The snapshot as indented JSON; control and format characters stand as escapes."""
    safe = shown(snapshot, views, options)
    chosen = safe.snapshot
    document = {
        "schema": SCHEMA,
        "ctxscope": __version__,
        "sessions": [_session(s) for s in chosen.sessions],
        "calls": [_call(c, safe) for c in chosen.calls],
        "markers": [_marker(m) for m in chosen.markers],
        "findings": [_finding(f, safe) for f in chosen.findings],
        "notices": list(chosen.notices),
        "totals": _totals(chosen.totals),
        "costs": [_cost(c) for c in chosen.costs],
        "uses": [_use(u) for u in chosen.uses],
        "compactions": [compaction(c) for c in chosen.compactions],
        "break_rates": [break_rate(r) for r in chosen.break_rates],
        "sidecars": [sidecar(s) for s in chosen.sidecars],
    }
    return _written(document)


def render_next(requests: Sequence[NextRequest], options: Options) -> str:
    """The next requests likewise, under ``next``."""
    safe = foretold(requests, options)
    told = [_next(request, excerpts=safe.excerpts) for request in safe.requests]
    return _written({"schema": SCHEMA, "ctxscope": __version__, "next": told})


def _written(document: Mapping[str, Any]) -> str:
    data = orjson.dumps(_plain(document), option=orjson.OPT_INDENT_2)
    return _BEYOND_ASCII.sub(lambda m: _seen(m[0]), data.decode()) + "\n"


def spell(character: str) -> str:
    r"""A character as JSON writes it in ASCII (``\u2248``; a surrogate pair beyond plane 0)."""
    code = ord(character)
    if code <= _BEYOND_PLANE_0:
        return f"\\u{code:04x}"
    code -= _BEYOND_PLANE_0 + 1
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _seen(character: str) -> str:
    return spell(character) if unicodedata.category(character) in _UNSEEN else character


def _plain(value: Any) -> Any:
    """A value as JSON can hold it: an agent's configuration may carry any Python value."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, Mapping):
        return {_plain(str(k)): _plain(v) for k, v in value.items()}
    if isinstance(value, frozenset | set):
        return sorted((_plain(v) for v in value), key=repr)
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    if isinstance(value, PurePath) or (isinstance(value, int) and value.bit_length() > _MOST_BITS):
        return str(value)
    return value


def _fields(kind: type[Coverage | TokenParts | Usage | ExchangeRef], value: object) -> dict[str, Any]:
    """The fields of a dataclass by name, all ``None`` when there is no value."""
    return {f.name: getattr(value, f.name, None) for f in dataclasses.fields(kind)}


def _coverage(coverage: Coverage | None) -> dict[str, Any]:
    """Served bytes by provenance, which sum to the body; what is external is a part of what is logged."""
    fields = _fields(Coverage, coverage)
    del fields["external"]
    return fields


def _time(seconds: float | None) -> str | None:
    """ISO 8601 in UTC with milliseconds; ``None`` for a number that is no date (a log may hold any)."""
    if seconds is None:
        return None
    try:
        date = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return date.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _session(session: SessionInfo) -> dict[str, Any]:
    config = session.config
    return {
        "id": session.id,
        "agent": session.agent,
        "agent_version": session.agent_version,
        "directory": session.directory,
        "log": list(session.log),
        "recordings": list(session.recordings),
        "scope": session.scope,
        "hypotheses": list(session.hypotheses),
        "borrowed": [{"path": item.path, "reason": item.reason} for item in session.borrowed],
        "config": {
            "window": config.window,
            "threshold": config.threshold,
            "protect_head": config.protect_head,
            "protect_tail": config.protect_tail,
            "window_by": config.window_by,
            "threshold_by": config.threshold_by,
            "values": config.values,
        },
    }


def _call(call: Call, safe: Shown) -> dict[str, Any]:
    stop = call.stop
    return {
        "n": call.n,
        "session": call.session,
        "turn": call.turn,
        "lineage": call.lineage,
        "parent": call.parent,
        "kind": call.kind,
        "exchange": call.exchange and _fields(ExchangeRef, call.exchange),
        "entry": call.entry and {"log": call.entry.log, "place": call.entry.place},
        "joined_by": call.joined_by,
        "api": call.api,
        "provider": call.provider,
        "model": call.model,
        "time": _time(call.time),
        "request": {"bytes": call.request_bytes, "sha256": call.request_sha256},
        "rebuilt": {
            "state": call.rebuilt.state,
            "scope": call.rebuilt.scope,
            "first_difference": _difference(call.rebuilt.first_difference, excerpts=safe.excerpts),
            "coverage": _coverage(call.rebuilt.coverage),
            "remarks": list(call.remarks),
            "external": call.rebuilt.coverage.external if call.rebuilt.coverage else None,
        },
        "reply": {
            "state": call.reply.state,
            "first_difference": _difference(call.reply.first_difference, excerpts=safe.excerpts),
            "echo": call.reply.echo,
        },
        "cache": _cache(call.cache),
        "tokens": _tokens(call.tokens),
        "window": window(call),
        "usage": _fields(Usage, call.usage),
        "stop": {
            "reason": stop.reason if stop else None,
            "state": stop.state if stop else "unknown",
            "requested_max": call.requested_max,
            "at_cap": call.at_cap,
        },
    }


def _next(request: NextRequest, *, excerpts: bool) -> dict[str, Any]:
    """A request not sent yet; ``input_at`` is where in its body the next input will stand."""
    body, previous = request.body, request.previous
    return {
        "session": request.session,
        "agent": request.agent,
        "known": body is not None,
        "why": request.why or None,
        "request": {
            "bytes": len(body.data) if body else None,
            "sha256": body.sha256 if body else None,
            "input_at": body.data.rfind(NEXT_INPUT.encode()) if body else None,
            "scope": request.scope if body else None,
        },
        "last": {
            "call": request.previous_n,
            "side": ("served" if request.previous_served else "rebuilt") if previous else None,
            "bytes": len(previous.data) if previous else None,
            "sha256": previous.sha256 if previous else None,
        },
        "cache": _cache(request.cache),
        "ttl_seconds": request.ttl,
        "first_difference": _difference(request.difference, excerpts=excerpts),
        "changes": list(request.changes),
        "unknown": list(request.unknown),
        "hypotheses": list(request.hypotheses),
    }


def _difference(difference: Difference | None, *, excerpts: bool) -> dict[str, Any] | None:
    if difference is None:
        return None
    return {
        "effective": difference.effective,
        "raw_offset": difference.raw_offset,
        "prefix_offset": difference.prefix_offset,
        "path": difference.path,
        "class": difference.cls,
        "cause": difference.cause,
        "served": difference.served if excerpts else None,
        "rebuilt": difference.rebuilt if excerpts else None,
    }


def _cache(cache: CacheVerdict) -> dict[str, Any]:
    placed = cache.path is not None or cache.prefix_offset is not None
    return {
        "verdict": cache.verdict,
        "cause": cache.cause,
        "candidates": list(cache.candidates),
        "confidence": cache.confidence,
        "at": {"path": cache.path, "prefix_offset": cache.prefix_offset} if placed else None,
        "expected_read": list(cache.expected_read) if cache.expected_read else None,
        "reported_read": cache.reported_read,
        "lost_tokens": cache.lost_tokens,
        "reprefill": {
            "tokens": cache.lost_tokens if cache.seconds is not None else None,
            "seconds": cache.seconds,
            "seconds_from": cache.seconds_from or None,
        },
        "provider_says": cache.provider_says,
        "lost_estimated": cache.lost_estimated if cache.lost_tokens is not None else None,
        "why": cache.why or None,
        "facts": list(cache.facts),
        "extra": None if cache.extra is None else round(cache.extra, 1),
        "money": cache.money,
        "currency": cache.currency or None,
    }


def _tokens(tokens: TokenLedger) -> dict[str, Any]:
    return {
        "reported": tokens.reported,
        "visible": tokens.visible,
        "rebuilt": tokens.rebuilt,
        "naive": tokens.naive,
        "agent": tokens.agent,
        "parts": _fields(TokenParts, tokens.parts),
        "estimated": tokens.estimated,
        "agent_estimates": [
            {"estimator": e.estimator, "tokens": e.tokens, "verified": e.verified, "charged": dict(e.charged)}
            for e in tokens.estimates
        ],
        "gap": list(tokens.gap),
        "factor": tokens.factor,
        "calibrated": tokens.calibrated,
        "sidecars": in_sum(tokens.sidecars),
        "envelope_bytes": tokens.envelope_bytes,
        "overhead_for": tokens.overhead_for or None,
        "overhead_from": tokens.overhead_from or None,
    }


def _marker(marker: Marker) -> dict[str, Any]:
    return {
        "kind": marker.kind,
        "call": marker.call,
        "logged": marker.logged,
        "before_tokens": marker.before_tokens,
        "after_tokens": marker.after_tokens,
        "dropped": [place.at for place in marker.dropped],
        "where": marker.where,
    }


def _finding(finding: Finding, safe: Shown) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "calls": list(finding.calls),
        "path": finding.path,
        "message": finding.message,
        "evidence": finding.evidence if safe.excerpts else None,
    }


def _cost(cost: CacheCost) -> dict[str, Any]:
    return {
        "session": cost.session,
        "verdict": cost.verdict,
        "cause": cost.cause,
        "calls": list(cost.calls),
        "lost_tokens": cost.lost_tokens,
        "lost_estimated": cost.estimated if cost.lost_tokens is not None else None,
        "extra": None if cost.extra is None else round(cost.extra, 1),
        "money": cost.money,
        "currency": cost.currency or None,
        "remedy": cost.remedy or None,
    }


def _use(use: CacheUse) -> dict[str, Any]:
    return {
        "session": use.session,
        "calls": use.calls,
        "sent": use.sent,
        "read": use.read,
        "new": use.new,
        "read_bound": use.read_bound,
        "new_bound": use.new_bound,
        "reuse": use.reuse,
        "reuse_bound": use.reuse_bound,
        "unbroken": {"read": use.unbroken[0], "sent": use.unbroken[1]},
        "after_seam": {"read": use.after_seam[0], "sent": use.after_seam[1]},
        "seams": use.seams,
    }


def _totals(totals: Totals) -> dict[str, Any]:
    return {f.name: getattr(totals, f.name) for f in dataclasses.fields(Totals)}
