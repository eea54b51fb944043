"""Where Claude Code keeps its transcripts: finding them, naming them, and the files a session consists of (§2).

A subagent's transcript is a source of the session that started it, never a session: beside the main file in 2.0, in a
folder named like it since 2.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ctxscope.agents.claude_code import kin
from ctxscope.agents.claude_code.dialect import KINDS
from ctxscope.agents.claude_code.lines import AGENT, META, SESSION, SETTINGS, parsed, written
from ctxscope.agents.claude_code.texts import mapped, string
from ctxscope.agents.reading.files import head, numbered
from ctxscope.model import CtxscopeError, SessionRef, SourceSpec

SURE, LIKELY = 0.95, 0.6
_CHAINED = ("user", "assistant", "system", "attachment", "progress")
_SIDE_KINDS = frozenset(KINDS) - {*_CHAINED, "started", "result", "mode", "tag"}
"""Kinds of lines beside the chain that no other agent is known to write."""
_MOST_LINES = 400
AGENT_FILES = "agent-*.jsonl"

_owners: dict[tuple[str, int], str] = {}
"""Session that a subagent's transcript names in its first line, by path and inode: that line never changes."""


def discover(home: Path) -> Iterator[SessionRef]:
    """Sessions under ``<home>/.claude/projects``; what is no transcript is passed over."""
    root = home / ".claude" / "projects"
    for path in sorted(root.glob("*/*.jsonl")):
        if not is_agent_file(path):
            try:
                yield from refs(path, home)
            except CtxscopeError:
                continue


def is_agent_file(path: Path) -> bool:
    """Whether a file's name is that of a subagent's transcript."""
    return path.match(AGENT_FILES)


def claims(path: Path, head: bytes) -> float:
    """How surely ``head`` begins a transcript: a line of the chain as only Claude Code writes it, or its side lines."""
    if path.suffix != ".jsonl":
        return 0.0
    sure = 0.0
    for data in _objects(head):
        if _is_chained(data):
            return SURE
        if string(data.get("type")) in _SIDE_KINDS and (
            string(data.get("sessionId")) or "leafUuid" in data or "messageId" in data
        ):
            sure = LIKELY
    return sure


def _is_chained(data: Mapping[str, Any]) -> bool:
    """A line of the chain; other agents that write such lines have no ``isSidechain``, and parts for content."""
    known = string(data.get("type")) in _CHAINED and isinstance(data.get("isSidechain"), bool)
    message = mapped(data.get("message"))
    return known and "uuid" in data and string(data.get("sessionId")) != "" and "parts" not in message


def refs(path: Path, home: Path) -> Iterator[SessionRef]:
    """The session in a file; raises ``CtxscopeError`` when none of its first lines is a transcript's."""
    try:
        first, stat = head(path), path.stat()
    except OSError as error:
        raise CtxscopeError(
            f"{path}: cannot be read ({error.strerror}); a Claude Code transcript was expected"
        ) from None
    lines = list(_objects(first))
    if claims(path, first) < LIKELY:
        found = "an empty file" if not first.strip() else "first lines that are not it"
        raise CtxscopeError(
            f"{path}: found {found}; a Claude Code transcript has lines with uuid, parentUuid, isSidechain"
        )
    chained = next((d for d in lines if _is_chained(d)), {})
    own = next((s for d in lines if (s := string(d.get("sessionId")))), path.stem)
    titles = [string(d.get("customTitle")) or string(d.get("aiTitle")) for d in lines]
    yield SessionRef(
        agent="claude_code",
        id=path.stem if kin.is_uuid(path.stem) or is_agent_file(path) else own,
        paths=(path,),
        home=home,
        directory=string(chained.get("cwd")) or None,
        updated=stat.st_mtime,
        size=stat.st_size,
        title=next((t for t in reversed(titles) if t), None),
        parent=kin.parent_of(path),
        started=next((t for d in lines if (t := written(d.get("timestamp"))) is not None), None),
    )


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The transcript, settings of the home, and for each subagent so far what is told of it and its transcript."""
    main, config = ref.paths[0], ref.home / ".claude"
    specs = [
        SourceSpec(SESSION, main, "jsonl"),
        SourceSpec(SETTINGS, config / "settings.json", "whole", optional=True, kept=False),
        SourceSpec(f"{SETTINGS}:local", config / "settings.local.json", "whole", optional=True, kept=False),
    ]
    for number, path in numbered(ref, agent_files(ref)):
        name = path.stem.removeprefix("agent-")
        facts = path.with_suffix(".meta.json")
        specs.append(SourceSpec(f"{META}:{name}", facts, "whole", number, optional=True))
        specs.append(SourceSpec(f"{AGENT}:{name}", path, "jsonl", number, optional=True))
    return tuple(specs)


def agent_files(ref: SessionRef) -> list[Path]:
    """Transcripts of a session's subagents, by name."""
    main = ref.paths[0]
    if is_agent_file(main):
        return []
    own = main.parent / main.stem / "subagents"
    found = [p for p in own.rglob(AGENT_FILES) if p.is_file()] if own.is_dir() else []
    found += [p for p in main.parent.glob(AGENT_FILES) if _owner(p) == ref.id]
    return sorted(found)


def _owner(path: Path) -> str | None:
    """The session a subagent's transcript names; ``None`` while its first line is not there."""
    try:
        name = (str(path), path.stat().st_ino)
        if name not in _owners:
            owner = next((s for d in _objects(head(path)) if (s := string(d.get("sessionId")))), None)
            if owner is None:
                return None
            _owners[name] = owner
    except OSError:
        return None
    return _owners[name]


def _objects(head: bytes) -> Iterable[Mapping[str, Any]]:
    """The objects in the first complete lines; one last line without its end counts if it is whole."""
    for line in head.split(b"\n")[:_MOST_LINES]:
        if line.strip():
            data = parsed(line)
            if data is not None:
                yield data
