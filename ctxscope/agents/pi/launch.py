"""How pi is pointed at the proxy: an extension that dials it in place of the providers.

pi's own rules look at the base URL (message threads only on api.anthropic.com, cache keys, headers that name the caller:
read in 0.73.1 and 1.6.0), so it stays as it is: pi keeps a ``fetch`` that was replaced, and an extension may replace it.
Providers' addresses are those of pi 1.6.0's and 0.73.1's own tables; the user's come from his files and environment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from ctxscope.model import CtxscopeError, Override, Start

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
_BASE_URL = re.compile(r'"baseUrl"\s*:\s*("(?:[^"\\]|\\.)*")')
_PORTS = {"http": 80, "https": 443}
_FILES = ("models.json", "models-store.json")


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The extension in front of the user's own arguments; nothing at all for a command that makes no calls."""
    if start.argv[1:2] and start.argv[1] in WITHOUT_CALLS:
        return Override(start.argv)
    origins = dict.fromkeys([*(f"https://{host}" for host in HOSTS), *_own(start)])
    routes = {origin: through(origin) for origin in origins}
    return Override(
        argv=(start.argv[0], "-e", str(EXTENSION), *start.argv[1:]),
        env={"CTXSCOPE_ROUTES": json.dumps(routes)},
        how=(
            f"-e {EXTENSION}",
            f"{len(routes)} providers' addresses dialled by way of {routes[next(iter(routes))]} and the like",
        ),
        changes=(
            "pi lists one extension more at its start",
            "a pi that pi itself starts (a subagent in a process of its own) is not recorded",
            "Amazon Bedrock, and providers that another extension brings, are not recorded",
        ),
        by_hand='"baseUrl" of the provider in models.json; ctxscope proxy --upstream URL gives the address',
    )


def _own(start: Start) -> Iterator[str]:
    """Origins that the user's own files and environment name."""
    named = start.env.get("PI_CODING_AGENT_DIR")
    folder = _expanded(named, start.home) if named else start.home / ".pi" / "agent"
    yield from _origins(value for name in _FILES for value in _base_urls(folder / name))
    if resource := start.env.get("AZURE_OPENAI_RESOURCE_NAME"):
        yield f"https://{resource}.openai.azure.com"
    yield from _origins(filter(None, [start.env.get("AZURE_OPENAI_BASE_URL")]))
    location = start.env.get("GOOGLE_CLOUD_LOCATION", "global")
    yield (
        "https://aiplatform.googleapis.com" if location == "global" else f"https://{location}-aiplatform.googleapis.com"
    )


def _expanded(path: str, home: Path) -> Path:
    return home / path[2:] if path.startswith("~/") else Path(path)


def _base_urls(path: Path) -> Iterator[str]:
    """Every ``baseUrl`` of a file; it may hold comments, which no JSON parser of ours reads."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read: {error.strerror}; expected pi's table of models") from error
    for spelled in _BASE_URL.findall(text):
        try:
            yield json.loads(spelled)
        except ValueError:
            continue


def _origins(addresses: Iterable[str]) -> Iterator[str]:
    """Scheme, host and port of each URL, spelt as JavaScript's ``URL.origin`` spells them."""
    for address in addresses:
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port
        except ValueError:
            continue
        if parts.scheme in _PORTS and host:
            place = f"[{host}]" if ":" in host else host
            yield f"{parts.scheme}://{place}" + (f":{port}" if port not in (None, _PORTS[parts.scheme]) else "")
