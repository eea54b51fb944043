"""Who may use the proxy, where it leads, and by which ways."""

from __future__ import annotations

import base64
import socket
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from ctxscope.capture.events import End, Request
from ctxscope.capture.proxy import Proxy
from ctxscope.capture.proxy.upstreams import Upstreams, parse, route
from ctxscope.model import CtxscopeError
from tests.conftest import ROOT
from tests.proxy_peers import CAP, OK, answering, post, through, value

VARIABLES = [v for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY") for v in (name, name.lower())]


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("spoil", ["/", "/x/", "//", "/TOKEN"])
def test_without_the_token_there_is_nothing(spoil):
    with answering(lambda *_: OK) as server, through() as it:
        path = it.path(server.origin)
        label = path.split(b"/")[2]
        token = it.proxy.token.swapcase() if "TOKEN" in spoil else spoil.strip("/")
        client = it.connect()
        client.send(post(b"/%b/%b/v1/messages" % (token.encode(), label)))
        head = client.rest()
        assert head == b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        assert it.told.events == []
        assert server.seen == []


@pytest.mark.parametrize("target", ["http://127.0.0.1:1/", "*", "http://ctxscope:TOKEN@127.0.0.1:1/"])
def test_a_reverse_proxy_is_no_forward_proxy(target):
    with through() as it:
        client = it.connect()
        method, target = ("OPTIONS" if target == "*" else "GET"), target.replace("TOKEN", it.proxy.token)
        client.send(f"{method} {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert client.rest().startswith(b"HTTP/1.1 404")
        client = it.connect()
        client.send(b"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.rest().startswith(b"HTTP/1.1 404")
        assert it.told.events == []


def test_only_the_hosts_it_was_started_for_can_be_reached():
    with answering(lambda *_: OK) as server, answering(lambda *_: OK) as other, through() as it:
        it.path(server.origin)
        client = it.connect()
        client.send(post(f"/{it.proxy.token}/127.0.0.1:{other.port}/v1".encode()))
        head, body = client.message()
        assert head.startswith(b"HTTP/1.1 403 Forbidden")
        assert b"ctxscope" in body
        assert other.seen == []
        assert it.told.events == []
        assert it.proxy.requests == 0


def test_what_is_no_http_is_refused_without_a_word_on_the_terminal(capfd):
    with through() as it:
        client = it.connect()
        client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 100)
        assert client.rest().startswith(b"HTTP/1.0 400")
        assert it.told.events == []
    assert capfd.readouterr() == ("", "")
    assert it.said.events == []


def test_several_upstreams_at_once():
    first, second = answering(lambda *_: OK), answering(lambda *_: OK)
    with first, second, through() as it:
        for n, server in enumerate((first, second, first), 1):
            it.ask(server.origin, b"%d" % n).message()
            assert it.told.wait(lambda n=n: it.told.of(Request, n))[0].upstream == server.origin
        assert [body for _, body in first.seen] == [b"1", b"3"]
        assert it.proxy.upstreams == (first.origin, second.origin)


def test_the_real_host_stays_in_the_path():
    with through() as it:
        start = f"http://{it.proxy.address}/{it.proxy.token}/"
        for base, rest in {
            "https://api.anthropic.com": "api.anthropic.com",
            "https://API.Anthropic.com/": "api.anthropic.com/",
            "https://api.kimi.com:443/coding/v1": "api.kimi.com/coding/v1",
            "http://api.kimi.com/x?api-version=1#f": "api.kimi.com:80/x?api-version=1#f",
            "https://gate.example:8443/v1": "gate.example:8443/v1",
            "http://[::1]:4000/v1": "::1:4000/v1",
        }.items():
            assert it.proxy.through(base) == start + rest
        assert it.proxy.through("https://me:pw@h.example/v1") == start.replace("//", "//me:pw@", 1) + "h.example/v1"
        assert it.proxy.through("http://127.0.0.1:4000/v1", shown="gw.kimi.com") == start + "gw.kimi.com/v1"
        assert it.proxy.upstreams[:2] == ("https://api.anthropic.com", "https://api.kimi.com")
        assert "http://[::1]:4000" in it.proxy.upstreams


def test_a_server_shown_as_another_is_reached_under_that_name():
    with answering(lambda *_: OK) as server, through() as it:
        client = it.connect()
        client.send(post(it.path(server.origin, shown="api.kimi.com")))
        client.message()
        assert value(server.seen[0][0], b"host") == b"127.0.0.1:%d" % server.port
        assert it.told.of(Request)[0].upstream == server.origin


def test_one_name_stands_for_one_server():
    with through() as it:
        it.proxy.through("https://api.kimi.com/v1")
        it.proxy.through("https://api.kimi.com/v2")
        with pytest.raises(CtxscopeError, match=r"already stands for https://api\.kimi\.com"):
            it.proxy.through("http://127.0.0.1:4000", shown="api.kimi.com")


@pytest.mark.parametrize(
    "url",
    [
        *("", "api.kimi.com", "ftp://x", "https://", "https:///v1", "https://h:99999", "https://h:x", "https://a b"),
        *("https://ex\nample", "https://é.example", "https://a_b*c/", "https://[::1"),
    ],
)
def test_what_is_no_base_url_is_told(url):
    with pytest.raises(CtxscopeError, match="expected"):
        parse(url)


def test_a_path_is_taken_apart_and_keeps_what_goes_upstream():
    assert route("/t/h:1/a%2F?b") == ("t", "h:1", "/a%2F?b")
    assert route("/t/H") == ("t", "h", "/")
    assert route("/t/h?x=/y") == ("t", "h", "/?x=/y")
    assert route("/t") == ("t", "", "/")
    assert route("*") == ("*", "", "/")


@pytest.mark.parametrize(
    ("host", "port", "known"),
    [
        ("API.Anthropic.com", 443, True),
        ("bedrock-runtime.us-east-1.amazonaws.com", 443, True),
        ("europe-west4-aiplatform.googleapis.com", 443, True),
        ("api.anthropic.com", 80, False),
        ("evil-api.anthropic.com", 443, False),
        ("bedrock-runtime.x.amazonaws.com.evil", 443, False),
        ("github.com", 443, False),
    ],
)
def test_which_hosts_are_known(host, port, known):
    found = Upstreams().at(host, port)
    assert (found is not None) == known
    assert found is None or found.origin == f"https://{host.lower()}"


def test_an_address_in_use_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CtxscopeError, match=rf"127\.0\.0\.1:{port}: cannot be listened at: .*in use"):
            Proxy(lambda _: None, listen=("127.0.0.1", port)).start()
    with pytest.raises(CtxscopeError, match=r"192\.0\.2\.1:0: cannot be listened at"):
        Proxy(lambda _: None, listen=("192.0.2.1", 0)).start()


def test_tokens_differ():
    assert len({Proxy(lambda _: None).token for _ in range(5)}) == 5


def test_a_sink_that_fails_disturbs_nobody():
    def sink(event):
        if type(event) is not End:
            raise OSError(28, "No space left on device")
        ended.append(event)

    said, ended = [], []
    with answering(lambda *_: OK) as server, through() as it:
        proxy = Proxy(sink, told=said.append)
        proxy.start()
        try:
            it = replace(it, proxy=proxy)  # noqa: PLW2901 - its clients are closed by the one before
            assert it.ask(server.origin).message()[1] == b"ok"
        finally:
            proxy.stop(1)
    assert len(said) == 1
    assert "No space left on device" in said[0]
    assert ended[0].how == "complete"


def test_a_terminal_that_takes_nothing_does_not_hold_up_what_is_forwarded():
    def sink(_):
        raise OSError(28, "No space left on device")

    def told(_):
        stuck.set()
        assert taking.wait(CAP)

    stuck, taking = threading.Event(), threading.Event()
    with answering(lambda *_: OK) as server, through() as it:
        proxy = Proxy(sink, told=told)
        proxy.start()
        try:
            it = replace(it, proxy=proxy)  # noqa: PLW2901 - as above
            assert it.ask(server.origin).message()[1] == b"ok"
            assert stuck.wait(CAP)
            assert it.ask(server.origin).message()[1] == b"ok"
        finally:
            taking.set()
            proxy.stop(1)
    assert not [t for t in threading.enumerate() if t.name.startswith("ctxscope proxy")]


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2@h:x/",
        "http://me:hun/ter2@h",
        "me:hunter2@h",
        "http://me:hunter2@a b/",
        "ftp://me:hunter2@h/?hunter2",
    ],
)
def test_a_password_is_in_no_error(url):
    with pytest.raises(CtxscopeError) as told:
        parse(url)
    assert "hunter2" not in str(told.value)
    assert "ter2" not in str(told.value)


