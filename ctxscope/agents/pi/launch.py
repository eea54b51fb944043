"""How pi is pointed at the proxy: an extension that dials it in place of the providers.

pi's own rules look at the base URL (message threads only on api.anthropic.com, cache keys, headers that name the caller:
read in 0.73.1 and 1.6.0), so it stays as it is: pi keeps a ``fetch`` that was replaced, and an extension may replace it.
Providers' addresses are those of pi 1.6.0's and 0.73.1's own tables; the user's come from his files and environment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from ctxscope.agents.launching.command import dialled
from ctxscope.agents.launching.settings import JSON_BASE_URL, base_url, folder, origin, strings, text
from ctxscope.model import Override, Start

TITLE = "pi"
COMMANDS = ("pi", "pi-coding-agent")
TESTED: tuple[str, ...] = ("0.73.1", "1.6.0")
FORWARD: Mapping[str, str] = {"NODE_EXTRA_CA_CERTS": "{ca}"}

EXTENSION = Path(__file__).with_name("reroute.js")
WITHOUT_CALLS = frozenset({"install", "remove", "uninstall", "update", "list", "config", "auth", "mcp"})
"""First words that make pi another program, which takes no extension."""
HOSTS = (
    "ai-gateway.vercel.sh",
    "api.ant-ling.com",
    "api.anthropic.com",
    "api.business.githubcopilot.com",
    "api.cerebras.ai",
    "api.cloudflare.com",
    "api.deepseek.com",
    "api.enterprise.githubcopilot.com",
    "api.fireworks.ai",
    "api.groq.com",
    "api.individual.githubcopilot.com",
    "api.kimi.com",
    "api.meta.ai",
    "api.minimax.io",
    "api.minimaxi.com",
    "api.mistral.ai",
    "api.moonshot.ai",
    "api.moonshot.cn",
    "api.openai.com",
    "api.together.ai",
    "api.x.ai",
    "api.xiaomimimo.com",
    "api.z.ai",
    "chatgpt.com",
    "gateway.ai.cloudflare.com",
    "generativelanguage.googleapis.com",
    "inference.baseten.co",
    "integrate.api.nvidia.com",
    "open.bigmodel.cn",
    "opencode.ai",
    "openrouter.ai",
    "router.huggingface.co",
    "token-plan-ams.xiaomimimo.com",
    "token-plan-cn.xiaomimimo.com",
    "token-plan-sgp.xiaomimimo.com",
    "token-plan.maas.qianwenaiapi.com",
    "token-plan.maas.qwencloudapi.com",
)
_FILES = ("models.json", "models-store.json")


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The extension in front of the user's own arguments; nothing at all for a command that makes no calls."""
    if start.argv[1:2] and start.argv[1] in WITHOUT_CALLS:
        return Override(start.argv)
    own = _own(start)
    routes = {base: through(base) for base in dict.fromkeys([*map("https://{}".format, HOSTS), _vertex(start), *own])}
    return Override(
        argv=(start.argv[0], "-e", str(EXTENSION), *start.argv[1:]),
        env={"CTXSCOPE_ROUTES": json.dumps(routes)},
        how=(f"-e {EXTENSION}", dialled(routes, own)),
        changes=(
            "pi lists one extension more at its start",
            "a pi that pi itself starts (a subagent in a process of its own) is not recorded",
            "Amazon Bedrock, and providers that another extension brings, are not recorded",
        ),
        by_hand='"baseUrl" of the provider in models.json; ctxscope proxy --upstream URL gives the address',
    )


def _own(start: Start) -> list[str]:
    """Origins that the user's own files and environment name."""
    home = folder(start.env.get("PI_CODING_AGENT_DIR"), start.home, ".pi", "agent")
    named = [value for name in _FILES for value in strings(text(home / name), JSON_BASE_URL)]
    if resource := start.env.get("AZURE_OPENAI_RESOURCE_NAME"):
        named.append(f"https://{resource}.openai.azure.com")
    named.append(start.env.get("AZURE_OPENAI_BASE_URL", ""))
    return [origin(url) for url in map(base_url, named) if url]


def _vertex(start: Start) -> str:
    location = start.env.get("GOOGLE_CLOUD_LOCATION", "global")
    return (
        "https://aiplatform.googleapis.com" if location == "global" else f"https://{location}-aiplatform.googleapis.com"
    )
