"""How the Kimi CLI is pointed at the proxy: the variable of the provider in use, or its settings where none stands above.

Measured with 1.40.0 beside a forward proxy: bodies and headers are equal but for ids and the time of day. Read there:
``KIMI_BASE_URL`` and ``OPENAI_BASE_URL`` win over ``config.toml`` for their kinds of provider; other kinds have no variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ctxscope.agents.launching.command import last, pointed, told
from ctxscope.agents.launching.settings import base_url, folder, from_json, from_toml, inside, parsed, rerouted, text
from ctxscope.model import Overlay, Override, Start

TITLE = "Kimi CLI"
COMMANDS = ("kimi", "kimi-cli")
TESTED: tuple[str, ...] = ("1.40.0",)
FORWARD: Mapping[str, str] = {"SSL_CERT_FILE": "{bundle}"}

VARIABLES = {"kimi": "KIMI_BASE_URL", "openai_legacy": "OPENAI_BASE_URL", "openai_responses": "OPENAI_BASE_URL"}
USUAL = "https://api.kimi.com/coding/v1"
"""Of a first login, with a Kimi account."""
_CONFIG = "config.toml"
_BASE_URL = re.compile(r'(?m)^\s*base_url\s*=\s*("(?:[^"\\]|\\.)*")')


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The variable of the provider's kind; for a kind without one config.toml with other addresses."""
    home = folder(start.env.get("KIMI_SHARE_DIR"), start.home, ".kimi")
    provider = _provider(start, _config(start, home / _CONFIG))
    kind, url = provider.get("type", "kimi"), base_url(provider.get("base_url"))
    put: dict[str, str] = {}
    overlay = None
    if isinstance(kind, str) and kind in VARIABLES:
        usual = url or (start.env.get("KIMI_CODE_BASE_URL") or USUAL if not provider else None)
        put = pointed(start.env, [((VARIABLES[kind],), usual)], through)
    elif url and not _is_given(start):
        config = rerouted(text(home / _CONFIG), _BASE_URL, through)
        overlay = Overlay("KIMI_SHARE_DIR", home, {_CONFIG: config.encode()})
    return Override(
        argv=start.argv,
        env=put,
        overlay=overlay,
        how=(*told(put), *((f"{_CONFIG} with the proxy's addresses, in KIMI_SHARE_DIR",) if overlay else ())),
        changes=("a model of another provider that is chosen during the run goes to the address of the first",)
        if put
        else (),
        by_hand=f"base_url of the provider in {_CONFIG}; {' or '.join(dict.fromkeys(VARIABLES.values()))} for their kinds",
    )


def _is_given(start: Start) -> bool:
    """Whether the settings are named on the command line, where ours would be no better than theirs."""
    return last(start.argv, "--config", "--config-file") is not None


def _config(start: Start, usual: Any) -> Mapping[str, Any]:
    if inline := last(start.argv, "--config"):
        return parsed(inline)
    named = last(start.argv, "--config-file")
    path = start.cwd / named if named else usual
    return from_json(path) if path.suffix == ".json" else from_toml(path)


def _provider(start: Start, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of the provider of the model in use; empty where there are none."""
    model = last(start.argv, "-m", "--model") or config.get("default_model")
    name = inside(config, "models", model, "provider") if isinstance(model, str) else None
    found = inside(config, "providers", name) if isinstance(name, str) else None
    return found if isinstance(found, Mapping) else {}
