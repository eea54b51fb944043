"""What goes into an agent's own process so that it dials the proxy: a ``sitecustomize`` for Python, an extension for pi."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from ctxscope.agents.hermes.launch import REROUTE
from ctxscope.agents.pi.launch import EXTENSION
from tests.conftest import ROOT

ROUTES = {
    "https://api.anthropic.com": "http://127.0.0.1:1/t/api.anthropic.com",
    "https://gate.example": "http://127.0.0.1:1/t/gate.example",
    "https://gate.example/v1": "http://127.0.0.1:1/t/first/v1",
    "http://127.0.0.1:8080": "http://127.0.0.1:1/t/127.0.0.1:8080",
}
ASKED = {
    "https://api.anthropic.com/v1/messages?beta=true": "http://127.0.0.1:1/t/api.anthropic.com/v1/messages?beta=true",
    "https://gate.example/v1/chat%2Fx": "http://127.0.0.1:1/t/first/v1/chat%2Fx",
    "https://gate.example/v10": "http://127.0.0.1:1/t/gate.example/v10",
    "http://127.0.0.1:8080/v1/models": "http://127.0.0.1:1/t/127.0.0.1:8080/v1/models",
    "https://api.anthropic.com.evil.example/v1": None,
    "https://other.example/v1": None,
    "https://api.anthropic.com/v1/oauth/token": None,
}
"""Where a request goes that is made to some URL; ``None``: where it says."""

HTTPX = '''
class URL:
    """As much of httpx's as is used."""

    def __init__(self, text):
        scheme, _, rest = text.partition("://")
        self.origin = scheme + "://" + rest.partition("/")[0]
        self.raw_path = text[len(self.origin):].encode() or b"/"

    def __str__(self):
        return self.origin + self.raw_path.decode()

    @property
    def path(self):
        return self.raw_path.decode().partition("?")[0]

    def copy_with(self, raw_path):
        return URL(self.origin + raw_path.decode())


class HTTPProxy:
    pass


class HTTPTransport:
    def __init__(self, pool=None):
        self._pool = pool

    def handle_request(self, request):
        return str(request.url), type(self._pool).__name__


class AsyncHTTPTransport(HTTPTransport):
    async def handle_async_request(self, request):
        return str(request.url), type(self._pool).__name__
'''
ASKING = """
import asyncio, json, sys
import httpx
class Request:
    def __init__(self, url): self.url = httpx.URL(url)
found = []
for url in json.loads(sys.argv[1]):
    for pool in (None, httpx.HTTPProxy()):
        request = Request(url)
        sync = httpx.HTTPTransport(pool).handle_request(request)
        later = asyncio.run(httpx.AsyncHTTPTransport(pool).handle_async_request(request))
        found.append([url, sync, later, str(request.url)])
print(json.dumps([found, [p for p in sys.path if "reroute" in p], sys.modules["sitecustomize"].__file__]))
"""


def python(tmp_path, program, *words, routes=ROUTES, **env):
    (tmp_path / "httpx.py").write_text(HTTPX, encoding="utf-8")
    path = os.pathsep.join([str(REROUTE), str(tmp_path)])
    told = {"CTXSCOPE_ROUTES": routes if isinstance(routes, str) else json.dumps(routes)} if routes else {}
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        env={**os.environ, "PYTHONPATH": path, **told, **env},
        capture_output=True,
        check=False,
        text=True,
        cwd=tmp_path,
    )


def test_a_python_program_dials_the_proxy_for_what_has_a_route_and_for_nothing_else(tmp_path):
    ended = python(tmp_path, ASKING, json.dumps(list(ASKED)))
    assert ended.stderr == ""
    found, path, _ = json.loads(ended.stdout)
    expected = []
    for url, there in ASKED.items():
        for pool in ("NoneType", "HTTPProxy"):
            dialled = [there or url, "NoneType" if there else pool]
            expected.append([url, dialled, dialled, url])
    assert found == expected
    assert path == []


@pytest.mark.parametrize("routes", [None, "", "{", "[]"])
def test_a_program_without_routes_is_as_it_was(tmp_path, routes):
    ended = python(tmp_path, ASKING, json.dumps(list(ASKED)), routes=routes)
    assert ended.stderr == ""
    assert all(sync[0] == url for url, sync, *_ in json.loads(ended.stdout)[0])


def test_another_version_of_httpx_is_left_as_it_is(tmp_path):
    ended = python(tmp_path, "import os; open('httpx.py', 'w').write('x = 1'); import httpx; print(httpx.x)")
    assert (ended.stdout, ended.stderr) == ("1\n", "")


def test_the_sitecustomize_that_was_there_runs_too(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('the user has one')\n", encoding="utf-8")
    ended = python(tmp_path, ASKING, json.dumps(list(ASKED)))
    first, rest = ended.stdout.split("\n", 1)
    found, _, file = json.loads(rest)
    assert first == "the user has one"
    assert file == str(tmp_path / "sitecustomize.py")
    assert found[0][1][0].startswith("http://127.0.0.1:1/t/")
    assert ended.stderr == ""


def test_a_program_that_never_speaks_http_loads_nothing_for_it(tmp_path):
    ended = python(tmp_path, "import sys; print(sorted({'httpx', 'importlib.util', 'asyncio'} & set(sys.modules)))")
    plain = subprocess.run(
        [sys.executable, "-c", "import sys; print(sorted({'httpx', 'importlib.util', 'asyncio'} & set(sys.modules)))"],
        capture_output=True,
        check=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert ended.stdout == plain.stdout


# --- pi's extension ---

IN_NODE = """
import extension from "./reroute.mjs";
const seen = [];
globalThis.fetch = async (input, init) => { seen.push([String(input.url ?? input), init ?? null]); return { url: "reply" }; };
globalThis.WebSocket = class { constructor(url, options) { seen.push([String(url), options ?? null]); } };
extension();
extension();
const asked = JSON.parse(process.argv[2]);
for (const url of asked) {
  await fetch(url, { method: "POST" });
  await fetch(new URL(url));
  await fetch(new Request(url, { method: "POST", body: "x" }));
  new WebSocket(url.replace(/^http/, "ws"), { headers: {} });
}
console.log(JSON.stringify([seen, process.env.CTXSCOPE_ROUTES ?? null]));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="pi's extension runs in node")
def test_pi_dials_the_proxy_for_what_has_a_route_and_its_tools_see_no_trace(tmp_path):
    shutil.copy(EXTENSION, tmp_path / "reroute.mjs")
    (tmp_path / "main.mjs").write_text(IN_NODE, encoding="utf-8")
    origins = {base: there for base, there in ROUTES.items() if base.count("/") == 2}
    ended = subprocess.run(
        ["node", "main.mjs", json.dumps(list(ASKED))],
        env={**os.environ, "CTXSCOPE_ROUTES": json.dumps(origins)},
        capture_output=True,
        check=False,
        text=True,
        cwd=tmp_path,
    )
    assert ended.stderr == ""
    seen, left = json.loads(ended.stdout)
    expected = []
    for url, there in ASKED.items():
        dialled = (there or url).replace("/t/first/", "/t/gate.example/")
        expected += [
            [dialled, {"method": "POST"}],
            [dialled, None],
            [dialled, None],
            [dialled.replace("http", "ws", 1), {"headers": {}}],
        ]
    assert seen == expected
    assert left is None


def test_both_come_with_the_package():
    assert REROUTE.is_relative_to(ROOT / "ctxscope")
    assert EXTENSION.is_relative_to(ROOT / "ctxscope")
