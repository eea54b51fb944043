"""Starting an agent's launcher for tests: in a home of its own, with a proxy that only writes URLs."""

from __future__ import annotations

import json
import shlex
from urllib.parse import urlsplit

from ctxscope import agents
from ctxscope.model import Start

OWN = "https://gateway.example/llm/v1"
THROUGH_OWN = "http://127.0.0.1:1/TOKEN/gateway.example/llm/v1"


def through(url):
    """As the proxy does it: the real host stays in the path, a login before it."""
    split = urlsplit(url)
    user, at, place = split.netloc.rpartition("@")
    return f"http://{user}{at}127.0.0.1:1/TOKEN/{place}{url.partition(split.netloc)[2]}"


def launch(agent, home, command=None, **env):
    """The override for a command (the agent's own by default) in an empty folder below ``home``."""
    launcher = agents.launcher(agent)
    cwd = home / "work"
    cwd.mkdir(exist_ok=True)
    nowhere = str(home / "none.json")
    system = {f"{a}_SYSTEM_{b}_PATH": nowhere for a in ("GEMINI_CLI", "QWEN_CODE") for b in ("SETTINGS", "DEFAULTS")}
    argv = tuple(shlex.split(command or launcher.COMMANDS[0]))
    return launcher.launch(Start(argv, {**system, **env}, home, cwd), through)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
