"""Secrets out of everything that reaches disk beside bodies: an allow-list, not a list of secrets.

What is cut becomes ``<cut:N:hash>``; the hash is salted with bytes that are never stored, so that two keys can be
told apart within a recording and none can be guessed from it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from ctxscope.capture.events import Headers

_HEADERS = frozenset(
    (
        *("accept", "accept-encoding", "connection", "date", "expect", "host", "transfer-encoding", "upgrade"),
        *("user-agent", "originator", "x-app", "x-initiator", "x-interaction-type", "x-goog-api-client"),
        *("anthropic-version", "anthropic-beta", "anthropic-dangerous-direct-browser-access"),
        *("openai-beta", "openai-version", "openai-processing-ms", "openai-model"),
        *("request-id", "x-request-id", "x-client-request-id", "x-goog-request-id", "x-ms-request-id"),
        *("apim-request-id", "x-amzn-requestid", "x-generation-id", "retry-after", "retry-after-ms", "x-should-retry"),
        *("session-id", "session_id", "thread-id", "thread_id", "turn-id", "conversation-id", "conversation_id"),
        *("x-session-id", "x-session-affinity", "x-parent-session-id", "x-thread-id", "x-turn-id", "x-conversation-id"),
        *("x-opencode-session", "x-opencode-request", "x-opencode-client"),
        *("x-deepseek-harness-session-id", "x-deepseek-harness-compact"),
        *("sec-websocket-extensions", "sec-websocket-version"),
    )
)
"""What joins and readers need: names seen in recorded traffic (engineering §6.3, wire_formats §4) and their kin."""
_FAMILIES = ("content-", "x-stainless-", "x-claude-code-", "x-codex-")
_LIMITS = "ratelimit"
_TELLING = re.compile(r"key|token|secret|auth|cookie|passw|credential|account|organi[sz]ation|user|signature")
"""In the name of a family's member: that one is cut all the same."""
_QUERY = frozenset(("alt", "beta", "stream", "model", "limit", "order", "version", "api-version", "client_version"))
_PLAIN = re.compile(r"[A-Za-z0-9._:,-]{0,64}")
"""A value of these holds nothing but a word."""
_KNOWN = re.compile(
    r"\b(?:Bearer|Basic)\s+[\w./+=~-]{8,}|"
    r"(?<![A-Za-z0-9])(?:sk-|sk_|pk_|rk_|AIza|ya29\.|gh[opsur]_|github_pat_|glpat-|xox[a-z]-|xai-|hf_|gsk_|r8_|npm_|"
    r"AKIA|ASIA|eyJ)[\w.=~-]{8,}"
)
"""Secrets by their beginnings, as their issuers publish them for scanners."""
_LOGIN = re.compile(r"(?<=://)[^/\s@?#\"'<>]+@")
_ADDRESS = re.compile(r"(?<=://)[^\s\"'<>]+|(?<=\S)\?[^\s\"'<>=?]*=[^\s\"'<>]*")
"""In words for a person: what follows a scheme, or a query without one."""
_NAMED = re.compile(
    r"(?i)([\w-]*(?:api[-_]?key|token(?!s)|secret|passw(?:or)?d|authorization|credential|cookie)[\w-]*[\"']?\s*[=:]\s*)"
    r"(?!//|<cut:)([^\s&,;]+)"
)
_FIRST_STEP = re.compile(r"(?<=://)((?:127(?:\.\d+){3}|localhost|\[::1\])(?::\d+)?/)([\w-]{12,})")
"""What a loopback address begins its path with may be the token of a proxy."""
_TOKEN = re.compile(r"(?<=\A/)[\w-]{32}(?=/(?:localhost|[^/]+[.:][^/]+)(?:/|\Z))")
"""In a path, with the host behind it that such a proxy expects (``proxy``)."""
_WORD = re.compile(r"[A-Za-z0-9_-]{16,}")
_RANDOM = 0.25
"""Changes between small letters, capitals and digits for each character: a random word has 0.45 to 0.65,
``ClientConnectorCertificateError`` 0.2, ``interleaved-thinking-2025-05-14`` 0.03."""
_HEXADECIMAL = re.compile(r"(?=.*[0-9])(?=.*[A-Fa-f])[0-9A-Fa-f-]+")
_OPTION = re.compile(r"--[a-z][a-z0-9-]*|-[A-Za-z0-9]")


