"""How Hermes is pointed at the proxy: its ``httpx`` dials the proxy, its base URLs stay what they are.

Under a loopback base URL Hermes (read in 0.19.0 and 0.20.1) would be another agent: by host name it chooses the API
(Responses on api.openai.com), the key, the betas and whether thinking is replayed, refuses an Anthropic base URL that
does not end in ``/anthropic``, and lets ``.env`` win over the environment. So ``reroute/sitecustomize.py`` goes on
``PYTHONPATH`` instead. Addresses of the built-in providers are those of both versions' own tables.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ctxscope.agents.launching.command import dialled
from ctxscope.agents.launching.settings import base_url, host, origin, text
from ctxscope.model import Override, Start

TITLE = "Hermes Agent"
COMMANDS = (
    "hermes",
    "hermes-agent",
    "hermes-acp",
    "hermesx",
    "hermesx-agent",
    "hermesx-acp",
    "hermes_cli",
    "run_agent",
)
TESTED: tuple[str, ...] = ("0.19.0", "0.20.1")
FORWARD: Mapping[str, str] = {
    "HERMES_CA_BUNDLE": "{bundle}",
    "SSL_CERT_FILE": "{bundle}",
    "REQUESTS_CA_BUNDLE": "{bundle}",
}

REROUTE = Path(__file__).with_name("reroute")
BASE_URLS = (
    "https://ai-gateway.vercel.sh",
    "https://aiplatform.googleapis.com",
    "https://api.actual.inc",
    "https://api.anthropic.com",
    "https://api.arcee.ai/api",
    "https://api.deepinfra.com",
    "https://api.deepseek.com",
    "https://api.fireworks.ai",
    "https://api.githubcopilot.com",
    "https://api.gmi-serving.com",
    "https://api.kilo.ai/api/gateway",
    "https://api.kimi.com/coding",
    "https://api.minimax.io/anthropic",
    "https://api.minimaxi.com/anthropic",
    "https://api.moonshot.ai",
    "https://api.moonshot.cn",
    "https://api.novita.ai/openai",
    "https://api.openai.com",
    "https://api.stepfun.ai/step_plan",
    "https://api.stepfun.com/step_plan",
    "https://api.upstage.ai",
    "https://api.x.ai/v1",
    "https://api.xiaomimimo.com",
    "https://api.z.ai/api",
    "https://chatgpt.com/backend-api/codex",
    "https://coding-intl.dashscope.aliyuncs.com",
    "https://dashscope-intl.aliyuncs.com",
    "https://generativelanguage.googleapis.com",
    "https://inference-api.nousresearch.com",
    "https://integrate.api.nvidia.com",
    "https://ollama.com/v1",
    "https://opencode.ai/zen",
    "https://openrouter.ai/api",
    "https://portal.qwen.ai/v1",
    "https://router.huggingface.co",
    "https://tokenhub.tencentmaas.com",
)
"""Narrow where the same host also gives out tokens: those requests are not for a recording."""
NOT_MODELS = frozenset({"mcp_servers", "tts", "stt", "web", "browser", "webhook"})
"""Sections of ``config.yaml`` whose addresses are not those of models."""
_BASE_URL = re.compile(r"""([\w-]*base_url)["']?\s*[:=]\s*["']?(https?://[^\s"'#,}]+)""", re.IGNORECASE)
_NOT_A_MODEL = re.compile(
    r"portal|langfuse|weixin|qq_|honcho|retaindb|spotify|dingtalk|diagnostics|stt_|tts_", re.IGNORECASE
)
"""In the name of a base URL: Hermes has clients of its own for these."""
_ENDPOINT = re.compile(r"""^[\s-]*(?:api|url)\s*:\s*["']?(https?://[^\s"'#,}]+)""")
_SECTION = re.compile(r"""["']?([A-Za-z_][\w-]*)["']?\s*:""")
_LOOPBACK_LM_STUDIO = "http://127.0.0.1:1234"
_SHIM_BYTES = 8192


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The folder with the hook in front of ``PYTHONPATH``, and the routes it takes."""
    own, known = _own(start), set(map(host, BASE_URLS))
    bases = dict.fromkeys([*BASE_URLS, _LOOPBACK_LM_STUDIO, *(url for url in own if host(url) not in known)])
    routes = {base: through(base) for base in bases}
    path = os.pathsep.join(filter(None, [str(REROUTE), start.env.get("PYTHONPATH", "")]))
    return Override(
        argv=(*(_behind_shim(start) or start.argv[:1]), *start.argv[1:]),
        env={"PYTHONPATH": path, "CTXSCOPE_ROUTES": json.dumps(routes)},
        how=(f"PYTHONPATH={path}", dialled(routes, own)),
        changes=(
            "its tools see PYTHONPATH and CTXSCOPE_ROUTES in their environment",
            "calls of Python programs that its tools start go the same way, and are recorded too",
            "Amazon Bedrock, which does not use httpx, is not recorded",
        ),
        by_hand=(
            "--forward, which changes none of its choices; a loopback model.base_url in config.yaml does, and more so "
            "without the real host in its path"
        ),
    )


def _behind_shim(start: Start) -> tuple[str, ...] | None:
    """What the installer's shell script starts after it has dropped ``PYTHONPATH``; ``None`` where there is no such one."""
    found = shutil.which(start.argv[0], path=start.env.get("PATH"))
    try:
        with Path(found or start.argv[0]).open("rb") as file:
            script = file.read(_SHIM_BYTES).decode()
    except (OSError, ValueError):
        return None
    lines = [line.strip() for line in script.splitlines()]
    if not script.startswith("#!") or "unset PYTHONPATH" not in lines or not lines[-1].startswith("exec "):
        return None
    try:
        words = shlex.split(lines[-1])[1:]
    except ValueError:
        return None
    plain = words[-1:] == ["$@"] and not any("$" in word or "`" in word for word in words[:-1])
    return tuple(words[:-1]) if plain else None


def _own(start: Start) -> list[str]:
    """Origins of the endpoints that the user's own files and environment name."""
    named = start.env.get("HERMES_HOME")
    home = Path(named) if named else start.home / ".hermes"
    named_here = "\n".join(f"{name}={value}" for name, value in start.env.items() if name.endswith("_BASE_URL"))
    files = (folder / name for folder in (home, *_profiles(home)) for name in ("config.yaml", ".env", "auth.json"))
    found = (address for settings in (named_here, *map(text, files)) for address in endpoints(settings))
    return [origin(url) for url in map(base_url, found) if url]


def _profiles(home: Path) -> list[Path]:
    try:
        return sorted(path for path in (home / "profiles").iterdir() if path.is_dir())
    except OSError:
        return []


def endpoints(settings: str) -> Iterator[str]:
    """Every model's address in ``config.yaml``, ``.env`` or ``auth.json``, by their lines: no YAML parser is at hand.

    Not seen: a value on another line than its key, or one put together from variables.
    """
    section = ""
    for line in settings.splitlines():
        if opened := _SECTION.match(line):
            section = opened[1]
        if section not in NOT_MODELS:
            yield from (address for name, address in _BASE_URL.findall(line) if not _NOT_A_MODEL.search(name))
            yield from _ENDPOINT.findall(line)
