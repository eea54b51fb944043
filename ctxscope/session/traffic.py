"""The served side: each exchange cut, read and, where it only continues another, expanded to what the model was given."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any

from ctxscope import wire
from ctxscope.analysis.prompts import Settings, settings_of, shared
from ctxscope.analysis.providers import Providers, Seen
from ctxscope.analysis.token_sums import Unread
from ctxscope.model import Body, CallKind, Exchange, Message, Named, Reply, Segment
from ctxscope.session.inbound import Inbound
from ctxscope.wire.body import make_body
from ctxscope.wire.overlap import lcp

NEAR = 64
"""Bytes before a place that are looked at there before all that stands before it is."""
REMEMBERED = 4
"""Exchanges on one path that a body is compared with to find what it shares."""
BODY_CACHE_BYTES = 96 * 1024 * 1024
"""Bodies kept in memory; a long session sends far more, so the rest is read again when looked at."""

_FAILED = 400
"""Status from which on a provider read and kept nothing."""
Key = tuple[int, int]
"""Recording and number of an exchange."""


@dataclass(eq=False, repr=False)
class Heard:
    """What is kept of one exchange once its bodies were read."""

    exchange: Exchange
    api: wire.WireApi | None
    model: str | None
    sha256: str
    segments: tuple[Segment, ...]
    """Of the body as served."""
    params: tuple[Segment, ...] | None
    """Those of them of kind ``param``."""
    reply: Reply | None
    requested_max: int | None
    continues: Key | None = None
    """The exchange it continues, when its body carries only what is new."""
    is_continuation: bool = False
    before: Key | None = None
    """An exchange that came before it on the same path and begins most alike."""
    prints: tuple[bytes, ...] | None = None
    """A hash for each message of the effective request; computed when first asked for."""
    places: tuple[str, ...] = ()
    """The path of each of these messages."""
    kinds: dict[str, CallKind | None] = field(default_factory=dict)
    """What each agent's fixed texts make of it, by agent; filled when asked."""
    named: dict[str, Named] = field(default_factory=dict)
    """What each agent reads in the request of where it belongs, by agent; filled when asked."""
    settings: Settings = field(default_factory=Settings)
    """What is rendered of the body as served beside its segments."""
    provider: str | None = None
    """Whose it is, by where it went; filled when asked."""
    arrived: float = 0.0
    """When it came, by its own clock; never before one that its recording numbers lower: clocks are set back."""

    @property
    def key(self) -> Key:
        """What names it among all recordings."""
        return (self.exchange.recording, self.exchange.n)

    @property
    def ids(self) -> frozenset[str]:
        """What may join it to a log: ids of its reply, and those its request names."""
        own = self.reply.ids if self.reply else frozenset()
        return own.union(*(named.ids for named in self.named.values())) if self.named else own

    @property
    def arrival(self) -> tuple[float, Key]:
        """Sorts exchanges by arrival."""
        return (self.arrived, self.key)

    @property
    def refused(self) -> bool:
        """Whether the provider refused it, so that it read and kept nothing."""
        return (self.exchange.status or 0) >= _FAILED

    @property
    def answered(self) -> bool:
        """Whether the model gave an answer (an error is none)."""
        return self.reply is not None and self.reply.error is None and bool(self.reply.blocks or self.reply.usage)


