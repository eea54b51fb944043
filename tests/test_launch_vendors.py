"""How the agents of the model vendors are started: Claude Code, Codex, Gemini CLI, Qwen Code."""

from __future__ import annotations

import json
import shlex
import tomllib

import pytest

from ctxscope import agents
from ctxscope.model import Override, Start
from tests.launch_starts import OWN, THROUGH_OWN, launch, through, write

# --- Claude Code ---


def test_claude_code_is_told_that_it_still_calls_anthropic(tmp_path):
    first_party = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"
    assert launch("claude_code", tmp_path).env[first_party] == "1"
    assert launch("claude_code", tmp_path, ANTHROPIC_BASE_URL="https://api.anthropic.com/").env[first_party] == "1"
    assert first_party not in launch("claude_code", tmp_path, ANTHROPIC_BASE_URL=OWN).env
    assert first_party not in launch("claude_code", tmp_path, **{first_party: "0"}).env


def settings_of(override: Override) -> dict:
    return json.loads(override.argv[override.argv.index("--settings") + 1])


@pytest.mark.parametrize(
    "name", [".claude/settings.json", "work/.claude/settings.json", "work/.claude/settings.local.json"]
)
def test_claude_codes_settings_win_over_the_environment_so_ours_win_over_them(name, tmp_path):
    write(tmp_path / name, {"env": {"ANTHROPIC_BASE_URL": OWN}})
    override = launch("claude_code", tmp_path, "claude -p hi", ANTHROPIC_BASE_URL="https://other.example")
    assert override.env["ANTHROPIC_BASE_URL"] == THROUGH_OWN
    assert settings_of(override) == {"env": {"ANTHROPIC_BASE_URL": THROUGH_OWN}}
    assert override.argv[3:] == ("-p", "hi")


@pytest.mark.parametrize("spelled", ["--settings '{}'", "--settings='{}'"])
def test_claude_codes_own_settings_flag_keeps_what_else_it_holds(spelled, tmp_path):
    given = json.dumps({"model": "opus", "env": {"A": "b", "ANTHROPIC_BASE_URL": OWN}})
    override = launch("claude_code", tmp_path, f"claude {spelled.format(given)} -p hi")
    found = next(word for word in override.argv if "{" in word)
    assert json.loads(found.removeprefix("--settings=")) == {
        "model": "opus",
        "env": {"A": "b", "ANTHROPIC_BASE_URL": THROUGH_OWN},
    }
    assert override.argv[-2:] == ("-p", "hi")


def test_a_settings_file_that_claude_code_is_given_does_not_come_onto_the_command_line(tmp_path):
    write(tmp_path / "work" / "mine.json", {"env": {"ANTHROPIC_BASE_URL": OWN, "ANTHROPIC_API_KEY": "sk-secret"}})
    override = launch("claude_code", tmp_path, "claude --settings mine.json")
    assert override.argv == ("claude", "--settings", "mine.json")
    assert override.by_hand


