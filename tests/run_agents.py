"""Programs to run with ``ctxscope run``, a model's server for them, and a home and a data folder of their own."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading

import pytest

from ctxscope.capture import open_recording
from tests.conftest import ROOT

BODY = b'{"model": "plum-1", "messages": [{"role": "user", "content": "caf\\u00e9"}],  "max_tokens": 5}'
REPLY = json.dumps({"id": "msg_1", "type": "message", "role": "assistant", "model": "plum-1", "content": []}).encode()
SECRETS = ENV, ARGV, LOGIN, QUERY, HEADER = ("blackthorn", "wych-elm", "hunter2pass", "spindle", "guelder")
"""Words, which nothing but where they stand makes secrets."""

GIVEN = {"BODY": BODY.decode(), "SECRET": "s", "WHERE": "/v1/messages?beta=true"}
AGENT = """
import os, sys, urllib.request
from urllib.parse import urlsplit
print("agent says hello", flush=True)
base = os.environ[sys.argv[1]]
place = urlsplit(base)
if "@" in place.netloc:
    base = base.replace(place.netloc, place.netloc.rpartition("@")[2])
for _ in range(int(sys.argv[2])):
    asked = urllib.request.Request(base + os.environ["WHERE"], data=os.environ["BODY"].encode(), headers={
        "content-type": "application/json", "x-api-key": os.environ["SECRET"], "anthropic-version": "2023-06-01"})
    with urllib.request.urlopen(asked) as reply:
        print(len(reply.read()), flush=True)
sys.exit(3)
"""


@pytest.fixture
def upstream():
    """A model's server; ``got`` holds what it was sent."""
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(
                (
                    self.path,
                    {k.lower(): v for k, v in self.headers.items()},
                    self.rfile.read(int(self.headers["content-length"])),
                )
            )
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(REPLY)))
            self.end_headers()
            self.wfile.write(REPLY)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        server.got = got
        server.url = f"http://127.0.0.1:{server.server_port}"
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def data(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    monkeypatch.setenv("CTXSCOPE_DATA_DIR", str(folder))
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A home and a directory of its own, without proxies of the person who runs the tests."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return home


def ctxscope(*words, **env):
    return subprocess.run(
        [sys.executable, "-m", "ctxscope", "run", *words],
        env={**os.environ, **GIVEN, **env},
        capture_output=True,
        check=False,
        cwd=ROOT,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def agent(variable="ANTHROPIC_BASE_URL", calls=1, *more):
    return ["--", sys.executable, "-c", AGENT, variable, str(calls), *more]


def exchanges(path):
    return open_recording(path, 0).poll()


def lines(text):
    return [line.removeprefix("ctxscope: ") for line in text.splitlines()]
