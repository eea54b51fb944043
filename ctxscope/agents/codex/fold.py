"""A rollout line by line: the history, the calls it implies, and the events that changed it (codex.md §4, §5).

Lines are folded in order, each once; a log whose earlier lines changed is folded anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.codex import ancestors, compaction, inherited
from ctxscope.agents.codex.calls import LEFT_OUT, Call, Event, Settings
from ctxscope.agents.codex.history import History, Item
from ctxscope.agents.codex.items import REVIEWED, is_answer, is_context, is_output, is_user, text_of
from ctxscope.agents.codex.lines import SESSION, payload_of, type_of
from ctxscope.agents.codex.usage import Counter
from ctxscope.agents.reading.drift import is_newer
from ctxscope.model import Entry, Place
from ctxscope.wire.blocks import integer, mapped, string

TOGETHER_SECONDS = 1.0
"""Two inputs logged this close were sent together, not one after a call that never answered."""
ABORTED_TURN = "<turn_aborted>"
"""How the message begins that tells the model of an interruption: it is written after it, and seen by the next call."""
CUT_OUTPUTS = ("aborted", "aborted by user")
"""How the output of a tool ends that was interrupted together with its turn."""
INCOMPLETE = "Incomplete response"
"""How Codex says that an answer broke off, which 0.171 ends the turn with after the tools it called (codex.md §5)."""
LAST_TRUE_SUMMARY = ("0.98.0",)
"""Newest version whose turn context is known to say the reasoning summary that is sent."""
RESTATING = ("compacted", "world_state", "turn_context")
"""Lines behind which a running process states its settings again."""


@dataclass(eq=False, repr=False)
class Fold:
    """Where a rollout stands after the lines read so far."""

    header: Mapping[str, Any] = field(default_factory=dict)
    header_place: Place | None = None
    started: float | None = None
    history: History = field(default_factory=History)
    calls: list[Call] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    counter: Counter = field(default_factory=Counter)
    answering: Call | None = None
    """The call whose answer is being written."""
    asks: Entry | None = None
    """The input or output that the next request answers to, while none did."""
    asked_before: Entry | None = None
    turn: int = 0
    running: bool = False
    """A turn was begun and is not over."""
    records: bool = False
    """The log has usage records, one for each call."""
    unclaimed: Mapping[str, Any] | None = None
    """Usage of a call that has no answer of its own in the log."""
    before: str = ""
    """Type of the line before."""
    last: float | None = None
    """When that was written."""
    applied: Any = None
    """The thread settings last applied."""
    opening: set[str] = field(default_factory=set)
    """The messages of the context Codex gave before the first input."""
    runs: int = 0
    """How often a new process went on with the session."""
    reopened: bool = False
    """The context was given again, and no input yet followed."""
    foreign: bool = False
    """In what a fork took over from another session."""
    cut: bool = False
    """A tool was interrupted, and the turn with it: no request follows its output."""
    branch: str | None = None
    """The call that the next one goes back to."""
    chain: bytes = b""
    read: int = 0
    known: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)
    """Lines of other rollouts that the history begins with."""

    # --- lines -----------------------------------------------------------------------------------------------------------

    def take(self, entry: Entry) -> None:
        """Fold the next line in."""
        self.known.add(entry.key)
        payload, kind = payload_of(entry), type_of(entry)
        if self.foreign:
            inherited.settle(self, entry, payload)
        if kind == "response_item":
            self._item(entry, payload)
        elif kind == "event_msg":
            handler = _EVENTS.get(string(payload.get("type")))
            if handler is not None:
                handler(self, entry, payload)
        elif kind == "session_meta":
            self._meta(entry, payload)
        elif kind == "turn_context":
            self._turn_context(entry, payload)
        elif kind == "compacted":
            compaction.take(self, entry, payload)
        elif kind == "token_usage_record":
            self._usage_record(entry, payload)
        self.before, self.last = kind, entry.time

    def _meta(self, entry: Entry, payload: Mapping[str, Any]) -> None:
        """The first one is the file's own; others were taken over with what follows (codex.md §2)."""
        if not self.header:
            self.header, self.header_place, self.started = payload, entry.place, entry.time
            self.foreign = bool(payload.get("forked_from_id"))
        elif payload.get("id") != self.header.get("id"):
            self.foreign = True

    def _turn_context(self, entry: Entry, payload: Mapping[str, Any]) -> None:
        self.answering = None
        before, at = self.settings, entry.place
        chosen = mapped(mapped(payload.get("collaboration_mode")).get("settings"))
        effort = string(payload.get("effort")) or string(chosen.get("reasoning_effort")) or None
        summary = string(payload.get("summary")) or None
        model = string(payload.get("model")) or None
        turn = string(payload.get("turn_id")) or None
        # Newer versions state "none" here whatever they send; what 0.171 sends stands in the thread settings.
        newer = is_newer(string(self.header.get("cli_version")), LAST_TRUE_SUMMARY)
        said = self.applied is None and summary is not None and not (newer and summary == LEFT_OUT)
        self.settings = Settings(
            model=model or before.model,
            model_place=at if model else before.model_place,
            effort=effort,
            effort_place=at if effort else None,
            summary=summary if said else before.summary,
            summary_place=at if said else before.summary_place,
            turn_id=turn or before.turn_id,
            turn_place=at if turn else before.turn_place,
            root_turn_id=string(payload.get("root_turn_id")) or (None if turn else before.root_turn_id),
        )
        if before.model is not None and (model, effort) != (before.model, before.effort) and model is not None:
            old, new = (" ".join(filter(None, pair)) for pair in ((before.model, before.effort), (model, effort)))
            self._event("model_switch", f"{old} to {new}", entry)

    def _usage_record(self, entry: Entry, payload: Mapping[str, Any]) -> None:
        self.answering, self.records = None, True
        name = string(payload.get("response_id")) or None
        call = self.calls[-1] if self.calls else None
        if call is None or call.response_id is not None or not call.answers:
            self.unclaimed = mapped(payload.get("usage"))
            return
        call.response_id, call.response_place = name, entry.place
        call.usage = mapped(payload.get("usage")) or call.usage
        call.changes += 1

    # --- items -----------------------------------------------------------------------------------------------------------

    def _item(self, entry: Entry, payload: Mapping[str, Any]) -> None:
        item = Item(entry, payload)
        self.chain = compaction.chained(self.chain, item)
        items = self.history.items
        reviewed = items and self.answering is None and text_of(items[-1].payload).startswith(REVIEWED)
        if is_answer(payload) and not reviewed:
            call = self._answer(entry, payload)
            self.history.append(item)
            call.end = len(self.history.items)
            return
        if is_output(payload):
            self.answering = None
        elif is_user(payload):
            self._input(entry)
        elif is_context(payload):
            self._context(entry, text_of(payload), own_id="id" in payload)
        self.history.append(item)
        if is_output(payload):
            self.cut = self.cut or string(payload.get("output")).endswith(CUT_OUTPUTS)
            if not self.history.waiting:
                self.asks = None if self.cut else entry

    def _answer(self, entry: Entry, payload: Mapping[str, Any]) -> Call:
        call = self.answering
        if call is None:
            call = self.answering = self._repeated(entry) or self.call(entry, entry.key)
            call.branched_from, self.branch = self.branch, None
            self.calls.append(call)
            self.asked_before, self.asks, self.unclaimed = self.asks, None, None
        self.cut = False
        call.answers.append(entry)
        call.items.append(payload)
        call.time = entry.time
        call.fingerprint = call.fingerprint or self.chain.hex()
        call.changes += 1
        return call

    def call(self, entry: Entry, key: str) -> Call:
        """A call made of the history as it stands."""
        return Call(
            key=key,
            place=entry.place,
            number=entry.place.number,
            history=self.history,
            length=len(self.history.items),
            missing=self.history.missing(),
            settings=self.settings,
            turn=self.turn,
            time=entry.time,
            copied=inherited.is_copied(self, entry),
            run=self.runs,
            end=len(self.history.items),
        )

    def _repeated(self, entry: Entry) -> Call | None:
        """The second attempt at the last request, where its answer broke off and was logged all the same.

        0.98 sends the same body again without a word (codex.md §5); nothing but counts that did not change, and the
        context of the same turn, stand between the two answers.
        """
        last = self.calls[-1] if self.calls else None
        if last is None or not last.answers or last.usage is not None or last.kind != "main":
            return None
        if self.records or self.asks is not None or last.copied:
            return None
        if last.history is not self.history or last.end != len(self.history.items) or last.stop is not None:
            return None
        last.stop = ("incomplete", "incomplete")
        last.changes += 1
        call = self.call(entry, entry.key)
        call.length, call.missing = last.length, last.missing
        return call

    def _input(self, entry: Entry) -> None:
        self.answering = None
        asked = self.asks
        if asked is not None and (
            asked.time is None or entry.time is None or entry.time - asked.time >= TOGETHER_SECONDS
        ):
            self._unanswered(asked)
        self.turn += 1
        self.asks, self.running, self.reopened = entry, True, False

    def _context(self, entry: Entry, said: str, *, own_id: bool) -> None:
        """0.98 gives its context again when a process goes on with a session (codex.md §4).

        What was asked before, and what a turn was aborted in, is not told of what is written then.
        """
        if said.startswith(ABORTED_TURN) and self.asks is not None:
            self._unanswered(self.asks)
        if not self.turn:
            self.opening.add(said)
        elif said in self.opening and not own_id and not self.reopened and not self.foreign:
            self.answering, self.reopened = None, True
            self._resumed(entry, "the context was given again")

    def _unanswered(self, asked: Entry, error: str | None = None) -> None:
        """A request that must have gone out, or was about to, and whose answer the log does not hold."""
        call = self.call(asked, f"after:{asked.key}")
        call.dead, call.error = True, error
        self.calls.append(call)
        self.asks = None

    # --- events ----------------------------------------------------------------------------------------------------------

    def _token_count(self, entry: Entry, payload: Mapping[str, Any]) -> None:  # noqa: ARG002 - one face for all events
        self.answering = None
        cost = self.counter.take(payload.get("info"))
        if self.counter.estimate is not None and self.events:
            self._estimated(self.counter.estimate)
        if cost is None or self.records:
            return
        call = self.calls[-1] if self.calls else None
        if call is not None and call.answers and call.usage is None and not self._since(call):
            call.usage = cost
            call.changes += 1
        else:
            self.unclaimed = cost

    def _since(self, call: Call) -> bool:
        """Whether an input came after a call's answer: what is counted then is another call's."""
        return self.turn != call.turn

    def _estimated(self, tokens: int) -> None:
        """The estimate that 0.171 logs behind a compaction is the size it left."""
        last = self.events[-1]
        if last.kind == "compaction" and last.after is None and last.call == len(self.calls):
            self.events[-1] = replace(last, after=tokens)

    def _task_started(self, entry: Entry, payload: Mapping[str, Any]) -> None:
        if self.asks is not None and self.running:
            self._unanswered(self.asks)
        self.answering, self.running = None, True
        self.counter.window = integer(payload.get("model_context_window")) or self.counter.window
        turn = string(payload.get("turn_id"))
        if turn:
            root = string(payload.get("root_turn_id")) or None
            self.settings = replace(self.settings, turn_id=turn, turn_place=entry.place, root_turn_id=root)

    def _task_over(self, entry: Entry, payload: Mapping[str, Any]) -> None:  # noqa: ARG002 - one face for all events
        self.answering, self.running = None, False
        aborted = payload.get("type") == "turn_aborted"
        error = mapped(payload.get("error")).get("message")
        words = (
            error if isinstance(error, str) else f"turn aborted: {string(payload.get('reason'))}" if aborted else None
        )
        last = self.calls[-1] if self.calls else None
        called = self.asks is not None and is_output(payload_of(self.asks)) and INCOMPLETE in (words or "")
        if called and last is not None and last.answers and self.unclaimed is None:
            self.asks = None  # the answer that called the tool was the one that broke off
        if self.asks is not None:
            self._unanswered(self.asks, words)
        elif words is not None and self.calls and self.calls[-1].stop is None:
            call = self.calls[-1]
            call.error, call.stop = words, None if call.dead else _stop(words, aborted=aborted)
            call.changes += 1

    def _settings_applied(self, entry: Entry, payload: Mapping[str, Any]) -> None:
        """0.171 applies the same settings again when a process goes on with a thread."""
        settings = mapped(payload.get("thread_settings"))
        if settings == self.applied and self.calls and not self.foreign and self.before not in RESTATING:
            self._resumed(entry, "the thread's settings were applied again")
        self.applied = settings
        summary = string(settings.get("reasoning_summary")) or None
        self.settings = replace(self.settings, summary=summary, summary_place=entry.place if summary else None)

    def _rolled_back(self, entry: Entry, payload: Mapping[str, Any]) -> None:
        count = integer(payload.get("num_turns")) or 0
        self.answering = self.asks = None
        compaction.roll_back(self, entry, count)

    def _failed(self, entry: Entry, payload: Mapping[str, Any]) -> None:  # noqa: ARG002 - one face for all events
        words = string(payload.get("message")) or string(mapped(payload.get("error")).get("message"))
        if words and self.asks is not None:
            self._unanswered(self.asks, words)

    # --- what both tell --------------------------------------------------------------------------------------------------

    def _resumed(self, entry: Entry, how: str) -> None:
        if self.asks is not None:
            self._unanswered(self.asks)
        self.answering, self.running = None, False
        self.runs += 1
        self._event("resume", f"a new process went on with the session: {how}", entry)

    def _event(self, kind: str, where: str, entry: Entry) -> None:
        self.events.append(Event(kind, len(self.calls), where, entry.place))


