"""Secrets as their issuers document them, and values that a header, an address or an assignment gives away.

Known by shape only. A secret of no known shape, under no telling name, is not found.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

Span = tuple[int, int, str]
"""Start, end and kind of a secret in a text."""

_CUT = r"(?=…?\Z)"
"""A text that ends inside a secret has cut it off: there a shorter tail is enough."""
_WORD = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4}))"
"""Start of a word, an escaped line end before it in a JSON body being no letter."""


@dataclass(frozen=True, slots=True)
class _Shape:
    kind: str
    literals: tuple[str, ...]
    """What it begins with: quick to look for, and the pattern is tried only there."""
    pattern: re.Pattern[str]


def _key(kind: str, begins: str, tail: str, least: int, *, word: bool = False, cut: int = 0) -> _Shape:
    """A prefix and a tail of at least so many characters (``cut`` where the text ends); ``begins`` by ``|``."""
    literals = tuple(begins.split("|"))
    prefix = "|".join(map(re.escape, literals))
    rest = f"(?:{tail}{{{least},}}|{tail}{{{cut},}}{_CUT})"
    return _Shape(kind, literals, re.compile(f"{_WORD if word else ''}(?:{prefix}){rest}"))


_ALNUM, _URLSAFE = "[A-Za-z0-9]", "[A-Za-z0-9_-]"
_MIXED = "(?=[A-Za-z_-]{0,200}[0-9])"
"""A digit among the first characters: words joined by dashes have none. Bounded, like all that may fail far ahead."""

_SHAPES = (
    _key("anthropic-key", "sk-ant-", _URLSAFE, 8),
    _key("openai-key", "sk-proj-|sk-svcacct-|sk-admin-", _URLSAFE, 8),
    _key("openrouter-key", "sk-or-v1-", _ALNUM, 8),
    _Shape(
        "api-key",
        ("sk-",),
        re.compile(f"{_WORD}sk-(?:{_ALNUM}{{16,}}|{_MIXED}{_URLSAFE}{{16,}}|(?:{_ALNUM}*|{_MIXED}{_URLSAFE}*){_CUT})"),
    ),
    _key("github-token", "ghp_|gho_|ghr_|ghs_|ghu_|github_pat_", "[A-Za-z0-9_]", 16),
    _key("slack-token", "xoxa-|xoxb-|xoxe-|xoxo-|xoxp-|xoxr-|xoxs-|xapp-", "[A-Za-z0-9-]", 8),
    _Shape(
        "aws-key",
        ("AKIA", "ASIA"),
        re.compile(rf"(?:AKIA|ASIA)[0-9A-Z]{{16}}|{_WORD}(?:AKIA|ASIA)[0-9A-Z]*{_CUT}"),
    ),
    _key("google-key", "AIza", _URLSAFE, 30),
    _key("google-token", "ya29.", "[A-Za-z0-9._-]", 16, word=True, cut=4),
    _key("google-secret", "GOCSPX-", _URLSAFE, 16),
    _key("gitlab-token", "glpat-|glrt-|gldt-|glcbt-|glptt-|glsoat-", "[A-Za-z0-9_.-]", 16),
    _key("huggingface-token", "hf_", _ALNUM, 24, word=True),
    _key("npm-token", "npm_", _ALNUM, 30, word=True),
    _key("groq-key", "gsk_", _ALNUM, 16, word=True),
    _key("xai-key", "xai-", _ALNUM, 16, word=True, cut=4),
    _key("perplexity-key", "pplx-", _ALNUM, 16, word=True, cut=4),
    _key("nvidia-key", "nvapi-", _URLSAFE, 16, word=True),
    _key("replicate-token", "r8_", _ALNUM, 16, word=True, cut=4),
    _key("stripe-key", "sk_live_|rk_live_|sk_test_|rk_test_", _ALNUM, 10, word=True),
    _key("webhook-secret", "whsec_", "[A-Za-z0-9+/=_-]", 10, word=True),
    _Shape(
        "sendgrid-key",
        ("SG.",),
        re.compile(rf"{_WORD}SG\.(?:{_URLSAFE}{{16,}}\.{_URLSAFE}{{16,}}|{_URLSAFE}{{4,}}(?:\.{_URLSAFE}*)?{_CUT})"),
    ),
    _key("digitalocean-token", "dop_v1_|doo_v1_|dor_v1_", _ALNUM, 16),
    _Shape(
        "pypi-token",
        ("pypi-",),
        re.compile(
            f"{_WORD}pypi-(?:AgE{_URLSAFE}{{4,}}|(?=[A-Za-z_-]{{0,200}}[0-9])(?=[a-z0-9_-]{{0,200}}[A-Z]){_URLSAFE}{{24,}})"
        ),
    ),
    _key("cerebras-key", "csk-", _ALNUM, 16, word=True, cut=4),
    _key("langsmith-key", "lsv2_pt_|lsv2_sk_", "[A-Za-z0-9_]", 10, word=True),
    _key("together-key", "tgp_v1_", _URLSAFE, 16, word=True),
    _key("fireworks-key", "fw_", _ALNUM, 20, word=True, cut=8),
    _key("tavily-key", "tvly-dev-|tvly-prod-|tvly-", _ALNUM, 16, word=True, cut=8),
    _key("vault-token", "hvs.", _URLSAFE, 20, word=True, cut=8),
    _key("docker-token", "dckr_pat_", _URLSAFE, 16, word=True),
    _Shape(
        "jwt",
        ("eyJ",),
        re.compile(rf"eyJ{_URLSAFE}{{8,8000}}+\.(?:{_URLSAFE}{{8,}}(?:\.{_URLSAFE}*)?|{_URLSAFE}*{_CUT})"),
    ),
)

# The next three are tried on text in lower case.
_SCHEME = re.compile(
    r"(?<![a-z0-9])(?P<scheme>bearer|basic)[ \t]+"
    r"(?P<secret>(?=[a-z._~+/=-]{0,200}[0-9])[a-z0-9._~+/=-]{8,}|[a-z0-9._~+/=-]{20,}|(?<=basic )[a-z0-9+/]{8,}={0,2})"
)
_VALUE = r"[a-z0-9_+/=.~!%$*-]"
_ASSIGNED = re.compile(
    r"(?:api[-_]?key|(?:secret|access|private|account)[-_]?key|(?:client|app|webhook)[-_]?secret"
    r"|(?:access|auth|refresh|bot|session|bearer|api|security|csrf)[-_]?token|passw(?:or)?d|passphrase|_(?:secret|token|pass)"
    r"|authorization)"
    r"""["']?[ \t]*[:=][ \t]*["']?(?:(?:token|apikey|bot)[ \t]+)?(?:bearer[ \t]+|basic[ \t]+)?"""
    rf"(?P<secret>(?=[a-z_+/=.~!%$*-]{{0,200}}[0-9])(?:{_VALUE}{{8,}}+(?![(\[])|{_VALUE}{{4,}}{_CUT}))"
)
_HEADER = re.compile(
    r"""x-(?:[a-z]{1,20}-){0,3}(?:key|token|secret|auth)["']?[ \t]*[:=][ \t]*["']?(?P<secret>[a-z0-9_+/=.~-]{16,}+)(?![(\[])"""
)
_LOGIN = re.compile(
    r"""://(?P<secret>[^\s/?#@:"'<>\\]*:[^\s/?#"'<>\\]+|(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{16,})@(?=[\w\[])"""
)
_TELEGRAM = re.compile(r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}")
_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_OPEN = re.compile(r"(?:\s*[A-Z][A-Za-z-]{2,20}: [^\n]{0,200}\n)*(?:[A-Za-z0-9+/=\s]|\\[nrt])*")
"""What may still be of a private key whose end is not here: the text may have been cut."""
_LONGEST_KEY = 16_000
_ASCII_LOWER = {c: c + 32 for c in range(ord("A"), ord("Z") + 1)}
_TELLING = ("key", "secret", "token", "passw", "passphrase", "auth", "_pass")


