"""Themes from TOML files. A bad one is told in one sentence and left out; the app starts without it.

Format: ``name`` (letters, digits, hyphens), ``dark`` (true or false), a table ``[colors]`` of base colours and a table
``[variables]`` of the colours with a meaning. Only ``name`` and ``colors.primary`` are required; what a theme leaves out
comes from ``DEFAULTS``. Colours are ``#rrggbb``, ``#rgb``, or a name Textual knows.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.color import Color, ColorParseError
from textual.theme import Theme

from ctxscope.tui import errors

if TYPE_CHECKING:
    from ctxscope.model import CtxscopeError

BASE = frozenset(
    {"primary", "secondary", "accent", "warning", "error", "success", "foreground", "background", "surface", "panel"}
)
DEFAULTS: Mapping[str, str] = {
    "served": "#e69f00",
    "served-emph": "#e69f00",
    "log": "#56b4e9",
    "log-emph": "#56b4e9",
    "mark-diverge": "#d55e00",
    "mark-break": "#f0e442",
    "mark-compact": "#cc79a7",
    "mark-truncated": "#e69f00",
    "seg-system": "#56b4e9",
    "seg-tools": "#009e73",
    "seg-messages": "#b0b0b0",
    "seg-results": "#e69f00",
    "seg-thinking": "#d487b0",
    "seg-new": "#ffffff",
    "live": "#009e73",
    "stale": "#909090",
    "search-hit": "#f0e442",
}
"""Colours with a meaning (Okabe and Ito's, told apart by every kind of colour vision), for themes that leave them out."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True)
class Themes:
    """What a folder holds."""

    themes: tuple[Theme, ...]
    problems: tuple[str, ...]
    """One sentence for each file that is no theme."""


def load(folders: Iterable[Path]) -> Themes:
    """All themes of the folders that exist; a later one replaces an earlier one of its name."""
    themes: dict[str, Theme] = {}
    problems = []
    for path in (p for folder in folders for p in sorted(folder.glob("*.toml"))):
        try:
            theme = read(path)
        except errors.ours() as error:
            problems.append(str(error))
        else:
            themes[theme.name] = theme
    return Themes(tuple(themes.values()), tuple(problems))


def read(path: Path) -> Theme:
    """One theme file; raises ``CtxscopeError`` naming the file and what is wrong with it."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _bad(path, f"not readable as TOML: {error}") from error
    unknown = data.keys() - {"name", "dark", "colors", "variables"}
    if unknown:
        raise _bad(path, f"unknown key {min(unknown)}; expected name, dark, colors, variables")
    name, dark = data.get("name"), data.get("dark", True)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _bad(path, "name must be letters, digits and hyphens")
    if not isinstance(dark, bool):
        raise _bad(path, "dark must be true or false")
    colors = _colours(path, "colors", data.get("colors", {}), BASE)
    if "primary" not in colors:
        raise _bad(path, "colors.primary is missing")
    variables = _colours(path, "variables", data.get("variables", {}), DEFAULTS.keys())
    return Theme(name=name, dark=dark, variables=variables, **colors)  # type: ignore[arg-type]  # only colour fields pass


def _bad(path: Path, why: str) -> CtxscopeError:
    return errors.ours()(f"theme {path.name}: {why}")


def _colours(path: Path, table: str, given: Any, known: Iterable[str]) -> dict[str, str]:
    if not isinstance(given, dict):
        raise _bad(path, f"{table} must be a table")
    for key, value in given.items():
        if key not in known:
            raise _bad(path, f"{table} has no colour named {key}")
        try:
            Color.parse(value)
        except (ColorParseError, TypeError, AttributeError) as error:
            raise _bad(path, f"{table}.{key} is not a colour") from error
    return dict(given)
