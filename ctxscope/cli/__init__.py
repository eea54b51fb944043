"""The command line: one module per verb.

A module of this package that is not in ``NOT_VERBS`` is a verb; it registers itself by being there and has the face
``Verb``. A verb that is a word of Python's own has an underscore behind its module's name. Listing verbs, their
summaries included, imports none of them.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import keyword
from functools import lru_cache
from pathlib import Path
from typing import Protocol, cast

NOT_VERBS = frozenset(
    {"__init__", "main", "diagnostics", "output", "target", "source", "table"}
    | {"foreground", "overlay", "run_words", "settling"}
)
DEFAULT_VERB = "open"


class Verb(Protocol):
    """What a verb's module offers; the first line of its docstring is its summary."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare options and positionals."""

    def run(self, args: argparse.Namespace) -> int:
        """Do the work and return the exit code; raises ``CtxscopeError`` for bad input."""


@lru_cache
def names() -> tuple[str, ...]:
    """All verbs, sorted; imports none of them."""
    return tuple(sorted(p.stem.rstrip("_") for p in Path(__file__).parent.glob("*.py") if p.stem not in NOT_VERBS))


def summary(name: str) -> str:
    """What a verb does, in one line, read from its file without running it."""
    module = ast.parse((Path(__file__).parent / f"{_module(name)}.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(module) or "").partition("\n")[0]


def load(name: str) -> Verb:
    """One verb by name."""
    return cast("Verb", importlib.import_module(f"{__name__}.{_module(name)}"))


def _module(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name
