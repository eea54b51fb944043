"""What every launcher of an agent keeps to, whatever the agent."""

from __future__ import annotations

import shlex

import pytest

from ctxscope import agents
from tests.launch_starts import OWN, THROUGH_OWN, launch, through, write

OURS = (
    *("aider", "claude_code", "codex", "copilot", "crush", "dsh", "gemini", "goose", "kimi", "omp", "opencode", "qwen"),
)
SECRETS = ("hunter2", "sk-secret", "tok-secret")


def test_every_launcher_has_the_whole_face():
    for name in agents.launchers():
        launcher = agents.launcher(name)
        assert launcher.TITLE
        assert isinstance(launcher.COMMANDS, tuple)
        assert isinstance(launcher.TESTED, tuple)
        assert all(
            isinstance(value, str) and value.format(ca="", bundle="", proxy="") is not None
            for value in launcher.FORWARD.values()
        )
        assert callable(launcher.launch)


def test_no_command_starts_two_agents():
    commands = [command for name in agents.launchers() for command in agents.launcher(name).COMMANDS]
    assert sorted(commands) == sorted(set(commands))


def test_all_agents_of_this_file_can_be_launched():
    assert set(OURS) <= set(agents.launchers())


USUAL = {
    "aider": {"ANTHROPIC_API_BASE": "https://api.anthropic.com", "OPENAI_API_BASE": "https://api.openai.com/v1"},
    "claude_code": {"ANTHROPIC_BASE_URL": "https://api.anthropic.com"},
    "crush": {
        "ANTHROPIC_API_ENDPOINT": "https://api.anthropic.com",
        "OPENAI_API_ENDPOINT": "https://api.openai.com/v1",
    },
    "dsh": {"DEEPSEEK_BASE_URL": "https://api.deepseek.com"},
    "gemini": {"CODE_ASSIST_ENDPOINT": "https://cloudcode-pa.googleapis.com"},
    "goose": {"ANTHROPIC_HOST": "https://api.anthropic.com/", "OPENAI_HOST": "https://api.openai.com/"},
    "kimi": {"KIMI_BASE_URL": "https://api.kimi.com/coding/v1"},
}


@pytest.mark.parametrize("agent", sorted(USUAL))
def test_with_nothing_set_the_vendors_address_leads_through_the_proxy(agent, tmp_path):
    override = launch(agent, tmp_path)
    assert override.argv == (agents.launcher(agent).COMMANDS[0],)
    assert override.overlay is None
    for variable, url in USUAL[agent].items():
        assert override.env[variable] == through(url)
        assert f"{variable}={through(url)}" in override.how


OWN_VARIABLE = {
    "aider": ("ANTHROPIC_API_BASE", {}),
    "claude_code": ("ANTHROPIC_BASE_URL", {}),
    "copilot": ("COPILOT_PROVIDER_BASE_URL", {}),
    "crush": ("OPENAI_API_ENDPOINT", {}),
    "dsh": ("DEEPSEEK_BASE_URL", {}),
    "gemini": ("GOOGLE_GEMINI_BASE_URL", {"GEMINI_API_KEY": "sk-secret"}),
    "goose": ("OPENAI_BASE_URL", {}),
    "kimi": ("KIMI_BASE_URL", {}),
    "qwen": ("OPENAI_BASE_URL", {"OPENAI_API_KEY": "sk-secret", "OPENAI_MODEL": "m"}),
}


@pytest.mark.parametrize("agent", sorted(OWN_VARIABLE))
def test_a_base_url_of_the_users_own_environment_is_the_real_upstream(agent, tmp_path):
    variable, more = OWN_VARIABLE[agent]
    override = launch(agent, tmp_path, **{variable: OWN}, **more)
    assert override.env[variable] == THROUGH_OWN


@pytest.mark.parametrize("agent", sorted(OWN_VARIABLE))
def test_a_value_that_is_no_url_is_left_to_the_agent(agent, tmp_path):
    variable, more = OWN_VARIABLE[agent]
    override = launch(agent, tmp_path, **{variable: "gateway.example:8000"}, **more)
    assert variable not in override.env
    assert override.overlay is None or variable not in str(override.overlay.files)