@dataclass(eq=False, repr=False)
class Traffic:
    """All exchanges of all recordings, in order of arrival."""

    heard: dict[Key, Heard] = field(default_factory=dict)
    inbound: Inbound = field(default_factory=Inbound)
    _order: list[Heard] = field(default_factory=list)
    _bodies: OrderedDict[tuple[Key, str], Body] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _numbers: dict[int, list[int]] = field(default_factory=dict)
    """By recording, the numbers of its exchanges, in order."""
    _latest: dict[str, deque[Key]] = field(default_factory=dict)
    """The last few exchanges by path: one of them shares most with the next, side calls and subagents come between."""

    def __iter__(self) -> Iterator[Heard]:
        return iter(self._order)

    def request_of(self, heard: Heard) -> tuple[Any, ...]:
        """What tells an effective request from another: its bytes and, of a continuation, those it continues."""
        if not heard.is_continuation:
            return (heard.key, heard.sha256)
        earlier = self.heard.get(heard.continues) if heard.continues else None
        return (heard.key, heard.sha256, earlier.key, earlier.exchange.response_bytes) if earlier else (heard.key,)

    def take(self, exchange: Exchange) -> Heard:
        """Fold an exchange in, or its longer reply."""
        key = (exchange.recording, exchange.n)
        data = exchange.request()
        api = wire.detect(exchange.path, exchange.headers, data)
        before = self.heard[key].before if key in self.heard else self._alike(exchange.path, data)
        parent = key if key in self.heard else before
        body = make_body(data, api, self.body(parent) if parent else None, exchange.path)
        cut_with = self.heard[parent] if parent else None
        answer = exchange.response() if exchange.response_bytes else b""
        reply = api.reply(answer, exchange.headers) if api and answer else None
        heard = Heard(
            exchange=exchange,
            api=api,
            model=body.model,
            sha256=body.sha256,
            segments=body.segments,
            params=body.params,
            reply=reply,
            requested_max=api.requested_max(body) if api else None,
            is_continuation=bool(api and api.is_continuation(body)),
            before=before,
            settings=settings_of(body, (cut_with.segments, cut_with.settings) if cut_with else None),
        )
        self._forget(key)
        self.heard[key] = heard
        self._date(heard)
        insort(self._order, heard, key=_arrival)
        self._keep((key, "served"), body)
        if api:
            recent = self._latest.setdefault(exchange.path, deque(maxlen=REMEMBERED))
            if key not in recent:
                recent.append(key)
        return heard

    def _date(self, heard: Heard) -> None:
        """Say when an exchange arrived, and move those that its recording numbers higher behind it."""
        recording, n = heard.key
        numbers = self._numbers.setdefault(recording, [])
        at = bisect_left(numbers, n)
        if at == len(numbers) or numbers[at] != n:
            numbers.insert(at, n)
        clock = self.heard[recording, numbers[at - 1]].arrived if at else heard.exchange.time
        heard.arrived = clock = max(clock, heard.exchange.time)
        for later in numbers[at + 1 :]:
            other = self.heard[recording, later]
            if other.arrived >= clock:
                break
            self._order.remove(other)
            other.arrived = clock
            insort(self._order, other, key=_arrival)

    def _alike(self, path: str, data: bytes) -> Key | None:
        """Of the last few exchanges on a path the one whose body begins most like this one, of equals the latest."""
        best, most = None, -1
        for key in reversed(self._latest.get(path, ())):
            other = self.body(key).data
            near = slice(max(0, most - NEAR), most + 1)
            if best is not None and data[near] != other[near]:
                continue  # it parts no later than the best one does
            length = lcp(data, other)
            if length > most:
                best, most = key, length
        return best

    def body(self, key: Key) -> Body:
        """The body as served."""
        return self._cached((key, "served"), lambda: self._load(key))

    def effective(self, key: Key) -> Body | None:
        """What the model was given; ``None`` when the earlier exchange it continues is not here."""
        heard = self.heard[key]
        if not heard.is_continuation:
            return self.body(key)
        found = self._bodies.get((key, "effective"))
        if found is not None:
            return found
        body = self._expand(heard)
        if body is not None:
            self._keep((key, "effective"), body)
        return body

    def unread(self, heard: Heard) -> Unread | None:
        """The request of an exchange without its bytes; ``None`` where that is not all the model was given."""
        if heard.api is None or heard.is_continuation:
            return None
        return Unread(heard.api.name, heard.model, heard.segments, partial(self.body, heard.key))

    def prints(self, key: Key) -> tuple[bytes, ...]:
        """A hash for each message of the effective request (opaque envelopes left out)."""
        heard = self.heard[key]
        if heard.prints is None:
            body = self.effective(key)
            if heard.api is None or body is None:
                return ()  # not kept: what it continues may still arrive
            places, prints, behind = self._known_messages(heard)
            messages = heard.api.messages(body, behind)
            heard.places = places + tuple(m.path for m in messages)
            heard.prints = prints + tuple(message_print(m) for m in messages)
        return heard.prints

    def _known_messages(self, heard: Heard) -> tuple[tuple[str, ...], tuple[bytes, ...], str]:
        """Paths and hashes of the messages that the exchange before it had too, and the path of the item they end at.

        The last message in common is left out: it may have more parts here (an API that joins items to one message).
        """
        nothing: tuple[tuple[str, ...], tuple[bytes, ...], str] = ((), (), "")
        base = self.heard.get(heard.before) if heard.before else None
        if base is None or base.prints is None or base.api is not heard.api:
            return nothing
        if base.is_continuation or heard.is_continuation:
            return nothing
        same = shared(base.segments, heard.segments)
        last = next((s for s in reversed(base.segments[:same]) if s.kind == "message"), None)
        if last is None:
            return nothing
        kept = bisect_right(base.places, _index(last.path), key=_index) - 1
        if kept < 1:
            return nothing
        behind = f"{base.places[kept].rpartition('/')[0]}/{_index(base.places[kept]) - 1}"
        return base.places[:kept], base.prints[:kept], behind

    def _expand(self, heard: Heard) -> Body | None:
        assert heard.api is not None
        for earlier in self._earlier(heard):
            base = self.effective(earlier.key)
            if base is None:
                continue
            full = heard.api.expand(self.body(heard.key), base, earlier.reply, earlier.exchange.response())
            if full is not None:
                heard.continues = earlier.key
                return full
        return None

    def _earlier(self, heard: Heard) -> Iterator[Heard]:
        """Earlier exchanges of the same API, nearest first: a continuation mostly continues the last one."""
        data = self.body(heard.key).data
        for candidate in reversed(self._order):
            reply = candidate.reply
            if candidate.arrived > heard.arrived or candidate.key == heard.key:
                continue
            if candidate.api is heard.api and reply and reply.id and reply.id.encode() in data:
                yield candidate

    def _load(self, key: Key) -> Body:
        heard = self.heard[key]
        return Body(
            data=heard.exchange.request(),
            api=heard.api.name if heard.api else None,
            segments=heard.segments,
            model=heard.model,
            sha256=heard.sha256,
            params=heard.params,
        )

    def _cached(self, key: tuple[Key, str], load: Callable[[], Body]) -> Body:
        body = self._bodies.get(key)
        if body is None:
            body = load()
            self._keep(key, body)
        else:
            self._bodies.move_to_end(key)
        return body

    def _keep(self, key: tuple[Key, str], body: Body) -> None:
        self._bodies[key] = body
        self._bytes += len(body.data)
        while self._bytes > BODY_CACHE_BYTES and len(self._bodies) > 1:
            _, dropped = self._bodies.popitem(last=False)
            self._bytes -= len(dropped.data)

    def _forget(self, key: Key) -> None:
        if key in self.heard:
            self._order.remove(self.heard[key])
        for side in ("served", "effective"):
            dropped = self._bodies.pop((key, side), None)
            if dropped is not None:
                self._bytes -= len(dropped.data)


