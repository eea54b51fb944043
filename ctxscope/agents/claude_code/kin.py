"""Sessions that continue one another in files of their own: ``--continue`` of 1.0, ``--fork-session`` (§2, §3 rule 4).

Both copy the lines of the session they go on from. Files of a folder whose chains begin with the same line are kin; one
that holds the last line of another continues it. Of a compacted session a fork copies what is behind the last boundary
only (measured in 2.0.30, 2.1.112, 2.1.332): its chain begins with that boundary, which the other file holds further down.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ctxscope.agents.claude_code.lines import UUID_LENGTH, parsed, written
from ctxscope.agents.claude_code.texts import mapped, string
from ctxscope.agents.reading.files import head, racy
from ctxscope.model import SessionRef

_FIRST_BYTES, _LAST_BYTES = 8 * 1024, 256 * 1024
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

_NAMES = b'"requestSessionId":"'
_MOST_FOLDERS, _MOST_COPIES = 256, 65536

_folders: dict[Path, tuple[int, dict[str, list[Path]]]] = {}
_firsts: dict[tuple[str, int], tuple[str, bool]] = {}
"""Uuid of the line a file's chain begins with, and whether that is a compaction's; by path and inode."""
_copied: dict[tuple[str, str, int], bool] = {}
"""Whether a file (path, inode) holds the compaction that another begins with (uuid): it did so before the other was begun."""


def is_uuid(name: str) -> bool:
    """Whether a name has the form of a uuid."""
    return _UUID.fullmatch(name) is not None


def family(ref: SessionRef) -> Iterator[SessionRef]:
    """The other sessions of a file's kin, each with the one it continues."""
    from ctxscope.agents.claude_code import disk  # noqa: PLC0415 - naming a session asks for its kin, kin for names

    for path in _kin(ref.paths[0]):
        if path != ref.paths[0]:
            for found in disk.refs(path, ref.home):
                yield replace(found, parent=parent_of(path))


def parent_of(path: Path) -> str | None:
    """Id of the session a file's session continues; ``None`` where it continues none that can be found."""
    others = [p for p in _kin(path) if p != path]
    if not others or _is_first(path):
        return None
    origin = _origin(path, {p.stem for p in others})
    if origin is not None:
        return origin
    found = []
    for other in others:
        last, when = _last_line(other)
        copied = last and when is not None and _holds(path, last) and not _is_twin(path, other)
        if copied and when is not None and _origin(other, {path.stem}) is None:
            found.append((when, other.stem))
    firsts = [p.stem for p in others if _is_first(p)] if not found else []
    return max(found)[1] if found else firsts[0] if len(firsts) == 1 else None


def _is_first(path: Path) -> bool:
    """Whether a file was begun before the first line of its chain was written: that one was not copied (2.0 and later)."""
    began = None
    for line in _head(path):
        data = parsed(line) or {}
        when = written(data.get("timestamp"))
        if string(data.get("uuid")):
            return began is not None and when is not None and began <= when
        began = when if began is None else began
    return False


def _head(path: Path) -> list[bytes]:
    """The first lines of a file; none where it cannot be read."""
    try:
        return head(path).split(b"\n")[:-1]
    except OSError:
        return []


def _is_twin(path: Path, other: Path) -> bool:
    """Whether two files end in the same line, so that neither can be told to continue the other: names decide."""
    return _last_line(path)[0] == _last_line(other)[0] and path.stem < other.stem


def _kin(path: Path) -> list[Path]:
    first, _ = _first(path)
    return _folder(path.parent).get(first, []) if first else []


def _folder(folder: Path) -> dict[str, list[Path]]:
    """The files of a folder by the line their chains begin with, kin together; looked at again when files came or went."""
    try:
        changed = folder.stat().st_mtime_ns
    except OSError:
        return {}
    known = _folders.get(folder)
    if known is not None and known[0] == changed:
        return known[1]
    found: dict[str, list[Path]] = {}
    for path in sorted(p for p in folder.glob("*.jsonl") if not p.match("agent-*.jsonl")):
        found.setdefault(_first(path)[0], []).append(path)
    _join(found)
    if "" not in found and not racy(changed):  # one that has no line yet may have one at the next look
        if len(_folders) >= _MOST_FOLDERS:
            _folders.clear()
        _folders[folder] = (changed, found)
    return found


def _join(found: dict[str, list[Path]]) -> None:
    """Put files whose chains begin with a compaction among the kin of the file that holds it."""
    for first in [first for first, paths in found.items() if first and _first(paths[0])[1]]:
        own = found[first]
        for key in [key for key, paths in found.items() if key and paths is not own]:
            if any(_is_copied(first, path) for path in found[key]):
                own = sorted({*own, *found[key]})
                found |= dict.fromkeys((name for name, paths in found.items() if paths[0] in own), own)


def _is_copied(first: str, path: Path) -> bool:
    try:
        name = (first, str(path), path.stat().st_ino)
    except OSError:
        return False
    if name not in _copied:
        if len(_copied) >= _MOST_COPIES:
            _copied.clear()
        _copied[name] = _holds(path, first)
    return _copied[name]


def _first(path: Path) -> tuple[str, bool]:
    """See ``_firsts``; an empty uuid while there is no line."""
    try:
        name = (str(path), path.stat().st_ino)
        if name in _firsts:
            return _firsts[name]
        with path.open("rb") as file:
            found = _first_line(file.read(_FIRST_BYTES)) or _first_line(head(path))
    except OSError:
        return "", False
    if found is not None and is_uuid(found[0]):
        _firsts[name] = found
        return found
    return "", False


def _first_line(data: bytes) -> tuple[str, bool] | None:
    for line in data.split(b"\n")[:-1]:
        fields = (parsed(line) if b'"uuid"' in line else None) or {}
        if found := string(fields.get("uuid")):
            return found, fields.get("subtype") == "compact_boundary"
    return None


def _last_line(path: Path) -> tuple[str, float | None]:
    """Uuid and time of the last prompt, result or answer."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(0, end - _LAST_BYTES))
            lines = file.read().split(b"\n")
    except OSError:
        return "", None
    for line in reversed(lines):
        data = parsed(line) if b'"message"' in line else None
        if data is not None and data.get("type") in ("user", "assistant") and is_uuid(string(data.get("uuid"))):
            return string(data["uuid"]), written(data.get("timestamp"))
    return "", None


def _holds(path: Path, uuid: str) -> bool:
    """Whether a line of a file has this uuid, or names it as the end of a conversation: 1.0 copies some under others."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return any(data.find(b'"%s":"%s"' % (name, uuid.encode())) >= 0 for name in (b"uuid", b"leafUuid"))
    except (OSError, ValueError):
        return False


def _origin(path: Path, ids: set[str]) -> str | None:
    """The session that copied lines name as their origin; of several the last, which was forked itself (2.1.332)."""
    return _named_last(path, ids) or _forked_from(path, ids)


def _named_last(path: Path, ids: set[str]) -> str | None:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = data.rfind(_NAMES)
            while at >= 0:
                found = data[at + len(_NAMES) : at + len(_NAMES) + UUID_LENGTH].decode("ascii", "replace")
                if found in ids:
                    return found
                at = data.rfind(_NAMES, 0, at)
    except (OSError, ValueError):
        pass
    return None


def _forked_from(path: Path, ids: set[str]) -> str | None:
    for line in _head(path):
        if b'"forkedFrom"' in line:
            origin = string(mapped((parsed(line) or {}).get("forkedFrom")).get("sessionId"))
            if origin in ids:
                return origin
    return None
