"""What shortened the history: the list of such events, and message by message what one of them dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ctxscope.model import BreakRate, Compaction, Logged, Place, Snapshot, Usage
from ctxscope.tui.paint import UNKNOWN, Spans, fit, number, plural, rule
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.lines import wrapped

_MOST_LINES, _HANG = 9, 5
_PLACE, _MOST_PLACE, _ROLE = 8, 24, 10
_KEPT, _GONE, _LOST = ("K", "text"), ("-", "compact"), ("!", "diverge")


# --- the list --------------------------------------------------------------------------------------------------------


def list_of(snapshot: Snapshot, width: int) -> tuple[list[Spans], list[int]]:
    """Lines, and which of them lead to an event: one for each, in order."""
    if not snapshot.compactions:
        return [[(" No event shortened the history.", "text")]], []
    lines: list[Spans] = []
    stops: list[int] = []
    for found in snapshot.compactions:
        stops.append(len(lines))
        lines.append([(fit(_head(found), max(width - 1, 0)), "compact")])
        for told in () if found.is_bare else _figures(found):
            lines += wrapped([("   ", "text"), *told], width, _MOST_LINES, _HANG)
        for sentence in found.words or (found.told.marker.where,):
            lines += wrapped([("   · ", "dim"), (visible(sentence), "text")], width, _MOST_LINES, _HANG)
        lines.append(())
    for rate in snapshot.break_rates:
        lines += wrapped([(" ", "text"), *_rate(rate, snapshot)], width, _MOST_LINES, _HANG)
    return lines, stops


def title_of(found: Compaction) -> str:
    """What it is and where; printable."""
    marker = found.told.marker
    where = "at the end" if marker.call is None else f"before call {marker.call}"
    return visible(f"{marker.kind} {where}") + (" ON PHANTOM BYTES" if found.phantom else "")


def _head(found: Compaction) -> str:
    if found.is_bare:
        return f"C {title_of(found)}  how much it left out is not known"
    mark = "≈" if found.counted else ""
    before, after = (_about(value, mark) for value in (found.tokens_before, found.tokens_after))
    return f"C {title_of(found)}  prompt {before} → {after} tokens"


def _figures(found: Compaction) -> Iterator[Spans]:
    seconds = UNKNOWN if found.seconds is None else f"{found.seconds:,.1f} s"
    pays = found.pays_after + ("" if found.break_even is None else " call" if found.break_even == 1 else " calls")
    yield [
        ("own request ", "dim"),
        (f"{_usage(found.usage)}  ", "text"),
        ("held the user ", "dim"),
        (f"{seconds}  ", "text"),
        ("billed again ", "dim"),
        (f"{found.billed_again}  ", "text"),
        ("pays after ", "dim"),
        (pays, "text"),
    ]


def _usage(usage: Usage | None) -> str:
    return UNKNOWN if usage is None or usage.reported is None else f"{number(usage.reported)} + {number(usage.output)}"


def _about(value: int | None, mark: str) -> str:
    return UNKNOWN if value is None else f"{mark}{number(value)}"


def _rate(rate: BreakRate, snapshot: Snapshot) -> Spans:
    several = len({each.session for each in snapshot.break_rates}) > 1
    whose = f" of session {visible(rate.session)}" if several and rate.session else ""
    under = f" ({visible(rate.setting)})" if rate.setting else ""
    return [(f"{visible(rate.kind)}{whose}{under}: ", "head"), (rate.words, "text")]


# --- what one dropped ------------------------------------------------------------------------------------------------


def places_of(found: Compaction) -> Sequence[Place]:
    """The history it found, in order; where the log does not tell it, what it dropped."""
    return found.told.messages or found.told.marker.dropped


def dropped_by(found: Compaction, said: Mapping[Place, Logged], width: int) -> tuple[list[Spans], list[int]]:
    """Lines, and which of them are messages: one for each of ``places_of``; ``said`` may follow later."""
    places = places_of(found)
    lines: list[Spans] = []
    for told in _summary(found):
        lines += wrapped([(" ", "text"), *told], width, _MOST_LINES, _HANG)
    lines.append(())
    if not places:
        lines.append([(" The log does not tell which messages it dropped.", "text")])
        return lines, []
    cells = min(max(_PLACE, *(len(visible(place.at)) for place in places)), _MOST_PLACE)
    seams = _seams(found)
    stops: list[int] = []
    for i, place in enumerate(places):
        lines += [rule(words, width, style, line) for words, style, line in seams.get(i, ())]
        stops.append(len(lines))
        lines.append(_message(i, place, said.get(place), _mark(found, i), cells, width))
    lines += [rule(words, width, style, line) for words, style, line in seams.get(len(places), ())]
    return lines, stops


def _summary(found: Compaction) -> Iterator[Spans]:
    told = found.told
    if told.messages and told.head is not None and told.cut is not None:
        gone, kept = told.cut - told.head, len(told.messages) - told.cut
        counts = f"{number(told.head)} kept at the start, {number(gone)} summarised, {number(kept)} kept at the end"
        yield [(f"{plural(len(told.messages), 'message')}: {counts}", "head")]
    elif places_of(found):
        yield [(f"{plural(len(places_of(found)), 'message')} dropped or rewritten", "head")]
    if found.lost:
        lost = f"! {plural(len(found.lost), 'message')} summarised away because of the envelope alone"
        yield [(lost, "diverge")]
    if told.messages:
        yield [("K kept · - summarised away · ! would have been kept without opaque reasoning bytes", "dim")]


def _seams(found: Compaction) -> dict[int, list[tuple[str, str, str]]]:
    """Before which message a line is drawn: words, style, line."""
    told = found.told
    seams: dict[int, list[tuple[str, str, str]]] = {}
    if not told.messages:
        return seams
    if told.head:
        seams.setdefault(told.head, []).append(("end of the protected head", "text", "─"))
    others: dict[int, list[str]] = {}
    for cut in told.rules:
        if cut.at != told.cut or not cut.own:
            bare = "" if cut.envelope else " without the envelope"
            others.setdefault(cut.at, []).append(f"{visible(cut.version)}{bare}")
    for at, names in others.items():
        if at != told.cut:
            seams.setdefault(at, []).append((f"the cut of {', '.join(names)}", "break", "┄"))
    if told.cut is not None:
        same = f", also of {', '.join(others[told.cut])}" if told.cut in others else ""
        seams.setdefault(told.cut, []).append((f"the cut it made{same}", "compact", "━"))
    return seams


def _mark(found: Compaction, index: int) -> tuple[str, str]:
    told = found.told
    if not told.messages or told.head is None or told.cut is None:
        return _GONE
    if index < told.head or index >= told.cut:
        return _KEPT
    return _LOST if index >= told.cut - len(found.lost) else _GONE


def _message(index: int, place: Place, said: Logged | None, mark: tuple[str, str], cells: int, width: int) -> Spans:
    role = fit(visible(said.role) if said is not None else "", _ROLE)
    words = "…" if said is None else visible(said.text) if said.text else UNKNOWN
    spans = [
        (f"{mark[0]} ", mark[1]),
        (f"{index + 1:>4} ", "dim"),
        (f"{fit(visible(place.at), cells)} ", "dim"),
        (f"{role} ", mark[1]),
    ]
    used = 1 + sum((2, 5, cells + 1, _ROLE + 1))
    return [*spans, (fit(words, max(width - used, 0)), "text" if mark is not _KEPT else "dim")]