SETTINGS = {
    "aider": ".env",
    "claude_code": ".claude/settings.json",
    "codex": ".codex/config.toml",
    "crush": ".config/crush/crush.json",
    "gemini": ".gemini/settings.json",
    "goose": ".config/goose/config.yaml",
    "kimi": ".kimi/config.toml",
    "omp": ".omp/agent/models.yml",
    "opencode": ".config/opencode/opencode.json",
    "qwen": ".qwen/settings.json",
}
BROKEN = (
    "{",
    "\ufeff[1, 2",
    '{"env": 3, "providers": [], "provider": "x", "security": 1, "modelProviders": 7}',
    "= =\n: :",
    "\x00\xff",
)


@pytest.mark.parametrize("content", BROKEN)
@pytest.mark.parametrize("agent", sorted(SETTINGS))
def test_broken_settings_count_as_none(agent, content, tmp_path):
    bare, broken = tmp_path / "bare", tmp_path / "broken"
    bare.mkdir()
    write(broken / SETTINGS[agent], content)
    assert launch(agent, broken).env == launch(agent, bare).env
    assert launch(agent, broken).overlay is None


@pytest.mark.parametrize("agent", sorted(SETTINGS))
def test_settings_that_are_no_text_count_as_none(agent, tmp_path):
    path = tmp_path / SETTINGS[agent]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\xff\xfe{\x00")
    assert launch(agent, tmp_path).overlay is None


@pytest.mark.parametrize("agent", sorted(SETTINGS))
def test_settings_that_cannot_be_read_count_as_none(agent, tmp_path):
    (tmp_path / SETTINGS[agent]).mkdir(parents=True)
    assert launch(agent, tmp_path).overlay is None


@pytest.mark.parametrize("agent", OURS)
def test_a_launcher_writes_nothing_and_says_no_secret(agent, tmp_path):
    login = "https://ada:hunter2@gateway.example/v1?key=tok-secret"
    contents = {
        ".claude/settings.json": {"env": {"ANTHROPIC_BASE_URL": login, "ANTHROPIC_API_KEY": "sk-secret"}},
        ".codex/config.toml": f'openai_base_url = "{login}"\n',
        ".codex/auth.json": {"OPENAI_API_KEY": "sk-secret", "tokens": {"access_token": "tok-secret"}},
        ".config/crush/crush.json": {"providers": {"x": {"base_url": login, "api_key": "sk-secret"}}},
        ".config/goose/config.yaml": f"ANTHROPIC_HOST: {login}\nOPENAI_API_KEY: sk-secret\n",
        ".config/opencode/opencode.json": {"provider": {"x": {"options": {"baseURL": login, "apiKey": "sk-secret"}}}},
        ".kimi/config.toml": f'default_model = "m"\n[models.m]\nprovider = "p"\n[providers.p]\ntype = "anthropic"\nbase_url = "{login}"\napi_key = "sk-secret"\n',
        ".omp/agent/models.yml": f"providers:\n  x:\n    baseUrl: {login}\n    apiKey: sk-secret\n",
        ".qwen/settings.json": {
            "modelProviders": {"openai": [{"id": "m", "baseUrl": login}]},
            "env": {"K": "sk-secret"},
        },
        ".env": f"OPENAI_API_BASE={login}\nOPENAI_API_KEY=sk-secret\n",
    }
    for name, content in contents.items():
        write(tmp_path / name, content)
    (tmp_path / "work").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    keys = {f"{name}_API_KEY": "sk-secret" for name in ("ANTHROPIC", "OPENAI", "GEMINI", "DEEPSEEK", "DASHSCOPE")}
    override = launch(agent, tmp_path, **keys, COPILOT_PROVIDER_BASE_URL=login, DEEPSEEK_BASE_URL=login)
    said = " ".join((*override.how, *override.changes, override.by_hand, *override.argv))
    assert not [secret for secret in SECRETS if secret in said]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("agent", OURS)
def test_the_users_own_words_stay_in_their_order(agent, tmp_path):
    command = f'{agents.launcher(agent).COMMANDS[0]} --model some/model "a prompt with -c and --settings" -- -c x=y'
    words = shlex.split(command)
    argv = launch(agent, tmp_path, command, ANTHROPIC_API_KEY="sk-secret").argv
    kept = iter(argv)
    assert argv[0] == words[0]
    assert all(word in kept for word in words)
    assert argv[-len(words) + 1 :] == tuple(words[1:])
