"""Whether two texts differ only in what changes from run to run, and what that is (prompt_caching C04)."""

from __future__ import annotations

import re

from ctxscope.analysis.prefixes import common_prefix, common_suffix

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_BILLING = r"\bx-anthropic-billing-header:(?: *\w+=[^;\s]*;)*"
_HERE = r"(?:(?:current |primary )?working[ _]director(?:y|ies)|current directory|workspace(?: root)?|cwd|pwd)"
_STATE = r"(?:branch [\w./-]+|clean\b(?=\s*(?:[,;.]|$))|dirty\b|\d+ (?:files? |lines? )?\w+)"
_COUNTED = r"(?:tokens?|turns?|steps?|messages?|requests?|iterations?|calls?)"
_KINDS = {
    "billing": (_BILLING, r"\bcch=[0-9a-z]+"),
    "git": (
        r"(?:^(?-i:(?! {2})[ MADRCUT?!]{2}|[MADRCUT]) [^\s./]*[./]\w\S*(?: -> \S+)?$\n?)+",
        r"(?:^(?=[a-f]*\d)[0-9a-f]{7,40} [^\n]+$\n?)+",
        r"\bon branch [\w./-]+|\bbranch(?: is)?[:=] *[\w./-]+",
        rf"\bgit ?status[:=] *{_STATE}(?:[,;] *{_STATE})*",
        r"\b\d+ (?:files? changed|insertions?|deletions?|commits? (?:ahead|behind))\b",
        r"\bnothing to commit\b[^\n]*|\bworking tree clean\b",
    ),
    "cwd": (rf"\b{_HERE}(?: is)?\W{{1,3}}(?:[~/\\]|[a-z]:[\\/]|file:)[^\s<>\"'`,;]*",),
    "uuid": (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",),
    "clock": (
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[t ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?",
        r"\d{1,2}[/.]\d{1,2}[/.]\d{2,4}",
        r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?(?: ?[ap]\.?m\b\.?)?",
        r"^\d{1,2}:\d{2}\b",
        r"\d{1,2}:\d{2} ?[ap]\.?m\b\.?",
        r"(?<=\btime is )\d{1,2}:\d{2}|(?<=\btime: )\d{1,2}:\d{2}|(?<=\bnow )\d{1,2}:\d{2}|(?<=\bat )\d{1,2}:\d{2}",
        rf"\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?",
        rf"\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}\b\.?(?:,? \d{{4}})?",
        rf"(?<=\btoday is ){_DAY}\b|(?<=\bdate: ){_DAY}\b|\b{_DAY}(?=,? +(?:{_MONTH}|\d))",
    ),
    "counter": (
        r"\b\d[\d,]*(?:\.\d+)?k? (?:of \d[\d,]* )?tokens? (?:used|left|remaining|so far)\b",
        rf"\b{_COUNTED} (?:used|left|remaining|so far|no\.?|number)\W{{1,2}}\d[\d,]*(?:\.\d+)?k?(?:/\d[\d,]*k?)?",
        rf"\b{_COUNTED}[:#] ?\d[\d,]*(?:/\d[\d,]*k?)?|\b{_COUNTED} \d+(?: of |/)\d+\b",
        r"\b\d{1,3}(?:\.\d+)? ?% (?:used|left|full|remaining)\b",
    ),
    "nonce": (r"(?<!#)\b(?=[a-f]*\d)[0-9a-f]{5,}\b",),
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
_LINE, _MOST = 400, 16 * 1024
"""Bytes of a line around a difference that are looked at, and of a difference that can be one of these."""
_BILLING_LINE = re.compile(_BILLING, re.IGNORECASE)


def only_volatile(first: str, second: str) -> bool:
    """Whether two different texts are the same once what changes from run to run is masked.

    Dates and times, UUIDs, hexadecimal or long numbers, the working directory, the state of a git repository, counters of
    tokens and turns. Only what stands around the difference is looked at.
    """
    parts = _around(first, second)
    return parts is not None and _VOLATILE.sub("\0", parts[0]) == _VOLATILE.sub("\0", parts[1])


def named(first: str, second: str) -> str:
    """What changed between two texts that are ``only_volatile``, in words: ``a date or time and a counter``."""
    found = zip(*(_VOLATILE.finditer(part) for part in _around(first, second) or ("", "")), strict=False)
    kinds = dict.fromkeys(old.lastgroup or "nonce" for old, new in found if old[0] != new[0])
    return " and ".join(_WORDS[kind] for kind in kinds)


def only_billing(first: str, second: str) -> bool:
    """Whether two different texts are the same but for a client's billing line, which Anthropic's own API takes out."""
    parts = _around(first, second)
    return parts is not None and _BILLING_LINE.sub("\0", parts[0]) == _BILLING_LINE.sub("\0", parts[1])


def _around(first: str, second: str) -> tuple[str, str] | None:
    """The lines of two texts in which they differ; ``None`` when they do not, or in more than changes from run to run."""
    one, two = (text.encode("utf-8", "surrogatepass") for text in (first, second))
    same = common_prefix(one, two)
    if same == len(one) == len(two):
        return None
    behind = common_suffix(one, two, len(one), len(two), min(len(one), len(two)) - same)
    start = max(one.rfind(b"\n", 0, same) + 1, same - _LINE)
    parts = []
    for side in (one, two):
        end = side.find(b"\n", len(side) - behind)
        end = min(len(side) if end < 0 else end + 1, len(side) - behind + _LINE)
        parts.append(side[start:end].decode("utf-8", "replace"))
    return (parts[0], parts[1]) if max(map(len, parts)) <= _MOST else None
