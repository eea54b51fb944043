"""Secrets and home folders out of every text a report shows.

What is found becomes ``‹kind·length›``, length in characters of what was replaced. A text cut out of a larger one is
judged by what stands around it there: a piece of a key has no shape of its own.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any, TypeVar, cast

from ctxscope.report.escapes import Reading, readings
from ctxscope.report.shapes import Span, secrets

T = TypeVar("T")

_HOMES = (
    (("/home/", "/Users/"), r"(?:/home|/Users|/export/home|/var/home)/[^/\\\s\"'`:;,<>|()\[\]{}*?]+"),
    (("Users",), r"[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/)[^/\\\s\"'`:;,<>|]+"),
    (("/root",), r"(?:(?<=file://)|(?<![\w.~/$}\\-]))/root(?![\w.-])"),
    (("-home-", "-Users-", "-root-"), r"(?<=[/\\])-{1,2}(?:(?:home|Users)-[^-/\\\s\"']+|root)(?=-)"),
    (("-home-", "-Users-"), r"(?<=[\"'\s])--(?:home|Users)-[^-/\\\s\"']+(?=-[^/\\\s\"']*--(?:[\"'\s]|\Z))"),
)
"""Home folders by shape, with what a text that holds one must hold, and the form with dashes that agents use to name
folders after a working directory."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_TELLING = frozenset(
    (
        *("key", "keys", "apikey", "apikeys", "token", "secret", "secrets", "credential", "credentials", "pat"),
        *("password", "passwords", "passwd", "pass", "pwd", "passphrase", "authorization", "cookie", "cookies"),
    )
)
"""Last words of a name that says its value is a secret."""
_GRANTING = frozenset(("access", "api", "auth", "bearer", "bot", "refresh", "session", "user"))
"""Before ``tokens``: those are secrets, while ``max_tokens`` are counted."""
_WINDOW = 16_384
"""Bytes of a body looked at on either side of an excerpt: more than the longest private key."""
_HALF_CHARACTER = re.compile(r"(?:\\x[0-9a-f]{2}){1,3}\Z")
"""What is left of a character in which an excerpt ends."""
_BEFORE = 40
"""An excerpt begins at most so many characters before its offset."""
_PIECE = 8
"""Characters that a text must share with a known secret to be a piece of it."""
_COMMON = frozenset(("url-login",))
"""Kinds whose pieces are ordinary words."""
_REMEMBERED = 32
"""Texts whose secrets are kept."""


