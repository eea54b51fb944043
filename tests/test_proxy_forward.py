"""The proxy as a program finds it in HTTPS_PROXY: CONNECT, TLS in an upstream's name, blind tunnels, whole URLs."""

from __future__ import annotations

import base64
import os
import re
import socket
import ssl
import stat
import subprocess
import sys
import threading

import pytest

from ctxscope.capture.events import End, Head, Message, Request
from ctxscope.capture.proxy import trust, upstreams
from tests.proxy_frames import CLOSE, TEXT, agreed, frame, received, sent, upgrade
from tests.proxy_peers import CAP, END, OK, Server, answering, chunk, post, through, value
from tests.proxy_tls import HOST, company, connect, credentials, secure, tls

FIXTURES = (company, secure)
"""Used by their names."""


def test_a_request_to_an_upstream_is_recorded_though_it_is_encrypted(secure, tmp_path):
    server = secure(answering(lambda *_: OK))
    with server, through(forward=True) as it:
        it.proxy.through(f"https://{HOST}:{server.port}/v1")
        ca_file, _ = it.proxy.write_ca(tmp_path)
        client = connect(it, HOST, server.port, credentials(it))
        assert client.until(END).startswith(b"HTTP/1.1 200 ")
        client = tls(it, client, ca_file)
        assert client.sock.selected_alpn_protocol() == "http/1.1"
        for n in (1, 2):
            client.send(post(b"/v1/messages?x=%2F", b"hello %d" % n, b"x-api-key: k"))
            assert client.message() == (OK[:-2], b"ok")
        assert [body for _, body in server.seen] == [b"hello 1", b"hello 2"]
        head = server.seen[0][0]
        assert head == post(b"/v1/messages?x=%2F", b"hello 1", b"x-api-key: k")[: len(head)]  # the Host header, too
        asked = it.told.of(Request)[0]
        assert (asked.target, asked.upstream) == ("/v1/messages?x=%2F", f"https://{HOST}:{server.port}")
        assert it.told.end(2).how == "complete"
        assert it.proxy.tunnelled == {}


def test_a_reverse_proxy_reaches_an_upstream_by_the_authority_the_user_trusts(secure):
    server = secure(answering(lambda *_: OK))
    with server, through() as it:
        assert it.ask(f"https://{HOST}:{server.port}").message()[1] == b"ok"
        assert server._peers[0].sock.selected_alpn_protocol() == "http/1.1"
        assert it.said.events == []


@pytest.mark.parametrize("variable", trust.VARIABLES)
def test_each_variable_that_names_an_authority_counts(variable, secure, monkeypatch):
    monkeypatch.setenv(variable, os.environ["NODE_EXTRA_CA_CERTS"])
    if variable != "NODE_EXTRA_CA_CERTS":
        monkeypatch.delenv("NODE_EXTRA_CA_CERTS")
    server = secure(answering(lambda *_: OK))
    with server, through() as it:
        assert it.ask(f"https://{HOST}:{server.port}").message()[1] == b"ok"


def test_an_upstream_nobody_vouches_for_is_not_spoken_to(secure, monkeypatch):
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", "/nowhere/ca.pem")
    server = secure(answering(lambda *_: OK))
    with server, through() as it:
        head, body = it.ask(f"https://{HOST}:{server.port}").message()
        assert head.startswith(b"HTTP/1.1 502 ")
        assert b"its certificate is not trusted" in body
        end = it.told.end()
        assert (end.how, server.seen) == ("upstream unreachable", [])
        it.said.wait(lambda: it.said.events)
        assert "NODE_EXTRA_CA_CERTS names /nowhere/ca.pem, which cannot be used" in it.said.events[0]


def test_an_upstream_that_is_another_is_not_spoken_to(company, monkeypatch, tmp_path):
    company.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    company.issue_cert("other.example").configure_cert(context)
    server = answering(lambda *_: OK)
    server.wrap = lambda sock: context.wrap_socket(sock, server_side=True)
    with server, through() as it:
        assert b"its certificate is not trusted" in it.ask(f"https://{HOST}:{server.port}").message()[1]


