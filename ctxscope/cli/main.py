"""Entry point: picks the verb and imports only that one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ctxscope import __version__, cli
from ctxscope.cli.diagnostics import OK, guarded, writing

_USAGE = "ctxscope [VERB] [PATH | SESSION | . | last] [options]"
_ABOUT = "Debug LLM agent sessions byte for byte: what was served to the model beside what the log can rebuild."


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ctxscope`` with arguments (the process's own by default) and return its exit code."""
    return guarded(lambda: _dispatch(list(sys.argv[1:] if argv is None else argv)))


def _dispatch(words: list[str]) -> int:
    first = words[0] if words else ""
    if first in ("-h", "--help"):
        return _say(_help())
    if first == "--version":
        return _say(f"ctxscope {__version__}")
    named = first in cli.names()
    name = first if named else cli.DEFAULT_VERB
    parser = argparse.ArgumentParser(
        prog=f"ctxscope {name}" if named else "ctxscope",
        description=cli.summary(name),
        epilog=None if named else "ctxscope --help lists the verbs.",
        allow_abbrev=False,
    )
    verb = cli.load(name)
    verb.add_arguments(parser)
    return verb.run(parser.parse_args(words[1:] if named else words))


def _say(text: str) -> int:
    with writing() as out:
        print(text, file=out)
    return OK


def _help() -> str:
    width = max(len(name) for name in cli.names())
    verbs = "\n".join(f"  {name:<{width}}  {cli.summary(name)}" for name in cli.names())
    tail = f"Without a verb: {cli.DEFAULT_VERB}. ctxscope VERB --help shows a verb's options; --version the version."
    return f"usage: {_USAGE}\n\n{_ABOUT}\n\nverbs:\n{verbs}\n\n{tail}"
