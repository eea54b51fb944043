"""Which agent a command starts, and how it is started so that its calls pass a recording proxy."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePath

from ctxscope import agents
from ctxscope.agents.launching.command import without_secrets
from ctxscope.model import CtxscopeError, Override, Start

FALLBACK = "any"
"""The launcher of a command that no agent claims."""

_RUNNERS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "npx": ((),),
    "bunx": ((),),
    "pnpx": ((),),
    "uvx": ((),),
    "nohup": ((),),
    "npm": (("exec",), ("x",)),
    "pnpm": (("exec",), ("dlx",)),
    "yarn": (("exec",), ("dlx",)),
    "bun": (("x",), ("run",), ()),
    "uv": (("tool", "run"), ("run",)),
    "pipx": (("run",),),
    "poetry": (("run",),),
    "node": ((),),
    "deno": (("run",), ()),
}
"""Programs that run another one, and the words of theirs that may stand before it."""
_PYTHON = re.compile(r"(?:python|pypy)\d*(?:\.\d+)*")
_WITH_VALUE = frozenset({"-p", "--package", "--from", "--with", "--python", "-r", "--require", "--import", "-W", "-X"})
"""Options of those that take the next word."""
_PROGRAM_TEXT = frozenset({"-c", "-e", "--eval", "--print"})
"""Options of an interpreter that give it a program in words."""
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_SUFFIXES = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".exe", ".cmd"})


@dataclass(frozen=True, slots=True)
class Launch:
    """A command as it is to be started."""

    agent: str
    title: str
    tested: tuple[str, ...]
    forward: Mapping[str, str]
    override: Override
    plain: tuple[str, ...]
    """The command as it is without the override."""
    assigned: Mapping[str, str]
    """What a leading ``env``, which is not part of either command, was to set."""


def launch(start: Start, named: str | None, through: Callable[[str], str]) -> Launch:
    """Ask the agent's launcher, that of ``named`` where it is given, how to start it.

    Raises ``CtxscopeError`` for a name that no launcher has, and what the launcher raises.
    """
    if named is not None and named not in agents.launchers():
        known = ", ".join(agents.launchers())
        raise CtxscopeError(f"{named}: no agent that can be started; expected one of {known}")
    assigned, argv = _assignments(start.argv)
    agent, at = find(argv, named)
    launcher = agents.launcher(agent)
    given = replace(start, argv=argv[at:], env={**start.env, **assigned})
    override = launcher.launch(given, through)
    override = replace(
        override,
        argv=(*argv[:at], *override.argv),
        env={**assigned, **override.env},
        how=tuple(map(without_secrets, override.how)),
        changes=tuple(map(without_secrets, override.changes)),
        by_hand=without_secrets(override.by_hand),
    )
    return Launch(agent, launcher.TITLE, launcher.TESTED, launcher.FORWARD, override, argv, assigned)


def find(argv: Sequence[str], named: str | None = None) -> tuple[str, int]:
    """The agent that a command starts, and which of its words that is; those after it are the agent's own.

    Looks behind runners (``npx``, ``uv run``, ``python -m``, ``node``) where what they run is plain to see.
    """
    known = commands()
    at = 0
    for at, shown in _programs(argv):
        names = [name for name in shown if name in known]
        if names and named in (None, known[names[0]]):
            return known[names[0]], at
    return (named, at) if named else (FALLBACK, 0)


@lru_cache
def commands() -> Mapping[str, str]:
    """Agent by the name of its executable, read from the launchers' files without running them."""
    found: dict[str, str] = {}
    for agent in agents.launchers():
        file = Path(agents.__file__).parent / agent / "launch.py"
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if (
                isinstance(target, ast.Name)
                and target.id == "COMMANDS"
                and isinstance(node, ast.Assign | ast.AnnAssign)
            ):
                found |= dict.fromkeys(ast.literal_eval(node.value or ast.Tuple([])), agent)
    return found


def _assignments(argv: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What a leading ``env`` sets, and the command behind it; the command as it is where that ``env`` does more."""
    assigned: dict[str, str] = {}
    if argv and _name(argv[0]) == "env":
        for at, word in enumerate(argv[1:], 1):
            if not (found := _ASSIGNMENT.fullmatch(word)):
                return (assigned, argv[at:]) if not word.startswith("-") else ({}, argv)
            assigned[found[1]] = found[2]
    return {}, argv


def _programs(argv: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Each word that names a program, from the outside in, with the names it may be known by."""
    at = 0
    while at < len(argv):
        runner = _name(argv[at])
        yield at, [runner]
        python = _PYTHON.fullmatch(runner) is not None
        if not python and runner not in _RUNNERS:
            return
        inner = _run_by(argv, at + 1, ((),) if python else _RUNNERS[runner])
        if inner is None:
            return
        if argv[inner - 1] == "-m" and python:
            yield inner, [argv[inner], argv[inner].partition(".")[0]]
            return
        yield inner, _names(argv[inner])
        at = inner


def _run_by(argv: Sequence[str], at: int, prefixes: Sequence[tuple[str, ...]]) -> int | None:
    """Which word a runner whose own begin at ``at`` runs; ``None`` where that is not plain."""
    prefix = next((p for p in prefixes if tuple(argv[at : at + len(p)]) == p), None)
    if prefix is None:
        return None
    at += len(prefix)
    while at < len(argv) and argv[at].startswith("-"):
        if argv[at] in _PROGRAM_TEXT:
            return None
        if argv[at] in ("-m", "--"):
            at += 1
            break
        at += 2 if argv[at] in _WITH_VALUE else 1
    return at if at < len(argv) else None


def _names(word: str) -> list[str]:
    """What a program may be known by: its package's name, which may have a scope, its own, its package's without scope."""
    package = word[:1] + word[1:].partition("@")[0]
    inside = PurePath(word).as_posix().rpartition("/node_modules/")[2].split("/") if "/node_modules/" in word else []
    return [package, "/".join(inside[:2]), _name(word), _name(package), *inside[:2]]


def _name(word: str) -> str:
    path = PurePath(word)
    return path.stem if path.suffix.lower() in _SUFFIXES else path.name
