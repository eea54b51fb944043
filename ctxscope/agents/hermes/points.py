"""Points where a model call must have happened: one for each assistant row said in its generation (hermes.md §7.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes.generations import Generation, generations_of, rows_of
from ctxscope.agents.hermes.log import is_old, newest, notes_of, prompt_of
from ctxscope.agents.hermes.rows import Row
from ctxscope.agents.hermes.stored import answer_blocks, stop_of
from ctxscope.agents.hermes.turns import matched_turns, said_turns
from ctxscope.agents.hermes.usage import logged_usage
from ctxscope.model import CallKind, Entry, Point, Usage

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
    reading = Reading(tuple(generations), tuple(_Walk(log, turns).points(generations)), turns, carried, is_old(log))
    log.memo["points"] = reading
    return reading


class _Walk:
    """One pass over the generations, counting turns."""

    def __init__(self, log: Log, turns: Sequence[Row]) -> None:
        self._log = log
        self._turns = turns
        self._turn = 0
        self._start: Row | None = None
        self._kind: CallKind = "subagent" if "_delegate_from" in notes_of(log) else "main"
        self._lineage = "main" if self._kind == "main" else f"sub:{log.ref.id}"
        self._made = shared_memo(log, "hermes.points")
        self._usage: Mapping[int, Usage] = {}
        self._out: list[Point] = []

    def points(self, generations: Sequence[Generation]) -> list[Point]:
        own = False
        self._usage = logged_usage(self._log, generations)
        for number, generation in enumerate(generations):
            if not own and not generation.rows[0].parent:
                own, self._turn = True, 0  # a turn that began in the continued session is this one's first
            self._generation(number, generation, self._left_parent(generations) if own and not self._out else None)
        return self._out

    def _generation(self, number: int, generation: Generation, branch: str | None) -> None:
        context: list[Row] = []
        taken_back = False
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
                self._add(_Asked(row, context, row, number, branch))
                branch = None
            context.append(row)
            if said and row.role != "assistant" and self._dead(generation.rows, i):
                self._add(_Asked(None, context, row, number, branch, dead=True))
        if generation.last:
            self._open([r for r in context if r.active], number, branch)

    def _open(self, active: Sequence[Row], number: int, branch: str | None) -> None:
        if active and active[-1].role != "assistant" and not active[-1].parent and not _rotated(self._log):
            self._add(_Asked(None, active, active[-1], number, branch, dead=self._is_over()))

    def _is_over(self) -> bool:
        """Whether no call will follow the last row: the session has ended, or its turn has, in an error."""
        session = newest(self._log, f"session:{self._log.ref.id}")
        if session is not None and session.data.get("ended_at") is not None:
            return True
        turn = matched_turns(said_turns(self._log), self._turns).get(self._start.id) if self._start else None
        return turn is not None and turn.ended and turn.error is not None

    def _left_before(self, row: Row, later: Row) -> bool:
        """Whether a row was seen taken back before a later row was seen at all."""
        if not row.taken_back:
            return False
        versions = self._log.history(row.entry.key)
        first = self._log.history(later.entry.key)[0].seq
        left = (e for e in versions[1:] if e.kind == "gone" or not e.data.get("active", 1))
        return any(e.seq < first for e in left)

    def _branch(self, context: Sequence[Row]) -> str | None:
        """Key of the last call that lies before the rows taken back."""
        kept = {r.entry.key for r in context if not r.taken_back}
        return next((p.key for p in reversed(self._out) if p.answer is not None and p.answer.key in kept), None)

    def _left_parent(self, generations: Sequence[Generation]) -> str | None:
        """Key, in the session this one branched off, of the last call whose answer it took along."""
        if "_branched_from" not in notes_of(self._log):
            return None
        taken = {(r.role, r.ts) for g in generations if not g.rows[0].parent for r in g.rows[: g.carried]}
        said = [r for g in generations if g.rows[0].parent for r in g.rows[g.carried :]]
        last = next((r for r in reversed(said) if r.role == "assistant" and (r.role, r.ts) in taken), None)
        return f"messages:{last.id}" if last is not None else None

    @staticmethod
    def _dead(rows: Sequence[Row], i: int) -> bool:
        """Whether the conversation went on with another user row: no call's answer was logged for this one."""
        following = rows[i + 1] if i + 1 < len(rows) else None
        return following is not None and following.role == "user" and not following.gone

    def _add(self, asked: _Asked) -> None:
        at, answer = asked.at, asked.answer
        if at.parent:
            return
        settled = answer is not None or asked.dead
        prompt = prompt_of(self._log, self._log.history(at.entry.key)[0].seq if settled else None)
        entries = (*((prompt,) if prompt is not None else ()), *map(_ENTRY, asked.context))
        self._turn = turn = max(self._turn, 1)
        key = at.entry.key if answer is not None else f"after:{at.entry.key}"
        usage = self._usage.get(answer.id) if answer is not None else None
        made: Point | None = self._made.get(key)
        if (
            made is None
            or (made.lineage, made.stored_usage) != (self._lineage, usage)
            or not asked.is_same(made, entries, turn)
        ):
            made = self._made[key] = self._point(key, asked, entries, usage)
        self._out.append(made)

    def _point(self, key: str, asked: _Asked, entries: tuple[Entry, ...], usage: Usage | None) -> Point:
        answer = asked.answer
        row = answer.entry.data if answer is not None else {}
        return Point(
            key=key,
            place=asked.at.entry.place,
            context=entries,
            answer=answer.entry if answer is not None else None,
            ids=answer.tool_ids if answer is not None else frozenset(),
            turn=self._turn,
            order=(float(asked.at.id), 0 if answer is not None else 1),
            time=asked.at.entry.time,
            kind=self._kind,
            lineage=self._lineage,
            branched_from=asked.branch,
            blocks=answer_blocks(row) if answer is not None else None,
            stop=stop_of(row) if answer is not None else None,
            stored_usage=usage,
            data={
                "dead": asked.dead,
                "generation": asked.number,
                "turn_start": self._start.id if self._start is not None else None,
                "rewound": asked.at.taken_back,
                "finish_reason": row.get("finish_reason"),
            },
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A place where a call must have happened."""

    answer: Row | None
    context: Sequence[Row]
    at: Row
    """The answer, or the last row of the context while there is none."""
    number: int
    """Of the generation."""
    branch: str | None
    dead: bool = False

    def is_same(self, made: Point, entries: tuple[Entry, ...], turn: int) -> bool:
        """Whether a point made earlier still says it."""
        return (
            made.context == entries
            and made.answer is (self.answer.entry if self.answer is not None else None)
            and (made.turn, made.data["dead"], made.branched_from) == (turn, self.dead, self.branch)
        )


def _rotated(log: Log) -> bool:
    """Whether the conversation went on in another session: this one's next call is that one's first."""
    session = newest(log, f"session:{log.ref.id}")
    return session is not None and session.data.get("end_reason") == "compression"
