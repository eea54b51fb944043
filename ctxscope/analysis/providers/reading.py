"""A provider's rules file: TOML with a source and a date on every row.

Form: ``provider`` (lower case), ``title``, optional ``based_on`` (another provider, whose rows come before); tables
``[[match]]`` say which requests are its own (``host``, ``path``, ``model``, ``api``, ``header``, ``name``; a row
matches when all it names do); tables ``[[rule]]`` say ``what`` and ``value``. Each has ``source``, ``date`` and, a rule, ``known``;
a rule may name ``models``, ``apis`` and ``when`` (``marked``). A later row for the same thing wins. What a rule may say stands in ``WORDS`` and ``_VALUES``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, get_args

from ctxscope.analysis.providers.rules import (
    DIFFERENCES,
    Boundary,
    Known,
    Level,
    Mode,
    Ready,
    Row,
    Visibility,
)
from ctxscope.model import CtxscopeError

WORDS: Mapping[str, tuple[str, ...]] = {
    "mode": get_args(Mode),
    "boundary": get_args(Boundary),
    "ready": get_args(Ready),
    "reasoning": ("kept", "last_turn", "unknown"),
}
PARAM, VISIBLE = "param.", "visible."
"""What begins so is of a request's parameter, or of a difference between two bodies."""
_PARAM_EXTRA = ("default", "hidden", "defaults")
_MATCHED = ("host", "path", "model", "api", "header", "name")
_ROW = ("what", "value", "source", "date", "known", "models", "apis", "when")
_WHEN = ("marked", "unmarked")


@dataclass(frozen=True, slots=True)
class Match:
    """What a request must be like to be of a provider; globs, all of them, in lower case but for ``path``."""

    wants: tuple[tuple[str, str], ...]
    source: str
    date: date


@dataclass(frozen=True, slots=True)
class RulesFile:
    """A provider as its file says it."""

    provider: str
    title: str
    based_on: str | None
    matches: tuple[Match, ...]
    rows: tuple[Row, ...]


def read(path: Path) -> RulesFile:
    """One rules file; raises ``CtxscopeError`` naming the file, the row, what was found and what was expected."""
    where = f"rules {path.name}"
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # what TOML's and UTF-8's own errors are, and huge numbers
        raise CtxscopeError(f"{where}: not readable as TOML: {error}") from error
    unknown = data.keys() - {"provider", "title", "based_on", "match", "rule"}
    if unknown:
        raise CtxscopeError(f"{where}: unknown key {min(unknown)}; expected provider, title, based_on, match, rule")
    provider = _text(data, "provider", where)
    if provider != provider.lower():
        raise CtxscopeError(f"{where}: provider is {provider!r}; expected lower case")
    based_on = data.get("based_on")
    if based_on is not None and not isinstance(based_on, str):
        raise CtxscopeError(f"{where}: based_on is no text; expected a provider")
    return RulesFile(
        provider,
        _text(data, "title", where) if "title" in data else provider,
        based_on,
        tuple(_match(table, f"{where}: match {n}") for n, table in enumerate(_tables(data, "match", where), 1)),
        tuple(_row(table, f"{where}: rule {n}") for n, table in enumerate(_tables(data, "rule", where), 1)),
    )


