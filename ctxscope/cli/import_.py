"""Read captures of other tools into a recording.

Formats are told by content: mitmproxy flows, HAR, claude-trace, claude-tap, LiteLLM callbacks, raw folders, Hermes
request dumps. What a format does not keep is told and stays with the recording.
"""

from __future__ import annotations

import argparse
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from ctxscope import resources
from ctxscope.capture import SUFFIX, importers
from ctxscope.capture.importers.imported import Capture, Item
from ctxscope.cli.diagnostics import OK, narrate
from ctxscope.cli.table import size
from ctxscope.model import CtxscopeError, Fidelity, Snapshot

_FIDELITY: Mapping[Fidelity, str] = {"bytes": "as bytes", "parsed": "by value", "normalised": "in a form of its own"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare options and positionals."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a capture: a file, or a raw folder")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the recording there instead of the data folder")
    parser.add_argument("--format", choices=importers.names(), help="read every FILE as this, whatever it looks like")


def run(args: argparse.Namespace) -> int:
    """Read all, then write one recording in order of arrival."""
    files = [Path(name).expanduser() for name in args.files]
    named = None if args.output is None else Path(args.output).expanduser()
    if named is not None:
        _refuse(named, files)
    sources = [_read(path, args.format) for path in files]
    items = [item for source in sources for item in source.capture.items]
    if not items:
        raise CtxscopeError(f"{files[0]}: found no exchange that can be read, expected at least one")
    _write(named or _free_place(items), items, sources)
    return OK


@dataclass(frozen=True, slots=True)
class _Source:
    """One FILE, read."""

    name: str
    """Of its format."""
    capture: Capture


def _read(path: Path, name: str | None) -> _Source:
    """Read one file and say what was found. Raises ``CtxscopeError`` when it is in no format known."""
    importers.refuse_endless(path)
    name = name or importers.choose(path)
    importer = importers.load(name)
    try:
        capture = importer.read(path)
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read: {error.strerror}; expected {importer.title}") from error
    for problem in capture.problems:
        narrate(problem)
    narrate(f"{path}: {importer.title}: {_summary(capture.items)}")
    return _Source(name, capture)


def _summary(items: Sequence[Item]) -> str:
    """How many requests there are, how exact their bodies are, how many were answered."""
    kinds = Counter(item.fidelity for item in items)
    told = ", ".join(f"{kinds[kind]} {words}" for kind, words in _FIDELITY.items() if kinds[kind])
    answered = sum(item.answered for item in items)
    return f"{len(items)} requests ({told}), {answered} replies" if items else "no request"


def _refuse(out: Path, files: Sequence[Path]) -> None:
    """Raise ``CtxscopeError`` where something is already, or where it would lie among an agent's own files."""
    if out.exists() or out.is_symlink():
        raise CtxscopeError(f"{out}: exists; expected a new file to write to")
    from ctxscope.session.belongings import refuse  # noqa: PLC0415 - loads every agent

    refuse([out], Snapshot(0), *files)


def _free_place(items: Sequence[Item]) -> Path:
    """A new file in the data folder, named as those of ``ctxscope run`` are: when it began (UTC), and a few random digits."""
    began = datetime.fromtimestamp(min(item.time for item in items), UTC)
    names = (f"{began:%Y-%m-%dT%H-%M-%S}-import-{secrets.token_hex(2)}{SUFFIX}" for _ in count())
    return next(path for path in map(resources.recordings().joinpath, names) if not path.exists())


def _write(out: Path, items: Sequence[Item], sources: Sequence[_Source]) -> None:
    """Write the recording, whole or not at all."""
    from ctxscope.capture.events import Meta, Request  # noqa: PLC0415 - the parser must answer without them
    from ctxscope.capture.importers.ordering import events  # noqa: PLC0415
    from ctxscope.capture.writer import Writer  # noqa: PLC0415

    names = tuple(dict.fromkeys(source.name for source in sources))
    meta = Meta(
        time=min(item.time for item in items),
        upstreams=tuple(dict.fromkeys(item.upstream for item in items if item.upstream)),
        source=", ".join(names),
        notes=tuple(dict.fromkeys(note for name in names for note in importers.load(name).notes)),
    )
    requests = sent = 0
    try:
        with closing(Writer(out, meta)) as writer:
            for event in events(items):
                writer.write(event)
                if isinstance(event, Request):
                    requests, sent = requests + 1, sent + len(event.body)
    except BaseException as error:
        with suppress(OSError):
            out.unlink()
        if isinstance(error, OSError):
            message = f"{out}: cannot be written: {error.strerror}; expected room for it in a folder that exists"
            raise CtxscopeError(message) from error
        raise
    for note in meta.notes:
        narrate(note)
    narrate(f"wrote {out}: {requests} requests of {size(sent)} in {size(out.stat().st_size)}")
