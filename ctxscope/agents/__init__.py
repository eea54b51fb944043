"""One folder per agent: its log into entries, entries into the requests they imply, and how it is launched.

A folder with ``__init__.py`` (or a module) reads an agent's log and has the face ``Agent``; its ``launch.py``, which may
stand there without the rest, points the agent at a recording proxy and has the face ``Launcher``. Both register
themselves by being there. Listing them imports nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, cast, overload

from ctxscope.model import (
    ApiName,
    Block,
    Body,
    CallKind,
    Compacted,
    Config,
    Difference,
    Endpoint,
    Entry,
    Estimate,
    Learnable,
    Learned,
    Marker,
    Named,
    Override,
    Point,
    Rebuilt,
    Record,
    Reply,
    Resume,
    SessionRef,
    Sidecar,
    SourceSpec,
    Start,
    Window,
)


@dataclass(eq=False, repr=False)
class Log:
    """A session's entries in the order observed, with room for what an agent derives from them.

    ``memo`` only speeds things up: everything in it is a function of ``entries`` (or of a single entry), so that the
    same entries give the same answers whatever was asked before.
    """

    ref: SessionRef
    entries: list[Entry] = field(default_factory=list)
    """The current version of each entry, in order of first appearance."""
    versions: list[Entry] = field(default_factory=list)
    """Every version seen of every entry, in the order observed."""
    memo: dict[Any, Any] = field(default_factory=dict)
    index: dict[str, int] = field(default_factory=dict)
    """Position in ``entries`` by entry key."""
    _several: dict[str, list[Entry]] = field(default_factory=dict)
    """By key, the versions of entries that had more than one."""
    rewrites: int = 0
    """Counts entries that came again in another version: what was judged from the earlier one may no longer hold."""

    def add(self, entry: Entry) -> None:
        """Fold one observed version in."""
        self.versions.append(entry)
        if entry.key in self.index:
            at = self.index[entry.key]
            self._several.setdefault(entry.key, [self.entries[at]]).append(entry)
            self.rewrites += 1
            self.entries[at] = entry
        else:
            at = len(self.entries)
            self.index[entry.key] = entry.seq if entry.seq == at else at  # one number object where both say the same
            self.entries.append(entry)
        self.memo.pop("points", None)

    def history(self, key: str) -> Sequence[Entry]:
        """Every version seen of an entry, oldest first; one of kind ``gone`` says it left the log."""
        if key in self._several:
            return self._several[key]
        at = self.index.get(key)
        return () if at is None else (self.entries[at],)

    def as_of(self, key: str, seq: int | None) -> Entry | None:
        """The version of an entry in force right before observation ``seq``, the earliest when all came later.

        ``None`` for ``seq`` asks for the newest.
        """
        versions = [e for e in self.history(key) if e.kind != "gone"]
        if not versions:
            return None
        if seq is None:
            return versions[-1]
        earlier = [e for e in versions if e.seq < seq]
        return earlier[-1] if earlier else versions[0]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Before(Sequence[tuple[Point, Body]]):
    """The joined calls of a session before one of them; a body is loaded only where an agent looks at it."""

    calls: Sequence[tuple[Point, str]]
    """Each call's point and the hash of its body; may go on beyond ``upto``."""
    upto: int
    load: Callable[[int], Body]
    chain: int = 0
    """Stands for which bodies these are and at which points, and what came back."""
    reply: Callable[[int], Reply | None] = lambda _: None
    """What came back for each call; ``None`` where that was not recorded. Costs nothing."""

    def __len__(self) -> int:
        return self.upto

    @overload
    def __getitem__(self, index: int) -> tuple[Point, Body]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[Point, Body]]: ...
    def __getitem__(self, index: int | slice) -> tuple[Point, Body] | Sequence[tuple[Point, Body]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.upto))]
        if not -self.upto <= index < self.upto:
            raise IndexError(index)
        return self.calls[index % self.upto][0], self.load(index % self.upto)

    def __iter__(self) -> Iterator[tuple[Point, Body]]:
        return (self[i] for i in range(len(self)))

    @property
    def told(self) -> Sequence[tuple[Point, str]]:
        """Point and hash of each call; loads nothing."""
        return self.calls[: self.upto]


