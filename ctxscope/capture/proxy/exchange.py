"""One request on its way to an upstream, and the reply on its way back, both told as they pass."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import StreamReader, web
from aiohttp.http import HttpVersion10, RawResponseMessage
from aiohttp.web_protocol import RequestPayloadError

from ctxscope.capture.events import Chunk, End, Event, Head, How, Request
from ctxscope.capture.proxy import environment, failures, heads, replies
from ctxscope.capture.proxy.frames import Frames, deflates
from ctxscope.capture.proxy.lines import SWITCHING, Call, Lines, StaleError
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
    _call: Call | None = None
    _if_left: tuple[How, str] = ("client left", "")
    """How it ended when the client's connection ends."""

    async def run(self) -> Sent:
        """Forward it; whatever becomes of it, its end is told. Nothing is told of a request that does not come whole."""
        try:
            return await self._run(time.time())
        except (RequestPayloadError, ConnectionError):
            return await replies.answer(self.request, 400, replies.error("bad_request", "the request's body is torn"))
        finally:
            if self._call is not None:
                self._call.abort()

    async def _run(self, began: float) -> Sent:
        head = self._head()
        failure = await self._open()
        body = await self._passed(head)
        tell, request = self.means.tell, self.request
        target, headers = heads.latin(self.target), heads.text(request.raw_headers)
        tell(Request(self.n, began, request.method, target, self.upstream.origin, headers, body))
        try:
            how, detail, sent = await (self._refused(failure) if failure else self._answered(head, body))
        except asyncio.CancelledError:
            how, detail = ("stopped", "") if self.means.stopping() else self._if_left
            tell(End(self.n, time.time(), how, detail))
            raise
        tell(End(self.n, time.time(), how, detail))
        return sent

    async def _open(self) -> failures.Failure | None:
        """Take a connection; why there is none."""
        try:
            self._call = await self.means.lines.call(self.upstream, bodiless=self.request.method == "HEAD")
        except failures.EXPECTED as error:
            return failures.of(error)
        return None

    def _head(self) -> bytes:
        """First line and headers as they go upstream."""
        raw = self.request.raw_headers
        kept = heads.CHUNKED | heads.UPGRADE if heads.wants_websocket(raw) else heads.CHUNKED
        proxy = self.means.lines.proxy_of(self.upstream) if self.upstream.scheme == "http" else None
        target = heads.raw(self.upstream.origin + self.target if proxy else self.target)
        extra = environment.authorization(proxy) if proxy else ()
        host = self.upstream.authority.encode()
        return heads.request(self.request.method.encode(), target, raw, host, extra, kept, own_host=self.own_host)

    async def _passed(self, head: bytes) -> bytes:
        """Hand the body on as it comes, and give it whole: holding it back first would cost 5 MB three times the delay."""
        request, content = self.request, self.request.content
        if request.version != HttpVersion10 and request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(_CONTINUE)
        framed = self._framing()
        held = [content.read_nowait()]
        while True:
            last = content.at_eof()
            if self._call is not None:
                self._call.write(head + framed.data(held[-1], last=last))
            if last:
                return b"".join(held)
            head = b""
            held.append(await content.readany())

    def _framing(self) -> Framing:
        return Framing(chunked="Transfer-Encoding" in self.request.headers, closed=False, keep=True)

    async def _answered(self, head: bytes, body: bytes) -> Ended:
        """Wait for the reply, sending the request once more over another connection where this one was no longer one."""
        while True:
            assert self._call is not None
            try:
                message, content = await self._call.answer()
                break
            except StaleError:
                self._call.abort()
                failure = await self._open()
                if failure is not None:
                    return await self._refused(failure)
                self._call.write(head + self._framing().data(body, last=True))
            except failures.EXPECTED as error:
                return await self._refused(failures.of(error))
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
                call.release()
                return "complete", "", Sent(framed.keep)
            pending = b""
            data, failure = await _next(body)


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
