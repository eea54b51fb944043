"""Points where a model call must have happened: one for each assistant row said in its generation (hermes.md §7.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes.generations import Generation, generations_of, rows_of
from ctxscope.agents.hermes.log import is_old, newest, prompt_of
from ctxscope.agents.hermes.rows import Row
from ctxscope.agents.hermes.stored import answer_blocks, stop_of
from ctxscope.model import CallKind, Entry, Point

_ENTRY = attrgetter("entry")


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """All that follows from a log's entries as they stand; made anew when one is added."""

    generations: tuple[Generation, ...]
    points: tuple[Point, ...]
    turns: tuple[Row, ...]
    """User rows that start a turn, in order, those of the continued session first."""
    carried: frozenset[int]
    """Ids of carried rows."""
    old: bool
    """0.19 wrote the log."""


def reading_of(log: Log) -> Reading:
    """The log read as generations and points."""
    found = log.memo.get("points")
    if isinstance(found, Reading):
        return found
    rows = rows_of(log)
    generations = generations_of(log, rows)
    carried = frozenset(r.id for g in generations for r in g.rows[: g.carried])
    turns = tuple(r for r in rows if r.starts_turn and r.id not in carried)
    reading = Reading(tuple(generations), tuple(_Walk(log).points(generations)), turns, carried, is_old(log))
    log.memo["points"] = reading
    return reading


class _Walk:
    """One pass over the generations, counting turns."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._turn = 0
        self._start: Row | None = None
        self._kind: CallKind = "subagent" if _delegated(log) else "main"
        self._made = shared_memo(log, "hermes.points")
        self._out: list[Point] = []

    def points(self, generations: Sequence[Generation]) -> list[Point]:
        own = False
        for number, generation in enumerate(generations):
            if not own and not generation.rows[0].parent:
                own, self._turn = True, 0  # a turn that began in the continued session is this one's first
            self._generation(number, generation)
        return self._out

    def _generation(self, number: int, generation: Generation) -> None:
        context: list[Row] = []
        taken_back = False
        branch: str | None = None
        for i, row in enumerate(generation.rows):
            if taken_back and not row.taken_back:
                branch = self._branch(context)
                context = [r for r in context if not r.taken_back]
            elif row.taken_back:
                context = [r for r in context if not self._left_before(r, row)]
            taken_back = row.taken_back
            said = i >= generation.carried
            if said and row.starts_turn:
                self._turn += 1
                self._start = row
            if said and row.role == "assistant":
                self._add(row, context, row, number, branch)
                branch = None
            context.append(row)
            if said and row.role != "assistant" and self._dead(generation.rows, i):
                self._add(None, context, row, number, branch, dead=True)
        if generation.last:
            self._open([r for r in context if r.active], number, branch)

    def _open(self, active: Sequence[Row], number: int, branch: str | None) -> None:
        if active and active[-1].role != "assistant" and not active[-1].parent and not _rotated(self._log):
            self._add(None, active, active[-1], number, branch)

    def _left_before(self, row: Row, later: Row) -> bool:
        """Whether a row was seen taken back before a later row was seen at all."""
        if not row.taken_back:
            return False
        versions = self._log.history[row.entry.key]
        first = self._log.history[later.entry.key][0].seq
        left = (e for e in versions[1:] if e.kind == "gone" or not e.data.get("active", 1))
        return any(e.seq < first for e in left)

    def _branch(self, context: Sequence[Row]) -> str | None:
        """Key of the last call that lies before the rows taken back."""
        kept = {r.entry.key for r in context if not r.taken_back}
        return next((p.key for p in reversed(self._out) if p.answer is not None and p.answer.key in kept), None)

    @staticmethod
    def _dead(rows: Sequence[Row], i: int) -> bool:
        """Whether the conversation went on with another user row: no call's answer was logged for this one."""
        following = rows[i + 1] if i + 1 < len(rows) else None
        return following is not None and following.role == "user" and not following.gone

    def _add(
        self,
        answer: Row | None,
        context: Sequence[Row],
        at: Row,
        number: int,
        branch: str | None,
        *,
        dead: bool = False,
    ) -> None:
        if at.parent:
            return
        prompt = prompt_of(self._log, self._log.history[at.entry.key][0].seq if answer is not None or dead else None)
        entries = tuple(map(_ENTRY, context))
        key = at.entry.key if answer is not None else f"after:{at.entry.key}"
        self._turn = turn = max(self._turn, 1)
        made: Point | None = self._made.get(key)
        entries = (prompt, *entries) if prompt is not None else entries
        if made is not None and _same(made, entries, answer, turn, dead, branch):
            self._out.append(made)
            return
        point = Point(
            key=key,
            place=at.entry.place,
            context=entries,
            answer=answer.entry if answer is not None else None,
            ids=answer.tool_ids if answer is not None else frozenset(),
            turn=turn,
            order=(float(at.id), 0 if answer is not None else 1),
            time=at.entry.time,
            kind=self._kind,
            branched_from=branch,
            blocks=answer_blocks(answer.entry.data) if answer is not None else None,
            stop=stop_of(answer.entry.data) if answer is not None else None,
            data={
                "dead": dead,
                "generation": number,
                "turn_start": self._start.id if self._start is not None else None,
                "rewound": at.taken_back,
                "finish_reason": answer.entry.data.get("finish_reason") if answer is not None else None,
            },
        )
        self._made[key] = point
        self._out.append(point)


def _same(
    made: Point, entries: tuple[Entry, ...], answer: Row | None, turn: int, dead: bool, branch: str | None
) -> bool:
    """Whether a point made earlier still says the same."""
    return (
        made.context == entries
        and made.answer is (answer.entry if answer is not None else None)
        and (made.turn, made.data["dead"], made.branched_from) == (turn, dead, branch)
    )


def _rotated(log: Log) -> bool:
    """Whether the conversation went on in another session: this one's next call is that one's first."""
    session = newest(log, f"session:{log.ref.id}")
    return session is not None and session.data.get("end_reason") == "compression"


def _delegated(log: Log) -> bool:
    session = newest(log, f"session:{log.ref.id}")
    config = session.data.get("model_config") if session is not None else None
    return isinstance(config, dict) and "_delegate_from" in config
