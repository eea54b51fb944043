"""Which launcher a command is for, and what each launcher sets for a given environment and home."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from ctxscope import agents
from ctxscope.agents.any import launch as any_launch
from ctxscope.agents.hermes import launch as hermes_launch
from ctxscope.agents.pi import launch as pi_launch
from ctxscope.model import CtxscopeError, Override, Start
from ctxscope.session.launching import find, launch
from tests import launch_starts


def through(url):
    scheme, _, rest = url.partition("://")
    return f"http://127.0.0.1:1/token/{scheme}/{rest}"


def start(command, home, **env):
    return Start(tuple(shlex.split(command)), {"PATH": "", **env}, home, home)


def tree(folder):
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("command", "agent", "at"),
    [
        ("pi -p hi", "pi", 0),
        ("/opt/bin/hermes chat", "hermes", 0),
        ("npx -y @earendil-works/pi-coding-agent@1.6.0 -p x", "pi", 2),
        ("npx --package some pi", "pi", 3),
        ("npm exec -- pi -p", "pi", 3),
        ("bunx pi", "pi", 1),
        ("pnpm dlx @mariozechner/pi-coding-agent", "pi", 2),
        ("node --import x.js /a/node_modules/@mariozechner/pi-coding-agent/dist/cli.js -p", "pi", 3),
        ("node /a/node_modules/pi/cli.js", "pi", 1),
        ("npx @oh-my-pi/pi-coding-agent", "omp", 1),
        ("bunx @oh-my-pi/pi-coding-agent@18.2.3 -p x", "omp", 1),
        ("bun /a/node_modules/@oh-my-pi/pi-coding-agent/dist/cli.js", "omp", 1),
        ("npx @somebody/pi-coding-agent", "pi", 1),
        ("uvx --from hermes-agent hermes", "hermes", 3),
        ("uv run hermes chat", "hermes", 2),
        ("uv tool run hermes", "hermes", 3),
        ("uv run python -m hermes_cli.main chat", "hermes", 4),
        ("python3.11 -X dev -m hermes_cli.main", "hermes", 4),
        ("python /opt/bin/hermes", "hermes", 1),
        ("nohup hermes gateway", "hermes", 1),
        ("./my-agent --model pi", "any", 0),
        ("python /home/ada/pi/train.py", "any", 0),
        ("python -c pi", "any", 0),
        ("npm run pi", "any", 0),
        ("env -i pi", "any", 0),
        ("npx", "any", 0),
        ("node /a/node_modules/", "any", 0),
    ],
)
def test_the_agent_a_command_starts(command, agent, at):
    assert find(shlex.split(command)) == (agent, at)


@pytest.mark.parametrize(("command", "at"), [("./wrapper.sh -x", 0), ("uv run ./wrapper.py", 2), ("pi -p hi", 0)])
def test_a_name_decides_and_its_words_come_last(command, at):
    assert find(shlex.split(command), "hermes") == ("hermes", at)


def test_a_name_that_nobody_has_is_told_with_those_that_are(tmp_path):
    with pytest.raises(CtxscopeError, match=r"nobody: .*expected one of .*any.*hermes.*pi"):
        launch(start("x", tmp_path), "nobody", through)


def test_what_stands_before_the_agent_stays_before_it(tmp_path):
    found = launch(start("npx -y @earendil-works/pi-coding-agent -p hi", tmp_path), None, through)
    argv = found.override.argv
    assert argv[:4] == ("npx", "-y", "@earendil-works/pi-coding-agent", "-e")
    assert argv[5:] == ("-p", "hi")
    assert found.plain == ("npx", "-y", "@earendil-works/pi-coding-agent", "-p", "hi")


def test_what_a_leading_env_sets_is_heard_and_does_not_undo_ours(tmp_path):
    command = "env ANTHROPIC_BASE_URL=https://gate.example FOO=1 ./mine -x"
    found = launch(start(command, tmp_path, ANTHROPIC_BASE_URL="https://other.example"), None, through)
    assert found.override.argv == found.plain == ("./mine", "-x")
    assert found.override.env["FOO"] == "1"
    assert found.override.env["ANTHROPIC_BASE_URL"] == through("https://gate.example")
    assert found.assigned == {"ANTHROPIC_BASE_URL": "https://gate.example", "FOO": "1"}


@pytest.mark.parametrize("name", agents.launchers())
def test_every_launcher_has_its_face_and_only_answers(name, tmp_path):
    launcher = agents.launcher(name)
    assert launcher.TITLE
    assert all(isinstance(word, str) for word in (*launcher.COMMANDS, *launcher.TESTED, *launcher.FORWARD.values()))
    asked = []

    def told(url):
        asked.append(url)
        return through(url)

    (tmp_path / "home").mkdir()
    given = start(f"{launcher.COMMANDS[0] if launcher.COMMANDS else 'x'} word", tmp_path / "home", MY_OWN="planted")
    before, environ = tree(tmp_path), dict(os.environ)
    found = launcher.launch(given, told)
    assert found == launcher.launch(given, told)
    assert (tree(tmp_path), dict(os.environ)) == (before, environ)
    assert asked
    assert found.argv[0] == given.argv[0]
    assert found.argv[-1] == "word"
    assert found.how
    assert found.by_hand
    assert "planted" not in repr(found)


# --- any program ---


def test_any_program_goes_where_its_vendor_is(tmp_path):
    found = any_launch.launch(start("x", tmp_path), through)
    assert found.env["ANTHROPIC_BASE_URL"] == through("https://api.anthropic.com")
    assert found.env["OPENAI_BASE_URL"] == found.env["OPENAI_API_BASE"] == through("https://api.openai.com/v1")
    assert f"OPENAI_BASE_URL={found.env['OPENAI_BASE_URL']}" in found.how


def test_any_program_goes_where_the_user_sent_it_whichever_name_he_used(tmp_path):
    env = {"OPENAI_API_BASE": "https://gate.example/v1", "ANTHROPIC_BASE_URL": "https://a.example", "XAI_BASE_URL": ""}
    found = any_launch.launch(start("x", tmp_path, **env), through)
    assert found.env["OPENAI_BASE_URL"] == found.env["OPENAI_API_BASE"] == through("https://gate.example/v1")
    assert found.env["ANTHROPIC_API_BASE"] == through("https://a.example")
    assert found.env["XAI_BASE_URL"] == through("https://api.x.ai/v1")


def test_any_program_keeps_what_is_no_url(tmp_path):
    found = any_launch.launch(start("x", tmp_path, OPENAI_API_BASE="gate.example:8000"), through)
    assert not {"OPENAI_API_BASE", "OPENAI_BASE_URL"} & set(found.env)
    assert "ANTHROPIC_BASE_URL" in found.env


def test_no_word_of_a_launcher_holds_what_may_be_secret_in_a_base_url(tmp_path, monkeypatch):
    url = "https://ada:hunter2@gate.example/v1?code=hunter2#hunter2"
    found = launch(start("x", tmp_path, OPENAI_BASE_URL=url), None, launch_starts.through).override
    assert "hunter2" in found.env["OPENAI_BASE_URL"]
    assert "OPENAI_BASE_URL=http://127.0.0.1:1/TOKEN/gate.example/v1" in found.how
    assert "hunter2" not in repr((found.how, found.changes, found.by_hand))
    said = Override(("x",), how=(f"A={url} b",), changes=(f'see "{url}"',), by_hand=f"{url}, or else")
    monkeypatch.setattr(any_launch, "launch", lambda *_: said)
    found = launch(start("x", tmp_path), None, through).override
    assert found.how == ("A=https://gate.example/v1 b",)
    assert found.changes == ('see "https://gate.example/v1"',)
    assert "hunter2" not in found.by_hand


# --- pi ---


def routes(found):
    return json.loads(found.env["CTXSCOPE_ROUTES"])


def test_pi_gets_an_extension_before_its_own_arguments(tmp_path):
    found = pi_launch.launch(start("pi --model a -- -e", tmp_path), through)
    assert found.argv == ("pi", "-e", str(pi_launch.EXTENSION), "--model", "a", "--", "-e")
    assert pi_launch.EXTENSION.is_file()
    assert routes(found)["https://api.anthropic.com"] == through("https://api.anthropic.com")


@pytest.mark.parametrize("word", sorted(pi_launch.WITHOUT_CALLS))
def test_pi_is_left_alone_where_it_makes_no_calls(word, tmp_path):
    found = pi_launch.launch(start(f"pi {word} x", tmp_path), through)
    assert (found.argv, found.env) == (("pi", word, "x"), {})


def test_pi_takes_the_user_s_own_endpoints_from_its_tables_comments_or_not(tmp_path):
    (tmp_path / "own").mkdir()
    text = '{ // mine\n"providers": {"a": {"baseUrl": "http://u:p@Host.example:8080/v1"}, "b": {"baseUrl":\n"https:\\/\\/b.example:443/x"}, "c": {"baseUrl": "$NOT"}}}'
    (tmp_path / "own" / "models.json").write_text(text, encoding="utf-8")
    env = {"PI_CODING_AGENT_DIR": "~/own", "AZURE_OPENAI_RESOURCE_NAME": "res", "GOOGLE_CLOUD_LOCATION": "eu"}
    found = set(routes(pi_launch.launch(start("pi", tmp_path, **env), through)))
    assert found - {f"https://{host}" for host in pi_launch.HOSTS} == {
        "http://host.example:8080",
        "https://b.example",
        "https://res.openai.azure.com",
        "https://eu-aiplatform.googleapis.com",
    }


@pytest.mark.parametrize("named", [{}, {"AZURE_OPENAI_BASE_URL": "https://u:hunter2@a.example:8443/x?key=hunter2"}])
def test_pi_tells_the_user_s_own_endpoint_or_a_well_known_one(named, tmp_path):
    found = pi_launch.launch(start("pi", tmp_path, **named), through)
    first = "https://a.example:8443" if named else "https://api.anthropic.com"
    others = len(routes(found)) - 1
    assert found.how[1] == f"{first} and {others} others are dialled by way of http://127.0.0.1:1/…"


@pytest.mark.parametrize(
    ("launcher", "name"), [(pi_launch, ".pi/agent/models.json"), (hermes_launch, ".hermes/config.yaml")]
)
def test_settings_that_cannot_be_read_count_as_none(launcher, name, tmp_path):
    bare, unreadable = tmp_path / "bare", tmp_path / "unreadable"
    bare.mkdir()
    (unreadable / name).mkdir(parents=True)
    command = launcher.COMMANDS[0]
    assert launcher.launch(start(command, unreadable), through) == launcher.launch(start(command, bare), through)


# --- Hermes ---

CONFIG = """
model: {default: m, base_url: "http://127.0.0.1:8080/v1"}   # not http://comment.example
providers:
  mine:
    api: https://gate.example/v1
  spare:
    url: 'http://[::1]:9'