class Cutter:
    """Cuts with one salt."""

    def __init__(self, salt: bytes | None = None) -> None:
        """``salt``: up to 64 bytes, never stored; the same make the same of a value, random ones are taken otherwise."""
        self._salt = salt or os.urandom(16)

    def headers(self, headers: Headers) -> list[list[str]]:
        """Headers as they may be stored: every name, and the values of those allowed."""
        return [[name, _without_known(value) if is_allowed(name) else self.cut(value)] for name, value in headers]

    def target(self, target: str) -> str:
        """A path and query: every value of the query is cut that is not a word under an allowed name.

        So is the token of another proxy of ours, where that one is what the request goes to.
        """
        path, mark, query = _without_known(target).partition("?")
        path = _TOKEN.sub(lambda m: self.cut(m[0]), path)
        return path + mark + _query(query, self.cut) if mark else path

    def cut(self, value: str) -> str:
        """What stands for a secret."""
        data = value.encode("utf-8", "surrogatepass")
        told = hashlib.blake2b(data, digest_size=4, key=self._salt).hexdigest()
        return f"<cut:{len(data)}:{told}>"


def is_allowed(name: str) -> bool:
    """Whether a header's value may be stored."""
    low = name.lower()
    if low in _HEADERS or _LIMITS in low:
        return True
    return low.startswith(_FAMILIES) and not _TELLING.search(low)


def text(words: str) -> str:
    """Words for a person (what a failure was, what was set) without named or known secrets and random words.

    Of every address in them stay the origin, the path, and of the query what ``Cutter.target`` lets stay.
    """
    words = _without_known(_ADDRESS.sub(lambda m: _address(m[0]), words))
    words = _FIRST_STEP.sub(lambda m: m[1] + _length(m[2]), words)
    words = _NAMED.sub(lambda m: m[1] + _length(m[2]), words)
    return _WORD.sub(lambda m: _length(m[0]) if _is_random(m[0]) else m[0], words)


def origin(url: str) -> str:
    """Where an upstream is, without a login or query."""
    return _without_known(url).partition("?")[0].partition("#")[0]


def command(argv: Sequence[str]) -> list[str]:
    """The program's own name and the names of its options, up to ``--``; values may be anything."""
    if not argv:
        return []
    return [text(re.split(r"[/\\]", argv[0])[-1]), *_options(argv[1:])]


def _options(arguments: Sequence[str]) -> Iterator[str]:
    for argument in arguments:
        if argument == "--":
            return
        found = _OPTION.match(argument)
        if found is not None and (found[0].startswith("--") or len(argument) == len(found[0])):
            yield text(found[0])


def _address(found: str) -> str:
    """Without login and fragment, its query cut."""
    place, mark, query = found.partition("#")[0].partition("?")
    host, slash, path = place.partition("/")
    return host.rpartition("@")[2] + slash + path + mark + _query(query, _length)


def _query(query: str, cut: Callable[[str], str]) -> str:
    return "&".join(_pair(pair, cut) for pair in query.split("&"))


def _pair(pair: str, cut: Callable[[str], str]) -> str:
    name, mark, value = pair.partition("=")
    if not value and (mark or name in _QUERY or not name):
        return pair
    if not mark:
        return cut(name)
    return pair if name in _QUERY and _PLAIN.fullmatch(value) else f"{name}={cut(value)}"


def _without_known(words: str) -> str:
    """Without logins in URLs and secrets that tell themselves by how they begin."""
    return _KNOWN.sub(lambda m: _length(m[0]), _LOGIN.sub("", words))


def _length(secret: str) -> str:
    return f"<cut:{len(secret)}>"


def _is_random(word: str) -> bool:
    if _HEXADECIMAL.fullmatch(word):
        return True
    kinds = [c.isdigit() * 2 + c.isupper() for c in word if c.isalnum()]
    return sum(a != b for a, b in pairwise(kinds)) >= _RANDOM * len(word)