def secrets(text: str) -> Iterator[Span]:
    """Every secret in a text as it stands; spans may overlap and come in no order."""
    for shape in _SHAPES:
        if any(literal in text for literal in shape.literals):
            yield from _of_shape(shape, text)
    if "-----BEGIN " in text:
        yield from _private_keys(text)
    lower = _lower(text)
    if "bearer" in lower or "basic" in lower:
        yield from _schemes(text, lower)
    if "://" in text and "@" in text:
        yield from _spans(_LOGIN, text, "url-login")
    if ":AA" in text:
        yield from ((*m.span(), "telegram-token") for m in _TELEGRAM.finditer(text))
    if any(word in lower for word in _TELLING):
        yield from _spans(_ASSIGNED, lower, "secret")
        yield from _spans(_HEADER, lower, "secret") if "x-" in lower else ()


def _lower(text: str) -> str:
    """The text in lower case, every character at its place: a few become two when lowered."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.translate(_ASCII_LOWER)


def _of_shape(shape: _Shape, text: str) -> Iterator[Span]:
    for literal in shape.literals:
        at = text.find(literal)
        while at >= 0:
            match = shape.pattern.match(text, at)
            if match:
                yield *match.span(), shape.kind
            at = text.find(literal, match.end() if match and match.end() > at else at + 1)


def _private_keys(text: str) -> Iterator[Span]:
    ends = [match.end() for match in _END.finditer(text)]
    for match in _BEGIN.finditer(text):
        n = bisect_right(ends, match.end())
        if n < len(ends) and ends[n] - match.start() <= _LONGEST_KEY:
            yield match.start(), ends[n], "private-key"
        elif rest := _OPEN.match(text, match.end()):
            yield match.start(), rest.end(), "private-key"


def _spans(pattern: re.Pattern[str], text: str, kind: str) -> Iterator[Span]:
    return ((*match.span("secret"), kind) for match in pattern.finditer(text))


def _schemes(text: str, lower: str) -> Iterator[Span]:
    for match in _SCHEME.finditer(lower):
        kind, (start, end) = match["scheme"], match.span("secret")
        if kind == "bearer" or _is_login(text[start:end]):
            yield start, end, kind


def _is_login(word: str) -> bool:
    """Whether base64 spells ``name:password``; many an ordinary word follows "basic"."""
    try:
        spelled = base64.b64decode(word[: len(word) // 4 * 4])
    except ValueError:
        return False
    return b":" in spelled and spelled.decode("utf-8", "replace").isprintable()
