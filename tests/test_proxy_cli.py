"""``ctxscope proxy``: what it prints where, what it stores, how it ends."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ctxscope import capture
from ctxscope.cli.main import main
from tests.conftest import ROOT, SAMPLES
from tests.proxy_peers import CAP, OK, Peer, answering, post

BODY = b'{"model":"m","messages":[{"role":"user","content":"hello"}]}'


class Running:
    """A proxy in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said = ""

    def url(self) -> str:
        return self.process.stdout.readline().strip()

    def ask(self, url: str, body: bytes = BODY) -> bytes:
        split = urlsplit(url)
        with socket.create_connection((split.hostname, split.port), CAP) as sock:
            peer = Peer(sock)
            peer.send(post(split.path.encode() + b"/messages", body))
            return peer.message()[1]

    def end(self, number: int = signal.SIGINT) -> str:
        """What it had said on stderr when it had ended."""
        self.process.send_signal(number)
        rest, self.said = self.process.communicate(timeout=CAP)
        assert rest == ""
        return self.said


@contextmanager
def proxy(*words: str, before: tuple[str, ...] = ()):
    command = [*before, sys.executable, "-m", "ctxscope", "proxy", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


def exchanges(path: Path):
    return capture.open_recording(path, 0).poll()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_prints_the_base_urls_and_says_at_the_end_what_it_recorded(tmp_path, number):
    path = tmp_path / "x.ctxrec"
    with answering(lambda *_: OK) as one, answering(lambda *_: OK) as other:
        words = ["--upstream", one.origin + "/v1", "--upstream", f"api.kimi.com={other.origin}/v1", "-o", str(path)]
        with proxy(*words, "--side", "in", "--pair", "p1", "--config-id", "b8") as it:
            first, second = it.url(), it.url()
            assert urlsplit(first).path.endswith(f"/127.0.0.1:{one.port}/v1")
            assert second.endswith("/api.kimi.com/v1")
            assert it.ask(first) == b"ok"
            assert it.ask(second) == b"ok"
            said = it.end(number)
        assert it.process.returncode == 0
    assert f"recording to {path}\n" in said
    assert f"  {first}\n" in said
    assert "2 calls in 2 requests recorded" in said
    assert "WARNING" not in said
    found = exchanges(path)
    assert [e.upstream for e in found] == [one.origin, other.origin]
    assert [e.request() for e in found] == [BODY, BODY]
    assert [e.response() for e in found] == [b"ok", b"ok"]
    meta = capture.open_recording(path, 0)
    meta.poll()
    assert (meta.meta.side, meta.meta.pair, meta.meta.config_id) == ("in", "p1", "b8")
    assert meta.meta.upstreams == (one.origin, other.origin)
    assert meta.meta.home == os.path.expanduser("~")  # noqa: PTH111 - as the program does
    assert meta.meta.changes == (
        "sees a base URL on 127.0.0.1 and no provider's host: rules that go by the host take it for another server",
        (
            "sees a base URL on 127.0.0.1 with api.kimi.com in its path: its rules about the whole URL hold, "
            "rules about the host alone do not"
        ),
    )
    assert all(f"what that changes: a client {words}\n" in said for words in meta.meta.changes)
    token = urlsplit(first).path.split("/")[1]
    assert token.encode() not in path.read_bytes()


def test_no_call_is_said_loudly_with_what_should_have_been_set():
    with answering(lambda *_: OK) as server, proxy("--upstream", server.origin) as it:
        url = it.url()
        said = it.end()
    assert "0 CALLS CAPTURED" in said
    assert url in said.split("0 CALLS CAPTURED")[1]
    folder = Path(os.environ["CTXSCOPE_DATA_DIR"]) / "recordings"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert str(folder) in said
    assert said.count("-proxy-") >= 2


def test_a_recording_is_added_to(tmp_path):
    path = tmp_path / "x.ctxrec"
    with answering(lambda *_: OK) as server:
        for _ in range(2):
            with proxy("--upstream", server.origin, "-o", str(path)) as it:
                it.ask(it.url())
                it.end()
                assert it.process.returncode == 0
    assert len(exchanges(path)) == 2


def test_what_cannot_be_stored_is_said_and_traffic_passes_all_the_same(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with answering(lambda *_: OK) as server, proxy("--upstream", server.origin, "-o", str(folder / "x.ctxrec")) as it:
        url = it.url()
        shutil.rmtree(folder)
        folder.write_text("no folder any more")
        assert it.ask(url) == b"ok"
        said = it.end()
    assert "cannot be recorded" in said
    assert "COULD NOT BE STORED" in said
    assert it.process.returncode == 0


def refused(capsys, *words: str) -> str:
    assert main(["proxy", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


U = ("--upstream", "https://api.anthropic.com")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--upstream", "api.anthropic.com"), "expected a URL"),
        (("--upstream", "api.anthropic.com=nothing"), "expected a URL"),
        ((*U, "--upstream", "api.anthropic.com=http://127.0.0.1:1"), "already stands for"),
        ((*U, "--side", "in"), "expected both or neither"),
        ((*U, "--pair", "x"), "expected both or neither"),
        ((*U, "--listen", "nonsense"), "expected a host and a port"),
        ((*U, "--listen", "127.0.0.1:99999"), "expected a host and a port"),
        ((*U, "--listen", "0.0.0.0:0"), "--allow-remote"),
        ((*U, "--listen", "example.com:0"), "--allow-remote"),
        ((*U, "--listen", "[::]:0"), "--allow-remote"),
        ((*U, "-o", "."), "a folder"),
        ((*U, "-o", "/nowhere/x.ctxrec"), "no such folder"),
        ((*U, "-o", "pyproject.toml"), "no recording"),
        ((*U, "-o", os.devnull), "no recording"),
        (("--upstream", "https://h/v1?key=hunter2"), "--upstream https://h/v1: found a query"),
        (("--upstream", "x=https://h/v1#hunter2"), "found a query or a fragment"),
        (("--upstream", "http://me:hunter2@h:x/v1"), "http://h:x/v1: no URL"),
        (("--upstream", "me:hunter2@h"), "expected a URL"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(words, told, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    said = refused(capsys, *words)
    assert told in said
    assert "hunter2" not in said


def test_a_place_among_an_agents_own_files_is_refused(capsys, tmp_path):
    shutil.copytree(SAMPLES / "pi" / "clean_append" / "log", tmp_path / "home")
    folder = tmp_path / "home" / ".pi"
    assert "belongs to pi" in refused(capsys, *U, "-o", str(folder / "x.ctxrec"))
    (folder / "old.ctxrec").write_bytes(b"")  # may be added to elsewhere
    assert "belongs to pi" in refused(capsys, *U, "-o", str(folder / "old.ctxrec"))
    (tmp_path / "link.ctxrec").symlink_to(folder / "old.ctxrec")
    assert "belongs to pi" in refused(capsys, *U, "-o", str(tmp_path / "link.ctxrec"))


def test_a_password_in_an_upstreams_url_is_shown_nowhere(tmp_path):
    path = tmp_path / "x.ctxrec"
    with answering(lambda *_: OK) as server:
        origin = server.origin.replace("//", "//me:hunter2@")
        with proxy("--upstream", origin, "-o", str(path)) as it:
            url = it.url()
            assert it.ask(url) == b"ok"
            said = it.end()
    assert "hunter2" not in url + said
    assert "name and password of an upstream are not shown" in said
    assert b"hunter2" not in path.read_bytes()


def test_a_closed_terminal_that_it_is_to_outlive_does_not_end_it(tmp_path):
    words = "--upstream", "http://127.0.0.1:1", "-o", str(tmp_path / "x.ctxrec")
    with proxy(*words, before=("nohup",)) as it:
        it.url()
        it.process.send_signal(signal.SIGHUP)
        assert "the recording is" in it.end()
    assert it.process.returncode == 0


def test_an_address_in_use_is_told(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        assert f"{place}: cannot be listened at" in refused(capsys, *U, "--listen", place)


def test_an_address_others_can_reach_is_warned_of():
    with proxy(*U, "--listen", "0.0.0.0:0", "--allow-remote") as it:
        assert it.url().startswith("http://127.0.0.1:")
        said = it.end()
        assert "WARNING: other machines can reach 0.0.0.0" in said
        assert "on another machine, put this one's name" in said


def test_a_proxy_of_the_environment_is_used_on_request(monkeypatch):
    with answering(lambda *_: OK) as company:
        monkeypatch.setenv("HTTP_PROXY", company.origin)
        monkeypatch.setenv("NO_PROXY", "")
        with proxy("--upstream", "http://models.invalid", "--use-env-proxy") as it:
            assert it.ask(it.url()) == b"ok"
            it.end()
        assert company.seen[0][0].startswith(b"POST http://models.invalid/messages HTTP/1.1\r\n")
