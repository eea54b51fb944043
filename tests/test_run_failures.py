"""``ctxscope run`` where it cannot record: the agent runs all the same, and what belongs to others is left alone."""

from __future__ import annotations

import os
import re

import pytest

from ctxscope.capture import recorder
from ctxscope.cli import run as verb
from ctxscope.cli.main import main
from tests.run_agents import GIVEN, agent, ctxscope, data, here, lines, upstream

FIXTURES = (data, here, upstream)
"""Used by their names."""


@pytest.mark.usefixtures("data", "here")
def test_a_recording_is_never_written_over(tmp_path, capfd):
    path = tmp_path / "mine.ctxrec"
    path.write_bytes(b"precious")
    assert main(["run", "-o", str(path), "--", "echo", "started"]) == 2
    assert main(["run", "-o", str(tmp_path / "no" / "such"), "--", "echo", "started"]) == 2
    out, err = capfd.readouterr()
    assert (out, path.read_bytes()) == ("", b"precious")
    assert "already there" in err
    assert "no such folder" in err
    assert main(["run", "-o", str(tmp_path / "new.ctxrec"), "--", "echo", "started"]) == 0
    assert (tmp_path / "new.ctxrec").stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("data")
def test_a_recording_is_never_put_into_an_agent_s_folder_or_over_anything(here, tmp_path, capfd):
    hermes = here / ".hermes"
    hermes.mkdir()
    (hermes / "state.db").touch()
    (tmp_path / "link.ctxrec").symlink_to(tmp_path / "nothing")
    (tmp_path / "agent").symlink_to(hermes)
    os.mkfifo(tmp_path / "pipe")
    for place in (hermes / "x.ctxrec", tmp_path / "agent" / "x", tmp_path / "link.ctxrec", tmp_path / "pipe", tmp_path):
        assert main(["run", "-o", str(place), "--", "echo", "started"]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert "expected" in err
    assert [path.name for path in hermes.iterdir()] == ["state.db"]
    assert not (tmp_path / "nothing").exists()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("variable", ["ALL_PROXY", "https_proxy"])
def test_the_agent_runs_as_ever_behind_a_proxy_that_cannot_be_passed(variable, data, monkeypatch, capfd):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv(variable, "socks5://ada:hunter2@127.0.0.1:1080")
    assert main(["run", "--", "sh", "-c", f'echo "${variable} [$OPENAI_BASE_URL$NO_PROXY]"; exit 9']) == 9
    out, err = capfd.readouterr()
    assert out == "socks5://ada:hunter2@127.0.0.1:1080 []\n"
    before, after = (line for line in lines(err) if line.startswith("NOTHING "))
    assert before.startswith(
        "NOTHING IS RECORDED: https://api.anthropic.com: the environment names a socks5 proxy for it"
    )
    assert after.startswith("NOTHING WAS RECORDED: https://api.anthropic.com")
    assert "hunter2" not in err
    assert not data.exists()


@pytest.mark.usefixtures("data", "here")
def test_the_agent_runs_where_the_proxy_does_not_start(monkeypatch, capfd):
    def start(_):
        raise OSError(98, "Address already in use")

    monkeypatch.setattr("ctxscope.capture.proxy.Proxy.start", start)
    assert main(["run", "--", "sh", "-c", 'echo "started $ANTHROPIC_BASE_URL"; exit 9']) == 9
    out, err = capfd.readouterr()
    assert out == f"started {os.environ.get('ANTHROPIC_BASE_URL', '')}\n"
    assert "NOTHING IS RECORDED" in err
    assert "Address already in use" in err


@pytest.mark.usefixtures("here")
def test_the_agent_runs_where_nothing_can_be_stored(upstream, tmp_path):
    (tmp_path / "file").touch()
    ended = ctxscope(*agent(), ANTHROPIC_BASE_URL=upstream.url, CTXSCOPE_DATA_DIR=str(tmp_path / "file"))
    assert (ended.returncode, len(upstream.got)) == (3, 1)
    said = "\n".join(lines(ended.stderr))
    assert "NOTHING CAN BE STORED" in said.partition("0 CALLS")[0]
    assert re.search(r"\d events COULD NOT BE STORED: Not a directory", said)


@pytest.mark.usefixtures("here")
def test_the_agent_runs_where_the_writer_cannot(upstream, monkeypatch, capfd, data):
    monkeypatch.setattr(recorder, "MOST_DEATHS", 2)
    monkeypatch.setattr(verb, "_WRITER", "ctxscope.no_such_module")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", upstream.url)
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    assert main(["run", *agent()]) == 3
    assert len(upstream.got) == 1
    assert "COULD NOT BE STORED" in capfd.readouterr().err
    assert data.exists()
