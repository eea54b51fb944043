"""How any program that honours the usual variables is pointed at the proxy.

Source of the variables and of the addresses they stand for: the vendors' own client libraries (``anthropic``, ``openai``,
``google-genai``, ``litellm``), as engineering.md §7 lists them. A variable the user has set names the real upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ctxscope.agents.launching.command import told
from ctxscope.agents.launching.settings import base_url
from ctxscope.model import Override, Start

TITLE = "any program"
COMMANDS: tuple[str, ...] = ()
TESTED: tuple[str, ...] = ()
FORWARD: Mapping[str, str] = {
    "NODE_USE_ENV_PROXY": "1",
    "NODE_EXTRA_CA_CERTS": "{ca}",
    "SSL_CERT_FILE": "{bundle}",
    "REQUESTS_CA_BUNDLE": "{bundle}",
    "CURL_CA_BUNDLE": "{bundle}",
    "AWS_CA_BUNDLE": "{bundle}",
}

VARIABLES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"), "https://api.anthropic.com"),
    (("OPENAI_BASE_URL", "OPENAI_API_BASE"), "https://api.openai.com/v1"),
    (("GOOGLE_GEMINI_BASE_URL",), "https://generativelanguage.googleapis.com"),
    (("OPENROUTER_BASE_URL", "OPENROUTER_API_BASE"), "https://openrouter.ai/api/v1"),
    (("DEEPSEEK_BASE_URL", "DEEPSEEK_API_BASE"), "https://api.deepseek.com"),
    (("XAI_BASE_URL", "XAI_API_BASE"), "https://api.x.ai/v1"),
    (("GROQ_BASE_URL",), "https://api.groq.com"),
    (("MISTRAL_BASE_URL", "MISTRAL_API_BASE"), "https://api.mistral.ai"),
)
"""Names that stand for one address, and what a client uses where none is set. Beside the vendor's own name that of
``litellm``, where it has one."""


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """Every variable set to its real upstream by way of the proxy; where one is set that is no URL, it stays."""
    env: dict[str, str] = {}
    for names, vendor in VARIABLES:
        own = {name: start.env[name] for name in names if start.env.get(name)}
        if all(map(base_url, own.values())):
            # A name left unset goes where its sibling leads: a client that reads both must not end elsewhere.
            usual = next(iter(own.values()), vendor)
            env |= {name: through(own.get(name, usual)) for name in names}
    return Override(
        argv=start.argv,
        env=env,
        how=told(env),
        changes=(
            "a program that takes a base URL that is set for a provider of the user's own may choose another path",
        ),
        by_hand="the program's own option or setting for its base URL; ctxscope proxy --upstream URL gives the address",
    )
