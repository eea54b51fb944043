"""How aider is pointed at the proxy: base URL variables of litellm, and ``--set-env`` where a ``.env`` stands above.

Measured with 0.86.2 beside a forward proxy: bodies are equal (OpenAI, Anthropic), and each variable below leads there.
Its ``.env`` files win over the environment (read there), its options and settings file over both for OpenAI.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ctxscope.agents.launching.command import Group, last, may_be_seen, options, pointed, told, with_first, with_value
from ctxscope.agents.launching.settings import base_url, from_dotenv, text
from ctxscope.model import Override, Start

TITLE = "aider"
COMMANDS = ("aider", "aider-chat")
TESTED: tuple[str, ...] = ("0.86.2",)
FORWARD: Mapping[str, str] = {"SSL_CERT_FILE": "{bundle}", "REQUESTS_CA_BUNDLE": "{bundle}"}

OPENAI = "OPENAI_API_BASE"
GROUPS: tuple[Group, ...] = (
    ((OPENAI, "OPENAI_BASE_URL"), "https://api.openai.com/v1"),
    (("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"), "https://api.anthropic.com"),
    (("OPENROUTER_API_BASE",), "https://openrouter.ai/api/v1"),
    (("DEEPSEEK_API_BASE",), "https://api.deepseek.com/beta"),
    (("GEMINI_API_BASE",), "https://generativelanguage.googleapis.com/v1beta"),
    (("XAI_API_BASE",), "https://api.x.ai/v1"),
    (("GROQ_API_BASE",), "https://api.groq.com/openai/v1"),
    (("OLLAMA_API_BASE",), "http://localhost:11434"),
)
"""Where litellm goes when no name of a group is set."""
_FLAG = "--openai-api-base"
_IN_SETTINGS = re.compile(r"(?m)^openai-api-base\s*:\s*[\"']?([^\s\"'#]+)")


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The variables; once more as options where a file of the user's would win."""
    files = dict(pair for path in _dotenvs(start) for pair in from_dotenv(path).items())
    env = {**start.env, **files}
    flag = next(reversed(list(options(start.argv, _FLAG))), None)
    settings = next(filter(None, map(_in_settings, _settings(start))), None)
    given = base_url(flag.value if flag else env.get("AIDER_OPENAI_API_BASE") or settings)
    put = pointed({**env, OPENAI: given} if given else env, GROUPS, through)
    again = {name: url for name, url in put.items() if name in files and may_be_seen(url)}
    argv = with_first(start.argv, *(word for name, url in again.items() for word in ("--set-env", f"{name}={url}")))
    if given and may_be_seen(given):
        at = next(reversed(list(options(argv, _FLAG))), None)
        argv = with_value(argv, at, through(given)) if at else with_first(argv, _FLAG, through(given))
    return Override(
        argv=argv,
        env=put,
        how=(
            *told(put),
            *(f"--set-env {words}" for words in told(again)),
            *((f"{_FLAG} likewise",) if _FLAG in argv else ()),
        ),
        changes=("models of other providers (Mistral, Bedrock, Vertex AI, GitHub Copilot …) are not recorded",),
        by_hand=f"{_FLAG} for what speaks OpenAI's protocol, else --set-env PROVIDER_API_BASE=…",
    )


def _folders(start: Start) -> list[Path]:
    """Where its files may lie: the user's home, the root of the repository, the folder; the later win."""
    above = [start.cwd, *start.cwd.parents]
    root = next((path for path in above if (path / ".git").exists()), None)
    return list(dict.fromkeys(path for path in (start.home, root, start.cwd) if path))


def _dotenvs(start: Start) -> Iterator[Path]:
    yield start.home / ".aider" / "oauth-keys.env"
    yield from (path / ".env" for path in _folders(start))
    if named := last(start.argv, "--env-file") or start.env.get("AIDER_ENV_FILE"):
        yield start.cwd / named


def _settings(start: Start) -> Iterator[Path]:
    """Its settings files, the one that wins first."""
    if named := last(start.argv, "-c", "--config"):
        yield start.cwd / named
    yield from (path / ".aider.conf.yml" for path in reversed(_folders(start)))


def _in_settings(path: Path) -> str | None:
    found = _IN_SETTINGS.search(text(path))
    return found[1] if found else None
