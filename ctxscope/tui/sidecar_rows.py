"""The sidecars of a call: what they come to, and each beside the content it stands for."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from ctxscope.model import ContentSize, SidecarSum, SidecarView, Substitution
from ctxscope.tui.paint import Spans, fit, number
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.lines import wrapped

_PLACE, _MOST_PLACE, _ROLE, _RELATION, _SIZE, _CHARACTERS = 8, 12, 10, 8, 9, 11
_MOST_LINES, _HANG = 9, 5
_LABEL, _LEAST = 10, 12
_MARKS = {"equal": ("=", "dim"), "shorter": ("-", "log"), "longer": ("+", "diverge"), "as_long": ("~", "log")}
_IGNORED = ("x", "dim")
_RELATIONS = ("equal", "shorter", "longer", "as_long")
NONE = " No message of this call's context has a sidecar."


def lines_of(found: Sequence[SidecarView], in_all: SidecarSum | None, width: int) -> tuple[list[Spans], list[int]]:
    """Lines, and which of them are sidecars: one for each, in order."""
    if not found:
        return [[(NONE, "text")]], []
    cells = min(max(_PLACE, *(cell_len(visible(each.judged.place.at)) for each in found)), _MOST_PLACE)
    lines: list[Spans] = []
    for told in _sums(in_all, estimated=found[0].judged.estimated) if in_all is not None else ():
        lines += wrapped([(" ", "text"), *told], width, _MOST_LINES, _HANG)
    names = (fit("entry", cells), fit("role", _ROLE), fit("is", _RELATION))
    sizes = "".join(f"{name:>{_SIZE}}" for name in ("clean", "sidecar", "more"))
    lines += [(), [(f"   {' '.join(names)}{sizes}{'characters':>{_CHARACTERS}}", "dim")]]
    first = len(lines)
    lines += [_row(each.judged, cells) for each in found]
    lines += [(), [(" x not sent: the clean content counts · tokens, ≈ estimated", "dim")]]
    return lines, list(range(first, first + len(found)))


def about(each: SidecarView, cells: int) -> Spans:
    """One of them in words, with as much of both texts, from shortly before they part, as so many cells hold."""
    judged = each.judged
    why = f"not sent: {judged.why_ignored} · " if judged.ignored else ""
    head = [(f" {_cut(judged.place.at, 2 * _MOST_PLACE)} ", "dim"), (why, "diverge")]
    if judged.differs_at is None:
        return [
            *head,
            ("equal texts " if judged.relation != "equal" else "equal ", "head"),
            (visible(each.sidecar), "text"),
        ]
    told = [f"{name} holds images" for name, size in _sides(judged) if size.images != 0]
    head.append((f"{', '.join([f'part from character {judged.differs_at + 1:,} on', *told])} · ", "dim"))
    room = max((cells - sum(cell_len(text) for text, _ in head)) // 2 - _LABEL, _LEAST)
    texts = (("clean ", each.clean, "log"), (" sidecar ", each.sidecar, "served"))
    return [*head, *(span for name, text, style in texts for span in ((name, "head"), (_cut(text, room), style)))]


def _cut(text: str, room: int) -> str:
    shown = visible(text)
    return fit(shown, room) if cell_len(shown) > room else shown


def _sides(judged: Substitution) -> tuple[tuple[str, ContentSize], ...]:
    return ("the clean content", judged.clean), ("the sidecar", judged.sidecar)


def _sums(in_all: SidecarSum, *, estimated: bool) -> list[Spans]:
    mark = "≈" if estimated else ""
    sent, clean = in_all.sent_tokens, in_all.clean_tokens
    counts = [f"{n:,} {name.replace('_', ' ')}" for name in _RELATIONS if (n := getattr(in_all, name))]
    counts += [f"{in_all.ignored:,} not sent"] if in_all.ignored else []
    tokens = f"{mark}{number(sent)} tokens in place of {mark}{number(clean)}: {mark}{sent - clean:+,}"
    return [[("sidecars ", "head"), (" · ".join(counts), "text")], [("by the rule ", "head"), (tokens, "text")]]


def _row(judged: Substitution, cells: int) -> Spans:
    mark, style = _IGNORED if judged.ignored else _MARKS[judged.relation]
    about = "≈" if judged.estimated else ""
    sizes = [f"{about if size.tokens else ''}{number(size.tokens)}" for _, size in _sides(judged)]
    more = f"{about}{judged.more:+,}" if judged.more else "0"
    characters = judged.sidecar.characters - judged.clean.characters
    return [
        (f"{mark} ", style),
        (f"{fit(visible(judged.place.at), cells)} ", "dim"),
        (f"{fit(visible(judged.role), _ROLE)} {fit(judged.relation.replace('_', ' '), _RELATION)}", style),
        ("".join(f"{told:>{_SIZE}}" for told in (*sizes, f"({more})" if judged.ignored else more)), "text"),
        (f"{characters:+,}".rjust(_CHARACTERS) if characters else "0".rjust(_CHARACTERS), "dim"),
    ]
