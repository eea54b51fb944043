"""The proxies that the environment names for a way to an upstream."""

from __future__ import annotations

import base64
from urllib.parse import unquote, urlsplit

from ctxscope.capture.proxy.upstreams import Upstream
from ctxscope.model import CtxscopeError


def proxy_of(upstream: Upstream) -> str | None:
    """URL of the proxy for an upstream by HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in either case.

    The variables are read here and not by aiohttp, which would look into the user's netrc too. Raises ``CtxscopeError``
    for a kind of proxy that cannot be passed through.
    """
    from urllib import request  # noqa: PLC0415 - loads much, and is for those who ask for it

    named = request.getproxies_environment()
    url = named.get(upstream.scheme) or named.get("all")
    if not url or any(request.proxy_bypass_environment(name, named) for name in (upstream.authority, upstream.host)):  # type: ignore[attr-defined]
        return None
    url = url if "://" in url else f"http://{url}"
    if urlsplit(url).scheme not in ("http", "https"):
        kind = urlsplit(url).scheme
        raise CtxscopeError(f"{upstream.origin}: the environment names a {kind} proxy for it; expected http or https")
    return url


def authorization(proxy: str) -> tuple[tuple[bytes, bytes], ...]:
    """The header a proxy wants to see, by the name and password in its URL."""
    split = urlsplit(proxy)
    if split.username is None:
        return ()
    pair = f"{unquote(split.username)}:{unquote(split.password or '')}"
    return ((b"Proxy-Authorization", b"Basic " + base64.b64encode(pair.encode())),)
