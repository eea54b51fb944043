"""A program behind a forward proxy: an upstream that a company vouches for, CONNECT, and TLS in its name."""

from __future__ import annotations

import base64
import ssl

import pytest
import trustme

from ctxscope.capture.proxy import trust
from tests.proxy_peers import END, Peer

HOST = "localhost"


@pytest.fixture(scope="module")
def company():
    """An authority that the user's programs are told to trust."""
    return trustme.CA()


@pytest.fixture
def secure(company, monkeypatch, tmp_path):
    """Makes an upstream speak TLS, with a certificate of the company that the environment names."""
    file = tmp_path / "company.pem"
    company.cert_pem.write_to_path(str(file))
    for name in trust.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(file))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    company.issue_cert(HOST, "127.0.0.1").configure_cert(context)
    context.set_alpn_protocols(["h2", "http/1.1"])

    def made(server):
        server.wrap = lambda sock: context.wrap_socket(sock, server_side=True)
        return server

    return made


def credentials(it, token=None):
    pair = f"ctxscope:{token or it.proxy.token}".encode()
    return b"Proxy-Authorization: Basic " + base64.b64encode(pair)


def connect(it, host, port, *headers, room=0):
    """A client that has asked for a connection."""
    client = it.connect(room)
    place = f"{host}:{port}".encode()
    client.send(b"\r\n".join([b"CONNECT %b HTTP/1.1" % place, b"Host: " + place, *headers]) + END)
    return client


def tls(it, client, ca_file, offers=("h2", "http/1.1")):
    """Speak TLS with whom the connection leads to."""
    context = ssl.create_default_context(cafile=ca_file)
    context.set_alpn_protocols(list(offers))
    peer = Peer(context.wrap_socket(client.sock, server_hostname=HOST))
    it._clients.append(peer)
    return peer
