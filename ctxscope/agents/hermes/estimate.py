"""The agent's own rough token estimate, reproduced per version (hermes.md §6), and the naive count beside it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes.estimators import RULES, STALE, Rule, tool_tokens
from ctxscope.agents.hermes.log import prompt_text, schema_version
from ctxscope.agents.hermes.memory import memory_of, notes_of, rewritten_rows
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.prompts import api_of, route_of, system_entry, tools_of
from ctxscope.agents.hermes.rows import SCREENSHOT, any_row
from ctxscope.agents.hermes.runs import is_loaded, loaded_before, origins_of, rows_among
from ctxscope.agents.reading.charges import Charge, Charges, estimated
from ctxscope.model import Entry, Estimate, Learned, Point
from ctxscope.wire.json_text import py

_NEXT_SCHEMA = 30
"""0.21; 0.20's is 26."""
_REMEMBERED = 12
"""Histories whose sums are kept to go on from, of all versions."""


def estimates(log: Log, point: Point) -> tuple[Estimate, ...]:
    """Tokens the agent would reckon for the request at a point: ``rough(prompt) + messages + tools``.

    By the rough estimator of the version that wrote the log, then by the others, of which the log tells what they would
    charge; empty without a prompt to count, where that is not known of the version that wrote the log, and where the
    process held images that the log does not. Message
    dictionaries are taken as the agent that wrote the log holds them in memory, hence by live and loaded form and with
    the notes of its compactions.

    0.20 meets every figure of recorded telemetry; what 0.19 notes on a compacted list was not recorded and is left out.
    """
    entry = system_entry(log, point)
    if entry is None:
        return ()
    prompt, tools = prompt_text(entry).strip(), tools_of(log, point)
    listed_tools = tool_tokens(tools.data["tools"]) if tools is not None else 0
    rows, boundary = rows_among(point.context), loaded_before(log, point, {})
    if _holds_unlogged_images(log, rows, boundary):
        return ()
    own = version_of(log)
    found: list[Estimate] = []
    for version in (own, *(v for v in RULES if v != own)):
        rule = RULES[version]
        all_of_it = charges(log, rows, boundary, rule)
        charged = _in_0_21(log, point, rows, boundary, all_of_it) if version == "0.21" else all_of_it
        if charged is not None:
            whole = {**charged, "system": rule.tokens(prompt), "tools": listed_tools}
            found.append(estimated(rule.name, whole, rule.held))
        elif version == own:
            return ()
    return tuple(found)


def _holds_unlogged_images(log: Log, rows: Sequence[Entry], boundary: int) -> bool:
    """Whether a row that the process did not load from the database stands for a list with an image (hermes.md §3.2)."""
    if not any_row(log, SCREENSHOT, _is_flattened):
        return False
    origins = origins_of(log)
    return any(_is_flattened(row) and not is_loaded(origins, row, boundary) for row in rows)


def _is_flattened(entry: Entry) -> bool:
    content = entry.data.get("content")
    return isinstance(content, str) and SCREENSHOT in content


def _in_0_21(log: Log, point: Point, rows: Sequence[Entry], boundary: int, whole: Charge) -> Charge | None:
    """What 0.21 charges of a list that its rule charges ``whole``; ``None`` where the log does not tell.

    It prices an image as bills taught it, in memory and in a file that holds only the newest price. It leaves out stale
    thinking on the Responses API and charges it where every answer must carry it; on other routes some of its releases
    do one and some the other (source only).
    """
    if whole.get("images"):
        return None
    if not whole.get("thinking"):
        return whole
    last = next((row for row in reversed(rows) if row.data.get("role") == "assistant"), None)
    stale = charges(log, rows, boundary, STALE)
    rules = (RULES["0.21"], STALE)
    newest, bare = (_charger(log, boundary, rule)(last) if last is not None else {} for rule in rules)
    left = {kind: stale.get(kind, 0) + newest.get(kind, 0) - bare.get(kind, 0) for kind in {*stale, *newest}}
    if api_of(log, point) == "openai-responses":
        return left
    replays = route_of(log, point, Learned()).pads_reasoning
    return whole if replays or sum(left.values()) == sum(whole.values()) else None


