"""Sends a Python program's model calls by way of ctxscope's recording proxy; Python runs this file as it starts.

Base URLs stay what they are for all of the program's own rules; only the address that ``httpx`` dials differs, and only
below the base URLs in ``CTXSCOPE_ROUTES`` (an object from base URL to the address that leads there). Whatever goes wrong
in here, the program runs as it would have, unrecorded. It stands in a folder of its own, which goes on ``PYTHONPATH``.
"""

from __future__ import annotations

import os
import sys
from typing import Any

VARIABLE = "CTXSCOPE_ROUTES"
TOKENS = frozenset({"oauth", "oauth2", "auth", "token", "login"})
"""In a path: what gives out tokens is not for a recording."""


class Finder:
    """Waits for ``httpx`` to be imported and wraps it then; a program that never does pays nothing."""

    def __init__(self, routes: dict[str, str]) -> None:
        self.routes = routes

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 - the import system's face
        """The module's own spec, with the wrapping done after its code has run."""
        if name != "httpx":
            return None
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
        import importlib.util  # noqa: PLC0415 - every Python program started below the agent runs this file

        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            try:  # noqa: SIM105 - contextlib is one more import for every program
                wrap(module, self.routes)
            except Exception:  # noqa: BLE001, S110 - a foreign version of httpx: unrecorded, which ctxscope run reports
                pass

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def wrap(httpx: Any, routes: dict[str, str]) -> None:
    """Have both of ``httpx``'s transports dial the proxy for requests below a route."""
    synchronous = httpx.HTTPTransport.handle_request
    asynchronous = httpx.AsyncHTTPTransport.handle_async_request

    def handle_request(self: Any, request: Any) -> Any:
        there = rerouted(httpx, routes, request.url)
        if there is None:
            return synchronous(self, request)
        asked, request.url = request.url, there
        try:
            return synchronous(direct(self, httpx.HTTPTransport), request)
        finally:
            request.url = asked

    async def handle_async_request(self: Any, request: Any) -> Any:
        there = rerouted(httpx, routes, request.url)
        if there is None:
            return await asynchronous(self, request)
        asked, request.url = request.url, there
        try:
            return await asynchronous(direct(self, httpx.AsyncHTTPTransport), request)
        finally:
            request.url = asked

    httpx.HTTPTransport.handle_request = handle_request
    httpx.AsyncHTTPTransport.handle_async_request = handle_async_request


def rerouted(httpx: Any, routes: dict[str, str], url: Any) -> Any:
    """Where a request really goes; ``None`` when that is where it says."""
    asked = str(url)
    if TOKENS.intersection(url.path.split("/")):
        return None
    for base in sorted(routes, key=len, reverse=True):
        if asked.startswith((base + "/", base + "?")) or asked == base:
            skipped = len(httpx.URL(base).raw_path.rstrip(b"/"))
            there = httpx.URL(routes[base])
            return there.copy_with(raw_path=there.raw_path.rstrip(b"/") + url.raw_path[skipped:])
    return None


def direct(transport: Any, kind: Any) -> Any:
    """The transport itself, or one without a proxy where it was made for the user's: that one cannot reach ours."""
    if type(getattr(transport, "_pool", None)).__name__.removeprefix("Async") not in ("HTTPProxy", "SOCKSProxy"):
        return transport
    if not hasattr(transport, "_ctxscope_direct"):
        transport._ctxscope_direct = kind()  # noqa: SLF001 - kept with what it stands in for
    return transport._ctxscope_direct  # noqa: SLF001


def next_one() -> None:
    """Run the ``sitecustomize`` that this one stands before, and leave the path as it would have been."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is not loaded at this time
    sys.path[:] = [place for place in sys.path if place != here]
    mine = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ImportError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, mine)


def start() -> None:
    """Begin to wait for ``httpx`` if there is a route."""
    told = os.environ.get(VARIABLE)
    if told:
        import json  # noqa: PLC0415 - as above

        routes = json.loads(told)
        if isinstance(routes, dict):
            sys.meta_path.insert(0, Finder(routes))


if __name__ == "sitecustomize":
    try:  # noqa: SIM105 - as above
        start()
    except Exception:  # noqa: BLE001, S110 - as above
        pass
    next_one()
