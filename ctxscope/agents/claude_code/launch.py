"""How Claude Code is pointed at the proxy: ``ANTHROPIC_BASE_URL``, and the word that this still is the Anthropic API.

For any other host than api.anthropic.com 2.1.332 sends another request (measured beside one that went there through a
forward proxy): no ``cch`` in its billing line, the system prompt in other blocks without a cache scope, no
``diagnostics``, four betas less. With ``_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL`` the bodies are equal but for ids
(2.1.112 does not know it). The ``env`` of a settings file wins over the environment, and ``--settings`` over that
(measured: user < project < local).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from ctxscope.agents.launching.command import Group, Option, may_be_seen, options, pointed, told, with_first, with_value
from ctxscope.agents.launching.settings import base_url, folder, from_json, host, inside, mapping, parsed
from ctxscope.model import Override, Start

TITLE = "Claude Code"
COMMANDS = ("claude", "claude-code")
TESTED: tuple[str, ...] = ("2.1.332",)
FORWARD: Mapping[str, str] = {"NODE_EXTRA_CA_CERTS": "{ca}"}

FIRST_PARTY = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"
_ANTHROPIC, _BEDROCK = "ANTHROPIC_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL"
_VERTEX, _FOUNDRY = "ANTHROPIC_VERTEX_BASE_URL", "ANTHROPIC_FOUNDRY_BASE_URL"
_OTHERS = ("ANTHROPIC_AWS_BASE_URL", "ANTHROPIC_GOOGLE_CLOUD_BASE_URL", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL")
_API = "https://api.anthropic.com"
_SETTINGS = "--settings"


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The base URL of the provider in use, in ``--settings`` too where a settings file has one."""
    flag = next(reversed(list(options(start.argv, _SETTINGS))), None)
    in_files = _env_of_files(start, flag)
    env = {**start.env, **in_files}
    put = pointed(env, _groups(env), through)
    if _is_on(env, "CLAUDE_CODE_USE_BEDROCK") and _is_signed(env):
        through(_bedrock(env))  # only a forward proxy can lead there, and it must know the place
    first_party = _ANTHROPIC in put and host(base_url(env.get(_ANTHROPIC)) or _API) == host(_API)
    again = {name: url for name, url in put.items() if name in in_files and may_be_seen(url)}
    argv = _with_settings(start.argv, flag, again) if again else start.argv
    if first_party and FIRST_PARTY not in env:
        put[FIRST_PARTY] = "1"
    return Override(
        argv=argv,
        env=put,
        how=(*told(put), *(f"{_SETTINGS} env.{words}" for words in told(again) if argv != start.argv)),
        changes=tuple(_changes(env, first_party=first_party)),
        by_hand=(
            f"{_ANTHROPIC} in the env of the settings file that sets it (those of the organisation win over all others); "
            "Amazon Bedrock needs AWS_BEARER_TOKEN_BEDROCK or --forward, since its other keys sign the host"
        ),
    )


def _env_of_files(start: Start, flag: Option | None) -> dict[str, str]:
    """What the ``env`` of the settings files sets, the later ones of the agent's own order last."""
    home = folder(start.env.get("CLAUDE_CONFIG_DIR"), start.home, ".claude")
    here = start.cwd / ".claude"
    files = [from_json(path) for path in (home / "settings.json", here / "settings.json", here / "settings.local.json")]
    if flag:
        files.append(_given(flag, start.cwd))
    return {
        name: value
        for settings in files
        for name, value in mapping(inside(settings, "env")).items()
        if isinstance(value, str)
    }


def _given(flag: Option, cwd: Path) -> Mapping[str, object]:
    inline = flag.value.lstrip().startswith("{")
    return parsed(flag.value) if inline else from_json(cwd / flag.value)


def _with_settings(argv: tuple[str, ...], flag: Option | None, env: Mapping[str, str]) -> tuple[str, ...]:
    """The command with these variables in its settings.

    A settings file on the command line stays: what it holds beside them must not be seen by other users.
    """
    if flag is None:
        return with_first(argv, _SETTINGS, json.dumps({"env": dict(env)}))
    settings = parsed(flag.value)
    if not settings:
        return argv
    return with_value(argv, flag, json.dumps({**settings, "env": {**mapping(settings.get("env")), **env}}))


def _groups(env: Mapping[str, str]) -> list[Group]:
    """Each provider's variable, with the address of the one in use."""
    vertex, foundry = _is_on(env, "CLAUDE_CODE_USE_VERTEX"), _is_on(env, "CLAUDE_CODE_USE_FOUNDRY")
    bedrock = _is_on(env, "CLAUDE_CODE_USE_BEDROCK")
    resource = env.get("ANTHROPIC_FOUNDRY_RESOURCE")
    groups: list[Group] = [
        ((_ANTHROPIC,), None if vertex or foundry or bedrock else _API),
        ((_VERTEX,), _vertex(env.get("CLOUD_ML_REGION") or "us-east5") if vertex else None),
        ((_FOUNDRY,), f"https://{resource}.services.ai.azure.com/anthropic" if foundry and resource else None),
        *(((name,), None) for name in _OTHERS),
    ]
    if not _is_signed(env):
        groups.append(((_BEDROCK,), _bedrock(env) if bedrock else None))
    return groups


def _is_signed(env: Mapping[str, str]) -> bool:
    """Whether calls to Amazon Bedrock carry a signature, which covers the host that is called."""
    return not env.get("AWS_BEARER_TOKEN_BEDROCK") and not _is_on(env, "CLAUDE_CODE_SKIP_BEDROCK_AUTH")


def _bedrock(env: Mapping[str, str]) -> str:
    region = env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or "us-east-1"
    return base_url(env.get(_BEDROCK)) or f"https://bedrock-runtime.{region}.amazonaws.com"


def _vertex(region: str) -> str:
    """The address that Google gives a region (``global``, ``us`` and ``eu`` have hosts of their own)."""
    if region in ("us", "eu"):
        return f"https://aiplatform.{region}.rep.googleapis.com/v1"
    return f"https://{'' if region == 'global' else f'{region}-'}aiplatform.googleapis.com/v1"


def _is_on(env: Mapping[str, str], name: str) -> bool:
    return env.get(name, "").strip().lower() in ("1", "true", "yes", "on")


def _changes(env: Mapping[str, str], *, first_party: bool) -> list[str]:
    if first_party:
        return [
            "the header anthropic-beta lacks one name (mid-conversation-system-clear-at, 2.1.332); bodies are the usual ones",
            f"a version that does not know {FIRST_PARTY} sends what it sends to other servers: no cch, no cache scope, other betas",
        ]
    if _is_on(env, "CLAUDE_CODE_USE_VERTEX"):
        return ["a model with a region of its own (VERTEX_REGION_…) is asked for at the host of the main region"]
    return []