def test_streams_and_tears_are_the_same_inside_tls(secure, tmp_path):
    def serve(peer):
        peer.message()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"data: 1\n\n"))
        assert passed.wait(CAP)
        peer.reset()

    passed = threading.Event()
    with secure(Server(serve)) as server, through(forward=True) as it:
        it.proxy.through(f"https://{HOST}:{server.port}")
        client = connect(it, HOST, server.port, credentials(it))
        client.until(END)
        client = tls(it, client, it.proxy.write_ca(tmp_path)[0])
        client.send(post(b"/v1"))
        client.until(chunk(b"data: 1\n\n"))
        passed.set()
        assert client.rest() == b""
        assert it.told.end().how == "upstream reset"
        assert it.told.body() == b"data: 1\n\n"


def test_a_websocket_inside_tls_is_recorded(secure, tmp_path):
    def serve(peer):
        peer.send(agreed(peer.until(END)))
        peer.send(frame(TEXT, received(peer)[1]) + frame(CLOSE, b""))

    with secure(Server(serve)) as server, through(forward=True) as it:
        it.proxy.through(f"https://{HOST}:{server.port}")
        client = connect(it, HOST, server.port, credentials(it))
        client.until(END)
        client = tls(it, client, it.proxy.write_ca(tmp_path)[0])
        client.send(upgrade(b"/v1/responses"))
        client.until(END)
        client.send(sent(TEXT, b"x" * 300_000))
        assert received(client) == (0x81, b"x" * 300_000)
        assert it.told.end().how == "complete"
        assert [(m.sender, len(m.data)) for m in it.told.of(Message)] == [
            *(("client", 300_000), ("server", 300_000), ("server", 0)),
        ]


def test_a_well_known_model_host_is_recorded_though_nobody_named_it(secure, tmp_path, monkeypatch):
    server = secure(answering(lambda *_: OK))
    with server, through(forward=True) as it:
        monkeypatch.setattr(upstreams, "MODEL_HOSTS", {HOST})
        monkeypatch.setitem(upstreams._PORTS, "https", server.port)
        monkeypatch.setattr(upstreams.Upstream, "authority", f"{HOST}:{server.port}")
        client = connect(it, HOST, server.port, credentials(it))
        client.until(END)
        client = tls(it, client, it.proxy.write_ca(tmp_path)[0])
        client.send(post(b"/v1/messages", b"hello"))
        assert client.message()[1] == b"ok"
        assert it.told.of(Request)[0].upstream == f"https://{HOST}:{server.port}"
        assert it.proxy.tunnelled == {}
        assert it.proxy.upstreams == ()
        reverse = it.connect()
        reverse.send(post(f"/{it.proxy.token}/{HOST}/v1".encode()))
        assert reverse.message()[0].startswith(b"HTTP/1.1 403 ")  # by its path only what it was told of


def test_other_hosts_are_reached_by_a_tunnel_that_nobody_looks_into(secure):
    server = secure(answering(lambda *_: OK))
    with server, through(forward=True) as it:
        it.proxy.through("https://api.anthropic.com")
        client = connect(it, HOST, server.port, credentials(it))
        assert client.until(END).startswith(b"HTTP/1.1 200 ")
        client = tls(it, client, os.environ["NODE_EXTRA_CA_CERTS"])  # the other host's own certificate
        assert client.sock.selected_alpn_protocol() == "h2"
        client.send(post(b"/", b"secret" * 50_000))
        assert client.message()[1] == b"ok"
        assert server.seen[0][1] == b"secret" * 50_000
        assert it.told.events == []
        assert it.proxy.tunnelled == {HOST: 1}


def test_a_tunnel_ends_with_either_side():
    def serve(peer):
        peer.send(peer.until(b"\n"))
        if peer.rest() == b"":
            gone.set()

    gone = threading.Event()
    with Server(serve) as server, through(forward=True) as it:
        client = connect(it, "127.0.0.1", server.port, credentials(it))
        client.until(END)
        client.send(b"hello\n")
        assert client.until(b"\n") == b"hello\n"
        client.sock.shutdown(socket.SHUT_WR)
        assert gone.wait(CAP)
        assert client.rest() == b""


def test_a_tunnel_is_cut_when_the_proxy_stops():
    with Server(lambda peer: peer.gone()) as server, through(forward=True) as it:
        client = connect(it, "127.0.0.1", server.port, credentials(it))
        client.until(END)
        idle = it.connect()
        it.proxy.stop(0)
        assert client.gone()
        assert idle.gone()


