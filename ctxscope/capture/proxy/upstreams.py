"""The servers a proxy leads to, and the label each has in the proxy's paths."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from ctxscope.model import CtxscopeError

_PORTS = {"http": 80, "https": 443}
_LABEL = re.compile(r"[A-Za-z0-9._:-]+")
_EXPECTED = "expected a URL such as https://api.anthropic.com"


MODEL_HOSTS = frozenset(
    {
        *("api.anthropic.com", "api.openai.com", "chatgpt.com", "openrouter.ai", "api.deepseek.com", "api.x.ai"),
        *("generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "aiplatform.googleapis.com"),
        *("api.kimi.com", "api.moonshot.ai", "api.moonshot.cn", "api.mistral.ai", "api.groq.com", "api.z.ai"),
        *("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "portal.qwen.ai", "router.huggingface.co"),
        *("coding.dashscope.aliyuncs.com", "coding-intl.dashscope.aliyuncs.com", "api.minimax.io", "api.minimaxi.com"),
        *("api.githubcopilot.com", "api.individual.githubcopilot.com", "api.business.githubcopilot.com"),
        *("api.enterprise.githubcopilot.com", "api.fireworks.ai", "api.deepinfra.com", "opencode.ai"),
        *("inference-api.nousresearch.com", "integrate.api.nvidia.com", "ai-gateway.vercel.sh"),
    }
)
"""Where models are served: the addresses that agents' own settings name (read in their packages)."""
_REGIONAL = re.compile(
    r"[a-z0-9-]+-aiplatform\.googleapis\.com|bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com|[a-z0-9-]+\.openai\.azure\.com"
)
"""Likewise, one for each region or customer."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server by scheme, host and port."""

    scheme: str
    host: str
    """In lower case; an IPv6 address without brackets."""
    port: int
    label: str
    """What stands for it in the proxy's paths."""

    @property
    def authority(self) -> str:
        """Host and, unless it is the scheme's own, port, as the Host header gives them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Its URL without a path."""
        return f"{self.scheme}://{self.authority}"


@dataclass(frozen=True, slots=True)
class Base:
    """A base URL taken apart; what is not the upstream's stays as it was spelt."""

    upstream: Upstream
    user: str
    """Name and password with the ``@`` behind them, or nothing."""
    rest: str
    """Path, query and fragment."""


class Upstreams:
    """The servers one proxy may forward to; read from its thread while another adds to them."""

    def __init__(self) -> None:
        self._by_label: dict[str, Upstream] = {}

    def add(self, base: Base) -> None:
        """Let one more be reached. Raises ``CtxscopeError`` when its label already stands for another."""
        upstream = base.upstream
        known = self._by_label.setdefault(upstream.label, upstream)
        if known != upstream:
            raise CtxscopeError(
                f"{upstream.origin}: {upstream.label} already stands for {known.origin} in the proxy's paths; "
                "expected another host to show for one of them"
            )

    def labelled(self, label: str) -> Upstream | None:
        """The one a path means."""
        return self._by_label.get(label)

    def at(self, host: str, port: int) -> Upstream | None:
        """The one at an address that a client of a forward proxy names: one that was added, or a well-known one.

        An agent asks more models than its launcher knows of: for titles, by a provider chosen meanwhile.
        """
        host = host.lower().strip("[]")
        for one in tuple(self._by_label.values()):
            if (one.host, one.port) == (host, port):
                return one
        known = port == _PORTS["https"] and (host in MODEL_HOSTS or _REGIONAL.fullmatch(host))
        return Upstream("https", host, port, host) if known else None

    @property
    def origins(self) -> tuple[str, ...]:
        """All of them, each once, in the order they were added."""
        return tuple(dict.fromkeys(one.origin for one in tuple(self._by_label.values())))


def parse(base_url: str, shown: str = "") -> Base:
    """A base URL taken apart; ``shown`` is the label to use instead of its host.

    The label of an https server on its usual port is the host alone, of any other host and port: a client that looks
    for a known host in the URL finds it, and no two servers share one. Raises ``CtxscopeError`` for what is no URL of
    a server.
    """
    split, port = _split(base_url)
    host = split.hostname or ""
    usual = split.scheme == "https" and port == _PORTS["https"]
    label = shown.lower() or (host if usual else f"{host}:{port}")
    if not _LABEL.fullmatch(label):
        raise CtxscopeError(f"{shown or without_secrets(base_url)}: no host that can stand in a path; {_EXPECTED}")
    user, at, _ = split.netloc.rpartition("@")
    begin = base_url.index("://") + 3
    after = base_url.find(split.netloc, begin) + len(split.netloc)
    return Base(Upstream(split.scheme, host, port, label), user + at, base_url[after:])


def _split(base_url: str) -> tuple[SplitResult, int]:
    shown = without_secrets(base_url)
    if not base_url.isascii() or not base_url.isprintable() or " " in base_url:
        raise CtxscopeError(f"{shown!r}: characters that no URL holds; {_EXPECTED}")
    try:
        split = urlsplit(base_url)
        port = split.port
    except ValueError as error:
        why = "no URL" if "@" in base_url else error  # its words may be part of a password
        raise CtxscopeError(f"{shown}: {why}; {_EXPECTED}") from error
    if split.scheme not in _PORTS or not split.hostname:
        raise CtxscopeError(f"{shown}: no http or https URL with a host; {_EXPECTED}")
    return split, _PORTS[split.scheme] if port is None else port


def without_secrets(url: str) -> str:
    """A URL, or what was meant as one, to be shown: without name and password, and without query and fragment."""
    scheme, slashes, rest = url.partition("://") if "://" in url else ("", "", url)
    return scheme + slashes + re.split(r"[?#]", rest.rpartition("@")[2])[0]


def route(target: str) -> tuple[str, str, str]:
    """Token, label and what goes upstream, verbatim, of a path of the proxy (``/TOKEN/HOST/v1/messages?beta=true``)."""
    token, _, rest = target.removeprefix("/").partition("/")
    cut = next((i for i, c in enumerate(rest) if c in "/?"), len(rest))
    label, rest = rest[:cut], rest[cut:]
    return token, label.lower(), rest if rest.startswith("/") else f"/{rest}"
