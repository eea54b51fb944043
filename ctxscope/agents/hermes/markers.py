"""Events that rewrote or restored history, from rows, their texts and agent.log (hermes.md §5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.hermes.generations import Generation
from ctxscope.agents.hermes.log import agent_log, prompt_text
from ctxscope.agents.hermes.points import Reading, reading_of
from ctxscope.agents.hermes.rows import TASK_LIST, Row
from ctxscope.agents.hermes.runs import runs_of
from ctxscope.model import Entry, Marker, Place, Point

_PRUNED = "[Old tool output cleared to save context space]"


@dataclass(frozen=True, slots=True)
class _Event:
    """What agent.log tells of one rewriting of history."""

    kind: str
    before: int | None
    after: int | None
    messages: int | None
    """Messages left."""
    words: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Rewriting:
    """One rewriting of history: the generations it lies between, and what is told of it."""

    marker: Marker
    index: int
    """How many came before it."""
    before: Generation
    after: Generation
    seconds: float | None
    """How long it took, by agent.log."""


def rewritings(log: Log) -> Sequence[Rewriting]:
    """The rewritings of a session's own history, the rotation it began with included, in order."""
    generations, told = reading_of(log).generations, list(_events(log))
    return [
        _rewriting(log, i, generations[i], after, told)
        for i, after in enumerate(generations[1:])
        if after.rows and not after.rows[0].parent
    ]


def markers(log: Log) -> Sequence[Marker]:
    """All markers in log order."""
    reading = reading_of(log)
    out = [((float(r.after.rows[0].id), 0), r.marker) for r in rewritings(log)]
    out += _restored(reading)
    out += _resumes(log)
    out += _rewinds(reading.generations, reading.points)
    out += _switches(log, reading.points)
    out.sort(key=lambda pair: pair[0])
    return [marker for _, marker in out]


def _events(log: Log) -> Iterable[_Event]:
    started: int | None = None
    since: float | None = None
    done: _Event | None = None  # a line that says more of it may follow
    for entry in agent_log(log):
        if entry.data.get("session") not in {log.ref.id, log.ref.parent}:
            continue
        data = entry.data
        if data["event"] == "attempt" and done is not None:
            took = _number(data["fields"], "total_duration_ms")
            done = replace(done, seconds=took / 1000) if took is not None else done
        if done is not None:
            yield done
            done = None
        if data["event"] == "compression_started":
            started, since = data.get("tokens"), data["time"]
        elif data["event"] == "compression_done":
            words = f"messages {data['before']} -> {data['after']}"
            took = round(data["time"] - since, 3) if since is not None else None
            done = _Event("compaction", started, data.get("tokens"), data.get("after"), words, took)
        elif data["event"] == "micro":
            fields: Mapping[str, Any] = data["fields"]
            outcome = str(fields.get("outcome"))
            if outcome in {"absorbed", "defrag"}:
                kind = "defrag" if outcome == "defrag" else "micro"
                before, after, left = (_number(fields, f) for f in ("tokens_before", "tokens_after", "messages_after"))
                took = _number(fields, "duration_ms")
                yield _Event(kind, before, after, left, f"outcome {outcome}", None if took is None else took / 1000)
    if done is not None:
        yield done


def _number(fields: Mapping[str, Any], name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) else None


def _rewriting(log: Log, index: int, before: Generation, after: Generation, told: list[_Event]) -> Rewriting:
    """What lies between two generations, with agent.log's own word on it when it fits."""
    carried = after.rows[: after.carried]
    summaries = [r for r in carried if r.summary]
    fresh = [r for r in summaries if r.ts not in {b.ts for b in before.rows if b.summary}] or summaries
    rotated = before.rows[-1].parent
    kind = _kind(fresh, carried)
    event = next((e for e in told if _fits(e, kind, len(carried))), None)
    if event is not None:
        told.remove(event)
        kind = event.kind
    first = fresh[0] if fresh else after.rows[0]
    where = [f"{sum(1 for r in before.rows if not r.taken_back)} rows became {len(carried)}"]
    if event is not None:
        where.append(event.words)
    if rotated:
        where.append(f"rotated from session {log.ref.parent}")
    stale = [r for r in summaries if r not in fresh]
    if kind in {"micro", "defrag"} and stale:
        where.append(f"an older marker stays beside it (row {stale[0].id}): the new process did not know it")
    point = next((p.key for p in reading_of(log).points if p.order[0] >= after.rows[0].id and not p.data["dead"]), None)
    marker = Marker(
        kind="restore" if rotated and not summaries else kind,
        point=point,
        logged=bool(fresh) or kind in {"compaction", "prune"},
        where="; ".join(where),
        place=first.entry.place,
        before_tokens=event.before if event is not None else None,
        after_tokens=event.after if event is not None else None,
        dropped=tuple(_dropped(before.rows, carried)),
    )
    return Rewriting(marker, index, before, after, event.seconds if event is not None else None)


def _kind(fresh: Sequence[Row], carried: Sequence[Row]) -> str:
    """By shape alone: one exchange replaced by an assistant marker is micro; without a summary rows were pruned."""
    if not fresh:
        return "prune" if any(_PRUNED in str(r.entry.data.get("content")) for r in carried) else "compaction"
    return "micro" if fresh[0].micro else "compaction"