def mark(kind: str, length: int) -> str:
    """What stands in place of a secret."""
    return f"‹{kind}·{length}›"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A body around an offset."""

    text: str
    near: int
    """The offset in ``text``."""
    spans: tuple[Span, ...]
    """Secrets and home folders there."""
    known: tuple[tuple[str, str], ...]
    """Its secrets as (kind, text), also as they read without escapes."""


@dataclass(frozen=True, eq=False)
class Redaction:
    """Replaces secrets and home folders."""

    home: str | None = None
    """The user's own, beside the forms known by shape."""
    active: bool = field(default=True, kw_only=True)
    """When false, nothing is changed."""
    pieces: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """Pieces of secrets met elsewhere, and their kinds; hidden wherever they stand."""
    looked: dict[str, tuple[tuple[Span, ...], tuple[tuple[str, str], ...]]] = field(default_factory=dict, kw_only=True)
    """Texts looked at last, with what was found: calls that differ at one place have the same surroundings."""

    @cached_property
    def _homes(self) -> list[tuple[tuple[str, ...], re.Pattern[str]]]:
        own = (self.home or "").rstrip("/\\")
        spellings = [own, own.replace("\\", "\\\\")] if len(own) > 1 else []
        homes = [((s,), re.escape(s) + r"(?![A-Za-z0-9_.-])") for s in dict.fromkeys(spellings)]
        if len(own) > 1:
            dashed = re.sub(r"[/\\:]+", "-", own).strip("-")
            homes.append(((dashed,), r"(?<=[/\\\"'\s])-{1,2}" + re.escape(dashed) + "(?=-)"))
        return [(literals, re.compile(pattern)) for literals, pattern in (*homes, *_HOMES)]

    def knowing(self, known: Iterable[tuple[str, str]]) -> Redaction:
        """The same, which also hides every piece of secrets met elsewhere, given as (kind, text)."""
        pieces = {s[i : i + _PIECE]: kind for kind, s in known for i in range(len(s) - _PIECE + 1)}
        return dataclasses.replace(self, pieces={**self.pieces, **pieces}) if pieces else self

    def __call__(self, text: str) -> str:
        """The text without secrets and home folders."""
        return _without(text, self._spans(text)) if self.active else text

    def around(self, source: bytes | str | None, offset: int = 0) -> Surroundings:
        """What stands around an offset (bytes of a body, characters of a text), for the excerpts cut out there."""
        if not source or not self.active:
            return Surroundings("", 0, (), ())
        low = max(offset - _WINDOW, 0)
        if isinstance(source, str):
            window, near = source[low : offset + _WINDOW], offset - low
        else:
            window = source[low : offset + _WINDOW].decode("utf-8", "backslashreplace")
            near = len(source[low:offset].decode("utf-8", "backslashreplace"))
        spans, known = self._looked_at(window)
        return Surroundings(window, near, spans, known)

    def excerpt(self, text: str, around: Surroundings) -> str:
        """A piece cut out where ``around`` says, judged by what stands there before and behind it."""
        if not self.active:
            return text
        whole, places = text, list(_occurrences(text, around))
        if not places:
            whole = _HALF_CHARACTER.sub("", text)
            places = list(_occurrences(whole, around))
        if not places:
            return self(text)
        inside = [(max(a - at, 0), min(b - at, len(whole)), kind) for at in places for a, b, kind in around.spans]
        return _without(text, _merged([*(s for s in inside if s[0] < s[1]), *self._pieces_in(readings(text))]))

    def known(self, text: str) -> tuple[tuple[str, str], ...]:
        """Secrets of a text as (kind, text), also as they read without escapes."""
        return self._looked_at(text)[1] if self.active else ()

    def value(self, value: T) -> T:
        """A value of strings, collections and dataclasses with every string redacted, and all under telling names."""
        return cast("T", self._value(value)) if self.active else value

    def _spans(self, text: str) -> list[Span]:
        """What is to be replaced, in order and apart from each other."""
        looked, _ = self._looked_at(text)
        return _merged([*looked, *self._pieces_in(readings(text))]) if self.pieces else list(looked)

    def _looked_at(self, text: str) -> tuple[tuple[Span, ...], tuple[tuple[str, str], ...]]:
        """Spans by shape and the secrets among them in every reading; calls that differ at one place share it."""
        if text not in self.looked:
            found: list[Span] = []
            known: list[tuple[str, str]] = []
            for reading in readings(text):
                spans = _merged(secrets(reading.text))
                known += [(kind, reading.text[a:b]) for a, b, kind in spans if kind not in _COMMON]
                spans += self._home_folders(reading.text)
                found += [(reading.back(a), reading.back(b), kind) for a, b, kind in spans]
            if len(self.looked) >= _REMEMBERED:
                self.looked.clear()
            self.looked[text] = tuple(_merged(found)), tuple(dict.fromkeys(known))
        return self.looked[text]

    def _pieces_in(self, read: Iterable[Reading]) -> Iterator[Span]:
        for reading in read if self.pieces else ():
            for i in range(len(reading.text) - _PIECE + 1):
                kind = self.pieces.get(reading.text[i : i + _PIECE])
                if kind is not None:
                    yield reading.back(i), reading.back(i + _PIECE), kind

    def _home_folders(self, text: str) -> Iterator[Span]:
        for literals, pattern in self._homes:
            if any(literal in text for literal in literals):
                yield from ((*match.span(), "home") for match in pattern.finditer(text))

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, bytes):
            return self(value.decode("utf-8", "backslashreplace"))
        if isinstance(value, PurePath):
            return self(str(value))
        if isinstance(value, Mapping):
            return {self(str(k)): self._named(str(k), v) for k, v in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            inner = [self._value(v) for v in value]
            return inner if isinstance(value, list) else type(value)(inner)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            old = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            new = {name: self._value(v) for name, v in old.items()}
            changed = {name: v for name, v in new.items() if v != old[name]}
            return dataclasses.replace(value, **changed) if changed else value
        return value

    def _named(self, name: str, value: Any) -> Any:
        if value is None or isinstance(value, bool) or value in ("", 0) or not _is_telling(name):
            return self._value(value)
        return mark("secret", len(str(value)))


def _is_telling(name: str) -> bool:
    """Whether a name, dotted or not, says that its value is a secret."""
    *before, last = [word.lower() for word in _WORDS.findall(name)] or [""]
    if last == "id" and before:  # access_key_id
        *before, last = before
    return last in _TELLING or (last == "tokens" and bool(before) and before[-1] in _GRANTING)


def _occurrences(text: str, around: Surroundings) -> Iterator[int]:
    """Where an excerpt may begin; several places in a text that repeats itself."""
    at = around.text.find(text, max(around.near - _BEFORE, 0)) if text else -1
    while 0 <= at <= around.near:
        yield at
        at = around.text.find(text, at + 1)


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Spans in order; overlapping ones become one, of the kind that begins first and reaches farthest."""
    out: list[Span] = []
    for start, end, kind in sorted(spans, key=lambda s: (s[0], -s[1])):
        if out and start < out[-1][1]:
            first = out[-1]
            out[-1] = (first[0], max(first[1], end), first[2])
        else:
            out.append((start, end, kind))
    return out


def _without(text: str, spans: Iterable[Span]) -> str:
    parts: list[str] = []
    end = 0
    for start, stop, kind in spans:
        parts += (text[end:start], mark(kind, stop - start))
        end = stop
    return "".join((*parts, text[end:]))
