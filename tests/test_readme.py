"""What the README says of the program that the program itself knows."""

from __future__ import annotations

import re

import pytest

from ctxscope import agents, cli
from tests import fidelity
from tests.conftest import ROOT, needs_captures

README = (ROOT / "README.md").read_text(encoding="utf-8")


def launcher_rows() -> list[str]:
    """The README's table of agents that can be started, tested ones first."""
    launchers = [agents.launcher(name) for name in agents.launchers()]
    rows = []
    for found in sorted(launchers, key=lambda one: (not one.TESTED, not one.COMMANDS, one.TITLE.lower())):
        commands = (
            f"`{found.COMMANDS[0]}`" if found.COMMANDS else "anything else that honours a base URL in its environment"
        )
        forward = "yes" if found.FORWARD else "no"
        rows.append(f"| {found.TITLE} | {commands} | {', '.join(found.TESTED) or 'untested'} | {forward} |")
    return rows


def test_it_lists_every_agent_that_can_be_started_with_the_versions_that_were():
    table = README.partition("| agent | command | really run in | `--forward` |\n|")[2]
    assert table.partition("\n")[2].split("\n\n")[0].splitlines() == launcher_rows()


def test_the_agent_it_walks_through_is_made_of_the_files_it_names():
    page = README.partition("## Adding an agent")[2].partition("\n## ")[0]
    files = {path.name for path in (ROOT / "ctxscope/agents/kimi").glob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"`([a-z_]+\.py)`", page)) == files
    for face in re.findall(r"`([a-z_]+)\(", page):
        assert callable(getattr(agents.load("kimi"), face))
    assert len(page.splitlines()) < 40


@needs_captures
def test_its_table_of_what_logs_can_rebuild_is_what_the_recorded_cases_give(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)
    assert README.partition(fidelity.BEGIN)[2].partition(fidelity.END)[0].strip() == fidelity.table()


def test_it_names_every_verb():
    assert [verb for verb in cli.names() if verb != cli.DEFAULT_VERB and f"ctxscope {verb}" not in README] == []
