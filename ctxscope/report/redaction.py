"""Secrets and home folders out of every text a report shows.

Known by shape only: key prefixes as their issuers document them, private keys, bearer tokens, JSON web tokens, home
folders. What is found becomes ``‹kind·length›``, length in characters. A secret of no known shape is not found.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

T = TypeVar("T")

_CUT = r"(?=…?\Z)"
"""A text that ends inside a secret has cut it off: there a shorter tail is enough."""
_WORD = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4}))"
"""Start of a word, an escaped line end before it in a JSON body being no letter."""


def _key(prefix: str, tail: str, least: int) -> str:
    return f"{prefix}(?:{tail}{{{least},}}|{tail}*{_CUT})"


_SHAPES: tuple[tuple[str, str], ...] = (
    (
        "private-key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    ("anthropic-key", _key("sk-ant-", r"[A-Za-z0-9_-]", 8)),
    ("openai-key", _key("sk-(?:proj|svcacct|admin)-", r"[A-Za-z0-9_-]", 8)),
    ("openrouter-key", _key("sk-or-v1-", r"[A-Za-z0-9]", 8)),
    ("api-key", _key(_WORD + "sk-", r"[A-Za-z0-9_-]", 16)),
    ("github-token", _key("(?:gh[oprsu]_|github_pat_)", r"[A-Za-z0-9_]", 16)),
    ("slack-token", _key("(?:xox[abeoprs]-|xapp-)", r"[A-Za-z0-9-]", 8)),
    ("aws-key", r"(?:AKIA|ASIA)[0-9A-Z]{16}" + "|" + _WORD + r"(?:AKIA|ASIA)[0-9A-Z]*" + _CUT),
    ("google-key", _key("AIza", r"[A-Za-z0-9_-]", 30)),
    ("gitlab-token", _key("gl(?:pat|rt|dt|cbt|ptt|soat)-", r"[A-Za-z0-9_.-]", 16)),
    ("huggingface-token", r"hf_[A-Za-z0-9]{24,}" + "|" + _WORD + r"hf_[A-Za-z0-9]*" + _CUT),
    ("npm-token", r"npm_[A-Za-z0-9]{30,}" + "|" + _WORD + r"npm_[A-Za-z0-9]*" + _CUT),
    ("jwt", r"eyJ[A-Za-z0-9_-]{8,}\.(?:[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?|[A-Za-z0-9_-]*" + _CUT + ")"),
    ("bearer", r"(?<=[Bb]earer )(?:(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{8,}|[A-Za-z0-9._~+/=-]{20,})"),
)
_SECRET = re.compile("|".join(f"(?P<k{i}>{shape})" for i, (_, shape) in enumerate(_SHAPES)))
_BEARER = "earer "
_HINT = re.compile(
    r"sk-|gh[oprsu]_|github_pat_|xox|xapp-|AKIA|ASIA|AIza|gl(?:pat|rt|dt|cbt|ptt|soat)-|hf_|npm_|eyJ|-----BEGIN|earer "
)
"""Where a secret may begin (or, after ``_BEARER``, follow): the shapes are tried only there, which is quick to find."""
_HOME = re.compile(
    r"(?:/home|/Users|/export/home|/var/home)/[^/\\\s\"'`:;,<>|()\[\]{}*?]+"
    r"|[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/)[^/\\\s\"'`:;,<>|]+"
    r"|(?<=[/\\\"'\s])-{1,2}(?:home|Users)-[^-/\\\s\"']+(?=-)"
)
"""Home folders by shape, and the form with dashes that agents use to name folders after a working directory."""
_TELLING_NAME = re.compile(
    r"(?i)(?:api|access|auth|private|secret|client)[-_]?(?:key|token|secret)|^(?:key|token|secret)$|passw|passphrase|authorization|credential|cookie"
)
_WINDOW = 16_384
"""Bytes of a body looked at on either side of an excerpt: more than the longest private key."""
_LEAST_PART = 4
"""Characters of a secret at the edge of an excerpt that are worth hiding."""


def _mark(kind: str, length: int) -> str:
    return f"‹{kind}·{length}›"


def _kind(match: re.Match[str]) -> str:
    return _SHAPES[int((match.lastgroup or "k0")[1:])][0]


class Redaction:
    """Replaces secrets and home folders; ``active=False`` changes nothing."""

    def __init__(self, home: str | None = None, *, active: bool = True) -> None:
        self.active = active
        own = (home or "").rstrip("/\\")
        spellings = [own, own.replace("\\", "\\\\")] if len(own) > 1 else []
        exact = [re.escape(s) + r"(?![A-Za-z0-9_.-])" for s in dict.fromkeys(spellings)]
        if len(own) > 1:
            exact.append(r"(?<=[/\\\"'\s])-{1,2}" + re.escape(re.sub(r"[/\\:]+", "-", own).strip("-")) + "(?=-)")
        self._home = re.compile("|".join([*exact, _HOME.pattern]))

    def __call__(self, text: str) -> str:
        """The text without secrets and home folders."""
        if not self.active:
            return text
        for match in reversed(list(_secrets(text))):
            text = text[: match.start()] + _mark(_kind(match), len(match[0])) + text[match.end() :]
        return self._home.sub(lambda m: _mark("home", len(m[0])), text)

    def excerpt(self, text: str, source: bytes | str | None, offset: int = 0) -> str:
        """A piece cut out of ``source`` near ``offset``: what its edges hold of a secret is hidden too."""
        if not self.active:
            return text
        return self(hide_parts(text, secrets_near(source, offset))) if source else self(text)

    def value(self, value: T) -> T:
        """A value of strings, collections and dataclasses with every string redacted, and all under telling names."""
        return cast("T", self._value(value)) if self.active else value

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {self(str(k)): self._named(str(k), v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            inner = [self._value(v) for v in value]
            return inner if isinstance(value, list) else tuple(inner)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            old = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            new = {name: self._value(v) for name, v in old.items()}
            changed = {name: v for name, v in new.items() if v != old[name]}
            return dataclasses.replace(value, **changed) if changed else value
        return value

    def _named(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and value and _TELLING_NAME.search(name):
            return _mark("secret", len(value))
        return self._value(value)


def _secrets(text: str) -> Iterator[re.Match[str]]:
    """Every secret in a text, from left to right."""
    end = 0
    for hint in _HINT.finditer(text):
        if hint.start() >= end:
            start = hint.end() if hint[0] == _BEARER else hint.start()
            if match := _SECRET.match(text, start):
                yield match
                end = match.end()


def secrets_near(source: bytes | str, offset: int) -> list[tuple[str, str]]:
    """Secrets of a body around an offset, as (kind, text)."""
    window = source[max(0, offset - _WINDOW) : offset + _WINDOW]
    text = window.decode("utf-8", "replace") if isinstance(window, bytes) else window
    return [(_kind(m), m[0]) for m in _secrets(text)]


def hide_parts(text: str, secrets: Iterable[tuple[str, str]]) -> str:
    """The text with the parts of secrets at its two edges replaced (an ellipsis at an edge stays)."""
    head = "…" if text.startswith("…") else ""
    body = text.removeprefix("…")
    tail = "…" if body.endswith("…") else ""
    body = body.removesuffix("…")
    for kind, secret in secrets:
        if body and body in secret:
            return head + _mark(kind, len(body)) + tail
        most = min(len(secret), len(body))
        sizes = range(most, _LEAST_PART - 1, -1)
        if cut := next((n for n in sizes if body.startswith(secret[-n:])), 0):
            body = _mark(kind, cut) + body[cut:]
        if cut := next((n for n in sizes if body.endswith(secret[:n])), 0):
            body = body[:-cut] + _mark(kind, cut)
    return head + body + tail