@pytest.mark.parametrize(
    ("env", "variable", "url"),
    [
        (
            {"CLAUDE_CODE_USE_VERTEX": "1", "CLOUD_ML_REGION": "global"},
            "ANTHROPIC_VERTEX_BASE_URL",
            "https://aiplatform.googleapis.com/v1",
        ),
        (
            {"CLAUDE_CODE_USE_VERTEX": "1", "CLOUD_ML_REGION": "eu"},
            "ANTHROPIC_VERTEX_BASE_URL",
            "https://aiplatform.eu.rep.googleapis.com/v1",
        ),
        (
            {"CLAUDE_CODE_USE_VERTEX": "true"},
            "ANTHROPIC_VERTEX_BASE_URL",
            "https://us-east5-aiplatform.googleapis.com/v1",
        ),
        (
            {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_BEARER_TOKEN_BEDROCK": "tok-secret", "AWS_REGION": "eu-west-1"},
            "ANTHROPIC_BEDROCK_BASE_URL",
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
        ),
        (
            {"CLAUDE_CODE_USE_FOUNDRY": "1", "ANTHROPIC_FOUNDRY_RESOURCE": "ada"},
            "ANTHROPIC_FOUNDRY_BASE_URL",
            "https://ada.services.ai.azure.com/anthropic",
        ),
    ],
)
def test_claude_codes_other_providers_have_variables_of_their_own(env, variable, url, tmp_path):
    override = launch("claude_code", tmp_path, **env)
    assert override.env == {variable: through(url)}


def test_calls_that_are_signed_for_bedrock_are_left_alone_but_known_to_a_forward_proxy(tmp_path):
    asked = []
    start = Start(("claude",), {"CLAUDE_CODE_USE_BEDROCK": "1"}, tmp_path, tmp_path)
    override = agents.launcher("claude_code").launch(start, lambda url: asked.append(url) or through(url))
    assert override.env == {}
    assert asked == ["https://bedrock-runtime.us-east-1.amazonaws.com"]
    assert "AWS_BEARER_TOKEN_BEDROCK" in override.by_hand


# --- Codex ---


def codex_setting(override: Override) -> dict:
    """What the one ``-c`` sets, as Codex reads it."""
    at = override.argv.index("-c")
    return tomllib.loads(override.argv[at + 1])


def test_codex_gets_its_setting_before_the_subcommand(tmp_path):
    override = launch("codex", tmp_path, 'codex exec --skip-git-repo-check "look around"')
    assert override.argv[1] == "-c"
    assert override.argv[3:] == ("exec", "--skip-git-repo-check", "look around")
    assert codex_setting(override) == {"openai_base_url": through("https://api.openai.com/v1")}
    assert override.env == {}


@pytest.mark.parametrize(
    ("auth", "env", "url"),
    [
        (
            {"tokens": {"access_token": "tok-secret"}, "OPENAI_API_KEY": None},
            {},
            "https://chatgpt.com/backend-api/codex",
        ),
        ({"auth_mode": "chatgpt", "tokens": {}}, {}, "https://chatgpt.com/backend-api/codex"),
        ({"auth_mode": "chatgpt"}, {"CODEX_API_KEY": "sk-secret"}, "https://api.openai.com/v1"),
        ({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-secret"}, {}, "https://api.openai.com/v1"),
        ({"OPENAI_API_KEY": "sk-secret", "tokens": {"a": 1}}, {}, "https://api.openai.com/v1"),
        ("{", {}, "https://api.openai.com/v1"),
    ],
)
def test_codexs_login_decides_where_the_built_in_provider_goes(auth, env, url, tmp_path):
    write(tmp_path / ".codex" / "auth.json", auth)
    assert codex_setting(launch("codex", tmp_path, **env)) == {"openai_base_url": through(url)}


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("codex", "openai_base_url"),
        ("codex -p mine exec hi", "model_providers.corp.base_url"),
        ("codex --profile=new", "model_providers.corp.base_url"),
        ("codex -c model_provider=corp", "model_providers.corp.base_url"),
        ("codex exec --config 'model_provider = \"corp\"' hi", "model_providers.corp.base_url"),
    ],
)
def test_codexs_provider_in_use_is_the_one_that_is_redirected(command, key, tmp_path):
    config = f'openai_base_url = "{OWN}"\n[profiles.mine]\nmodel_provider = "corp"\n[model_providers.corp]\nbase_url = "{OWN}"\n'
    write(tmp_path / "codex" / "config.toml", config)
    write(tmp_path / "codex" / "new.config.toml", 'model_provider = "corp"\n')
    override = launch("codex", tmp_path, command, CODEX_HOME=str(tmp_path / "codex"))
    assert override.argv[1:3] == ("-c", f'{key}="{THROUGH_OWN}"')
    assert override.argv[3:] == tuple(shlex.split(command)[1:])


@pytest.mark.parametrize(
    "spelled", ["-c openai_base_url={}", "--config=openai_base_url={}", "-c 'openai_base_url=\"{}\"'"]
)
def test_codexs_own_base_url_on_the_command_line_is_replaced_where_it_stands(spelled, tmp_path):
    override = launch("codex", tmp_path, f"codex exec {spelled.format(OWN)} hi")
    assert sum("openai_base_url" in word for word in override.argv) == 1
    assert override.argv[1] == "exec"
    assert override.argv[-1] == "hi"
    assert any(f'openai_base_url="{THROUGH_OWN}"' in word for word in override.argv)


def test_words_behind_two_dashes_are_no_options_of_codex(tmp_path):
    command = f"codex mcp add x -- run -c openai_base_url={OWN}"
    override = launch("codex", tmp_path, command)
    assert override.argv[3:] == tuple(shlex.split(command)[1:])
    assert codex_setting(override) == {"openai_base_url": through("https://api.openai.com/v1")}


def test_codexs_local_models_have_a_variable(tmp_path):
    assert launch("codex", tmp_path, "codex --oss").env == {"CODEX_OSS_BASE_URL": through("http://localhost:11434/v1")}
    command = "codex exec --oss --local-provider lmstudio hi"
    assert launch("codex", tmp_path, command).env == {"CODEX_OSS_BASE_URL": through("http://localhost:1234/v1")}


def test_a_provider_that_codex_cannot_be_told_of_is_said_to_be_one(tmp_path):
    write(tmp_path / ".codex" / "config.toml", 'model_provider = "amazon-bedrock"\n')
    override = launch("codex", tmp_path)
    assert override.argv == ("codex",)
    assert not override.how
    assert "--forward" in override.by_hand


# --- Gemini CLI ---


@pytest.mark.parametrize(
    ("chosen", "env", "variable", "url"),
    [
        ("gemini-api-key", {}, "GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"),
        ("oauth-personal", {}, "CODE_ASSIST_ENDPOINT", "https://cloudcode-pa.googleapis.com"),
        ("vertex-ai", {}, "GOOGLE_VERTEX_BASE_URL", "https://aiplatform.googleapis.com"),
        (
            "vertex-ai",
            {"GOOGLE_CLOUD_LOCATION": "us"},
            "GOOGLE_VERTEX_BASE_URL",
            "https://aiplatform.us.rep.googleapis.com",
        ),
        (None, {"GOOGLE_GENAI_USE_GCA": "true"}, "CODE_ASSIST_ENDPOINT", "https://cloudcode-pa.googleapis.com"),
        (
            None,
            {"GEMINI_API_KEY": "sk-secret", "CODE_ASSIST_ENDPOINT": OWN},
            "GOOGLE_GEMINI_BASE_URL",
            "https://generativelanguage.googleapis.com",
        ),
    ],
)
def test_the_way_gemini_logs_in_decides_the_variable(chosen, env, variable, url, tmp_path):
    if chosen:
        write(tmp_path / ".gemini" / "settings.json", {"security": {"auth": {"selectedType": chosen}}})
    override = launch("gemini", tmp_path, **env)
    assert override.env == {variable: through(url)}
    assert not any("first start" in words for words in override.changes)
    assert (override.overlay is None) == (variable != "GOOGLE_GEMINI_BASE_URL" or chosen is not None)


def test_geminis_key_without_a_chosen_login_gets_one_and_keeps_the_other_settings(tmp_path):
    write(tmp_path / ".gemini" / "settings.json", '{"theme": "x", /* c */ "security": {"auth": {"enforcedType": "e"}}}')
    override = launch("gemini", tmp_path, GEMINI_API_KEY="sk-secret")
    assert override.overlay is not None
    assert (override.overlay.variable, override.overlay.original) == ("GEMINI_CLI_HOME", tmp_path)
    (content,) = override.overlay.files.values()
    assert json.loads(content) == {
        "theme": "x",
        "security": {"auth": {"enforcedType": "e", "selectedType": "gemini-api-key"}},
    }


def test_geminis_dotenv_counts_below_the_environment(tmp_path):
    write(tmp_path / ".gemini" / ".env", f"export GOOGLE_GEMINI_BASE_URL='{OWN}'\nGEMINI_API_KEY=sk-secret # mine\n")
    assert launch("gemini", tmp_path).env == {"GOOGLE_GEMINI_BASE_URL": THROUGH_OWN}
    override = launch("gemini", tmp_path, GOOGLE_GEMINI_BASE_URL="https://other.example")
    assert override.env == {"GOOGLE_GEMINI_BASE_URL": through("https://other.example")}


# --- Qwen Code ---


def qwen_settings(home, **settings):
    write(home / ".qwen" / "settings.json", settings)


def test_qwen_without_a_chosen_protocol_gets_no_variable_that_would_choose_one(tmp_path):
    override = launch("qwen", tmp_path, OPENAI_API_KEY="sk-secret", OPENAI_MODEL="m")
    assert override.env == {}
    assert override.how == ("nothing: no login is chosen yet",)


def test_qwens_stored_address_becomes_the_variable_that_wins_over_it(tmp_path):
    qwen_settings(tmp_path, security={"auth": {"selectedType": "anthropic", "baseUrl": OWN}})
    assert launch("qwen", tmp_path).env == {"ANTHROPIC_BASE_URL": THROUGH_OWN}


def test_qwen_is_told_that_the_proxy_stands_for_dashscope(tmp_path):
    qwen_settings(tmp_path, security={"auth": {"selectedType": "openai"}})
    override = launch("qwen", tmp_path)
    url = through("https://dashscope.aliyuncs.com/compatible-mode/v1")
    assert override.env == {"OPENAI_BASE_URL": url, "DASHSCOPE_PROXY_BASE_URL": url}
    assert not any("--forward" in words for words in override.changes)
    other = launch("qwen", tmp_path, OPENAI_BASE_URL="https://evil.example/dashscope.aliyuncs.com")
    assert "DASHSCOPE_PROXY_BASE_URL" not in other.env
    assert any("--forward" in words for words in other.changes)


def test_qwens_models_with_addresses_are_seen_in_other_settings(tmp_path):
    text = f'{{ // mine\n"modelProviders": {{"openai": [{{"id": "m", "baseUrl": "{OWN}", "envKey": "K"}}]}}, "x": "baseUrl"}}'
    write(tmp_path / ".qwen" / "settings.json", text)
    override = launch("qwen", tmp_path)
    assert override.overlay is not None
    assert (override.overlay.variable, override.overlay.original) == ("QWEN_HOME", tmp_path / ".qwen")
    assert override.overlay.files["settings.json"].decode() == text.replace(OWN, THROUGH_OWN)


def test_qwens_flag_is_replaced_where_it_stands(tmp_path):
    override = launch("qwen", tmp_path, f"qwen --openai-base-url {OWN} -p hi")
    assert override.argv == ("qwen", "--openai-base-url", THROUGH_OWN, "-p", "hi")
