"""Rows as painted spans: (printable text, style name). Pure; a widget turns names into colours.

A style name is a component class without its ``paint--`` prefix; the colours stand in ``row_view.tcss``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size

Spans = Sequence[tuple[str, str]]

STYLES = (
    "text",
    "dim",
    "head",
    "cursor",
    "served",
    "served-emph",
    "log",
    "log-emph",
    "diverge",
    "break",
    "compact",
    "truncated",
    "system",
    "tools",
    "messages",
    "results",
    "thinking",
    "new",
    "hit",
    "live",
    "stale",
    "key",
)
COMPONENT_CLASSES = frozenset(f"paint--{name}" for name in STYLES)

UNKNOWN = "–"
"""What stands for a number nobody knows; never 0."""

_BAR_STEPS = " ▏▎▍▌▋▊▉█"
_THOUSAND, _MILLION = 1_000, 1_000_000


def number(value: int | None) -> str:
    """``34,518`` or ``–``."""
    return UNKNOWN if value is None else f"{value:,}"


def short(value: int | None) -> str:
    """``34.5k``, ``1.2M``; small ones as they are."""
    if value is None:
        return UNKNOWN
    if value < _THOUSAND:
        return str(value)
    scaled, unit = (value / _THOUSAND, "k") if value < _MILLION else (value / _MILLION, "M")
    return f"{scaled:.1f}".removesuffix(".0") + unit


def size(value: int | None) -> str:
    """Bytes for a person: ``12 KB``, ``214 MB``."""
    if value is None:
        return UNKNOWN
    scaled, unit = float(value), "B"
    for bigger in ("KB", "MB", "GB"):
        if scaled < _THOUSAND:
            break
        scaled, unit = scaled / 1024, bigger
    return f"{scaled:.0f} {unit}" if scaled >= 10 or unit == "B" else f"{scaled:.1f} {unit}"  # noqa: PLR2004 - two digits


def fit(text: str, width: int) -> str:
    """``text`` cut or padded to exactly ``width`` cells, with ``…`` where it was cut."""
    if width <= 0:
        return ""
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    return set_cell_size(text, width)


def fit_end(text: str, width: int) -> str:
    """``text`` cut or padded to exactly ``width`` cells, cut at its beginning: the end of a path says most."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    kept = next(text[i:] for i in range(len(text) + 1) if cell_len(text[i:]) < width)
    return set_cell_size(f"…{kept}", width)


def plural(count: int, noun: str) -> str:
    """``1 call``, ``2 calls``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def bar(share: float, width: int) -> str:
    """A bar of ``width`` cells filled to ``share``; anything above nothing shows at least a sliver."""
    steps = round(max(0.0, min(1.0, share)) * width * (len(_BAR_STEPS) - 1))
    if share > 0:
        steps = max(steps, 1)
    full, rest = divmod(steps, len(_BAR_STEPS) - 1)
    return ("█" * full + (_BAR_STEPS[rest] if rest else "")).ljust(width)


def rule(text: str, width: int, style: str, line: str = "─") -> Spans:
    """A line across the pane with words in it."""
    words = f"{line * 2} {fit(text, min(cell_len(text), max(width - 4, 0)))} "
    return [(words + line * max(width - cell_len(words), 0), style)]


def width_of(spans: Iterable[tuple[str, str]]) -> int:
    """Cells a row takes."""
    return sum(cell_len(text) for text, _ in spans)