def _index(path: str) -> int:
    """Index of the item a path names or lies in (``/messages/41/content/0``); -1 for a whole array."""
    parts = path.split("/")
    return int(parts[2]) if len(parts) > 2 and parts[2].isdigit() else -1  # noqa: PLR2004 - "", key, index


def _arrival(heard: Heard) -> tuple[float, Key]:
    return heard.arrival


def seen_of(heard: Heard) -> Seen:
    """Where an exchange went, as far as it was seen."""
    exchange = heard.exchange
    return Seen(
        upstream=exchange.upstream,
        path=exchange.path,
        model=heard.model,
        api=heard.api.name if heard.api else None,
        headers=exchange.headers,
    )


def provider_of(heard: Heard, providers: Providers) -> str:
    """The provider an exchange went to."""
    if heard.provider is None:
        heard.provider = providers.identify(seen_of(heard))
    return heard.provider


def text_print(text: str) -> bytes:
    """16 bytes that stand for a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def message_print(message: Message) -> bytes:
    """16 bytes that stand for a message's visible content; envelopes are opaque and often left out of logs."""
    digest = blake2b(message.role.encode("utf-8", "surrogatepass"), digest_size=16)
    for block in message.blocks:
        if block.kind == "thinking":
            continue
        for part in (block.kind, block.text, block.id, block.name):
            digest.update(b"\0" + part.encode("utf-8", "surrogatepass"))
    return digest.digest()