def _stop(words: str, *, aborted: bool) -> tuple[str, str]:
    """Why an answer ended that the turn ended with, in the provider's word and in ours."""
    if aborted:
        return words, "incomplete"
    reason = words.rpartition("reason: ")[2] if "reason: " in words else "error"
    return reason, {"max_output_tokens": "truncated", "content_filter": "blocked"}.get(reason, "error")


_EVENTS = {
    "token_count": Fold._token_count,  # noqa: SLF001 - its own table
    "task_started": Fold._task_started,  # noqa: SLF001
    "task_complete": Fold._task_over,  # noqa: SLF001
    "turn_aborted": Fold._task_over,  # noqa: SLF001
    "thread_settings_applied": Fold._settings_applied,  # noqa: SLF001
    "thread_rolled_back": Fold._rolled_back,  # noqa: SLF001
    "error": Fold._failed,  # noqa: SLF001
}


def folded(log: Log) -> Fold:
    """The fold of a log, as far as the log goes."""
    memo = shared_memo(log, "codex.fold")
    found: Fold | None = memo.get("fold")
    fresh = log.versions[found.read if found else 0 :]
    new = [e for e in fresh if e.source == SESSION]
    if found is None or any(e.key in found.known for e in new) or inherited.begins_otherwise(found, fresh):
        memo["fold"] = found = Fold()
        new = sorted((e for e in log.entries if e.source == SESSION and e.kind != "gone"), key=lambda e: e.place.number)
    for entry in new:
        found.take(entry)
        if entry is new[0] and len(found.known) == 1 and ancestors.base_of(found.header) is not None:
            inherited.begin(found, ancestors.taken_over(found.header, log.entries))
    found.read = len(log.versions)
    return found