def at_hand(pairs: Sequence[tuple[Point, Body]] = ()) -> Before:
    """Calls whose bodies are at hand."""
    return Before([(point, body.sha256) for point, body in pairs], len(pairs), lambda i: pairs[i][1])


class Agent(Protocol):
    """What a module of this package offers; what it may leave out stands in ``reading/plain.py``."""

    name: str
    """Identifier: the module's name."""
    title: str
    """What people call it."""
    learnable: tuple[Learnable, ...]
    """All that its log does not hold, by JSON path, with the reason. Only this may be learned or echoed."""

    always: Mapping[ApiName, tuple[str, ...]]
    """Top-level keys that every request carries, by API: one that lacks them is not what the log implies."""
    rereads: bool
    """Its index keeps nothing of what a line says, so that lines of a long log are read again instead of kept."""

    def discover(self, home: Path) -> Iterable[SessionRef]:
        """Sessions in the agent's own layout below ``home``; reads as little as it takes to name them."""

    def claims(self, path: Path, head: bytes) -> float:
        """How sure, from 0 to 1, that the file whose first 64 KB are ``head`` is a log of this agent."""

    def refs(self, path: Path, home: Path) -> Iterable[SessionRef]:
        """The sessions in one claimed file; raises ``CtxscopeError`` when it cannot be read as this agent's log."""

    def container(self, ref: SessionRef) -> SourceSpec:
        """For a reference whose ``id`` is empty (one file, many sessions): the source that lists its sessions."""

    def members(self, ref: SessionRef, records: Iterable[Record]) -> Iterable[SessionRef]:
        """The sessions that the records of ``container`` name."""

    def sources(self, ref: SessionRef) -> tuple[SourceSpec, ...]:
        """The files and tables that make the session, side files included.

        Asked again and again: files that appeared since (a subagent's, a rotation) are further sources, whose ``log``
        goes on behind ``ref.paths``.
        """

    def entries(self, record: Record) -> Iterable[Entry]:
        """A record as entries; what is not understood becomes kind ``unknown``. Never raises."""

    def index(self, log: Log) -> None:
        """Take of new entries what other questions need of their content; asked while it is at hand, if ``rereads``."""

    def config(self, log: Log) -> Config:
        """Window, thresholds and limits as the agent's own files say."""

    def window(self, log: Log, point: Point, config: Config) -> Window:
        """Window and threshold that hold for one call: those of its model where the agent knows several."""

    def due(self, log: Log, config: Config, window: int) -> int | None:
        """Tokens at which the agent compacts in a window that the user names; ``None``: it has no rule that is known."""

    def requests(self, log: Log) -> Sequence[Point]:
        """Points where a model call must have happened, in order; the last may still wait for its answer."""

    def endpoint(self, log: Log, point: Point) -> Endpoint:
        """API, provider and model of a call as far as the log tells them, whatever was served."""

    def basis(self, log: Log, point: Point) -> Hashable:
        """What beside the point itself and the config ``learn`` and ``rebuild`` look at; while it stays equal, so do they."""

    def family(self, ref: SessionRef) -> Iterable[SessionRef]:
        """Other sessions that continue this one or that it continues, and sessions of its subagents, each with ``parent``.

        Found by names and first lines; they are opened with it.
        """

    def named(self, headers: Mapping[str, str], body: Body) -> Named:
        """The session a request names in a header or parameter, and ids in it that points have; looks at little of it."""

    def classify(self, body: Body) -> CallKind | None:
        """Kind of a served request by its fixed texts: side, compaction, probe; ``main`` when surely main; else ``None``."""

    def learn(self, log: Log, point: Point, body: Body, before: Before) -> Learned:
        """Values at learnable paths and hypotheses for one call, from its own body and the earlier joined calls."""

    def rebuild(self, log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:
        """The request the log implies at ``point``; ``None`` when this agent cannot say for this API."""

    def explain(self, log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
        """Why served and rebuilt part there, when the agent is known for it; else ``None``.

        ``learned`` is what the request was rebuilt with: a value an earlier call taught is told with that call's place.
        """

    def received(self, block: Block) -> Block:
        """A block of an answer as the agent takes it in, and sends it again, where it gives it another form (a name's prefix)."""

    def remarks(self, log: Log, point: Point, before: Before, learned: Learned) -> Sequence[str]:
        """What its own rules say of a call, a sentence each; arguments as for ``learn`` and ``rebuild``."""

    def error_line(self, log: Log, point: Point) -> str | None:
        """What the agent itself wrote of why no answer came, or none that stands; text of a log. ``None``: it wrote nothing."""

    def markers(self, log: Log) -> Sequence[Marker]:
        """Events that rewrote or restored history, in order."""

    def compactions(self, log: Log) -> Sequence[Compacted]:
        """What it tells of its markers that shortened the history beyond the marker itself; those left out tell no more."""

    def resume(self, log: Log, before: Before) -> Resume | None:
        """What a process started now would add to the log up to its next input, and what it does otherwise.

        ``before``: all joined calls. ``None``: its form after a restart is not known.
        """

    def estimates(self, log: Log, point: Point) -> tuple[Estimate, ...]:
        """What the agent's own estimators make of the context at ``point``.

        By the rule of the version that wrote the log first, then by the other known ones; empty when that first one is
        not reproduced.
        """

    def naive(self, log: Log, point: Point) -> int | None:
        """ceil(characters / 4) of the stored messages as the log serialises them, every field."""

    def sidecars(self, log: Log, point: Point) -> Sequence[Sidecar]:
        """What is stored beside messages of the context to be sent instead of them (``api_content``), in their order.

        What its rule ignores too, but not what is absent. An entry has the same object in every call.
        """

    def spoken(self, log: Log, entry: Entry) -> tuple[str, Iterator[str]]:
        """Who speaks in an entry of the conversation, and what a person reads there, in order.

        Texts, and ``→ name`` and arguments of tool calls, each made when it is asked for: a list shows only how a message
        begins. What other entries say of the same message is told with it.
        """

    def notices(self, log: Log) -> Sequence[str]:
        """What the agent's own files say went wrong, and what could not be read."""


class Launcher(Protocol):
    """What an agent's ``launch.py`` offers."""

    TITLE: str
    """What people call the agent."""
    COMMANDS: tuple[str, ...]
    """Names of its executables."""
    TESTED: tuple[str, ...]
    """Versions that were really run through the proxy; empty: untested."""
    FORWARD: Mapping[str, str]
    """Variables beside HTTPS_PROXY that make it trust the forward proxy's certificates: ``{ca}`` stands for the file of
    that authority alone, ``{bundle}`` for one with the system's too; ``{proxy}`` for the proxy's own URL, where it is
    asked for under another name. Empty: it cannot be recorded that way."""

    def launch(self, start: Start, through: Callable[[str], str]) -> Override:
        """How to start it so that its calls pass the proxy.

        ``through`` gives, for a base URL the agent would really use, the one that leads there by way of the proxy.
        Settings of the agent's that cannot be read count as none.
        """


@lru_cache
def names() -> tuple[str, ...]:
    """Module names of all agents, sorted; imports none of them."""
    here = Path(__file__).parent
    files = {p.stem for p in here.glob("*.py") if p.stem != "__init__"}
    folders = {p.parent.name for p in here.glob("*/__init__.py")}
    return tuple(sorted(files | folders))


@lru_cache
def load(name: str) -> Agent:
    """One agent by name; ``KeyError`` when there is none."""
    if name not in names():
        raise KeyError(name)
    module = importlib.import_module(f"{__name__}.{name}")
    plain = importlib.import_module(f"{__name__}.reading.plain")
    for face in (*vars(Agent), *Agent.__annotations__):
        if not hasattr(module, face) and hasattr(plain, face):
            setattr(module, face, getattr(plain, face))
    return cast("Agent", module)


@lru_cache
def launchers() -> tuple[str, ...]:
    """Names of all agents that can be launched, sorted; imports none of them."""
    return tuple(sorted(p.parent.name for p in Path(__file__).parent.glob("*/launch.py")))


@lru_cache
def launcher(name: str) -> Launcher:
    """How one agent is launched; ``KeyError`` when that is not known."""
    if name not in launchers():
        raise KeyError(name)
    return cast("Launcher", importlib.import_module(f"{__name__}.{name}.launch"))


def shared_memo(log: Log, key: str) -> dict[Any, Any]:
    """A dictionary of the log's memo that survives new entries; for values keyed by entry identity."""
    found: Mapping[Any, Any] | None = log.memo.get(key)
    if found is None:
        log.memo[key] = found = {}
    return cast("dict[Any, Any]", found)
