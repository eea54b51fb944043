"""A real Hermes recorded, its log joined and rebuilt: ``python -m tests.end_to_end.hermes MOCK``.

``MOCK`` is a scripted model server on loopback (``--port``, ``--out``) whose bodies show what really arrived. Hermes comes
from PyPI into a virtual environment of its own in the cache folder. Prints a line a check; exits 0, 1 when a check does
not hold, and 3 when Hermes cannot be installed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

VERSION = "0.19.0"
PACKAGES = (f"hermes-agent=={VERSION}", "anthropic==0.87.0")
"""Hermes would fetch the second by itself at its first Anthropic call."""
INSTALL_SECONDS = 240
TURN_SECONDS = 120
QUESTIONS = ("look around in this folder", "and what else is there")
CONFIG = """model:
  default: claude-sonnet-4-5
  provider: custom
  base_url: {base}
  api_key: fake-key-of-nobody
  api_mode: {mode}
  context_length: 200000
agent:
  reasoning_effort: high
sessions:
  write_json_snapshots: true
display:
  streaming: true
telemetry:
  enabled: false
"""
NO_AGENT, BAD = 3, 1
CTXSCOPE = (sys.executable, "-m", "ctxscope")
checks: list[bool] = []


def check(what: str, *, holds: bool) -> None:
    checks.append(holds)
    print(f"{'ok  ' if holds else 'FAIL'} {what}", flush=True)


def installed() -> Path | None:
    """Hermes' executable; ``None`` where it cannot be installed in time."""
    cache = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ctxscope-ci" / f"hermes-{VERSION}-anthropic"
    )
    hermes, done = cache / "bin" / "hermes", cache / "installed"
    if not done.exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", "--clear", cache], check=True, timeout=INSTALL_SECONDS)
            install = [cache / "bin" / "pip", "install", "--quiet", *PACKAGES]
            subprocess.run(install, check=True, timeout=INSTALL_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"Hermes {VERSION} cannot be installed: {error}")
            return None
        done.touch()
    return hermes


@contextmanager
def running(command: list[str | Path], ready: str, **options: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process, and its first line on stdout that matches ``ready``; ended by SIGTERM."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as process:
        assert process.stdout is not None
        try:
            line = next((line for line in process.stdout if re.search(ready, line)), "")
            yield process, line.strip()
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=TURN_SECONDS)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def model_server(mock: Path, out: Path) -> Iterator[str]:
    """Address of a scripted server that answers; what arrives lies in ``out``."""
    port = free_port()
    with subprocess.Popen([sys.executable, mock, "--port", str(port), "--out", out]) as process:
        address = f"http://127.0.0.1:{port}"
        try:
            for _ in range(200):
                try:
                    urllib.request.urlopen(f"{address}/v1/models").close()  # noqa: S310 - our own address
                    break
                except OSError:
                    time.sleep(0.05)
            yield address
        finally:
            process.terminate()


def conversation(command: list[str | Path], home: Path, base: str, mode: str) -> None:
    """Two questions in two processes, the second going on with the first's session."""
    (home / ".hermes").mkdir(parents=True)
    (home / ".hermes" / "config.yaml").write_text(CONFIG.format(base=base, mode=mode), encoding="utf-8")
    (home / "project").mkdir()
    (home / "project" / "README").write_text("A folder with one file.\n", encoding="utf-8")
    going_on: list[str] = []
    for question in QUESTIONS:
        asked = [*command, "chat", "-Q", "--yolo", *going_on, "-q", question]
        done = subprocess.run(
            asked, cwd=home / "project", env=environment(home), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=TURN_SECONDS, check=False,
        )  # fmt: skip
        check(f"hermes chat ends with 0 (it was {done.returncode})", holds=done.returncode == 0)
        if done.returncode:
            print(done.stdout[-2000:], done.stderr[-2000:], sep="\n")
        going_on = ["--continue"]


