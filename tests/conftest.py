"""What many tests share: where recorded evidence lies, and the mark that skips without it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Both are limits of the wall clock, which a busy machine breaks without any fault of the code.
settings.register_profile("ctxscope", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ctxscope")

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_sessions"
CAPTURES = ROOT.parent / "shared" / "captures"
"""Recorded sessions of real agents; not part of the project, present on its developers' machines."""

needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded captures (../shared) are not here")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One process more than cores: a test of the app waits for half of its time."""
    return (yield) + 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The coverage of every recorded case that was judged, a line each."""
    told = [
        str(value)
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == "coverage"
    ]
    if told:
        terminalreporter.section("coverage of recorded cases, in bytes of equal calls")
        for line in told:
            terminalreporter.write_line(line)


@pytest.fixture(autouse=True, scope="session")
def _no_ones_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The same for what fixtures open that many tests share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CTXSCOPE_DATA_DIR", str(tmp_path_factory.mktemp("shared") / "ctxscope"))
        yield


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes what ctxscope keeps for the person who runs it."""
    monkeypatch.setenv("CTXSCOPE_DATA_DIR", str(tmp_path_factory.mktemp("data") / "ctxscope"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
