"""Why an upstream gave no whole reply."""

from __future__ import annotations

import errno
import os
import ssl
from dataclasses import dataclass

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from ctxscope.capture.events import How

EXPECTED = (aiohttp.ClientError, HttpProcessingError, OSError, ssl.SSLError)
"""What reaching an upstream may raise; a timeout is an ``OSError``."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with an upstream."""

    how: How
    detail: str
    """In words without addresses or secrets."""


def of(error: BaseException) -> Failure:
    """What an error of its connection means."""
    if isinstance(error, TimeoutError) or _number(error) == errno.ETIMEDOUT:
        return Failure("upstream timeout", "it did not answer in time")
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError | ssl.SSLError):
        return Failure("upstream unreachable", _unreachable(error))
    if isinstance(error, HttpProcessingError):
        return Failure("upstream reset", "what it sent is no HTTP reply")
    if isinstance(error, aiohttp.ClientPayloadError):
        return Failure("upstream reset", "it closed the connection in the middle of the reply")
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return Failure("upstream reset", "it closed the connection without a reply")
    return Failure("upstream reset", _words(error))


def _unreachable(error: aiohttp.ClientError | ssl.SSLError) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or "it is for another host"
        return f"its certificate is not trusted: {why}"
    if isinstance(error, aiohttp.ClientConnectorSSLError | ssl.SSLError):
        cause = error.os_error if isinstance(error, aiohttp.ClientConnectorSSLError) else error
        return f"TLS failed: {getattr(cause, 'reason', None) or 'no handshake'}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name cannot be resolved"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy of the environment answered {error.status}"
    words = _words(error)
    return f"the proxy of the environment: {words}" if isinstance(error, aiohttp.ClientProxyConnectionError) else words


def _number(error: BaseException) -> int | None:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return cause.errno if isinstance(cause, OSError) else None


def _words(error: BaseException) -> str:
    """By number: the error's own words hold addresses."""
    number = _number(error)
    return os.strerror(number) if number else "the connection failed"