def test_importing_it_loads_no_web_framework():
    code = "import sys, ctxscope.capture.proxy; print({'aiohttp', 'cryptography', 'certifi'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "set()"


# --- proxies of the environment ---


def test_a_proxy_of_the_environment_is_used_only_on_request(monkeypatch):
    with answering(lambda *_: OK) as server, answering(lambda *_: OK) as company:
        monkeypatch.setenv("http_proxy", f"http://me:p%40ss@127.0.0.1:{company.port}")
        with through() as it:
            it.ask(server.origin).message()
        assert company.seen == []
        with through(environment_proxies=True) as it:
            client, path = it.connect(), it.path(server.origin, "/v1?a=%2F")
            for n in (1, 2):
                client.send(post(path, b"hello"))
                assert client.message()[1] == b"ok"
                assert it.told.end(n).how == "complete"
            assert it.told.of(Request)[0].target == "/v1?a=%2F"
            assert it.told.of(Request)[0].upstream == server.origin
        assert len(server.seen) == 1
        for head, body in company.seen:
            assert head.startswith(b"POST %b/v1?a=%%2F HTTP/1.1\r\n" % server.origin.encode())
            assert value(head, b"host") == b"127.0.0.1:%d" % server.port
            assert value(head, b"proxy-authorization") == b"Basic " + base64.b64encode(b"me:p@ss")
            assert body == b"hello"
        assert len(company.seen) == 2


@pytest.mark.parametrize("spared", ["127.0.0.1", "*", "127.0.0.1:PORT", "example.com,127.0.0.1"])
def test_hosts_the_environment_spares_are_reached_directly(monkeypatch, spared):
    with answering(lambda *_: OK) as server:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("NO_PROXY", spared.replace("PORT", str(server.port)))
        with through(environment_proxies=True) as it:
            assert it.ask(server.origin).message()[1] == b"ok"


def test_a_proxy_of_the_environment_that_is_not_there_is_told_as_such(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "127.0.0.1:1")
    with through(environment_proxies=True) as it:
        assert b"the proxy of the environment: Connection refused" in it.ask("http://127.0.0.1:2").message()[1]
        assert it.told.end().how == "upstream unreachable"


def test_a_kind_of_proxy_that_cannot_be_passed_is_told_at_once(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    with through(environment_proxies=True) as it, pytest.raises(CtxscopeError, match="socks5"):
        it.proxy.through("https://api.anthropic.com")


def test_netrc_is_not_consulted(monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login secret password secret\ndefault login secret password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with answering(lambda *_: OK) as server, through(environment_proxies=True) as it:
        it.ask(server.origin).message()
        assert b"uthorization" not in server.seen[0][0]
