"""The rooms of the program import only what the design lets them."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "ctxscope"
MOST_LINES = 410
ONE_VOCABULARY = "ctxscope/model.py"
"""All shared words stand in one file by design, however many there are."""

ROOMS = {
    "model": set(),
    "resources": set(),
    "wire": {"model"},
    "sources": {"model", "resources"},
    "analysis": {"model"},
    "agents": {"model", "wire"},
    "capture": {"model", "wire"},
    "session": {"model", "resources", "wire", "sources", "analysis", "agents", "capture"},
    "report": {"model", "session"},
    "tui": {"model", "session", "resources"},
    "cli": {"model", "session", "resources", "capture", "report", "tui"},
    "": {"session"},
    "__main__": {"cli"},
}
"""Room -> rooms it may import beside itself; ``""`` is the package's own ``__init__``."""
ONLY_IN = {"textual": ("tui",), "rich": ("tui", "cli"), "aiohttp": ("capture",)}
ONLY_BELOW = {"aiohttp": "ctxscope.capture.proxy"}
"""A library with a folder of its own in its room."""
LIGHT = (
    *(
        "ctxscope",
        "ctxscope.model",
        "ctxscope.cli.main",
        "ctxscope.cli.report",
        "ctxscope.cli.sessions",
        "ctxscope.cli.open",
    ),
    *("ctxscope.session.inspection", "ctxscope.session.finding"),
)
"""What runs before any work is done; it must start in a moment."""
HEAVY = {"textual", "rich", "tiktoken", "watchfiles", "aiohttp"}

FORKING = """
import importlib, json, os, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
for name in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name.strip())
            loaded = sorted(m for m in sys.modules if "." not in m)
        except BaseException as error:
            loaded = repr(error)
        print(json.dumps(loaded), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
"""A process that has nothing of ours, and a fork of it for each module."""


class Fresh:
    """Imports modules, each alone in a process of its own."""

    def __init__(self) -> None:
        self._processes: dict[tuple[str, ...], subprocess.Popen[str]] = {}
        self._found: dict[str, list[str] | str] = {}

    def __call__(self, module: str) -> list[str] | str:
        """Top-level modules present after importing one; a message when that fails."""
        if module not in self._found:
            process = self._process(module)
            assert process.stdin
            assert process.stdout
            print(module, file=process.stdin, flush=True)
            self._found[module] = json.loads(process.stdout.readline())
        return self._found[module]

    def _process(self, module: str) -> subprocess.Popen[str]:
        """What every fork would import again is there already: the words, and slow libraries where they may be."""
        room = room_of(module)
        theirs = [library for library, rooms in ONLY_IN.items() if rooms == (room,) and library not in ONLY_BELOW]
        theirs += [library for library, folder in ONLY_BELOW.items() if module.startswith(folder)]
        words = ["ctxscope.model"] if "model" in ROOMS[room] else []
        already = ("asyncio", "dataclasses", "sqlite3", "typing", *words, *theirs)
        if already not in self._processes:
            command = [sys.executable, "-c", FORKING, *already]
            pipe = subprocess.PIPE
            self._processes[already] = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT)
        return self._processes[already]

    def close(self) -> None:
        for process in self._processes.values():
            process.communicate()


@pytest.fixture(scope="module")
def fresh():
    it = Fresh()
    yield it
    it.close()


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports(file: Path) -> set[str]:
    """Every module a file imports anywhere, functions included."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: a relative import"
            assert node.module
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inside if node.module == "ctxscope" else {node.module}
    return found


@pytest.mark.parametrize("file", files(), ids=name_of)
def test_a_file_imports_only_the_rooms_it_may(file):
    room = room_of(name_of(file))
    ours = {room_of(module) for module in imports(file) if module.split(".")[0] == "ctxscope"}
    assert ours - {room, "__version__"} <= ROOMS[room]


@pytest.mark.parametrize("file", files(), ids=name_of)
def test_a_library_with_a_room_of_its_own_stays_there(file):
    room = room_of(name_of(file))
    tops = {module.split(".")[0] for module in imports(file)}
    assert not {library for library, rooms in ONLY_IN.items() if library in tops and room not in rooms}
    elsewhere = {library for library, folder in ONLY_BELOW.items() if not name_of(file).startswith(folder)}
    assert not tops & elsewhere


@pytest.mark.parametrize("module", [name_of(file) for file in files() if file.name != "__main__.py"])
def test_a_module_imported_alone_works_and_brings_nothing_foreign(module, fresh):
    found = fresh(module)
    assert isinstance(found, list), found
    assert not {library for library, rooms in ONLY_IN.items() if library in found and room_of(module) not in rooms}


@pytest.mark.parametrize("module", LIGHT)
def test_what_runs_before_the_work_loads_nothing_heavy(module, fresh):
    assert not HEAVY & set(fresh(module))


def test_the_first_screen_waits_for_none_of_the_words():
    """They take as long to load as a third of what a start may cost, and nothing is read before that screen."""
    first = ("cli.main", "cli.open", "cli.demo", "cli.target", "tui.app", "tui.screens.opening", "tui.screens.picker")
    script = f"import sys, {', '.join('ctxscope.' + name for name in first)}; print('ctxscope.model' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert told.stdout.strip() == "False"


def test_a_file_is_short_enough_to_be_read_at_once():
    lengths = {
        str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines())
        for file in (*files(), *(ROOT / "tests").rglob("*.py"))
    }
    assert {name: n for name, n in lengths.items() if n > MOST_LINES and name != ONE_VOCABULARY} == {}
