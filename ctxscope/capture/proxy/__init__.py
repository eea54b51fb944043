"""The recording proxy: forwards what an agent and its model say to each other, unchanged, and tells what passed.

aiohttp is loaded when a proxy starts, not when this is imported.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from ctxscope.capture.events import Event, Request
from ctxscope.capture.proxy import environment
from ctxscope.capture.proxy.upstreams import Upstreams, parse
from ctxscope.model import CtxscopeError

if TYPE_CHECKING:
    from ctxscope.capture.proxy.authority import Authority

USER = "ctxscope"
"""Name that goes with the token where a program can only give a name and a password."""
_TOKEN_BYTES = 24
TELLING_SECONDS = 1.0
"""How long what is to be said may still take at the end."""


class Proxy:
    """A proxy in a thread of its own, for the servers it is told of and no others."""

    def __init__(
        self,
        sink: Callable[[Event], None],
        *,
        listen: tuple[str, int] = ("127.0.0.1", 0),
        forward: bool = False,
        environment_proxies: bool = False,
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        """``sink`` gets every event in order, from the proxy's thread, and must return at once.

        ``listen``: host and port, 0 for any free one. ``forward``: serve programs that take it from HTTPS_PROXY, too,
        and record what they say to well-known model hosts beside the upstreams. ``environment_proxies``: reach upstreams
        by the environment's own proxies. ``told`` hears, from a thread for that alone, sentences about what does not
        work.
        """
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        """What a client must show; in its paths, or as the password of a forward proxy."""
        self.requests = 0
        """Requests so far, those that broke off with them."""
        self.tunnelled: dict[str, int] = Counter()
        """Connections of a forward proxy that nobody looked into, by host."""
        self._sink = sink
        self._listen = listen
        self._proxies = environment_proxies
        self._told = told
        self._said: set[str] = set()
        self._sentences: SimpleQueue[str | None] = SimpleQueue()
        self._teller = threading.Thread(target=self._tell_all, name="ctxscope proxy told", daemon=True)
        self._upstreams = Upstreams()
        self._numbers = itertools.count(1)
        self._authority = _authority() if forward else None
        self._address = ""
        self._thread: threading.Thread | None = None
        self._end: Callable[[float], None] = lambda _: None

    @property
    def address(self) -> str:
        """Host and port it listens at (``127.0.0.1:41234``); empty before ``start``."""
        return self._address

    @property
    def upstreams(self) -> tuple[str, ...]:
        """Origins it forwards to (``https://api.anthropic.com``)."""
        return self._upstreams.origins

    @property
    def forward_url(self) -> str:
        """What HTTPS_PROXY must be for one program."""
        return f"http://{USER}:{self.token}@{self._address}"

    def start(self) -> None:
        """Listen, and serve from now on. Raises ``CtxscopeError`` when the address cannot be listened at."""
        sock = self._bound()
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(sock, ready), name="ctxscope proxy", daemon=True)
        self._thread.start()
        ready.result()
        self._teller.start()

    def through(self, base_url: str, *, shown: str = "") -> str:
        """Let a server be reached, and give the base URL that leads there by way of the proxy.

        ``https://api.anthropic.com/v1`` becomes ``http://127.0.0.1:PORT/TOKEN/api.anthropic.com/v1``: the real host
        stays in it, because agents behave by it (issue 3, point 2). ``shown`` is kept instead, for a server that stands
        for another. Raises ``CtxscopeError`` for what is no such URL, for a host that already stands for another server,
        and for a proxy of the environment that cannot be passed.
        """
        assert self._address, "before start there is no address"
        base = parse(base_url, shown)
        if self._proxies:
            environment.proxy_of(base.upstream)
        self._upstreams.add(base)
        return f"http://{base.user}{self._address}/{self.token}/{base.upstream.label}{base.rest}"

    def write_ca(self, folder: Path) -> tuple[Path, Path]:
        """Two files for the program behind a forward proxy: its authority to be trusted beside all others, and with them.

        The first holds also what NODE_EXTRA_CA_CERTS names, in whose place it may be set.
        """
        from ctxscope.capture.proxy import trust  # noqa: PLC0415 - certifi is for forward proxies and https upstreams

        assert self._authority is not None, "only a forward proxy has an authority"
        alone, bundle = folder / "ca.pem", folder / "ca-bundle.pem"
        alone.write_bytes(trust.beside(self._authority.certificate))
        bundle.write_bytes(trust.bundle(self._authority.certificate))
        return alone, bundle

    def stop(self, drain: float) -> None:
        """Take no more connections, let what runs end for ``drain`` seconds, then cut it; twice is once."""
        if self._thread is not None:
            self._end(drain)
            self._thread.join()
            self._thread = None
        if self._teller.is_alive():
            self._sentences.put(None)
            self._teller.join(TELLING_SECONDS)

    # --- in the thread ---

    def _bound(self) -> socket.socket:
        host, port = self._listen
        shown = f"[{host}]" if ":" in host else host
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            sock = socket.create_server((host, port), family=family)
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise CtxscopeError(
                f"{shown}:{port}: cannot be listened at: {why}; expected a free address here"
            ) from error
        name, port = sock.getsockname()[:2]
        self._address = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
        return sock

    def _run(self, sock: socket.socket, ready: Future[None]) -> None:
        try:
            asyncio.run(self._serve(sock, ready))
        except BaseException as error:
            sock.close()
            if ready.done():
                raise
            ready.set_exception(error)

    async def _serve(self, sock: socket.socket, ready: Future[None]) -> None:
        from ctxscope.capture.proxy.serving import Plan, Serving  # noqa: PLC0415 - loads aiohttp

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self._say(_words(context)))
        ended: asyncio.Future[float] = loop.create_future()
        self._end = lambda drain: _unless_closed(loop, functools.partial(_settle, ended, drain))
        serving = Serving(
            Plan(
                upstreams=self._upstreams,
                user=USER,
                token=self.token,
                proxy_of=environment.proxy_of if self._proxies else lambda _: None,
                authority=self._authority,
                tunnelled=self.tunnelled,
                tell=self._tell,
                number=lambda: next(self._numbers),
                told=self._say,
            )
        )
        await serving.listen(sock)
        ready.set_result(None)
        await serving.stop(await ended)

    def _tell(self, event: Event) -> None:
        if type(event) is Request:
            self.requests += 1
        try:
            self._sink(event)
        except Exception as error:  # noqa: BLE001 - forwarding goes on whatever becomes of the record (issue 3, point 6)
            self._say(f"the recording lacks something: {type(error).__name__}: {error}")

    def _say(self, sentence: str) -> None:
        """Once each: the agent's terminal is not ours to fill."""
        if sentence not in self._said:
            self._said.add(sentence)
            self._sentences.put(sentence)

    # --- in a thread of its own: a terminal that takes nothing must not hold up what is forwarded ---

    def _tell_all(self) -> None:
        while (sentence := self._sentences.get()) is not None:
            self._told(sentence)


def _authority() -> Authority:
    from ctxscope.capture.proxy.authority import Authority  # noqa: PLC0415 - cryptography is for forward proxies

    return Authority()


def _words(context: dict[str, Any]) -> str:
    error = context.get("exception")
    return f"proxy: {context['message']}" + (f": {type(error).__name__}: {error}" if error else "")


def _settle(ended: asyncio.Future[float], drain: float) -> None:
    if not ended.done():
        ended.set_result(drain)


def _unless_closed(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(work)
