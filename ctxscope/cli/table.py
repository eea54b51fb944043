"""Tables for a person at this machine: columns aligned in terminal cells, sizes in few digits, times in its own zone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

UNKNOWN = "–"
_UNITS = ("B", "KB", "MB", "GB")
_STEP = 1024
_WHOLE = 100
_DIGITS = 10
"""From here on whole percents are telling enough."""
_LEAST = 0.01


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under the column names, aligned in terminal cells; the last column may be of any width."""
    from rich.cells import cell_len  # noqa: PLC0415 - only when there is a table to align

    lines = [columns, *rows]
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(columns) - 1)]
    padded = (
        "  ".join([c + " " * (w - cell_len(c)) for c, w in zip(line, widths, strict=False)] + [line[-1]])
        for line in lines
    )
    return "\n".join(padded) + "\n"


def size(amount: int | None) -> str:
    """Bytes in the unit that leaves two or three digits."""
    if amount is None:
        return UNKNOWN
    number, unit = float(amount), 0
    while number >= _STEP and unit < len(_UNITS) - 1:
        number, unit = number / _STEP, unit + 1
    return f"{number:.0f} {_UNITS[unit]}" if unit == 0 or number >= 10 else f"{number:.1f} {_UNITS[unit]}"  # noqa: PLR2004 - two digits suffice


def share(part: int, whole: int) -> str:
    """Bytes stored for a hundred sent, in plain digits; unknown from 100 % on, where what is not of the whole outweighs it."""
    percent = _WHOLE * part / whole if whole else _WHOLE
    if percent >= _WHOLE:
        return UNKNOWN
    if 0 < percent < _LEAST:
        return f"<{_LEAST}%"
    return f"{int(percent)}%" if percent >= _DIGITS else f"{percent:.2f}%"


def date(seconds: float | None) -> datetime | None:
    """A time as a date here; ``None`` when it is none (a log may hold any number)."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def minute(seconds: float | None) -> str:
    """A time to the minute."""
    found = date(seconds)
    return f"{found:%Y-%m-%d %H:%M}" if found else UNKNOWN


def python_spelling(character: str) -> str:
    """How a table or JSON for a person writes a character that the terminal's encoding lacks."""
    return character.encode("ascii", "backslashreplace").decode()
