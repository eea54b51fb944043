"""One module per API: a request body into segments, a reply's bytes into usage, stop reason and ids.

A module of this package that is not in ``NOT_APIS`` is an API; it registers itself by being there and has the face
``WireApi``. Listing APIs imports nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol, cast

from ctxscope.model import ApiName, Block, Body, Message, Reply, Segment

NOT_APIS = frozenset(
    {"__init__", "json_text", "spans", "sse", "blocks", "body", "overlap", "forms", "layout", "cutting", "raw_object"}
)


class WireApi(Protocol):
    """What a module of this package offers."""

    name: ApiName

    def matches(self, path: str, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether a request to ``path`` (query included) speaks this API as a model call."""

    def segments(self, body: bytes, parent: Body | None) -> tuple[Segment, ...]:
        """The segments of a body, reusing those of ``parent`` inside the common prefix.

        Never raises: a body that is not JSON, is torn or nests too deep is one opaque segment.
        """

    def prompt(self, body: bytes, segment: Segment) -> bytes:
        """The prompt form of a segment of ``body``: the bytes its ``digest`` and ``prompt_bytes`` are of."""

    def messages(self, body: Body, behind: str = "") -> tuple[Message, ...]:
        """The messages of a body in order, normalised (the system text not among them).

        ``behind``: path of an item of the body (``/messages/41``); only what follows it is read.
        """

    def system(self, body: Body) -> str:
        """The system text of a body, its blocks joined by a newline; ``""`` when there is none."""

    def is_continuation(self, body: Body) -> bool:
        """Whether the body carries only what is new (message threads, ``previous_response_id``)."""

    def expand(
        self,
        body: Body,
        earlier: Body,
        reply: Reply | None,
        reply_bytes: bytes | None,
        stored: Sequence[Block] | None = None,
    ) -> Body | None:
        """The effective request of a continuation of ``earlier`` (itself effective); ``None`` when it cannot be known.

        ``stored``: the answer as a log keeps it, for the request the log implies (``body`` and ``earlier`` rebuilt
        too). It stands in place of the delivered one, in the spelling of that one wherever they say the same, so that
        the two effective requests differ where, and only where, log and wire do.
        """

    def requested_max(self, body: Body) -> int | None:
        """Output tokens the request allows; ``None`` where it sets no limit."""

    def reply(self, data: bytes, headers: Mapping[str, str]) -> Reply:
        """A reply from its bytes, plain JSON or SSE told apart by looking. Never raises."""


@lru_cache
def names() -> tuple[str, ...]:
    """Module names of all APIs, sorted; imports none of them."""
    return tuple(sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in NOT_APIS))


@lru_cache
def load(module: str) -> WireApi:
    """One API by module name."""
    return cast("WireApi", importlib.import_module(f"{__name__}.{module}"))


def by_name(name: str) -> WireApi:
    """One API by its own name (``anthropic-messages``)."""
    return load(name.replace("-", "_"))


def detect(path: str, headers: Mapping[str, str], body: bytes) -> WireApi | None:
    """The API a request speaks; ``None`` for probes and anything that is not a model call."""
    candidates: Sequence[str] = names()
    for module in candidates:
        api = load(module)
        if api.matches(path, headers, body):
            return api
    return None
