"""Whether two texts differ only in what changes from run to run: a clock, a date, a random id (prompt_caching C04)."""

from __future__ import annotations

import re

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_BILLING = r"\bx-anthropic-billing-header:(?: *\w+=[^;\s]*;)*"
_VOLATILE = re.compile(
    "|".join(
        (
            _BILLING,
            r"\bcch=[0-9a-z]+",
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[t ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?",
            r"\d{1,2}[/.]\d{1,2}[/.]\d{2,4}",
            r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[ap]\.?m\b\.?)?",
            rf"\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?",
            rf"\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}\b\.?(?:,? \d{{4}})?",
            rf"\b{_DAY}\b",
            r"\b(?=[a-f]*\d)[0-9a-f]{5,}\b",
        )
    ),
    re.IGNORECASE,
)
_BILLING_LINE = re.compile(_BILLING, re.IGNORECASE)


def only_volatile(first: str, second: str) -> bool:
    """Whether two different texts are the same once dates, times, UUIDs and hexadecimal or long numbers are masked."""
    return first != second and _VOLATILE.sub("\0", first) == _VOLATILE.sub("\0", second)


def only_billing(first: str, second: str) -> bool:
    """Whether two different texts are the same but for a client's billing line, which Anthropic's own API takes out."""
    return first != second and _BILLING_LINE.sub("\0", first) == _BILLING_LINE.sub("\0", second)
