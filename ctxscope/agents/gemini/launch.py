"""How the Gemini CLI is pointed at the proxy: the base URL variable of the way it logs in.

Measured with 0.61.0 and an API key beside a forward proxy: bodies are equal. ``GOOGLE_GEMINI_BASE_URL`` has a side
effect there: where no settings file chooses the way to log in, it makes the one ``gateway``, which the program then
refuses. So such a user gets a settings file that chooses the API key, seen in place of their own (``GEMINI_CLI_HOME``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from ctxscope.agents.launching.command import Group, pointed, told
from ctxscope.agents.launching.settings import folder, from_dotenv, from_json, inside, mapping
from ctxscope.model import Overlay, Override, Start

TITLE = "Gemini CLI"
COMMANDS = ("gemini", "gemini-cli")
TESTED: tuple[str, ...] = ("0.61.0",)
FORWARD: Mapping[str, str] = {"NODE_EXTRA_CA_CERTS": "{ca}"}

GEMINI, VERTEX, CODE_ASSIST = "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "CODE_ASSIST_ENDPOINT"
_HOME = "GEMINI_CLI_HOME"
_SETTINGS = ".gemini/settings.json"
_KEY, _GATEWAY, _VERTEX_AI = "gemini-api-key", "gateway", "vertex-ai"
_LOGINS = ("oauth-personal", "compute-default-credentials", "cloud-shell")


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The variable of the login in use; those of all logins that mind no variable, where it is not known yet."""
    home = folder(start.env.get(_HOME), start.home)
    env = {**_dotenv(start.cwd, home), **start.env}
    chosen = _chosen(start, home)
    login = chosen or _by_environment(env)
    gemini: Group = ((GEMINI,), "https://generativelanguage.googleapis.com")
    vertex: Group = ((VERTEX,), _vertex(env))
    code_assist: Group = ((CODE_ASSIST,), "https://cloudcode-pa.googleapis.com")
    groups = {_KEY: [gemini], _GATEWAY: [gemini], _VERTEX_AI: [vertex], **{key: [code_assist] for key in _LOGINS}}
    put = pointed(env, groups.get(login or "", [vertex, code_assist]), through)
    overlay = _with_login(home) if login == _KEY and not chosen and GEMINI in put else None
    return Override(
        argv=start.argv,
        env=put,
        overlay=overlay,
        how=(*told(put), *((f"{_SETTINGS} with the login {_KEY}, in {_HOME}",) if overlay else ())),
        changes=tuple(_changes(login, overlay)),
        by_hand=(
            f"{GEMINI} with an API key, {VERTEX} with Vertex AI, {CODE_ASSIST} with a Google account, after a first start "
            "that chose one of these"
        ),
    )


def _changes(login: str | None, overlay: Overlay | None) -> list[str]:
    changes = ["it asks for replies in gzip or deflate, not in Brotli, as Node does without TLS"]
    if overlay:
        changes.append("its prompts name a folder below ~/.gemini; in them it is another one, new in each run")
    if login is None:
        changes.append(
            "the first start asks for a login; with an API key, its calls are recorded from the next start on"
        )
    return changes


def _chosen(start: Start, home: Path) -> str | None:
    """The login that a settings file chooses: the system's defaults, the user's, the folder's, the system's."""
    named, defaults = (start.env.get(f"GEMINI_CLI_SYSTEM_{which}_PATH") for which in ("SETTINGS", "DEFAULTS"))
    system = Path(named) if named else _system() / "settings.json"
    files = (
        Path(defaults) if defaults else system.parent / "system-defaults.json",
        home / _SETTINGS,
        start.cwd / _SETTINGS,
        system,
    )
    login = None
    for settings in map(from_json, files):
        login = inside(settings, "security", "auth", "selectedType") or settings.get("selectedAuthType") or login
    return login if isinstance(login, str) else None


def _system() -> Path:
    return Path("/Library/Application Support/GeminiCli" if sys.platform == "darwin" else "/etc/gemini-cli")


def _by_environment(env: Mapping[str, str]) -> str | None:
    """The login that the program takes where none is chosen, in its own order."""
    if env.get("GOOGLE_GENAI_USE_GCA") == "true":
        return "oauth-personal"
    if env.get("GOOGLE_GENAI_USE_VERTEXAI") == "true":
        return _VERTEX_AI
    if env.get(GEMINI):
        return _GATEWAY
    if env.get("GEMINI_API_KEY"):
        return _KEY
    if env.get("CLOUD_SHELL") == "true" or env.get("GEMINI_CLI_USE_COMPUTE_ADC") == "true":
        return "compute-default-credentials"
    return None


def _vertex(env: Mapping[str, str]) -> str:
    """The address that Google gives a location (``us`` and ``eu`` have hosts of their own)."""
    location = env.get("GOOGLE_CLOUD_LOCATION") or "global"
    if location in ("us", "eu"):
        return f"https://aiplatform.{location}.rep.googleapis.com"
    return f"https://{'' if location == 'global' else f'{location}-'}aiplatform.googleapis.com"


def _dotenv(cwd: Path, home: Path) -> dict[str, str]:
    """The first ``.env`` that is found from the folder upwards, then in the user's home; the environment wins over it."""
    for above in (cwd, *cwd.parents, home):
        for path in (above / ".gemini" / ".env", above / ".env"):
            if path.is_file():
                return from_dotenv(path)
    return {}


def _with_login(home: Path) -> Overlay:
    settings = from_json(home / _SETTINGS)
    security = mapping(settings.get("security"))
    auth = {**mapping(security.get("auth")), "selectedType": _KEY}
    settings = {**settings, "security": {**security, "auth": auth}}
    return Overlay(_HOME, home, {_SETTINGS: json.dumps(settings, indent=2).encode()})
