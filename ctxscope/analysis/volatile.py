"""Whether two texts differ only in what changes from run to run, and what that is (prompt_caching C04)."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_BILLING = r"\bx-anthropic-billing-header:(?: *\w+=[^;\s]*;)*"
_HERE = r"(?:(?:current |primary )?working[ _]director(?:y|ies)|current directory|workspace(?: root)?|cwd|pwd)"
_COUNTED = r"(?:tokens?|turns?|steps?|messages?|requests?|iterations?|calls?)"
_KINDS = {
    "billing": (_BILLING, r"\bcch=[0-9a-z]+"),
    "git": (
        r"(?:^(?-i:(?! {2})[ MADRCUT?!]{2}|[MADRCUT]) \S*[./]\S*(?: -> \S+)?$\n?)+",
        r"(?:^(?=[a-f]*\d)[0-9a-f]{7,40} .+$\n?)+",
        r"\bon branch [\w./-]+|\bbranch(?: is)?[:=] *[\w./-]+",
        r"\b\d+ (?:files? changed|insertions?|deletions?|commits? (?:ahead|behind)|uncommitted|modified|untracked)\b",
        r"\bgit ?status[:=][^\n]*",
        r"\bnothing to commit\b[^\n]*|\bworking tree clean\b",
    ),
    "cwd": (rf"\b{_HERE}(?: is)?\W{{1,3}}(?:[~/\\]|[a-z]:[\\/]|file:)[^\s<>\"'`,;]*",),
    "uuid": (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",),
    "clock": (
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[t ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?",
        r"\d{1,2}[/.]\d{1,2}[/.]\d{2,4}",
        r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[ap]\.?m\b\.?)?",
        rf"\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?",
        rf"\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}\b\.?(?:,? \d{{4}})?",
        rf"\b{_DAY}\b",
    ),
    "counter": (
        r"\b\d[\d,]*(?:\.\d+)?k? (?:of \d[\d,]* )?tokens?\b",
        rf"\b{_COUNTED}(?: (?:used|left|remaining|so far|no\.?|number))?\W{{1,2}}\d[\d,]*(?:\.\d+)?k?(?:/\d[\d,]*k?)?",
        r"\b\d{1,3}(?:\.\d+)? ?% (?:of|used|left|full|remaining)\b",
    ),
    "nonce": (r"\b(?=[a-f]*\d)[0-9a-f]{5,}\b",),
}
_WORDS = {
    "billing": "the client's billing line",
    "git": "the state of a git repository",
    "cwd": "the working directory",
    "uuid": "a uuid",
    "clock": "a date or time",
    "counter": "a counter",
    "nonce": "a random id",
}
_VOLATILE = re.compile(
    "|".join(f"(?P<{kind}>{'|'.join(patterns)})" for kind, patterns in _KINDS.items()), re.IGNORECASE | re.MULTILINE
)
_BILLING_LINE = re.compile(_BILLING, re.IGNORECASE)


def only_volatile(first: str, second: str) -> bool:
    """Whether two different texts are the same once what changes from run to run is masked.

    Dates and times, UUIDs, hexadecimal or long numbers, the working directory, the state of a git repository, counters of
    tokens and turns.
    """
    return first != second and _VOLATILE.sub("\0", first) == _VOLATILE.sub("\0", second)


def named(first: str, second: str) -> str:
    """What changed between two texts that are ``only_volatile``, in words: ``a date or time and a counter``."""
    kinds = dict.fromkeys(kind for kind, old, new in _pairs(first, second) if old != new)
    return " and ".join(_WORDS[kind] for kind in kinds)


def _pairs(first: str, second: str) -> Iterator[tuple[str, str, str]]:
    found = zip(_VOLATILE.finditer(first), _VOLATILE.finditer(second), strict=False)
    return ((old.lastgroup or "nonce", old[0], new[0]) for old, new in found)


def only_billing(first: str, second: str) -> bool:
    """Whether two different texts are the same but for a client's billing line, which Anthropic's own API takes out."""
    return first != second and _BILLING_LINE.sub("\0", first) == _BILLING_LINE.sub("\0", second)
