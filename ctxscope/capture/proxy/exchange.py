"""One request on its way to an upstream, and the reply on its way back, both told as they pass.

Bodies are the same at both ends, and headers in order, spelling and number. Not passed on: what is meant for one
connection only (RFC 9110 §7.6.1), the cuts between chunks with their extensions, trailers, interim replies (the proxy
answers ``Expect: 100-continue`` itself). aiohttp's parser takes no header that is folded over several lines and no
method that llhttp does not know: such a request is answered 400 and recorded nowhere (measured with 3.14.5).

A client that closes its sending side only (``SHUT_WR``) counts as one that left, as with most servers: its FIN looks the
same as that of a client that is gone, whose call must not go on at the user's cost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from aiohttp import StreamReader, web
from aiohttp.http import HttpVersion10, RawResponseMessage
from aiohttp.web_protocol import RequestPayloadError

from ctxscope.capture.events import Chunk, End, Event, Head, How, Request
from ctxscope.capture.proxy import environment, failures, heads, replies
from ctxscope.capture.proxy.clients import Client
from ctxscope.capture.proxy.frames import Frames, deflates
from ctxscope.capture.proxy.lines import SWITCHING, Call, Lines
from ctxscope.capture.proxy.replies import Framing, Sent
from ctxscope.capture.proxy.upstreams import Upstream
from ctxscope.capture.proxy.websocket import Tap, splice

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_HUNG_UP = "it closed the connection without a close message"

Ended = tuple[How, str, Sent]
"""How an exchange ended, its detail, and the reply that was sent."""


@dataclass(frozen=True, slots=True)
class Means:
    """What exchanges of one proxy share."""

    lines: Lines
    tell: Callable[[Event], None]
    number: Callable[[], int]
    """The next number of a request or a message."""
    stopping: Callable[[], bool]
    """Whether the proxy itself is being ended."""


@dataclass(slots=True)
class Exchange:
    """A request that may be forwarded."""

    means: Means
    n: int
    request: web.BaseRequest
    upstream: Upstream
    target: str
    """Path and query as they go upstream."""
    own_host: bool = False
    """The client's Host header names the upstream already, not the proxy."""
    _call: Call = field(init=False)
    _held: list[bytes] = field(default_factory=list)
    """What came of the body."""
    _told: bool = False
    _if_left: tuple[How, str] = ("client left", "")
    """How it ended when the client's connection ends."""

    async def run(self) -> Sent:
        """Forward it; whatever becomes of it, it and its end are told."""
        began, kept = time.time(), self._client.take(self.upstream)
        self._call = self.means.lines.call(self.upstream, kept, bodiless=self.request.method == "HEAD")
        try:
            whole = await self._passed()
            self._tell_request(began)
            how, detail, sent = await (self._answered() if whole else self._torn())
        except BaseException as error:
            self._tell_request(began)
            self.means.tell(End(self.n, time.time(), *self._broken(error)))
            raise
        finally:
            self._call.abort()
        self.means.tell(End(self.n, time.time(), how, detail))
        return sent

    @property
    def _client(self) -> Client:
        return cast("Client", self.request.protocol)

    def _tell_request(self, began: float) -> None:
        """Once, with as much of its body as came."""
        if self._told:
            return
        self._told = True
        if not self.request.content.at_eof():
            self._held.append(_rest(self.request.content))
        request = self.request
        target, headers = heads.latin(self.target), heads.text(request.raw_headers)
        body = b"".join(self._held)
        self.means.tell(Request(self.n, began, request.method, target, self.upstream.origin, headers, body))

    def _broken(self, error: BaseException) -> tuple[How, str]:
        """How it ended when nobody waits for its end any more."""
        if isinstance(error, asyncio.CancelledError) and self.means.stopping():
            return "stopped", self._missing
        if not isinstance(error, asyncio.CancelledError | ConnectionError):
            return "upstream reset", f"the proxy failed: {type(error).__name__}"
        how, detail = self._if_left
        if self._call.failed is not None:
            failure = failures.of(self._call.failed)
            how, detail = failure.how, failure.detail
        elif self._call.connection is None and self._call.making is not None:
            detail = "the upstream had not taken the connection"
        return how, "; ".join(filter(None, (detail, self._missing)))

    @property
    def _missing(self) -> str:
        """What did not come of the request's body, in words; empty: it came whole."""
        if self.request.content.at_eof():
            return ""
        came, size = sum(map(len, self._held)), self.request.content_length
        return f"the request's body is torn: {came:,} {'bytes' if size is None else f'of {size:,} bytes'} came"

    def _head(self) -> bytes:
        """First line and headers as they go upstream."""
        raw = self.request.raw_headers
        kept = heads.CHUNKED | heads.UPGRADE if heads.wants_websocket(raw) else heads.CHUNKED
        proxy = self.means.lines.proxy_of(self.upstream) if self.upstream.scheme == "http" else None
        target = heads.raw(self.upstream.origin + self.target if proxy else self.target)
        extra = environment.authorization(proxy) if proxy else ()
        host = self.upstream.authority.encode()
        return heads.request(self.request.method.encode(), target, raw, host, extra, kept, own_host=self.own_host)

    async def _passed(self) -> bool:
        """Hand the body on as it comes, and keep it: holding it back first would cost 5 MB three times the delay.

        False for one that breaks off, where that is seen before the client has left.
        """
        request, content = self.request, self.request.content
        if request.version != HttpVersion10 and request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(_CONTINUE)
        head = self._head()
        framed = Framing(chunked="Transfer-Encoding" in request.headers, closed=False, keep=True)
        try:
            self._held.append(content.read_nowait())
            while not content.at_eof():
                self._call.write(head + framed.data(self._held[-1], last=False))
                head = b""
                self._held.append(await content.readany())
        except (RequestPayloadError, ConnectionError):
            return False
        self._call.write(head + framed.data(self._held[-1], last=True))
        return True

    async def _torn(self) -> Ended:
        """The client sent what is no body; most have left by now."""
        missing = self._missing
        sent = await replies.answer(self.request, 400, replies.error("bad_request", missing))
        return "client left", f"{missing}; answered 400", sent

    async def _answered(self) -> Ended:
        """Wait for the reply, and hand it on."""
        try:
            message, content = await self._call.answer()
        except failures.EXPECTED as error:
            failure = failures.of(error)
            return self._hung_up(failure) if self._call.unanswered else await self._refused(failure)
        if message.code == SWITCHING and not (
            self._call.line.upgraded and heads.wants_websocket(self.request.raw_headers)
        ):
            return await self._refused(failures.Failure("upstream reset", "it switched to a protocol nobody asked for"))
        reason, headers = heads.latin(message.reason), heads.text(message.raw_headers)
        self.means.tell(Head(self.n, time.time(), message.code, reason, headers))
        if message.code == SWITCHING:
            return await self._upgraded(self._call, message)
        return await self._relayed(self._call, message, content)

    async def _upgraded(self, call: Call, message: RawResponseMessage) -> Ended:
        """From here on the connection is a WebSocket; it ended in order once a side said that it closes."""
        frames = [Frames(deflates(message.raw_headers)) for _ in "io"]
        target, origin, means = heads.latin(self.target), self.upstream.origin, self.means
        tap = Tap(self.n, target, origin, means.tell, means.number, frames[0], frames[1], last=self.n)
        try:
            await splice(self.request, call, replies.upgraded(self.request, message), tap)
        finally:
            self._if_left = ("complete" if tap.closing else "client left", tap.trouble)
        if tap.closing:
            return "complete", tap.trouble, Sent(keep=False)
        lost = failures.of(call.line.lost) if call.line.lost else failures.Failure("upstream reset", _HUNG_UP)
        return lost.how, "; ".join(filter(None, (lost.detail, tap.trouble))), Sent(keep=False)

    def _hung_up(self, failure: failures.Failure) -> Ended:
        """A connection that served this client before ended without a word: so does the client's own.

        It sees what it would have seen without a proxy, so its own rule for that decides. The proxy cannot: the upstream
        may have taken the call, so sending it again might pay for it twice, and an error in words would keep a client
        from trying again that does so when its connection had gone stale.
        """
        replies.hang_up(self.request, reset=self._call.line.lost is not None)
        return failure.how, f"{failure.detail}; the client's connection was closed likewise", Sent(keep=False)

    async def _refused(self, failure: failures.Failure) -> Ended:
        """No part of a reply came."""
        status = 504 if failure.how == "upstream timeout" else 502
        text = f"no reply from {self.upstream.origin}: {failure.detail}"
        try:
            body = replies.error(failure.how.replace(" ", "_"), text)
            sent = await replies.answer(self.request, status, body, keep=True)
        except ConnectionError:
            return "client left", failure.detail, Sent(keep=False)
        return failure.how, f"{failure.detail}; answered {status}", sent

    async def _relayed(self, call: Call, message: RawResponseMessage, body: StreamReader) -> Ended:
        """Hand on whatever is there as it comes; a body that breaks off never ends in order."""
        framed = replies.framing(self.request, message)
        pending = replies.head(self.request, message, framed)
        data, failure = _now(body)
        offset = 0
        while True:
            last = failure is None and body.at_eof()
            if last and framed.open_ended and call.line.lost is not None:
                last, failure = False, failures.of(call.line.lost)
            if data:
                self.means.tell(Chunk(self.n, time.time(), offset, data))
                offset += len(data)
            try:
                await self.request.writer.write(pending + framed.data(data, last=last))
            except ConnectionError:
                return "client left", "", Sent(keep=False)
            if failure is not None:
                replies.tear(self.request, framed)
                return failure.how, failure.detail, Sent(keep=False)
            if last:
                return "complete", "", Sent(framed.keep and self._kept(call))
            pending = b""
            data, failure = await _next(body)

    def _kept(self, call: Call) -> bool:
        """Keep the connection for the client's next request; False when the upstream has closed it meanwhile."""
        connected = call.line.is_connected()
        connection = call.given_up()
        if connection is not None:
            self._client.keep(self.upstream, connection)
        return connected


def _now(body: StreamReader) -> tuple[bytes, failures.Failure | None]:
    """What of a body has come with its head."""
    try:
        return body.read_nowait(), None
    except failures.EXPECTED as error:
        return _rest(body), failures.of(error)


async def _next(body: StreamReader) -> tuple[bytes, failures.Failure | None]:
    """What of a body comes next, and why no more will come."""
    try:
        return await body.readany(), None
    except failures.EXPECTED as error:
        return _rest(body), failures.of(error)


def _rest(body: StreamReader) -> bytes:
    """What came before a body broke off; aiohttp's own readers only raise then."""
    return body._read_nowait(-1)  # noqa: SLF001 - see above