mcp_servers:
  files:
    url: https://mcp.example/sse
tts:
  openai:
    base_url: https://voice.example
auxiliary:
  vision:
    base_url: https://eyes.example/v1
fallback_model:
  base_url: https://api.minimax.io/v1
"""


def test_hermes_takes_every_endpoint_of_a_model_and_no_other(tmp_path):
    home = tmp_path / ".hermes"
    (home / "profiles" / "work").mkdir(parents=True)
    (home / "config.yaml").write_text(CONFIG, encoding="utf-8")
    (home / ".env").write_text(
        "ANTHROPIC_API_KEY=planted\nexport GLM_BASE_URL='https://glm.example/v4'\nWEIXIN_BASE_URL=https://w.example\n",
        encoding="utf-8",
    )
    (home / "auth.json").write_text(
        '{"portal_base_url": "https://portal.example", "inference_base_url": "https://inference.example/v1"}',
        encoding="utf-8",
    )
    (home / "profiles" / "work" / "config.yaml").write_text(
        "model:\n  base_url: https://work.example\n", encoding="utf-8"
    )
    found = hermes_launch.launch(
        start("hermes chat", tmp_path, CUSTOM_BASE_URL="https://custom.example:8443/v1"), through
    )
    assert set(routes(found)) - set(hermes_launch.BASE_URLS) - {"http://127.0.0.1:1234"} == {
        "http://127.0.0.1:8080",
        "https://gate.example",
        "http://[::1]:9",
        "https://eyes.example",
        "https://glm.example",
        "https://inference.example",
        "https://work.example",
        "https://custom.example:8443",
    }
    assert "planted" not in repr(found)
    assert found.how[1].startswith("https://custom.example:8443 and http://127.0.0.1:8080 and ")
    assert found.how[1].endswith(" others are dialled by way of http://127.0.0.1:1/…")


def test_hermes_tells_a_known_endpoint_by_name_that_the_user_has_chosen(tmp_path):
    (tmp_path / ".hermes").mkdir()
    (tmp_path / ".hermes" / "config.yaml").write_text(
        "model: {base_url: https://openrouter.ai/api/v1}", encoding="utf-8"
    )
    found = hermes_launch.launch(start("hermes", tmp_path), through)
    assert found.how[1].startswith(f"https://openrouter.ai and {len(routes(found)) - 1} others are dialled")


def test_hermes_keeps_the_user_s_own_python_path(tmp_path):
    found = hermes_launch.launch(
        start("hermes", tmp_path, PYTHONPATH="/mine", HERMES_HOME=str(tmp_path / "h")), through
    )
    assert found.env["PYTHONPATH"] == f"{hermes_launch.REROUTE}{os.pathsep}/mine"
    assert (hermes_launch.REROUTE / "sitecustomize.py").is_file()
    assert found.argv == ("hermes",)


SHIM = '#!/usr/bin/env bash\nunset PYTHONPATH\nunset PYTHONHOME\nexec {} "$@"\n'


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        ('"/opt/hermes/venv/bin/hermes"', ("/opt/hermes/venv/bin/hermes",)),
        ('"/a b/python" "/a b/hermes"', ("/a b/python", "/a b/hermes")),
        ('"$HERMES_BIN"', ("hermes",)),
        ("`which hermes`", ("hermes",)),
        ("'unclosed", ("hermes",)),
    ],
)
def test_hermes_is_started_past_the_installer_s_script_which_drops_the_path(words, argv, tmp_path):
    (tmp_path / "hermes").write_text(SHIM.format(words), encoding="utf-8")
    (tmp_path / "hermes").chmod(0o755)
    found = hermes_launch.launch(start("hermes chat -q x", tmp_path, PATH=str(tmp_path)), through)
    assert found.argv == (*argv, "chat", "-q", "x")


def test_another_script_of_that_name_is_started_as_it_is(tmp_path):
    (tmp_path / "hermes").write_text('#!/bin/sh\nexec /opt/hermes "$@"\n', encoding="utf-8")
    (tmp_path / "hermes").chmod(0o755)
    found = hermes_launch.launch(start("hermes", tmp_path, PATH=str(tmp_path)), through)
    assert found.argv == ("hermes",)


def test_a_binary_of_that_name_is_started_as_it_is(tmp_path):
    Path(tmp_path / "hermes").write_bytes(b"\x7fELF\xff\xfe")
    (tmp_path / "hermes").chmod(0o755)
    assert hermes_launch.launch(start("hermes", tmp_path, PATH=str(tmp_path)), through).argv == ("hermes",)
