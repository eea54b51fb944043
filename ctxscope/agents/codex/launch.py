"""How Codex is pointed at the proxy: ``-c openai_base_url=…``, or the base URL of the provider the user has chosen.

Measured with 0.171.0: under it the built-in provider keeps its id in the log and the requests, sends what it sends to
api.openai.com but for ids, and tries a WebSocket first, as ever. ``OPENAI_BASE_URL`` it does not read.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from ctxscope.agents.launching.command import (
    Option,
    last,
    may_be_seen,
    options,
    pointed,
    told,
    with_first,
    with_value,
    without_secrets,
)
from ctxscope.agents.launching.settings import base_url, folder, from_json, from_toml, inside
from ctxscope.model import Override, Start

TITLE = "Codex"
COMMANDS = ("codex",)
TESTED: tuple[str, ...] = ("0.171.0",)
FORWARD: Mapping[str, str] = {"CODEX_CA_CERTIFICATE": "{ca}"}

API, CHATGPT = "https://api.openai.com/v1", "https://chatgpt.com/backend-api/codex"
"""Where the built-in provider goes with an API key, and with a ChatGPT login."""
LOCAL = {"ollama": "http://localhost:11434/v1", "lmstudio": "http://localhost:1234/v1"}
"""Built-in providers of ``--oss``; ``CODEX_OSS_BASE_URL`` stands above both."""
_LOCAL_URL = "CODEX_OSS_BASE_URL"
_CONFIG = ("-c", "--config")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
"""A key that ``-c`` can name: it is cut at every dot."""


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """One ``-c`` for the provider in use, in place of the user's own where there is one."""
    config = _config(start)
    provider = _provider(start, config)
    if provider in LOCAL:
        usual = f"http://localhost:{port}/v1" if (port := start.env.get("CODEX_OSS_PORT")) else LOCAL[provider]
        put = pointed(start.env, [((_LOCAL_URL,), usual)], through)
        return Override(start.argv, put, how=told(put), by_hand=f"{_LOCAL_URL} in the environment")
    key = "openai_base_url" if provider == "openai" else f"model_providers.{provider}.base_url"
    url = base_url(inside(config, *key.split("."))) or (_built_in(start) if provider == "openai" else None)
    own = next((o for o in reversed(list(options(start.argv, *_CONFIG))) if _key(o) == key), None)
    if url is None or not _PLAIN_KEY.fullmatch(provider) or not (own or may_be_seen(url)):
        return Override(start.argv, by_hand=_by_hand(provider))
    setting = f"{key}={json.dumps(through(url))}"
    argv = with_value(start.argv, own, setting) if own else with_first(start.argv, "-c", setting)
    return Override(
        argv=argv,
        how=(without_secrets(f"-c {setting}"),),
        changes=("other users of this machine see the proxy's address, and the word it asks for, among the arguments",),
        by_hand=_by_hand(provider),
    )


def _by_hand(provider: str) -> str:
    if provider == "amazon-bedrock":
        return "--forward: Amazon Bedrock's keys sign the host, so that its base URL cannot be another"
    return (
        "openai_base_url in config.toml, base_url of the model provider in use, or OPENAI_BASE_URL for versions that know "
        f"no openai_base_url; ctxscope proxy --upstream {API} gives the address, with a ChatGPT login --upstream {CHATGPT}"
    )


def _config(start: Start) -> dict[str, Any]:
    """The settings in use, as far as they tell the provider: config.toml, a profile, ``-c``; the later wins."""
    home = folder(start.env.get("CODEX_HOME"), start.home, ".codex")
    main = from_toml(home / "config.toml")
    profile = last(start.argv, "-p", "--profile") or main.get("profile")
    layers: list[Mapping[str, Any]] = [main]
    if isinstance(profile, str):
        own = inside(main, "profiles", profile)
        layers += [own if isinstance(own, dict) else {}, from_toml(home / f"{profile}.config.toml")]
    for option in options(start.argv, *_CONFIG):
        layers.append(_layer(option))
    config: dict[str, Any] = {}
    for layer in layers:
        config = _merged(config, layer)
    return config


def _layer(option: Option) -> dict[str, Any]:
    """One ``-c key.of.it=value`` as settings; a value that is no TOML is a string."""
    _, _, text = option.value.partition("=")
    try:
        value: Any = tomllib.loads(f"value={text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    for name in reversed(_key(option).split(".")):
        value = {name: value}
    return value if isinstance(value, dict) else {}


def _key(option: Option) -> str:
    return option.value.partition("=")[0].strip()


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        merged[name] = _merged(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return merged


def _provider(start: Start, config: Mapping[str, Any]) -> str:
    if "--oss" in start.argv:
        chosen = last(start.argv, "--local-provider") or config.get("oss_provider")
        return chosen if isinstance(chosen, str) and chosen in LOCAL else "ollama"
    named = config.get("model_provider")
    return named if isinstance(named, str) and named else "openai"


def _built_in(start: Start) -> str:
    """Where the built-in provider goes: a login in ``auth.json`` without an API key is one with ChatGPT."""
    if start.env.get("CODEX_API_KEY"):
        return API
    auth = from_json(folder(start.env.get("CODEX_HOME"), start.home, ".codex") / "auth.json")
    mode = auth.get("auth_mode")
    if isinstance(mode, str):
        return CHATGPT if mode.lower().startswith("chatgpt") else API
    return CHATGPT if auth.get("tokens") and not auth.get("OPENAI_API_KEY") else API
