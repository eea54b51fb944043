"""Where the harness keeps its sessions: finding them, naming them, those that belong together (dsh.md §2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ctxscope.agents.dsh.lines import SESSION
from ctxscope.agents.dsh.texts import string, whole
from ctxscope.agents.reading.files import head as head_of
from ctxscope.model import CtxscopeError, SessionRef, SourceSpec
from ctxscope.wire import json_text

SURE = 0.95
_FILE = re.compile(r"session(?:\.v([0-9]{1,6}))?\.jsonl(?:\.zstd?)?")
"""A generation of a log: format 0 has no number, a log that is not compressed no last suffix."""
_NO_FOLDER = "_no-cwd"


def discover(home: Path) -> Iterator[SessionRef]:
    """Sessions under ``<home>/.dsh/sessions``, or under ``<home>/sessions`` where ``home`` is ``DSH_HOME`` itself.

    Of several generations of a log the newest one counts. Files that are not the harness's are passed over.
    """
    for root in (home / ".dsh" / "sessions", home / "sessions"):
        for folder in sorted(root.glob("*/*/")):
            if _is_group(folder.parent.name):
                yield from _in(folder, home)


def _is_group(name: str) -> bool:
    return name == _NO_FOLDER or (name.startswith("--") and name.endswith("--"))


def _in(folder: Path, home: Path) -> Iterator[SessionRef]:
    """The session of a folder: its newest generation that can be read."""
    for path in sorted(folder.glob("session*.jsonl*"), key=_generation, reverse=True):
        if _generation(path) >= 0:
            try:
                yield from refs(path, home)
            except CtxscopeError:
                continue
            return


def _generation(path: Path) -> int:
    found = _FILE.fullmatch(path.name)
    return -1 if found is None else int(found[1] or 0)


def claims(path: Path, head: bytes) -> float:  # noqa: ARG001 - the first line tells
    """How surely ``head`` begins a log of the harness: its first line is the header of its form."""
    return SURE if _header(head) is not None else 0.0


def refs(path: Path, home: Path) -> Iterator[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when its first line is not the harness's header."""
    try:
        head, stat = head_of(path), path.stat()
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read ({error.strerror}); a dsh session log was expected") from None
    header = _header(head)
    if header is None:
        found = "an empty file" if not head.strip() else "a first line that is not it"
        raise CtxscopeError(
            f'{path}: found {found}; a dsh log begins with {{"type":"session","version":…,"id":…,"createdAt":…}}'
        )
    yield SessionRef(
        agent="dsh",
        id=header["id"],
        paths=(path,),
        home=home,
        directory=string(header.get("cwd")) or None,
        updated=stat.st_mtime,
        size=stat.st_size,
        parent=string(header.get("parentSession")) or None,
        started=header["createdAt"] / 1000,
    )


def family(ref: SessionRef) -> Iterator[SessionRef]:
    """Sessions of the same working directory that a session goes on from, and those that go on from it."""
    folder = ref.paths[0].parent
    if not _is_group(folder.parent.name):
        return
    known = {r.id: r for f in sorted(folder.parent.glob("*/")) for r in _in(f, ref.home)}
    wanted, parent = set(), ref.parent
    while parent in known and parent not in wanted:
        wanted.add(parent)
        parent = known[parent].parent
    front = {ref.id}
    while front:
        front = {name for name, r in known.items() if r.parent in front and name not in wanted and name != ref.id}
        wanted |= front
    yield from (r for name, r in known.items() if name in wanted and name != ref.id)


def folder_of(session: str, beside: Path) -> Path:
    """Where the log of a session of the same working directory lies (dsh.md §2: other UTF-16 units as ``~XXXX``)."""
    units = session.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[i : i + 2]) for i in range(0, len(units), 2))
    name = "".join(chr(c) if _PLAIN.fullmatch(chr(c)) else f"~{c:04X}" for c in codes)
    return beside.parent.parent / name


_PLAIN = re.compile("[A-Za-z0-9._-]")


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The log: everything the harness durably knows stands in it."""
    return (SourceSpec(SESSION, ref.paths[0], "jsonl"),)


def _header(head: bytes) -> Mapping[str, Any] | None:
    try:
        data = json_text.loads(head.partition(b"\n")[0])
    except ValueError:
        return None
    if not isinstance(data, dict) or data.get("type") != SESSION or not string(data.get("id")):
        return None
    stamps = whole(data.get("version")), whole(data.get("createdAt"))
    return None if None in stamps or abs(stamps[1] or 0) > _LATEST else data


_LATEST = 8_640_000_000_000_000
"""The last moment a JavaScript date can be, in milliseconds."""