def version_of(log: Log) -> str:
    """The version whose estimator wrote the log, as far as its schema tells."""
    schema = schema_version(log)
    if reading_of(log).old:
        return "0.19"
    return "0.21" if schema is not None and schema >= _NEXT_SCHEMA else "0.20"


def message_tokens(log: Log, point: Point) -> int:
    """The message part of the estimate."""
    return list_tokens(log, rows_among(point.context), loaded_before(log, point, {}))


def list_tokens(log: Log, rows: Sequence[Entry], boundary: int) -> int:
    """Tokens of message rows held by a process that loaded what lies below ``boundary``.

    It is what micro-compaction telemetry calls ``tokens_before`` and ``tokens_after``.
    """
    return sum(charges(log, rows, boundary, RULES[version_of(log)]).values())


@dataclass(eq=False, slots=True, repr=False)
class _Run:
    """A list of rows, charged by a rule."""

    name: str
    told: Hashable
    """What beside a row itself decides what memory holds of it."""
    rows: list[Entry]
    sums: Charges = field(default_factory=Charges)


def charges(log: Log, rows: Sequence[Entry], boundary: int, rule: Rule) -> Charge:
    """By kind, tokens of message rows held by a process that loaded what lies below ``boundary``."""
    reading = reading_of(log)
    told = (reading.old, boundary, tuple((g.rows[0].id, g.carried) for g in reading.generations))
    run = _run(log, list(rows), rule, told)
    return rule.whole(run.sums.upto(run.rows, len(rows), _charger(log, boundary, rule)))


def _charger(log: Log, boundary: int, rule: Rule) -> Callable[[Entry], Charge]:
    """What a row is charged, each form of it worked out once."""
    origins = origins_of(log)
    rewritten = {} if reading_of(log).old else rewritten_rows(log)
    memo = shared_memo(log, f"hermes.charges {rule.name}")

    def charge(entry: Entry) -> Charge:
        loaded = is_loaded(origins, entry, boundary)
        notes = notes_of(entry, rewritten.get(entry.data["id"]), boundary)
        key = (entry, loaded, tuple(notes.items()))
        if key not in memo:
            memo[key] = rule.message({**memory_of(entry, loaded=loaded), **notes})
        return memo[key]  # type: ignore[no-any-return]

    return charge


def _run(log: Log, rows: list[Entry], rule: Rule, told: Hashable) -> _Run:
    """The rows among those charged before: an earlier list that goes on, or what one begins with."""
    runs: deque[_Run] = shared_memo(log, "hermes.runs charged").setdefault("runs", deque(maxlen=_REMEMBERED))
    best, depth = None, 0
    for run in reversed(runs):
        if (run.name, run.told) == (rule.name, told):
            shared = _shared(run.rows, rows)
            if shared == min(len(run.rows), len(rows)):
                runs.remove(run)
                runs.append(run)
                run.rows = max(run.rows, rows, key=len)
                return run
            if shared > depth:
                best, depth = run, shared
    made = _Run(rule.name, told, rows, best.sums.cut(depth) if best else Charges())
    runs.append(made)
    return made


def _shared(one: list[Entry], other: list[Entry]) -> int:
    """How many rows two lists begin with alike."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    return next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a is not b)


def naive(log: Log, point: Point) -> int | None:
    """ceil(characters / 4) of the rows as stored, every column with its name: sidecars and envelopes counted whole."""
    memo = shared_memo(log, "hermes.naive")
    total = 0
    for entry in rows_among(point.context):
        if entry not in memo:
            memo[entry] = len(py({k: v for k, v in entry.data.items() if v is not None and not isinstance(v, bytes)}))
        total += memo[entry]
    return math.ceil(total / 4)
