"""How omp (oh-my-pi) is pointed at the proxy: an extension that dials it in place of the providers.

omp's own rules look at the base URL (append-only context for loopback and private hosts, signing and betas for
api.anthropic.com: read in 18.2.3), so it stays as it is. Measured with 18.2.3 beside a forward proxy: bodies and headers
are equal but for ids. Its calls to Anthropic take no notice of HTTPS_PROXY, but of PI_PROXY, for which it makes them by
another client (measured with ``--forward``, up to the proxy).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ctxscope.agents.launching.command import dialled, last
from ctxscope.agents.launching.settings import base_url, folder, origin, text
from ctxscope.model import Override, Start

TITLE = "oh-my-pi"
COMMANDS = ("omp", "@oh-my-pi/pi-coding-agent")
TESTED: tuple[str, ...] = ("18.2.3",)
FORWARD: Mapping[str, str] = {"PI_PROXY": "{proxy}", "NODE_EXTRA_CA_CERTS": "{ca}"}

EXTENSION = Path(__file__).with_name("reroute.js")
TAKES_EXTENSIONS = frozenset({"launch", "models"})
"""Of the subcommands, those with ``-e``."""
SUBCOMMANDS = TAKES_EXTENSIONS | frozenset(
    (
        *("acp", "agents", "auth-broker", "auth-gateway", "bench", "browser-relay", "cleanse", "collab", "commit"),
        *("completions", "compress", "config", "dry-balance", "gallery", "gc", "git", "grep", "grievances", "if-bench"),
        *("images", "install", "join", "plugin", "ps", "read", "render", "say", "search", "setup", "share", "shell"),
        *("ssh", "stats", "tiny-models", "token", "ttsr", "update", "usage", "worktree"),
    )
)
HOSTS = (
    *("ai-gateway.vercel.sh", "api.abliteration.ai", "api.aiand.com", "api.aimlapi.com", "api.anthropic.com"),
    *("api.cerebras.ai", "api.cline.bot", "api.code.umans.ai", "api.commandcode.ai", "api.deepinfra.com"),
    *("api.deepseek.com", "api.fireworks.ai", "api.githubcopilot.com", "api.gmi-serving.com", "api.groq.com"),
    *("api.inference.wandb.ai", "api.kilo.ai", "api.kimi.com", "api.meta.ai", "api.minimax.io", "api.minimaxi.com"),
    *("api.mistral.ai", "api.moonshot.ai", "api.novita.ai", "api.openai.com", "api.sakana.ai", "api.synthetic.new"),
    *("api.together.xyz", "api.venice.ai", "api.x.ai", "api.xiaomimimo.com", "api.z.ai", "chatgpt.com"),
    *("cloudcode-pa.googleapis.com", "coding-intl.dashscope.aliyuncs.com", "daily-cloudcode-pa.googleapis.com"),
    *("gateway.ai.cloudflare.com", "generativelanguage.googleapis.com", "hyper.charm.land", "inference.baseten.co"),
    *("integrate.api.nvidia.com", "nano-gpt.com", "ollama.com", "open.bigmodel.cn", "opencode.ai", "openrouter.ai"),
    *("pass.wafer.ai", "portal.qwen.ai", "qianfan.baidubce.com", "router.huggingface.co"),
    *("token-plan-ams.xiaomimimo.com", "token-plan-cn.xiaomimimo.com", "token-plan-sgp.xiaomimimo.com"),
    *("token-plan.ap-southeast-1.maas.aliyuncs.com", "yolo-auto.com", "zenmux.ai"),
)
"""Of the catalogue of omp 18.2.3."""
LOCAL = ("http://127.0.0.1:11434", "http://127.0.0.1:8080", "http://127.0.0.1:1234")
"""Where it looks for ollama, llama.cpp and LM Studio."""
_FILES = ("models.yml", "models.yaml", "models.json")
_BASE_URL = re.compile(r"""\bbaseUrl["']?\s*:\s*["']?(https?://[^\s"'#,}]+)""")


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The extension in front of the user's own arguments, and the routes it takes."""
    sub = start.argv[1] if start.argv[1:2] and start.argv[1] in SUBCOMMANDS else None
    own = _own(start)
    routes = {base: through(base) for base in dict.fromkeys([*map("https://{}".format, HOSTS), *LOCAL, *own])}
    if sub is not None and sub not in TAKES_EXTENSIONS:
        return Override(
            start.argv, by_hand=f"omp {sub} takes no extension; ANTHROPIC_BASE_URL, or baseUrl in models.yml"
        )
    at = 2 if sub else 1
    return Override(
        argv=(*start.argv[:at], "-e", str(EXTENSION), *start.argv[at:]),
        env={"CTXSCOPE_ROUTES": json.dumps(routes)},
        how=(f"-e {EXTENSION}", dialled(routes, own)),
        changes=(
            "omp lists one extension more at its start, and its tools see CTXSCOPE_ROUTES in their environment",
            "calls to Anthropic are made by fetch in place of node:https, so that order and spelling of headers may differ",
            "a proxy of the user's own (PI_PROXY) is passed by for the recorded calls",
            "an omp that omp itself starts in a process of its own, Amazon Bedrock and Cursor are not recorded",
        ),
        by_hand="baseUrl of the provider in models.yml, which turns append-only context on; ctxscope proxy gives the address",
    )


def _own(start: Start) -> list[str]:
    """Origins that the user's own environment and files name."""
    named = [value for name, value in start.env.items() if name.endswith(("_BASE_URL", "_HOST"))]
    files = "\n".join(text(home / name) for home in _homes(start) for name in _FILES)
    return [origin(url) for url in map(base_url, (*named, *_BASE_URL.findall(files))) if url]


def _homes(start: Start) -> Iterator[Path]:
    """The agent's folder, and that of the profile in use."""
    below = start.home / (start.env.get("PI_CONFIG_DIR") or ".omp")
    yield folder(start.env.get("PI_CODING_AGENT_DIR"), below, "agent")
    profile = last(start.argv, "--profile") or start.env.get("OMP_PROFILE") or start.env.get("PI_PROFILE")
    if profile:
        yield below / "profiles" / profile / "agent"
