"""What most agents have nothing special to say of: a module that leaves one of these out is given it by ``agents.load``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ctxscope.agents import Before, Log
from ctxscope.agents.reading.spoken import role_and_texts
from ctxscope.model import (
    ApiName,
    Block,
    Body,
    Compacted,
    Config,
    CtxscopeError,
    Difference,
    Entry,
    Estimate,
    Learned,
    Named,
    Point,
    Record,
    Resume,
    SessionRef,
    Sidecar,
    SourceSpec,
    Window,
)

rereads = False
always: Mapping[ApiName, tuple[str, ...]] = {
    "anthropic-messages": ("model", "messages"),
    "openai-chat": ("model", "messages"),
    "openai-responses": ("model", "input"),
    "gemini": ("contents",),
}


def index(log: Log) -> None:
    """Nothing: what an entry says is kept with it."""


def container(ref: SessionRef) -> SourceSpec:
    """Never asked for: the reference has an id, since its file holds one session."""
    raise CtxscopeError(f"{ref.paths[0]}: the file holds one session, found a request for a list of them")


def members(ref: SessionRef, records: Iterable[Record]) -> Iterable[SessionRef]:  # noqa: ARG001 - the face's signature
    """The session itself: its file holds no other."""
    return (ref,)


def window(log: Log, point: Point, config: Config) -> Window:  # noqa: ARG001 - the face's signature
    """That of its newest model: its log names no other."""
    return Window(config.window, config.window_by, config.threshold, config.threshold_by)


def due(log: Log, config: Config, window: int) -> int | None:  # noqa: ARG001 - the face's signature
    """Unknown: when it compacts is not described."""
    return None


def family(ref: SessionRef) -> Iterable[SessionRef]:  # noqa: ARG001 - the face's signature
    """None: no session of this agent's continues another."""
    return ()


def named(headers: Mapping[str, str], body: Body) -> Named:  # noqa: ARG001 - the face's signature
    """Nothing: its requests do not say which session they belong to."""
    return Named()


def received(block: Block) -> Block:
    """As it came: the agent stores and sends again what it was given."""
    return block


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:  # noqa: ARG001
    """Nothing beyond what the bytes say."""
    return None


def remarks(log: Log, point: Point, before: Before, learned: Learned) -> Sequence[str]:  # noqa: ARG001
    """None."""
    return ()


def error_line(log: Log, point: Point) -> str | None:  # noqa: ARG001 - the face's signature
    """Nothing: its log does not tell why an answer is missing."""
    return None


def resume(log: Log, before: Before) -> Resume | None:  # noqa: ARG001 - the face's signature
    """Unknown: what it sends after a restart is not described."""
    return None


def compactions(log: Log) -> Sequence[Compacted]:  # noqa: ARG001 - the face's signature
    """Nothing beyond its markers."""
    return ()


def estimates(log: Log, point: Point) -> tuple[Estimate, ...]:  # noqa: ARG001 - the face's signature
    """Unknown: its estimator is not reproduced."""
    return ()


def sidecars(log: Log, point: Point) -> Sequence[Sidecar]:  # noqa: ARG001 - the face's signature
    """None: it stores nothing beside a message that is sent instead of it."""
    return ()


def spoken(log: Log, entry: Entry) -> tuple[str, Iterator[str]]:  # noqa: ARG001 - the face's signature
    """The message in its line, by the names most agents give what it holds."""
    return role_and_texts(entry)
