"""The certificate authority of one run: the forward proxy speaks for an upstream with a certificate of its own."""

from __future__ import annotations

import datetime as dt
import ssl
from dataclasses import dataclass, field

import trustme

_DAYS = 397
"""A certificate valid for longer is refused by some clients."""


def _made() -> trustme.CA:
    return trustme.CA(organization_name="ctxscope", organization_unit_name="for one run of one agent")


@dataclass(slots=True)
class Authority:
    """Trusted by nobody but the program it is handed to; its key never leaves memory."""

    _authority: trustme.CA = field(default_factory=_made)
    _contexts: dict[str, ssl.SSLContext] = field(default_factory=dict)

    @property
    def certificate(self) -> bytes:
        """In PEM."""
        return self._authority.cert_pem.bytes()

    def context(self, host: str) -> ssl.SSLContext:
        """TLS as ``host`` would speak it; HTTP/1.1 only, whatever the client offers."""
        context = self._contexts.get(host)
        if context is None:
            until = dt.datetime.now(dt.UTC) + dt.timedelta(days=_DAYS)
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._authority.issue_cert(host, not_after=until).configure_cert(context)
            context.set_alpn_protocols(["http/1.1"])
            self._contexts[host] = context
        return context