def environment(home: Path) -> Mapping[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HERMES_", "ANTHROPIC_", "OPENAI_"))}
    nowhere = dict.fromkeys(("HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:9")  # for its looks for updates
    own = {"HOME": str(home), "CTXSCOPE_DATA_DIR": str(home / "ctxscope"), "NO_PROXY": "127.0.0.1,localhost"}
    return {**kept, **nowhere, **own}


def report(path: Path, home: Path, *options: str) -> Any:
    command = [*CTXSCOPE, "report", str(path), "--format", "json", *options]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def bodies(out: Path) -> list[bytes]:
    """What arrived at the server, in order, model calls only."""
    lines = map(json.loads, (out / "index.jsonl").read_text(encoding="utf-8").splitlines())
    calls = sorted(line["n"] for line in lines if line["path"].endswith(("/chat/completions", "/messages")))
    return [(out / f"{n:04d}.req").read_bytes() for n in calls]


def recorded_by_run(mock: Path, hermes: Path, top: Path) -> None:
    """``ctxscope run -- hermes``: every call joined, every main call rebuilt, no body changed."""
    home, out = top / "run", top / "run-out"
    with model_server(mock, out) as address:
        conversation([*CTXSCOPE, "run", "--", hermes], home, f"{address}/v1", "chat_completions")
    recordings = sorted((home / "ctxscope" / "recordings").glob("*.ctxrec"))
    check("two recordings lie in the data folder", holds=len(recordings) == len(QUESTIONS))
    told = report(home / ".hermes" / "state.db", home)
    found = {path for session in told["sessions"] for path in session["recordings"]}
    check("the log finds both of them", holds=len(found) == len(recordings))
    main = [call for call in told["calls"] if call["kind"] == "main"]
    states = [(call["joined_by"], call["rebuilt"]["state"]) for call in main]
    print(f"     {len(told['calls'])} calls: {states}")
    check("each main call is joined and equal", holds=bool(main) and all(j and s == "equal" for j, s in states))
    arrived = bodies(out)
    check("each body arrived as it is recorded", holds=sizes(told) == [len(body) for body in arrived])
    text = b"".join(path.read_bytes() for path in recordings)
    check("no key stands in a recording", holds=b"fake-key-of-nobody" not in text)


def sizes(told: Any) -> list[int]:
    """Bytes of the model calls that were recorded."""
    return [call["request"]["bytes"] for call in told["calls"] if call["exchange"] and call["api"]]


def host_kept_and_not(mock: Path, hermes: Path, top: Path) -> None:
    """The same session under a base URL that holds the provider's host, and one that does not."""
    found = {}
    for name in ("api.anthropic.com", ""):
        home, out = top / f"host-{name or 'none'}", top / f"out-{name or 'none'}"
        home.mkdir()
        recording = home / "taken.ctxrec"
        with model_server(mock, out) as address:
            upstream = f"{name}={address}" if name else address
            taps = [*CTXSCOPE, "proxy", "--upstream", upstream, "-o", str(recording)]
            with running(taps, "^http", env=environment(home)) as (_, base):
                conversation([hermes], home, base, "anthropic_messages")
        told = report(home / ".hermes" / "state.db", home, "--recording", str(recording))
        states = [call["rebuilt"]["state"] for call in told["calls"] if call["kind"] == "main"]
        print(f"     {name or 'no host'}: {states}")
        check("each main call is rebuilt from the log", holds=bool(states) and set(states) == {"equal"})
        said = [notice for notice in told["notices"] if "through a proxy" in notice]
        print(*(f"     {notice}" for notice in said), sep="\n")
        check("the report says what the agent saw", holds=any((name or "127.0.0.1") in notice for notice in said))
        found[name] = [json.loads(body) for body in bodies(out)]
    with_host, without = found["api.anthropic.com"], found[""]
    thinking = [thoughts(body) for body in with_host]
    check("with the host, thinking is replayed", holds=any(thinking))
    check("without it, none is", holds=not any(map(thoughts, without)))
    pairs = [(shape(a), shape(b)) for a, b in zip(with_host, without, strict=False)]
    same = [a == b for a, b in pairs]
    for a, b in pairs:
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            print(f"     {a[max(0, at - 60) : at + 60]!r}", f"     {b[max(0, at - 60) : at + 60]!r}", sep="\n")
    check(
        f"nothing else differs ({sum(same)} of {len(same)} calls)", holds=len(with_host) == len(without) and all(same)
    )


def thoughts(body: Any) -> int:
    return sum(block.get("type") == "thinking" for block in blocks(body))


def blocks(body: Any) -> Iterator[Any]:
    for message in body["messages"]:
        yield from message["content"] if isinstance(message["content"], list) else ()


def shape(body: Any) -> str:
    """A request without thinking, cache marks, ids, times and the folder it ran in."""
    kept = {
        **body,
        "messages": [
            {**m, "content": [b for b in m["content"] if b.get("type") != "thinking"] if isinstance(m["content"], list) else m["content"]}
            for m in body["messages"]
        ],
    }  # fmt: skip
    text = json.dumps(kept, sort_keys=True)
    text = re.sub(r'"cache_control": \{[^}]*\},? ?', "", text)
    text = re.sub(r"host-(api\.anthropic\.com|none)", "host", text)
    return re.sub(r"\d{4}-\d\d-\d\d|\d\d:\d\d(:\d\d)?|127\.0\.0\.1:\d+[^\s\"\\]*|toolu_\w+|\d{8}_\d{6}_\w+", "·", text)


def main(mock: Path) -> int:
    hermes = installed()
    if hermes is None:
        return NO_AGENT
    with tempfile.TemporaryDirectory() as top:
        recorded_by_run(mock, hermes, Path(top))
        host_kept_and_not(mock, hermes, Path(top))
    return 0 if all(checks) else BAD


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
