"""How agents for many vendors are started: omp, opencode, Kimi CLI, aider, goose, Crush, Copilot."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path

import pytest

from ctxscope import agents
from ctxscope.model import Override, Start
from tests.launch_starts import OWN, THROUGH_OWN, launch, through, write

# --- omp ---


def test_omp_keeps_its_base_urls_and_dials_elsewhere(tmp_path):
    write(tmp_path / ".omp" / "agent" / "models.yml", f"providers:\n  corp:\n    baseUrl: {OWN} # ours\n")
    override = launch("omp", tmp_path, "omp -p hi", ANTHROPIC_BASE_URL="https://other.example:8443/x")
    routes = json.loads(override.env["CTXSCOPE_ROUTES"])
    assert routes["https://api.anthropic.com"] == through("https://api.anthropic.com")
    assert routes["https://gateway.example"] == through("https://gateway.example")
    assert routes["https://other.example:8443"] == through("https://other.example:8443")
    assert override.argv[1] == "-e"
    assert Path(override.argv[2]).is_file()
    assert override.argv[3:] == ("-p", "hi")
    assert set(override.env) == {"CTXSCOPE_ROUTES"}
    others = len(routes) - 2
    named = "https://other.example:8443 and https://gateway.example"
    assert override.how[1] == f"{named} and {others} others are dialled by way of http://127.0.0.1:1/…"


@pytest.mark.parametrize(
    ("command", "at"), [("omp launch hi", 2), ("omp models ls", 2), ("omp 'commit all of it'", 1), ("omp", 1)]
)
def test_omps_extension_stands_where_the_subcommand_takes_it(command, at, tmp_path):
    argv = launch("omp", tmp_path, command).argv
    assert argv.index("-e") == at


def test_omps_subcommands_without_extensions_are_left_alone(tmp_path):
    override = launch("omp", tmp_path, "omp commit --push")
    assert override.argv == ("omp", "commit", "--push")
    assert override.env == {}
    assert "ANTHROPIC_BASE_URL" in override.by_hand


# --- opencode ---


def opencode_urls(override: Override) -> dict:
    providers = json.loads(override.env["OPENCODE_CONFIG_CONTENT"])["provider"]
    return {name: provider["options"]["baseURL"] for name, provider in providers.items()}


def test_opencode_is_told_of_those_providers_only_that_the_user_has(tmp_path):
    assert set(opencode_urls(launch("opencode", tmp_path))) == {"opencode"}
    write(tmp_path / ".local" / "share" / "opencode" / "auth.json", {"xai": {"type": "api", "key": "sk-secret"}})
    write(
        tmp_path / ".cache" / "opencode" / "models.json", {"odd": {"api": "https://odd.example/v1", "env": ["ODD_KEY"]}}
    )
    urls = opencode_urls(launch("opencode", tmp_path, ANTHROPIC_API_KEY="sk-secret", ODD_KEY="k"))
    assert urls == {
        "anthropic": through("https://api.anthropic.com/v1"),
        "odd": through("https://odd.example/v1"),
        "opencode": through("https://opencode.ai/zen/v1"),
        "xai": through("https://api.x.ai/v1"),
    }


@pytest.mark.parametrize(
    "name", [".config/opencode/opencode.jsonc", "work/opencode.json", "work/.opencode/opencode.jsonc", "named.json"]
)
def test_opencodes_settings_tell_the_real_address(name, tmp_path):
    text = f'{{ // mine\n "provider": {{"corp": {{"options": {{"baseURL": "{OWN}",}}, }} }} /* all */ }}'
    write(tmp_path / name, text)
    override = launch("opencode", tmp_path, OPENCODE_CONFIG=str(tmp_path / "named.json"))
    assert opencode_urls(override)["corp"] == THROUGH_OWN


def test_opencodes_content_of_the_users_own_is_kept(tmp_path):
    own = {
        "model": "a/b",
        "provider": {"anthropic": {"options": {"baseURL": "{env:GATE}/v1", "timeout": 9}, "name": "A"}},
    }
    override = launch("opencode", tmp_path, OPENCODE_CONFIG_CONTENT=json.dumps(own), GATE="https://gateway.example/llm")
    content = json.loads(override.env["OPENCODE_CONFIG_CONTENT"])
    assert content["model"] == "a/b"
    assert content["provider"]["anthropic"] == {"options": {"baseURL": THROUGH_OWN, "timeout": 9}, "name": "A"}


def test_opencodes_logins_that_go_elsewhere(tmp_path):
    logins = {"openai": {"type": "oauth"}, "github-copilot": {"type": "oauth", "enterpriseUrl": "https://git.example/"}}
    write(tmp_path / ".local" / "share" / "opencode" / "auth.json", logins)
    override = launch("opencode", tmp_path)
    assert opencode_urls(override)["github-copilot"] == through("https://copilot-api.git.example")
    assert any("ChatGPT" in words for words in override.changes)


# --- Kimi CLI ---

KIMI = """
default_model = "a" # mine
[models.a]
provider = "k"
[models.b]
provider = "o"
[models.c]
provider = "n"
[providers.k]
type = "kimi"
base_url = "https://api.moonshot.ai/v1"
[providers.o]
type = "openai_legacy"
base_url = "https://gateway.example/llm/v1"
[providers.n]
type = "anthropic"
base_url = "https://gateway.example/llm/v1"
api_key = "sk-secret"
"""


@pytest.mark.parametrize(
    ("command", "env"),
    [
        ("kimi", {"KIMI_BASE_URL": through("https://api.moonshot.ai/v1")}),
        ("kimi -m b --print", {"OPENAI_BASE_URL": THROUGH_OWN}),
        ("kimi --model=b", {"OPENAI_BASE_URL": THROUGH_OWN}),
    ],
)
def test_kimis_model_in_use_decides_the_variable(command, env, tmp_path):
    write(tmp_path / ".kimi" / "config.toml", KIMI)
    override = launch("kimi", tmp_path, command)
    assert override.env == env
    assert override.overlay is None


def test_a_kind_of_provider_that_kimi_has_no_variable_for_is_seen_in_other_settings(tmp_path):
    write(tmp_path / ".kimi" / "config.toml", KIMI)
    override = launch("kimi", tmp_path, "kimi -m c")
    assert override.env == {}
    assert override.overlay is not None
    assert override.overlay.variable == "KIMI_SHARE_DIR"
    config = tomllib.loads(override.overlay.files["config.toml"].decode())
    assert config["providers"]["n"] == {"type": "anthropic", "base_url": THROUGH_OWN, "api_key": "sk-secret"}


def test_kimis_settings_on_the_command_line_stay(tmp_path):
    config = {
        "default_model": "m",
        "models": {"m": {"provider": "p"}},
        "providers": {"p": {"type": "kimi", "base_url": OWN}},
    }
    command = f"kimi --config {shlex.quote(json.dumps(config))}"
    override = launch("kimi", tmp_path, command)
    assert override.env == {"KIMI_BASE_URL": THROUGH_OWN}
    assert override.argv == tuple(shlex.split(command))


# --- aider ---


def test_aiders_dotenv_wins_over_the_environment_so_options_say_it_again(tmp_path):
    write(tmp_path / "work" / ".env", f'ANTHROPIC_API_BASE="{OWN}"\n')
    override = launch("aider", tmp_path, "aider --model x", ANTHROPIC_API_BASE="https://other.example")
    assert override.env["ANTHROPIC_API_BASE"] == THROUGH_OWN
    assert override.argv == ("aider", "--set-env", f"ANTHROPIC_API_BASE={THROUGH_OWN}", "--model", "x")


def test_aiders_settings_and_option_for_openai(tmp_path):
    write(tmp_path / ".aider.conf.yml", f"# mine\nopenai-api-base: '{OWN}'\n")
    assert launch("aider", tmp_path).argv == ("aider", "--openai-api-base", THROUGH_OWN)
    override = launch("aider", tmp_path, "aider --openai-api-base https://other.example/v1 file.py")
    assert override.argv == ("aider", "--openai-api-base", through("https://other.example/v1"), "file.py")
    assert override.env["OPENAI_API_BASE"] == through("https://other.example/v1")


# --- goose, Crush, Copilot ---


def test_goose_has_hosts_that_end_in_a_slash(tmp_path):
    write(
        tmp_path / ".config" / "goose" / "config.yaml",
        f"OPENAI_HOST: https://host.example\nXAI_HOST: '{OWN}'\nEXT:\n  a: 1\n",
    )
    env = launch("goose", tmp_path).env
    assert env["OPENAI_HOST"] == through("https://host.example/")
    assert env["XAI_HOST"] == f"{THROUGH_OWN}/"
    assert "OPENAI_BASE_URL" not in env
    assert "OPENAI_HOST" not in launch("goose", tmp_path, OPENAI_BASE_URL=OWN).env


def test_crushs_own_addresses_are_seen_in_other_settings(tmp_path):
    folder = tmp_path / "crush"
    write(folder / "crush.json", f'{{"providers": {{"x": {{"base_url": "{OWN}", "api_key": "$KEY"}}}}}}')
    override = launch("crush", tmp_path, CRUSH_GLOBAL_CONFIG=str(folder))
    assert override.overlay is not None
    assert (override.overlay.variable, override.overlay.original) == ("CRUSH_GLOBAL_CONFIG", folder)
    assert json.loads(override.overlay.files["crush.json"]) == {
        "providers": {"x": {"base_url": THROUGH_OWN, "api_key": "$KEY"}}
    }


def test_copilots_github_login_is_for_a_forward_proxy(tmp_path):
    asked = []
    start = Start(("copilot",), {}, tmp_path, tmp_path)
    override = agents.launcher("copilot").launch(start, lambda url: asked.append(url) or through(url))
    assert override.env == {}
    assert "https://api.individual.githubcopilot.com" in asked
    assert "--forward" in override.by_hand
