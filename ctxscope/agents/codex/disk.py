"""Where Codex keeps its rollouts: finding them, naming them, what belongs to one (codex.md §2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from ctxscope.agents.codex import ancestors
from ctxscope.agents.codex.lines import CONFIG, SESSION, parsed, written
from ctxscope.agents.reading import files
from ctxscope.model import CtxscopeError, SessionRef, SourceSpec
from ctxscope.wire.blocks import mapped, string

FOLDERS = ("sessions", "archived_sessions")
SUFFIXES = (".jsonl", ".jsonl.zst")
SURE, BY_FORM = 0.95, 0.6
DAYS = 8
"""How many days' folders after a session's own are looked through for sessions that go on from it."""


def discover(home: Path) -> Iterator[SessionRef]:
    """Sessions under ``<home>/.codex``; a compressed rollout counts where the plain one is gone."""
    root = home / ".codex"
    found = [p for folder in FOLDERS for suffix in SUFFIXES for p in (root / folder).rglob(f"rollout-*{suffix}")]
    plain = {p for p in found if p.suffix == ".jsonl"}
    for path in sorted(p for p in found if p in plain or p.with_suffix("") not in plain):
        try:
            yield from refs(path, home)
        except CtxscopeError:
            continue


def claims(path: Path, head: bytes) -> float:
    """How surely ``head`` begins a rollout: its first line is the session's own record."""
    if not path.name.endswith(SUFFIXES):
        return 0.0
    first = head.partition(b"\n")[0]
    if _meta(first) is not None:
        return SURE
    if not first.startswith(b"{") or b'"session_meta"' not in first[:200]:
        return 0.0
    # the first line alone may be longer than what was read of the file
    return BY_FORM if b'"cli_version"' in first and b'"originator"' in first else 0.0


def refs(path: Path, home: Path) -> Iterator[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when its first line is not Codex's."""
    try:
        meta = first_record(path)
        stat = path.stat()
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read ({error.strerror}); a rollout of Codex was expected") from None
    if meta is None:
        raise CtxscopeError(
            f'{path}: found a first line that is no session record; a rollout begins with {{"type":"session_meta"…}}'
        )
    payload = mapped(meta.get("payload"))
    yield SessionRef(
        agent="codex",
        id=string(payload.get("id")),
        paths=(path,),
        home=home,
        directory=string(payload.get("cwd")) or None,
        updated=stat.st_mtime,
        size=stat.st_size,
        parent=parent_of(payload),
        started=written(meta),
    )


def parent_of(payload: Mapping[str, Any]) -> str | None:
    """The thread a session was forked from, or whose subagent it is."""
    spawned = mapped(mapped(mapped(payload.get("source")).get("subagent")).get("thread_spawn"))
    for name in (payload.get("forked_from_id"), spawned.get("parent_thread_id"), payload.get("parent_thread_id")):
        if isinstance(name, str) and name and name != payload.get("id"):
            return name
    return None


def first_record(path: Path) -> Mapping[str, Any] | None:
    """The first line of a file where it is a session's record. Raises ``OSError``."""
    head = files.head(path)
    first, newline, _ = head.partition(b"\n")
    if not newline and len(head) >= files.HEAD_BYTES and path.suffix == ".jsonl":
        # instructions, or tools offered by the surroundings, can make it longer than any head
        with path.open("rb") as file:
            first = file.readline()
    return _meta(first)


def _meta(line: bytes) -> Mapping[str, Any] | None:
    data = parsed(line)
    if data is None or data.get("type") != "session_meta":
        return None
    return data if string(mapped(data.get("payload")).get("id")) else None


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """Rollouts that its history begins in, the rollout, and config.toml of its Codex home where there is one."""
    found = list(_ancestors(ref))
    numbers = [number for number, _ in files.numbered(ref, (path for _, path in found))]
    return (
        *(
            SourceSpec(ancestors.source_of(name), path, "jsonl", number, optional=True)
            for (name, path), number in zip(found, numbers, strict=True)
        ),
        SourceSpec(SESSION, ref.paths[0], "jsonl"),
        SourceSpec(CONFIG, codex_home(ref) / "config.toml", "whole", optional=True, kept=False),
    )


def _ancestors(ref: SessionRef) -> Iterator[tuple[str, Path]]:
    """Nearest first. A first record never changes, so that each is read once."""
    try:
        first = mapped((_first(ref.paths[0]) or {}).get("payload"))
    except OSError:
        return
    home = codex_home(ref)
    yield from ancestors.chain(ref, first, [home / folder for folder in FOLDERS], _first)


_FIRST: dict[Path, Mapping[str, Any]] = {}


def _first(path: Path) -> Mapping[str, Any] | None:
    if path not in _FIRST and (found := first_record(path)) is not None:
        _FIRST[path] = {
            "payload": {k: v for k, v in mapped(found.get("payload")).items() if k in ("id", "history_base")}
        }
    return _FIRST.get(path)


def codex_home(ref: SessionRef) -> Path:
    """The folder that holds ``sessions``; the usual one where the file lies elsewhere."""
    folder = next((p for p in ref.paths[0].parents if p.name in FOLDERS), None)
    return folder.parent if folder is not None else ref.home / ".codex"


def family(ref: SessionRef) -> Iterator[SessionRef]:
    """The session this one goes on from, by name, and those that go on from it, by first lines.

    Subagents and forks are files of their own; they are looked for from the session's day on for some days.
    """
    path = ref.paths[0]
    folder = next((p for p in path.parents if p.name in FOLDERS), path.parent)
    seen = {path}
    if ref.parent and ancestors.is_name(ref.parent):
        for found in _rollouts(folder, f"rollout-*{ref.parent}", deep=True):
            seen.add(found)
            yield from _ref(found, ref)
    for day in _days(path, folder):
        for found in _rollouts(day, "rollout-*", deep=False):
            if found in seen:
                continue
            yield from (other for other in _ref(found, ref) if other.parent == ref.id)


def _rollouts(folder: Path, pattern: str, *, deep: bool) -> list[Path]:
    look = folder.rglob if deep else folder.glob
    found = {p for suffix in SUFFIXES for p in look(pattern + suffix)}
    return sorted(p for p in found if p.suffix == ".jsonl" or p.with_suffix("") not in found)


def _ref(path: Path, ref: SessionRef) -> list[SessionRef]:
    try:
        return list(refs(path, ref.home))
    except CtxscopeError:
        return []


def _days(path: Path, folder: Path) -> Iterator[Path]:
    """The folder of a rollout's day and those of the days after it."""
    yield path.parent
    try:
        year, month, day = path.parent.relative_to(folder).parts
        first = date(int(year), int(month), int(day))
    except ValueError:
        return
    for more in range(1, DAYS):
        later = first + timedelta(days=more)
        yield folder / f"{later.year:04d}" / f"{later.month:02d}" / f"{later.day:02d}"
