"""Whose certificates are believed: the system's, certifi's and those of the files the user named for their programs."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import certifi

_NODE = "NODE_EXTRA_CA_CERTS"
VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", _NODE)
"""An agent that trusts a company's authority by one of these must get through the proxy as well."""
_SYSTEM = (
    *("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"),
    *("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"),
)
"""Where systems keep theirs as one file; the OpenSSL that Python carries may not know the place."""
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def context(told: Callable[[str], None]) -> ssl.SSLContext:
    """TLS towards upstreams; ``told`` hears of files that cannot be used."""
    made = ssl.create_default_context()
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT  # refuses authorities that agents' own clients accept
    for path in _files():
        _load(made, path)
    for variable, path in _named():
        try:
            _load(made, path)
        except OSError as error:
            why = error.strerror or "no certificates in it"
            told(f"{variable} names {path}, which cannot be used: {why}; going on without it")
    made.set_alpn_protocols(["http/1.1"])
    return made


def beside(certificate: bytes) -> bytes:
    """A certificate with those the user's NODE_EXTRA_CA_CERTS names, which Node takes from one file only."""
    named = [path for name, path in _named() if name == _NODE]
    return _distinct([certificate, *_read(named)])


def bundle(*more: bytes) -> bytes:
    """All of these certificates, each once, in PEM, ``more`` first."""
    texts = [*more, *_read([*_files(), *(path for _, path in _named())])]
    texts += [ssl.DER_cert_to_PEM_cert(der).encode() for der in ssl.create_default_context().get_ca_certs(True)]
    return _distinct(texts)


def _distinct(texts: Iterable[bytes]) -> bytes:
    found = (found for text in texts for found in _CERTIFICATE.findall(text))
    return b"\n".join(dict.fromkeys(found)) + b"\n"


def _read(files: Iterable[Path]) -> Iterator[bytes]:
    for path in files:
        with suppress(OSError):  # it could not be read without the proxy either; or it is a folder
            yield path.read_bytes()


def _files() -> Iterator[Path]:
    system = next((Path(path) for path in _SYSTEM if Path(path).is_file()), None)
    if system is not None:
        yield system
    yield Path(certifi.where())


def _named() -> Iterator[tuple[str, Path]]:
    yield from ((name, Path(value)) for name in VARIABLES if (value := os.environ.get(name)))


def _load(into: ssl.SSLContext, path: Path) -> None:
    if path.is_dir():
        into.load_verify_locations(capath=path)
    else:
        into.load_verify_locations(cafile=path)