def test_a_proxy_of_the_environment_that_cannot_be_passed_is_told_to_the_client(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")
    with through(forward=True, environment_proxies=True) as it:
        assert connect(it, HOST, 443, credentials(it)).rest().startswith(b"HTTP/1.1 502 ")
        client = it.connect()
        client.send(b"GET http://%b/ HTTP/1.1\r\nHost: x\r\n%b\r\n\r\n" % (HOST.encode(), credentials(it)))
        assert b"socks5" in client.message()[1]
        assert it.said.events == []


def test_a_host_that_is_not_there_is_told_to_the_client():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with through(forward=True) as it:
        assert connect(it, "127.0.0.1", port, credentials(it)).rest().startswith(b"HTTP/1.1 502 ")


@pytest.mark.parametrize(
    "header", [None, b"Proxy-Authorization: Basic x", b"Proxy-Authorization: Bearer TOKEN", "other"]
)
def test_without_the_token_nothing_is_connected(header):
    with answering(lambda *_: OK) as server, through(forward=True) as it:
        it.proxy.through(server.origin)
        headers = [credentials(it, "other") if header == "other" else header] if header else []
        headers = [line.replace(b"TOKEN", it.proxy.token.encode()) for line in headers]
        head = connect(it, "127.0.0.1", server.port, *headers).rest()
        assert head.startswith(b"HTTP/1.1 407 ")
        assert b'Proxy-Authenticate: Basic realm="ctxscope"\r\n' in head
        client = it.connect()
        client.send(b"\r\n".join([b"GET %b/v1 HTTP/1.1" % server.origin.encode(), b"Host: x", *headers]) + END)
        assert client.rest().startswith(b"HTTP/1.1 407 ")
        assert server.seen == []
        assert it.told.events == []


@pytest.mark.parametrize("target", ["nonsense", ":443", "host:", "host:x", "host:-1"])
def test_a_connect_to_nowhere_is_refused(target):
    with through(forward=True) as it:
        client = it.connect()
        client.send(b"CONNECT %b HTTP/1.1\r\n%b\r\n\r\n" % (target.encode(), credentials(it)))
        assert client.rest().startswith(b"HTTP/1.1 400 ")


def test_a_request_of_plain_http_names_its_upstream_in_full():
    with answering(lambda *_: OK) as server, answering(lambda *_: OK) as other, through(forward=True) as it:
        it.proxy.through(server.origin)
        client = it.connect()
        for origin in (server.origin, other.origin):
            host = b"Host: " + origin.removeprefix("http://").encode()
            lines = [b"POST %b/v1/x?y=%%2F HTTP/1.1" % origin.encode(), host, b"Proxy-Connection: keep-alive"]
            client.send(b"\r\n".join([*lines, credentials(it), b"Content-Length: 5"]) + END + b"hello")
            assert client.message()[1] == b"ok"
            seen, body = (server if origin == server.origin else other).seen[0]
            assert seen == b"\r\n".join([b"POST /v1/x?y=%2F HTTP/1.1", host, b"Content-Length: 5"]) + END
            assert body == b"hello"
        assert [r.upstream for r in it.told.of(Request)] == [server.origin]
        assert it.proxy.tunnelled == {"127.0.0.1": 1}
        assert it.proxy.requests == 1
        assert it.told.end().n == 1


def test_a_connect_to_an_upstream_of_plain_http_is_recorded_too():
    with answering(lambda *_: OK) as server, through(forward=True) as it:
        it.proxy.through(server.origin)
        client = connect(it, "127.0.0.1", server.port, credentials(it))
        assert client.until(END).startswith(b"HTTP/1.1 200 ")
        client.send(post(b"/v1/x"))
        assert client.message()[1] == b"ok"
        assert it.told.of(Request)[0].target == "/v1/x"


def test_the_paths_of_a_reverse_proxy_lead_through_a_forward_proxy_too():
    with answering(lambda *_: OK) as server, through(forward=True) as it:
        client = it.connect()
        path = it.path(server.origin)
        request = post(path).replace(b"POST", b"COPY")
        client.send(request[:2])  # may still become a CONNECT
        it.ask(server.origin).message()
        client.send(request[2:])
        assert client.message()[1] == b"ok"
        assert server.seen[1][0].startswith(b"COPY /v1/messages ")
        assert it.told.of(Head)[0].status == 200


def test_a_program_that_does_not_trust_us_is_told_of(secure):
    server = secure(answering(lambda *_: OK))
    with server, through(forward=True) as it:
        it.proxy.through(f"https://{HOST}:{server.port}")
        for _ in range(2):
            client = connect(it, HOST, server.port, credentials(it))
            client.until(END)
            with pytest.raises(ssl.SSLCertVerificationError):
                tls(it, client, os.environ["NODE_EXTRA_CA_CERTS"])
        it.said.wait(lambda: it.said.events)
    assert len(it.said.events) == 1
    assert f"{HOST}: the program did not accept ctxscope's certificate" in it.said.events[0]


def test_the_files_for_a_program_hold_certificates_and_no_key(tmp_path, secure):  # noqa: ARG001 - names the company
    with through(forward=True) as it, through(forward=True) as another:
        alone, bundle = it.proxy.write_ca(tmp_path)
        ours = alone.read_bytes()
        whole = bundle.read_bytes()
        assert ours.count(b"BEGIN CERTIFICATE") == 2
        assert ours.strip().split(b"-----END")[0] in whole
        assert whole.count(b"BEGIN CERTIFICATE") > 50
        with open(os.environ["NODE_EXTRA_CA_CERTS"], "rb") as file:  # noqa: PTH123 - one line
            company = file.read().strip()
        assert company in whole
        assert company in ours  # for Node reads one file only
        found = re.findall(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", whole, re.DOTALL)
        assert len(found) == len(set(found))
        assert b"PRIVATE" not in ours + whole
        assert {p.name for p in tmp_path.iterdir()} == {"ca.pem", "ca-bundle.pem", "company.pem"}
        assert not stat.S_IMODE(alone.stat().st_mode) & 0o022
        (tmp_path / "b").mkdir()
        assert another.proxy.write_ca(tmp_path / "b")[0].read_bytes() != ours
        ssl.create_default_context(cafile=bundle)


def test_a_program_finds_its_way_by_the_environment(secure, tmp_path):
    server = secure(answering(lambda *_: OK))
    code = "import urllib.request, sys; print(urllib.request.urlopen(sys.argv[1], b'{}').read())"
    with server, through(forward=True) as it:
        url = f"https://{HOST}:{server.port}/v1"
        it.proxy.through(url)
        _, bundle = it.proxy.write_ca(tmp_path)
        env = {**os.environ, "HTTPS_PROXY": it.proxy.forward_url, "SSL_CERT_FILE": str(bundle), "NO_PROXY": ""}
        run = subprocess.run([sys.executable, "-c", code, url], env=env, capture_output=True, text=True, check=False)
        assert (run.stdout.strip(), run.stderr) == ("b'ok'", "")
        assert it.told.of(Request)[0].upstream == f"https://{HOST}:{server.port}"


def test_tunnels_and_tls_go_by_way_of_the_environments_proxy(secure, monkeypatch):
    """A company's proxy between us and everybody else."""

    def serve(peer):
        head = peer.until(END)
        asked.append(head)
        host, port = head.split(b" ")[1].decode().split(":")
        with socket.create_connection((host, int(port)), CAP) as there:
            peer.send(b"HTTP/1.1 200 fine\r\n\r\n")
            back = threading.Thread(target=lambda: pump(there, peer.sock))
            back.start()
            pump(peer.sock, there)
            back.join(CAP)

    def pump(source, sink):
        try:
            while data := source.recv(65_536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    asked = []
    server = secure(answering(lambda *_: OK))
    with server, Server(serve) as proxy, monkeypatch.context() as env:
        env.setenv("https_proxy", f"http://me:pw@127.0.0.1:{proxy.port}")
        env.setenv("no_proxy", "")
        with through(forward=True, environment_proxies=True) as it:
            assert it.ask(f"https://{HOST}:{server.port}").message()[1] == b"ok"
            client = connect(it, "127.0.0.1", server.port, credentials(it))
            client.until(END)
            client = tls(it, client, os.environ["NODE_EXTRA_CA_CERTS"])
            client.send(post(b"/x"))
            assert client.message()[1] == b"ok"
    want = b"Basic " + base64.b64encode(b"me:pw")
    assert [value(head, b"proxy-authorization") for head in asked] == [want, want]
    assert [type(e) for e in it.told.events].count(End) == 1
