"""How opencode is pointed at the proxy: ``OPENCODE_CONFIG_CONTENT`` with a base URL for each provider the user has.

Measured with 1.18.33 beside a forward proxy: bodies and headers are equal but for ids. A provider that is named there
counts as set up, so only those are that the user has a key, a login or settings for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ctxscope.agents.launching.command import without_secrets
from ctxscope.agents.launching.settings import base_url, folder, from_json, inside, mapping, parsed
from ctxscope.agents.opencode.providers import with_cached
from ctxscope.model import Override, Start

TITLE = "opencode"
COMMANDS = ("opencode", "opencode-ai")
TESTED: tuple[str, ...] = ("1.18.33",)
FORWARD: Mapping[str, str] = {"NODE_EXTRA_CA_CERTS": "{ca}"}

CONTENT = "OPENCODE_CONFIG_CONTENT"
ALWAYS = "opencode"
"""The provider that needs no key."""
_NAMES = ("config.json", "opencode.json", "opencode.jsonc")
_VARIABLE = re.compile(r"\{env:([^}]+)\}")


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The user's own content of the variable, with a base URL for each provider."""
    own = parsed(start.env.get(CONTENT, ""))
    logins = from_json(folder(start.env.get("XDG_DATA_HOME"), start.home, ".local", "share") / "opencode" / "auth.json")
    bases = _bases(start, [*_files(start), own], logins)
    urls = {name: through(url) for name, url in bases.items()}
    providers = {**mapping(own.get("provider"))}
    for name, url in urls.items():
        provider = mapping(providers.get(name))
        providers[name] = {**provider, "options": {**mapping(provider.get("options")), "baseURL": url}}
    chatgpt = inside(logins, "openai", "type") == "oauth"
    return Override(
        argv=start.argv,
        env={CONTENT: json.dumps({**own, "provider": providers})},
        how=tuple(without_secrets(f"{CONTENT} provider.{name}.options.baseURL={url}") for name, url in urls.items()),
        changes=("a provider that asks for a login only now, Amazon Bedrock, Azure and Vertex AI are not recorded",)
        + (("calls with the ChatGPT login go to an address that is fixed, and are not recorded",) if chatgpt else ()),
        by_hand='"provider": {"NAME": {"options": {"baseURL": …}}} in opencode.json, or --forward',
    )


def _bases(start: Start, settings: list[Mapping[str, Any]], logins: Mapping[str, Any]) -> dict[str, str]:
    """The real base URL of each provider the user has; of the settings the last ones count."""
    cache = folder(start.env.get("XDG_CACHE_HOME"), start.home, ".cache") / "opencode" / "models.json"
    known = with_cached(from_json(cache))
    found = {
        name: provider.url
        for name, provider in known.items()
        if name == ALWAYS or name in logins or any(start.env.get(key) for key in provider.keys)
    }
    if company := inside(logins, "github-copilot", "enterpriseUrl"):
        place = str(company).removeprefix("https://").strip("/")
        found["github-copilot"] = f"https://copilot-api.{place}"
    for layer in settings:
        for name, provider in mapping(layer.get("provider")).items():
            written = inside(mapping(provider), "options", "baseURL") or inside(mapping(provider), "api")
            url = base_url(_resolved(written, start.env))
            if url:
                found[name] = url
            elif isinstance(written, str):
                found.pop(name, None)
            elif name in known:
                found.setdefault(name, known[name].url)
    return found


def _resolved(written: Any, env: Mapping[str, str]) -> Any:
    return _VARIABLE.sub(lambda found: env.get(found[1], ""), written) if isinstance(written, str) else written


def _files(start: Start) -> Iterator[Mapping[str, Any]]:
    """The settings files in the order they are merged: the user's, ``OPENCODE_CONFIG``, those above and in the project."""
    own = folder(start.env.get("XDG_CONFIG_HOME"), start.home, ".config") / "opencode"
    yield from (from_json(own / name) for name in _NAMES)
    if named := start.env.get("OPENCODE_CONFIG"):
        yield from_json(start.cwd / named)
    for above in reversed(_project(start.cwd)):
        yield from (from_json(above / name) for name in _NAMES[1:])
    for above in (start.home, *reversed(_project(start.cwd))):
        yield from (from_json(above / ".opencode" / name) for name in _NAMES[1:])
    if named := start.env.get("OPENCODE_CONFIG_DIR"):
        yield from (from_json(start.cwd / named / name) for name in _NAMES[1:])


def _project(cwd: Path) -> list[Path]:
    """The folder and those above it, up to the one with the repository."""
    above = [cwd, *cwd.parents]
    root = next((at for at, path in enumerate(above) if (path / ".git").exists()), 0)
    return above[: root + 1]
