"""How goose is pointed at the proxy: the host variable of each provider.

From its sources (``*_HOST`` and ``OPENAI_BASE_URL`` are looked up in the environment, then in ``config.yaml``); it could not
be had to run. Each host ends in a slash: older versions drop what stands behind the last one when they add a path. No
``--forward``: whether it trusts an authority from its environment is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ctxscope.agents.launching.command import Group, pointed, told
from ctxscope.agents.launching.settings import base_url, folder, text
from ctxscope.model import Override, Start

TITLE = "goose"
COMMANDS = ("goose",)
TESTED: tuple[str, ...] = ()
FORWARD: Mapping[str, str] = {}

_OPENAI_HOST, _OPENAI_URL = "OPENAI_HOST", "OPENAI_BASE_URL"
GROUPS: tuple[Group, ...] = (
    (("ANTHROPIC_HOST",), "https://api.anthropic.com"),
    (("GOOGLE_HOST",), "https://generativelanguage.googleapis.com"),
    (("OPENROUTER_HOST",), "https://openrouter.ai"),
    *(((name,), None) for name in ("DATABRICKS_HOST", "LITELLM_HOST", "OLLAMA_HOST", "XAI_HOST")),
)
_KEY_VALUE = re.compile(r"(?m)^([A-Z_]+)\s*:\s*[\"']?([^\s\"'#]+)")


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The host of each provider; for OpenAI the variable that counts."""
    config = folder(start.env.get("XDG_CONFIG_HOME"), start.home, ".config") / "goose" / "config.yaml"
    env = {**dict(_KEY_VALUE.findall(text(config))), **start.env}
    by_url = not start.env.get(_OPENAI_HOST) and base_url(env.get(_OPENAI_URL))
    openai: Group = ((_OPENAI_URL,), None) if by_url else ((_OPENAI_HOST,), "https://api.openai.com")
    put = {
        name: url if name == _OPENAI_URL else f"{url.rstrip('/')}/"
        for name, url in pointed(env, (openai, *GROUPS), through).items()
    }
    return Override(
        argv=start.argv,
        env=put,
        how=told(put),
        changes=(
            "with the provider openai it keeps thinking in the context and has no fast model of its own, as for other servers",
            "providers with an address of their own in a file (custom and declarative ones) are not recorded",
        ),
        by_hand="ANTHROPIC_HOST or OPENAI_HOST, or base_url of a custom provider",
    )
