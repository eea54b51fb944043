"""Which provider a request went to, and how that provider caches prompts.

The rules come with the program as TOML files in this folder; a user's files of the same form come on top: one of a
provider's name adds rows to it, or makes a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ctxscope.analysis.providers.reading import PARAM, VISIBLE, Match, RulesFile, read
from ctxscope.analysis.providers.rules import Param, Row, Rules
from ctxscope.model import CtxscopeError

UNKNOWN = "unknown"
"""The provider of a request whose upstream is none of those known."""
_HERE = Path(__file__).resolve().parent
_LOOPBACK = ("localhost", "127.*", "::1", "0.0.0.0")  # noqa: S104 - a name that is compared, nothing listens there


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of where a request went."""

    upstream: str | None = None
    """Scheme and host it really went to."""
    path: str = ""
    model: str | None = None
    api: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of the request; lower-case names."""
    name: str | None = None
    """What the agent's log calls the provider; heeded only where nothing was served."""

    @property
    def host(self) -> str:
        """The upstream's host, or the one the client named; empty for a loopback address, which is nobody's name."""
        url = self.upstream or ("//" + self.headers["host"] if self.headers.get("host") else "")
        try:
            host = (urlsplit(url).hostname or "").lower()
        except ValueError:
            return ""
        return "" if any(fnmatchcase(host, pattern) for pattern in _LOOPBACK) else host


class Providers:
    """All providers known: the bundled files, and those of the user on top of them."""

    def __init__(self, own: Iterable[Path] = (), chosen: str | None = None) -> None:
        """``own``: rules files of the user, read in order. ``chosen``: the provider of every request, or a file of its own.

        Raises ``CtxscopeError`` for a file that is none, and for a provider nobody knows.
        """
        files = [*_bundled()]
        extra = [read(path) for path in own]
        if chosen is not None and chosen.endswith(".toml"):
            extra.append(read(Path(chosen)))
            chosen = extra[-1].provider
        self._files: dict[str, list[RulesFile]] = {}
        for file in (*files, *extra):
            self._files.setdefault(file.provider, []).append(file)
        self._ordered = [*reversed(extra), *files]
        """Whose matches are tried first: the user's last file."""
        for name in (chosen, *(f.based_on for f in extra)):
            if name is not None and name not in self._files:
                raise CtxscopeError(
                    f"provider {name}: not known; expected one of {', '.join(self.names)}, or a file .toml"
                )
        self.chosen = chosen
        wants = (want for f in self._ordered for m in f.matches for want in m.wants)
        self._headers = sorted({v.partition(":")[0].strip() for w, v in wants if w == "header"})
        """Names of the headers that tell a provider."""
        self._known: dict[tuple[str | None, ...], str] = {}
        """Providers by all that tells them."""
        self._rules: dict[tuple[str, str | None, str | None, bool], Rules] = {}

    @property
    def names(self) -> list[str]:
        """Identifiers of all providers but the unknown one."""
        return sorted(name for name in self._files if name != UNKNOWN)

    def identify(self, seen: Seen) -> str:
        """The provider a request went to; the user's choice where there is one."""
        if self.chosen is not None:
            return self.chosen
        host = seen.host
        told = (seen.headers.get(name) for name in self._headers)
        key = (host, seen.path.partition("?")[0], seen.model, seen.api, seen.name, *told)
        if key not in self._known:
            found = (f.provider for f in self._ordered if any(_matches(m, seen, host) for m in f.matches))
            self._known[key] = next(found, UNKNOWN)
        return self._known[key]

    def rules(self, provider: str, model: str | None = None, api: str | None = None, *, marked: bool = False) -> Rules:
        """How a provider caches the prompts of a model; the same object whenever asked for the same.

        ``marked``: of requests with cache marks, where that makes a difference.
        """
        name = (provider, model, api, marked)
        found = self._rules.get(name)
        if found is None:
            rows = [row for row in self._rows(provider, ()) if row.when in ("", "marked" if marked else "unmarked")]
            found = self._rules[name] = _rules(provider, rows, self._title(provider), model, api)
        return found

    def _title(self, provider: str) -> str:
        return self._files[provider][-1].title if provider in self._files else provider

    def _rows(self, provider: str, above: Sequence[str]) -> list[Row]:
        """A provider's rows, those of the one it is based on first."""
        if provider in above:
            raise CtxscopeError(f"provider {provider}: based on itself, by way of {', '.join(above)}")
        files = self._files.get(provider, [])
        bases = dict.fromkeys(f.based_on for f in files if f.based_on is not None)
        rows = [row for base in bases for row in self._rows(base, (*above, provider))]
        return [*rows, *(row for file in files for row in file.rows)]


@lru_cache(1)
def _bundled() -> tuple[RulesFile, ...]:
    return tuple(read(path) for path in sorted(_HERE.glob("*.toml")))


def _matches(match: Match, seen: Seen, host: str) -> bool:
    return all(_has(seen, host, what, pattern) for what, pattern in match.wants)


def _has(seen: Seen, host: str, what: str, pattern: str) -> bool:
    if what == "header":
        name, _, wanted = pattern.partition(":")
        value = seen.headers.get(name.strip())
        return value is not None and fnmatchcase(value.lower(), wanted.strip() or "*")
    if what == "path":
        return fnmatchcase(seen.path.partition("?")[0], pattern)
    if what == "name":
        return fnmatchcase((seen.name or "").lower(), pattern)
    value = host if what == "host" else (seen.model if what == "model" else seen.api) or ""
    return bool(value) and fnmatchcase(value.lower(), pattern)


def _rules(provider: str, rows: Iterable[Row], title: str, model: str | None, api: str | None) -> Rules:
    """The rows that hold for a model and an API, each thing as its last row says it."""
    held = {
        row.what: row for row in rows if _holds(row.models, model) and (not row.apis or (api or "") in row.apis)
    }  # a row for some models must not be undone by a later general one: files list the general ones first
    plain = {w: tuple(r.value) if isinstance(r.value, list) else r.value for w, r in held.items() if "." not in w}
    params = {w.removeprefix(PARAM): _param(r) for w, r in held.items() if w.startswith(PARAM)}
    visible = {w.removeprefix(VISIBLE): r.value for w, r in held.items() if w.startswith(VISIBLE)}
    values: dict[str, Any] = {**plain, "params": params, "visible": visible, "rows": held}
    return Rules(provider, title, **values)


def _holds(models: tuple[str, ...], model: str | None) -> bool:
    name = (model or "").lower()
    return not models or any(fnmatchcase(name, pattern.lower()) for pattern in models)


def _param(row: Row) -> Param:
    extra = row.extra
    return Param(
        row.value,
        extra.get("default"),
        tuple(extra.get("hidden", ())),
        extra.get("defaults", {}),
        sure=row.known == "documented" and not row.models,
    )
