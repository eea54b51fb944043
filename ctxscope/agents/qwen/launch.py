"""How Qwen Code is pointed at the proxy: the base URL variable of its protocol, and settings where they stand above it.

Read in 0.24.4: ``modelProviders[].baseUrl`` of a settings file wins over ``--openai-base-url``, over ``OPENAI_BASE_URL``,
over ``security.auth.baseUrl``. Much of what it sends depends on the host (measured: ``prompt_cache_key`` goes to
api.openai.com only); for DashScope alone a variable says that another address stands for it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ctxscope.agents.launching.command import Group, last, options, pointed, told, with_value, without_secrets
from ctxscope.agents.launching.settings import (
    JSON_BASE_URL,
    base_url,
    folder,
    from_dotenv,
    from_json,
    host,
    inside,
    mapping,
    rerouted,
    text,
)
from ctxscope.model import Overlay, Override, Start

TITLE = "Qwen Code"
COMMANDS = ("qwen", "qwen-code")
TESTED: tuple[str, ...] = ("0.24.4",)
FORWARD: Mapping[str, str] = {"NODE_EXTRA_CA_CERTS": "{ca}"}

DASHSCOPE = "DASHSCOPE_PROXY_BASE_URL"
FIRST_CHOICES = (
    "https://dashscope.aliyuncs.com/compatible-mode/v1",
    "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    "https://coding.dashscope.aliyuncs.com/v1",
    "https://coding-intl.dashscope.aliyuncs.com/v1",
)
"""Where a login that is chosen at the first start may lead."""
_OPENAI, _ANTHROPIC = "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"
_GEMINI = "GOOGLE_GEMINI_BASE_URL"
_FLAG = ("--openai-base-url", "--openaiBaseUrl")
_SETTINGS = "settings.json"
_DASHSCOPE_HOST = re.compile(
    r"(?:[\w.-]+\.)?(?:dashscope(?:-\w+)?\.aliyuncs|alibaba-inc|aliyun-inc|alicloudapi)\.com|token-plan\.[\w.-]*maas\.aliyuncs\.com"
)
_HOSTS_WITH_RULES = (
    "what it does for a host (cache keys and reasoning fields for OpenAI, DeepSeek, OpenRouter, ModelScope, Moonshot, Z.ai and "
    "others) it does not do for the proxy; --forward changes none of it"
)


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The variables; the flag where the user gives one; the user's settings file with other addresses where it has any."""
    home = folder(start.env.get("QWEN_HOME"), start.home, ".qwen")
    own, here = from_json(home / _SETTINGS), from_json(start.cwd / ".qwen" / _SETTINGS)
    files = [from_json(_system("DEFAULTS", start)), own, here, from_json(_system("SETTINGS", start))]
    env = {**_env_of(start, home, files), **start.env}
    groups = _groups(start, files)
    flag = next(reversed(list(options(start.argv, *_FLAG))), None)
    in_flag = base_url(flag.value) if flag else None
    real = _real(own, in_flag, [env.get(names[0]) or usual for names, usual in groups])
    dashscope = _dashscope(real)
    put = pointed(env, groups, through) | ({DASHSCOPE: through(dashscope)} if dashscope else {})
    argv = with_value(start.argv, flag, through(in_flag)) if flag and in_flag else start.argv
    for url in _urls(here) if real else FIRST_CHOICES:  # a forward proxy must know these too
        through(url)
    settings = rerouted(text(home / _SETTINGS), JSON_BASE_URL, through).encode() if _urls(own) else None
    return Override(
        argv=argv,
        env=put,
        overlay=Overlay("QWEN_HOME", home, {_SETTINGS: settings}) if settings else None,
        how=(
            *(told(put) if real else ("nothing: no login is chosen yet",)),
            *(without_secrets(f"{_FLAG[0]} {option.value}") for option in options(argv, *_FLAG)),
            *((f"{_SETTINGS} with the proxy's addresses, in QWEN_HOME",) if settings else ()),
        ),
        changes=tuple(_changes(real, dashscope, here)),
        by_hand=f"baseUrl of the model in modelProviders of settings.json, {_OPENAI} or {_ANTHROPIC}, or --forward",
    )


def _real(own: Mapping[str, Any], in_flag: str | None, others: Iterable[str | None]) -> set[str]:
    """Where calls really go: a model's own settings stand above the flag, and that above all else."""
    return set(_urls(own) or ([in_flag] if in_flag else [url for url in others if url]))


def _changes(real: set[str], dashscope: str | None, here: Mapping[str, Any]) -> Iterator[str]:
    yield "it asks for replies in gzip or deflate, not in Brotli, as Node does without TLS"
    if real - {dashscope}:
        yield _HOSTS_WITH_RULES
    if _urls(here):
        yield "a base URL in .qwen/settings.json of this folder stays: its calls are not recorded"


def _dashscope(real: set[str]) -> str | None:
    """The one DashScope address in use; with several no variable can stand for all."""
    found = {url for url in real if base_url(url) and _DASHSCOPE_HOST.fullmatch(host(url))}
    return found.pop() if len(found) == 1 else None


def _groups(start: Start, files: Iterable[Mapping[str, Any]]) -> list[Group]:
    """The variable of each protocol, with the address of the one that is chosen.

    It wins over ``security.auth.baseUrl``, so it takes that one's value. Where nothing is chosen the variables
    themselves would choose, so that none may be added.
    """
    chosen = stored = None
    for settings in files:
        chosen = inside(settings, "security", "auth", "selectedType") or chosen
        stored = base_url(inside(settings, "security", "auth", "baseUrl")) or stored
    usual = {
        "openai": (_OPENAI, FIRST_CHOICES[0]),
        "openai-responses": (_OPENAI, "https://api.openai.com/v1"),
        "anthropic": (_ANTHROPIC, "https://api.anthropic.com"),
        "gemini": (_GEMINI, "https://generativelanguage.googleapis.com"),
    }
    chosen = last(start.argv, "--auth-type", "--authType") or chosen
    name, address = usual.get(chosen, ("", "")) if isinstance(chosen, str) else ("", "")
    return [
        ((variable,), stored or address if variable == name else None) for variable in (_OPENAI, _ANTHROPIC, _GEMINI)
    ]


def _urls(settings: Mapping[str, Any]) -> list[str]:
    """The addresses of the models that settings list."""
    lists = [models for models in mapping(settings.get("modelProviders")).values() if isinstance(models, list)]
    values = [inside(model, "baseUrl") for models in lists for model in models if isinstance(model, Mapping)]
    return [url for value in values if (url := base_url(value))]


def _env_of(start: Start, home: Path, files: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Variables of the ``env`` of settings, then of a ``.env``; the environment wins over both."""
    found = {n: v for settings in files for n, v in mapping(settings.get("env")).items() if isinstance(v, str)}
    above = (start.cwd, *start.cwd.parents)
    paths = [path for here in above for path in (here / ".qwen" / ".env", here / ".env")]
    first = next((path for path in (*paths, home / ".env", start.home / ".env") if path.is_file()), None)
    return {**found, **(from_dotenv(first) if first else {})}


def _system(which: str, start: Start) -> Path:
    named = start.env.get(f"QWEN_CODE_SYSTEM_{which}_PATH")
    usual = "/Library/Application Support/QwenCode" if sys.platform == "darwin" else "/etc/qwen-code"
    return Path(named) if named else Path(usual) / ("system-defaults.json" if which == "DEFAULTS" else _SETTINGS)
