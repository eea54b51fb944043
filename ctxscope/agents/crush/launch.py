"""How Crush is pointed at the proxy: endpoint variables of its catalogue, and its settings file where it has addresses.

From its sources and its catalogue's: the endpoints of Anthropic, OpenAI, Gemini and Azure are variables there, all others
fixed. It could not be had to run. Go programs take HTTPS_PROXY and, but for macOS, SSL_CERT_FILE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ctxscope.agents.launching.command import Group, pointed, told
from ctxscope.agents.launching.settings import base_url, folder, inside, mapping, parsed, rerouted, text
from ctxscope.model import Overlay, Override, Start

TITLE = "Crush"
COMMANDS = ("crush",)
TESTED: tuple[str, ...] = ()
FORWARD: Mapping[str, str] = {"SSL_CERT_FILE": "{bundle}"}

GROUPS: tuple[Group, ...] = (
    (("ANTHROPIC_API_ENDPOINT",), "https://api.anthropic.com"),
    (("OPENAI_API_ENDPOINT",), "https://api.openai.com/v1"),
    (("GEMINI_API_ENDPOINT",), "https://generativelanguage.googleapis.com"),
    (("AZURE_OPENAI_API_ENDPOINT",), None),
)
_CONFIG = "crush.json"
_BASE_URL = re.compile(r'"base_url"\s*:\s*("(?:[^"\\]|\\.)*")')


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The variables, and the user's settings file with every base URL leading through the proxy, where it has any."""
    named = start.env.get("CRUSH_GLOBAL_CONFIG")
    below = folder(start.env.get("XDG_CONFIG_HOME"), start.home, ".config") / "crush"
    home = folder(named, start.home) if named else below
    put = pointed(start.env, GROUPS, through)
    settings = text(home / _CONFIG)
    own = any(base_url(inside(mapping(p), "base_url")) for p in mapping(parsed(settings).get("providers")).values())
    files = {_CONFIG: rerouted(settings, _BASE_URL, through).encode()} if own else {}
    return Override(
        argv=start.argv,
        env=put,
        overlay=Overlay("CRUSH_GLOBAL_CONFIG", home, files) if files else None,
        how=(*told(put), *((f"{_CONFIG} with the proxy's addresses, in CRUSH_GLOBAL_CONFIG",) if files else ())),
        changes=(
            "providers whose address its catalogue fixes (OpenRouter, Groq and others), or crushrc, are not recorded",
            "nor are those whose address stands in a crush.json of the project",
        ),
        by_hand='"providers": {"NAME": {"base_url": …}} in crush.json',
    )
