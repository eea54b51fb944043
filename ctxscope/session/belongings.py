"""What belongs to an agent or a recording, where nothing of ours is ever written (DESIGN law 4)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ctxscope import agents, capture
from ctxscope.model import CtxscopeError, Snapshot
from ctxscope.session.finding import SURE, head_of

_DATABASE_SIDES = ("-wal", "-shm", "-journal")


def refuse(paths: Iterable[Path], snapshot: Snapshot, *opened: Path) -> None:
    """Raise ``CtxscopeError`` when one of ``paths``, to be written, belongs to an agent or to a recording.

    That is: anything in the folder an agent keeps in a home, anything in a recording, the logs that are open (and
    ``opened``) with the files SQLite puts beside them, and any file that an agent claims as its log, wherever it lies.
    Links lead to what they name.
    """
    for path in paths:
        try:
            owner = _owner(path.expanduser(), snapshot, opened)
        except (OSError, RuntimeError, ValueError) as error:
            raise CtxscopeError(f"{path}: cannot be written: {error}") from error
        if owner:
            raise CtxscopeError(f"{path}: {owner}; expected another file to write to")


def _owner(path: Path, snapshot: Snapshot, opened: Sequence[Path]) -> str | None:
    target = path.resolve()
    logs = [*opened, *(Path(log) for session in snapshot.sessions for log in session.log)]
    beside = [log.with_name(log.name + side) for log in logs for side in _DATABASE_SIDES]
    if any(_same(target, file) for file in (*logs, *beside)):
        return "is what the report is about"
    folders = [Path(name) for name in snapshot.recordings]
    if any(map(capture.is_recording, (target, target.parent))) or any(
        _inside(target, f) or _linked(target, f) for f in folders
    ):
        return "belongs to a recording"
    for root, title in {*_roots(path), *(found for log in logs for found in _roots(log))}:
        if _inside(target, root):
            return f"belongs to {title}, which keeps its own files in {root}"
    return _claimed(target)


def _roots(path: Path) -> Iterator[tuple[Path, str]]:
    """The folders that agents keep in the homes a path lies in, with the agent's title."""
    for home in dict.fromkeys((*Path(os.path.abspath(path)).parents, *path.resolve().parents)):  # noqa: PTH100 - links stay
        for name in agents.names():
            agent = agents.load(name)
            first = next(iter(agent.discover(home)), None)
            if first is not None:
                yield home / first.paths[0].relative_to(home).parts[0], agent.title


def _inside(target: Path, folder: Path) -> bool:
    return any(_same(place, folder) for place in (target, *target.parents))


def _same(one: Path, two: Path) -> bool:
    """Whether two names lead to one file, also where case or links make them look different."""
    try:
        return one.samefile(two)
    except OSError:
        return one == two.resolve()


def _linked(target: Path, folder: Path) -> bool:
    """Whether a file is another name of one that lies in a folder."""
    if not target.is_file() or target.stat().st_nlink == 1 or not folder.is_dir():
        return False
    return any(file.is_file() and target.samefile(file) for file in folder.iterdir())


def _claimed(target: Path) -> str | None:
    if not target.is_file():
        return None
    head = head_of(target)
    titles = (agents.load(name) for name in agents.names())
    return next((f"is a session of {a.title}" for a in titles if a.claims(target, head) >= SURE), None)