def _tables(data: Mapping[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    tables = data.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise CtxscopeError(f"{where}: {name} is {type(tables).__name__}; expected tables [[{name}]]")
    return tables


def _match(table: Mapping[str, Any], where: str) -> Match:
    _only(table, (*_MATCHED, "source", "date"), where)
    wants = tuple((name, _text(table, name, where)) for name in _MATCHED if name in table)
    if not wants:
        raise CtxscopeError(f"{where}: names nothing; expected one of {', '.join(_MATCHED)}")
    return Match(
        tuple((n, v if n == "path" else v.lower()) for n, v in wants),
        _text(table, "source", where),
        _date(table, where),
    )


def _row(table: Mapping[str, Any], where: str) -> Row:
    what = _text(table, "what", where)
    where = f"{where} ({what})"
    param = what.startswith(PARAM)
    _only(table, (*_ROW, *(_PARAM_EXTRA if param else ())), where)
    value = table.get("value")
    expected = _expected(what, value)
    if expected:
        raise CtxscopeError(f"{where}: value is {value!r}; expected {expected}")
    for name, kind, words in _EXTRA_KINDS if param else ():
        if name in table and not kind(table[name]):
            raise CtxscopeError(f"{where}: {name} is {table[name]!r}; expected {words}")
    known = table.get("known", "documented")
    if known not in get_args(Known):
        raise CtxscopeError(f"{where}: known is {known!r}; expected one of {', '.join(get_args(Known))}")
    return Row(
        what,
        value,
        _text(table, "source", where),
        _date(table, where),
        known,
        _texts(table, "models", where),
        _texts(table, "apis", where),
        _when(table, where),
        {k: table[k] for k in _PARAM_EXTRA if k in table},
    )


def _expected(what: str, value: Any) -> str:
    """What a value should have been; empty when it is right."""
    if what.startswith(PARAM):
        return _one_of(value, get_args(Level))
    if what.startswith(VISIBLE):
        name = what.removeprefix(VISIBLE)
        if name not in DIFFERENCES:
            return f"no such difference; one of {', '.join(sorted(DIFFERENCES))} behind {VISIBLE}"
        return _one_of(value, get_args(Visibility))
    if what in WORDS:
        return _one_of(value, WORDS[what])
    for names, is_right, words in _VALUES:
        if what in names:
            return "" if is_right(value) else words
    every = (*WORDS, *(name for names, _, _ in _VALUES for name in names), PARAM + "NAME", VISIBLE + "DIFFERENCE")
    return f"no value: nothing is called {what}; one of {', '.join(every)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LARGEST


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_whole, value))  # noqa: PLR2004 - a pair


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


_LARGEST = 10**15
_EXTRA_KINDS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("hidden", _is_list, "a list of members"),
    ("defaults", _is_table, "a table of members"),
)
_VALUES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("step", "slack", "tolerance", "minimum", "lookback"), _is_whole, "a whole number of tokens or blocks"),
    (("overhead_message", "overhead_reply", "document_page"), _is_whole, "a whole number of tokens"),
    (("overhead_tools",), _is_pair, "two whole numbers of tokens: the model's choice, a call demanded"),
    (("ttl", "ttl_long"), _is_number, "seconds"),
    (("price_write", "price_write_long", "price_read"), _is_number, "a multiple of the price of an input token"),
    (("money",), _is_number, "the price of a million input tokens"),
    (("currency",), _is_text, "a currency"),
    (("writes", "ttl_sure", "promised", "local"), _is_flag, "true or false"),
    (("routes", "isolates"), _is_list, "a list of parameters and headers"),
)
"""Names, what their values must be, and that in words; beside ``WORDS``."""


def _one_of(value: Any, words: tuple[str, ...]) -> str:
    return "" if value in words else f"one of {', '.join(words)}"


def _only(table: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    unknown = table.keys() - set(names)
    if unknown:
        raise CtxscopeError(f"{where}: unknown key {min(unknown)}; expected {', '.join(names)}")


def _text(table: Mapping[str, Any], name: str, where: str) -> str:
    value = table.get(name)
    if not isinstance(value, str) or not value:
        raise CtxscopeError(f"{where}: {name} is {value!r}; expected a text")
    return value


def _texts(table: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise CtxscopeError(f"{where}: {name} is {value!r}; expected a list of globs")
    return tuple(value)


def _when(table: Mapping[str, Any], where: str) -> str:
    value = table.get("when", "")
    if value not in ("", *_WHEN):
        raise CtxscopeError(f"{where}: when is {value!r}; expected {' or '.join(_WHEN)}")
    return str(value)


def _date(table: Mapping[str, Any], where: str) -> date:
    value = table.get("date")
    if not isinstance(value, date) or isinstance(value, datetime):
        raise CtxscopeError(f"{where}: date is {value!r}; expected a day such as 2026-11-29, when the source was read")
    return value