def _fits(event: _Event, kind: str, carried: int) -> bool:
    """Whether a line of agent.log can be about this rewriting."""
    if (event.kind == "compaction") != (kind in {"compaction", "prune"}):
        return event.messages == carried
    return event.messages is None or event.messages <= carried + 1


def kept_ends(rows: Sequence[Row], carried: Sequence[Row]) -> tuple[int, int]:
    """How many rows a rewriting kept at the start, and where the tail it kept began, by what it wrote again."""
    left = [r for r in carried if not r.put_back]
    tail = 0
    while tail < min(len(rows), len(left)) and _is_same(rows[-1 - tail], left[-1 - tail]):
        tail += 1
    head, most = 0, min(len(rows), len(left)) - tail
    while head < most and _is_same(rows[head], left[head]):
        head += 1
    return head, len(rows) - tail


def _is_same(row: Row, again: Row) -> bool:
    """Whether a row is one of before, written again: by its tool calls, its time (0.20) or its text."""
    if row.role != again.role:
        return False
    if row.tool_ids or again.tool_ids:
        return not row.tool_ids.isdisjoint(again.tool_ids)
    return row.ts == again.ts or row.entry.data.get("content") == again.entry.data.get("content")


def _dropped(before: Sequence[Row], carried: Sequence[Row]) -> Iterable[Place]:
    kept = {(r.role, r.ts) for r in carried} | {(r.role, i) for r in carried for i in r.tool_ids}
    rows = [r for r in before if not r.taken_back]
    head, cut = kept_ends(rows, carried)
    ends = {r.id for r in (*rows[:head], *rows[cut:])}  # 0.19 writes them again with new times
    for row in before:
        same = row.id in ends or (row.role, row.ts) in kept or any((row.role, i) in kept for i in row.tool_ids)
        if not same:
            yield row.entry.place


def _restored(reading: Reading) -> Iterable[tuple[tuple[float, int], Marker]]:
    """Task lists put back behind a compaction; carried on by the next one they are not put back again."""
    known: set[tuple[str, float]] = set()
    for row in (r for g in reading.generations for r in g.rows):
        text = row.entry.data.get("content")
        if row.role != "user" or not isinstance(text, str) or not text.startswith(TASK_LIST):
            continue
        if not row.parent and (row.role, row.ts) not in known:
            point = next((p.key for p in reading.points if p.order[0] >= row.id and not p.data["dead"]), None)
            where = "the task list was put back after a compaction"
            yield (float(row.id), 1), Marker("restore", point, logged=True, where=where, place=row.entry.place)
        known.add((row.role, row.ts))


def _resumes(log: Log) -> Iterable[tuple[tuple[float, int], Marker]]:
    """A new process took over, by agent.log; the rows do not tell."""
    reading = reading_of(log)
    fresh = runs_of(log).fresh
    for i, row in enumerate(reading.turns):
        if i == 0 or row.parent or not fresh.get(row.id):
            continue
        point = next((p.key for p in reading.points if p.data["turn_start"] == row.id), None)
        where = "a new process loaded the rows before it; their form on the wire changes"
        yield (float(row.id), 1), Marker("resume", point, logged=False, where=where, place=row.entry.place)


def _rewinds(generations: Sequence[Generation], points: Sequence[Point]) -> Iterable[tuple[tuple[float, int], Marker]]:
    for generation in generations:
        run: list[Row] = []
        for row in (*generation.rows, None):
            if row is not None and row.taken_back:
                run.append(row)
            elif run:
                after = run[-1].id
                point = next((p.key for p in points if p.order[0] > after), None)
                places = tuple(r.entry.place for r in run)
                where = f"{len(run)} rows were taken back"
                marker = Marker("rewind", point, logged=True, where=where, place=places[0], dropped=places)
                yield (after + 0.5, 0), marker
                run = []


def _switches(log: Log, points: Sequence[Point]) -> Iterable[tuple[tuple[float, int], Marker]]:
    """Another model: by a row that says so, by the prompt stored, or by agent.log's turns."""
    models = runs_of(log).model
    last: tuple[str | None, Entry | None] = (None, None)
    for point in points:
        first = point.context[0] if point.context else None
        prompt = first if first is not None and first.kind in {"prompt", "session"} else None
        turn = point.data["turn_start"]
        model = models.get(turn) if isinstance(turn, int) else None
        said = any(e.data.get("display_kind") == "model_switch" for e in point.context[-1:])
        changed = model is not None and last[0] is not None and model != last[0]
        if changed or said:
            where = f"model {last[0]} -> {model}" if changed else "a model_switch row"
            place = point.context[-1].place if point.context else point.place
            yield (point.order[0] - 0.5, 2), Marker("model_switch", point.key, logged=said, where=where, place=place)
        elif _prompt_model(prompt) != _prompt_model(last[1]) and last[1] is not None and prompt is not None:
            where = f"model {_prompt_model(last[1])} -> {_prompt_model(prompt)}"
            yield (
                (point.order[0] - 0.5, 2),
                Marker("model_switch", point.key, logged=True, where=where, place=prompt.place),
            )
        last = (model or last[0], prompt or last[1])


def _prompt_model(entry: Entry | None) -> str | None:
    """The model a stored system prompt names."""
    if entry is None:
        return None
    lines = [line for line in prompt_text(entry).splitlines() if line.startswith("Model: ")]
    return lines[-1].removeprefix("Model: ").strip() if lines else None
