"""What launchers do to a command and its environment so that base URLs lead through the proxy."""  # noqa: INP001

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from ctxscope.agents.launching.settings import base_url

Group = tuple[tuple[str, ...], str | None]
"""Variables that name one server, the usual one first, and where the agent goes when none is set."""
_SECRET = re.compile(r"(?<=://)[^/\s]*@|(?<=\S)[?#][^\s\"']*")
"""What may be one in a URL: name and password, the query, a fragment."""
_WELL_KNOWN = "https://api.anthropic.com"
_NAMED = 2
"""Addresses of the user's own that are told by name."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command that was given a value."""

    at: int
    """Which word holds the value."""
    before: str
    """What of that word stands before it (``--config=``)."""
    value: str


def options(argv: Sequence[str], *names: str) -> Iterator[Option]:
    """Every use of an option, by any of its names (``-c``, ``--config``), in order; those after ``--`` are none."""
    at = 1
    while at < len(argv) and argv[at] != "--":
        word = argv[at]
        name, equals, value = word.partition("=")
        if name in names and equals:
            yield Option(at, name + equals, value)
        elif word in names and at + 1 < len(argv):
            yield Option(at + 1, "", argv[at + 1])
            at += 1
        at += 1


def last(argv: Sequence[str], *names: str) -> str | None:
    """The value that counts of an option that is to be given once."""
    found = list(options(argv, *names))
    return found[-1].value if found else None


def with_value(argv: Sequence[str], option: Option, value: str) -> tuple[str, ...]:
    """The command with another value for one use of an option."""
    return (*argv[: option.at], option.before + value, *argv[option.at + 1 :])


def with_first(argv: Sequence[str], *words: str) -> tuple[str, ...]:
    """The command with words in front of the user's own arguments."""
    return (*argv[:1], *words, *argv[1:])


def pointed(env: Mapping[str, str], groups: Sequence[Group], through: Callable[[str], str]) -> dict[str, str]:
    """Variables that lead to each group's server by way of the proxy: those that are set, else the usual one.

    A group stays as it is where what is set is no URL: to put another server there would be wrong.
    """
    found: dict[str, str] = {}
    for names, usual in groups:
        own = {name: env[name] for name in names if env.get(name)}
        if not own:
            found |= {names[0]: through(usual)} if usual else {}
        elif all(map(base_url, own.values())):
            found |= {name: through(url) for name, url in own.items()}
    return found


def may_be_seen(url: str) -> bool:
    """Whether a URL may stand among a command's words, which other users can read: one with a name or a query may not."""
    split = urlsplit(url)
    return "@" not in split.netloc and not split.query


def dialled(routes: Mapping[str, str], own: Iterable[str]) -> str:
    """Which addresses are dialled by way of the proxy, in words: those of the user's ``own`` settings first."""
    named = list(dict.fromkeys(own))[:_NAMED] or [_WELL_KNOWN]
    others = len(routes) - len(named)
    there = urlsplit(next(iter(routes.values())))
    words = " and ".join([*named, f"{others} others"]) if others > 0 else " and ".join(named)
    return f"{words} are dialled by way of {there.scheme}://{there.netloc}/…"


def told(variables: Mapping[str, str]) -> tuple[str, ...]:
    """What was set, in words that may be kept."""
    return tuple(without_secrets(f"{name}={value}") for name, value in variables.items())


def without_secrets(words: str) -> str:
    """Words without what may be secret in the URLs among them."""
    return _SECRET.sub("", words)
