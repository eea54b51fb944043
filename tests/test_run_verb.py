"""``ctxscope run``: what it records, what it says, what it leaves on disk, and that the agent is safe whatever fails."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ctxscope.cli import run as verb
from ctxscope.cli.main import main
from ctxscope.model import Overlay, Override
from ctxscope.session import launching
from tests.conftest import ROOT
from tests.run_agents import (
    AGENT,
    ARGV,
    BODY,
    ENV,
    HEADER,
    LOGIN,
    QUERY,
    REPLY,
    SECRETS,
    agent,
    ctxscope,
    data,
    exchanges,
    here,
    lines,
    upstream,
)
from tests.run_terminal import Terminal
from tests.run_terminal import agent as counting

FIXTURES = (data, here, upstream)
"""Used by their names."""


@pytest.mark.usefixtures("here")
def test_a_run_is_recorded_byte_for_byte_and_ends_as_the_agent_ends(upstream, data):
    ended = ctxscope(*agent(calls=2), ANTHROPIC_BASE_URL=upstream.url)
    assert (ended.returncode, ended.stdout) == (3, f"agent says hello\n{len(REPLY)}\n{len(REPLY)}\n")
    (path,) = (data / "recordings").iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-any-[0-9a-f]{4}\.ctxrec", path.name)
    first, second = exchanges(path)
    assert (first.request(), first.response(), second.request()) == (BODY, REPLY, BODY)
    assert (first.path, first.upstream) == ("/v1/messages?beta=true", upstream.url)
    assert [(got[0], got[2]) for got in upstream.got] == [("/v1/messages?beta=true", BODY)] * 2
    assert upstream.got[0][1]["x-api-key"] == "s"
    said = lines(ended.stderr)
    assert said[0] == f"recording to {path}"
    assert said[1] == "any program (untested: nobody has run it through the proxy), pointed at the proxy by:"
    assert said[2].startswith("  ANTHROPIC_BASE_URL=http://127.0.0.1:")
    assert said[2].endswith(f"/{upstream.url.removeprefix('http://')}")
    assert any(line.startswith("what that changes: ") for line in said)
    assert re.fullmatch(r"2 calls in 2 requests recorded: \d+ B sent, [\d.]+ [K]?B stored( \(\d+%\))?", said[-2])
    assert said[-1] == f"the recording is {path}"


@pytest.mark.usefixtures("here")
def test_no_call_is_told_loudly_with_what_was_tried_and_what_to_do():
    ended = ctxscope("--", "sh", "-c", "exit 4")
    assert ended.returncode == 4
    loud = [line for line in lines(ended.stderr) if line.startswith("0 CALLS CAPTURED")]
    assert len(loud) == 1
    assert "OPENAI_API_BASE=http://127.0.0.1:" in loud[0]
    assert any(line.startswith("to set by hand: ") for line in lines(ended.stderr))


@pytest.mark.usefixtures("here", "data")
def test_requests_that_are_no_calls_are_no_calls(upstream):
    ended = ctxscope(*agent(calls=1), ANTHROPIC_BASE_URL=upstream.url, WHERE="/v1/files")
    assert any("(1 request came, none of them to a model)" in line for line in lines(ended.stderr))


def holds_none(data, said):
    """No secret stands in any file, in any name, or in what was said."""
    held = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    assert held
    for secret in SECRETS:
        assert not [path for path, content in held.items() if secret.encode() in content or secret in str(path)]
        assert secret not in said
    return held


@pytest.mark.usefixtures("here")
def test_no_secret_of_the_environment_or_the_command_line_reaches_the_disk(upstream, data):
    base = f"{upstream.url.replace('://', f'://ada:{LOGIN}@')}/v1?code={QUERY}"
    env = {"ANTHROPIC_BASE_URL": base, "OPENAI_BASE_URL": base, "SECRET": ENV, "MY_HEADERS": f"x-mine: {HEADER}"}
    ended = ctxscope(*agent("ANTHROPIC_BASE_URL", 1, f"--api-key={ARGV}", ARGV), **env, WHERE=f"&x={HEADER}")
    assert ended.returncode == 3
    assert upstream.got[0][0] == f"/v1?code={QUERY}&x={HEADER}"
    assert upstream.got[0][1]["x-api-key"] == ENV
    held = holds_none(data, ended.stderr)
    assert b'"--api-key"' in next(iter(held.values()))
    assert b"OPENAI_BASE_URL=http://127.0.0.1:" in next(iter(held.values()))


CRUSH = """#!{}
import json, os, pathlib, urllib.request
from urllib.parse import urlsplit
folder = pathlib.Path(os.environ["CRUSH_GLOBAL_CONFIG"])
provider = json.loads((folder / "crush.json").read_text())["providers"]["plum"]
place = urlsplit(provider["base_url"])
url = f"http://{{place.netloc.rpartition('@')[2]}}{{place.path}}/messages?{{place.query}}"
headers = {{**provider["extra_headers"], "authorization": "Bearer " + provider["api_key"]}}
urllib.request.urlopen(urllib.request.Request(url, os.environ["BODY"].encode(), headers)).read()
(folder / "auth.tmp").write_text("new " + provider["api_key"])
(folder / "auth.tmp").replace(folder / "auth")
"""


def test_no_secret_of_an_agent_with_an_overlay_is_left_on_disk(upstream, data, here, tmp_path):
    home = here / ".config" / "crush"
    home.mkdir(parents=True)
    base = f"{upstream.url.replace('://', f'://ada:{LOGIN}@')}/v1?code={QUERY}"
    provider = {"base_url": base, "api_key": ENV, "extra_headers": {"x-mine": HEADER}}
    (home / "crush.json").write_text(json.dumps({"providers": {"plum": provider}}), encoding="utf-8")
    (home / "auth").write_text(ENV, encoding="utf-8")
    (tmp_path / "crush").write_text(CRUSH.format(sys.executable), encoding="utf-8")
    (tmp_path / "crush").chmod(0o755)
    ended = ctxscope("--", str(tmp_path / "crush"), f"--token={ARGV}", XDG_CONFIG_HOME="", CRUSH_GLOBAL_CONFIG="")
    assert ended.returncode == 0, ended.stderr
    ((path, headers, _),) = upstream.got
    assert (path, headers["x-mine"]) == (f"/v1/messages?code={QUERY}", HEADER)
    assert (home / "auth").read_text(encoding="utf-8") == f"new {ENV}"
    assert (data / "overlays").is_dir()
    assert [path.suffix for path in holds_none(data, ended.stderr)] == [".ctxrec"]


@pytest.mark.usefixtures("here")
def test_forward_leaves_base_urls_alone_and_names_what_it_did_not_read(upstream, data):
    other = upstream.url.replace("127.0.0.1", "localhost")
    ask = AGENT.replace("sys.exit(3)", f"urllib.request.urlopen({other!r} + '/x', data=b'y').read()")
    env = {"ANTHROPIC_BASE_URL": upstream.url, "NO_PROXY": "127.0.0.1"}
    ended = ctxscope("--forward", "--", sys.executable, "-c", ask, "ANTHROPIC_BASE_URL", "1", **env)
    assert ended.returncode == 0, ended.stderr
    (path,) = (data / "recordings").iterdir()
    (only,) = exchanges(path)
    assert (only.request(), only.upstream) == (BODY, upstream.url)
    assert [got[2] for got in upstream.got] == [BODY, b"y"]
    said = lines(ended.stderr)
    assert any("recorded as a forward proxy by:" in line for line in said)
    assert any("NO_PROXY is taken away, since it names 127.0.0.1" in line for line in said)
    assert "passed on unread: localhost" in said
    assert [p.name for p in data.iterdir()] == ["recordings"]


@pytest.mark.usefixtures("here", "data")
def test_an_agent_may_be_given_the_proxy_under_another_name(monkeypatch, capfd):
    def launch(start, *_):
        return launching.Launch("x", "Plum", (), {"PLUM_PROXY": "{proxy}"}, Override(start.argv), start.argv, {})

    monkeypatch.setattr(launching, "launch", launch)
    assert main(["run", "--forward", "--", "sh", "-c", '[ "$PLUM_PROXY" = "$HTTPS_PROXY" ] && echo "$PLUM_PROXY"']) == 0
    out, err = capfd.readouterr()
    assert re.fullmatch(r"http://ctxscope:[\w-]+@127\.0\.0\.1:\d+\n", out)
    assert re.search(r"  PLUM_PROXY=http://127\.0\.0\.1:\d+\n", err)


@pytest.mark.usefixtures("here", "data")
def test_an_agent_that_takes_no_proxy_is_told_so(monkeypatch, capfd):
    def launch(start, *_):
        return launching.Launch("x", "Plum", (), {}, Override(start.argv), start.argv, {})

    monkeypatch.setattr(launching, "launch", launch)
    assert main(["run", "--forward", "--", "echo", "started"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "Plum: takes no proxy" in err


def test_what_cannot_be_started_says_so_in_one_line_and_leaves_no_recording(data, capfd):
    assert main(["run", "--", "no-such-program"]) == 127
    _, err = capfd.readouterr()
    assert lines(err)[-1] == "no-such-program: not found; expected a command that can be run"
    assert "CALLS CAPTURED" not in err
    assert list((data / "recordings").iterdir()) == []


def test_no_command_is_told(capsys):
    assert main(["run"]) == main(["run", "--"]) == 2
    assert "expected one behind two dashes" in capsys.readouterr().err


@pytest.mark.usefixtures("data")
def test_options_after_the_command_are_the_command_s(capfd):
    assert main(["run", "sh", "-c", 'echo "$0" "$@"', "--agent", "--", "-o"]) == 0
    assert capfd.readouterr().out == "--agent -- -o\n"


# --- in a terminal ---


@pytest.mark.usefixtures("data", "here")
def test_in_a_terminal_a_key_reaches_the_agent_once_and_its_code_is_ours():
    with Terminal(
        [sys.executable, "-m", "ctxscope", "run", "--", *counting("SIGINT")], PYTHONPATH=str(ROOT)
    ) as terminal:
        terminal.until("recording to ")
        terminal.until("pointed at the proxy by")
        terminal.until(r"ready \d+")
        before = terminal.seen
        for n in range(1, 4):
            terminal.send("\x03")
            terminal.until(f"SIGINT {n}")
        terminal.send("quit\n")
        assert terminal.end() == 5
        during = terminal.seen[len(before) :].partition("counted {'SIGINT': 3}")
        assert "ctxscope" not in during[0]
        assert "0 CALLS CAPTURED" in during[2]


@pytest.mark.usefixtures("data", "here")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_agent_that_is_killed_is_told_and_told_of_by_the_same_signal(number):
    ended = ctxscope("--", "sh", "-c", f"kill -{int(number)} $$")
    assert ended.returncode == -number
    assert lines(ended.stderr)[-1].startswith("the recording is ")


# --- overlays, and the user's own proxies ---


@pytest.mark.usefixtures("data")
def test_what_an_agent_does_in_its_overlay_outlives_the_run(here, data, monkeypatch, capfd):
    original = here / ".plum"
    original.mkdir()
    (original / "auth").write_text("old", encoding="utf-8")
    (original / "config").write_text("vendor", encoding="utf-8")
    overlay = Overlay("PLUM_HOME", original, {"config": b"loopback"})

    def launch(start, _named, through):
        override = Override(start.argv, overlay=overlay, how=(through("https://plum.example"),))
        return launching.Launch("x", "Plum", ("1.0",), {}, override, start.argv, {})

    monkeypatch.setattr(launching, "launch", launch)
    script = 'cat "$PLUM_HOME/config"; echo new > "$PLUM_HOME/a"; mv "$PLUM_HOME/a" "$PLUM_HOME/auth"; echo 1 > "$PLUM_HOME/s"'
    assert main(["run", "--", "sh", "-c", script]) == 0
    out, err = capfd.readouterr()
    assert out == "loopback"
    assert "Plum (run through the proxy in 1.0)" in err
    assert {p.name: p.read_text(encoding="utf-8") for p in original.iterdir()} == {
        "auth": "new\n",
        "config": "vendor",
        "s": "1\n",
    }
    assert list((data / "overlays").iterdir()) == []


@pytest.mark.parametrize(("past", "expected"), [("", "127.0.0.1"), ("a.example", "a.example,127.0.0.1"), ("*", "*")])
def test_the_user_s_own_proxy_is_not_between_the_agent_and_ours(past, expected, monkeypatch, capfd, here, data):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    if past:
        monkeypatch.setenv("NO_PROXY", past)
    assert main(["run", "--", "sh", "-c", 'echo "$NO_PROXY"']) == 0
    assert capfd.readouterr().out == f"{expected}\n"
    assert here.exists()
    assert data.exists()


@pytest.mark.usefixtures("data", "here")
def test_an_environment_without_proxies_stays_without(capfd):
    assert main(["run", "--", "sh", "-c", 'echo "[$NO_PROXY$no_proxy]"']) == 0
    assert capfd.readouterr().out == "[]\n"


@pytest.mark.parametrize(
    ("names", "expected"),
    [("", ""), ("x.example", ""), ("api.plum.example", "api.plum.example"), (".plum.example", "api.plum.example"),
     ("*", "api.plum.example"), ("um.example", ""), ("PLUM.example:443", "api.plum.example")],
)  # fmt: skip
def test_hosts_that_would_pass_by_the_proxy_are_found(names, expected):
    assert verb._passed_by(("https://api.plum.example",), names) == expected


def test_the_verb_loads_nothing_of_the_work_before_it_runs():
    program = "import sys; import ctxscope.cli.run; print(sorted({'aiohttp', 'ctxscope.agents', 'trustme'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=ROOT, text=True)
    assert shown.stdout == "[]\n"
    assert Path(verb.__file__).is_file()
