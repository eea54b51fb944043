"""Whether two texts differ only in what changes from run to run: a clock, a date, a random id (taxonomy C04)."""

from __future__ import annotations

import re

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_VOLATILE = re.compile(
    "|".join(
        (
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


def only_volatile(first: str, second: str) -> bool:
    """Whether two different texts are the same once dates, times, UUIDs and hexadecimal or long numbers are masked."""
    return first != second and _masked(first) == _masked(second)


def _masked(text: str) -> str:
    return _VOLATILE.sub("\0", text)
