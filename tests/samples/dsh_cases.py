"""The DeepSeek Harness samples: what each session says, what its log keeps, what crossed the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.samples.dsh_form import (
    BUSY,
    MODEL,
    PROVIDER,
    Item,
    SessionLog,
    add,
    answered,
    body,
    recording,
    reply,
    result,
    said,
)
from tests.samples.dsh_texts import (
    CHECKPOINT,
    CHECKPOINT_END,
    COMPACTOR,
    CONTEXT,
    CWD,
    PACKAGES,
    SIGNATURES,
    SYSTEM,
    TITLE_ASK,
    TITLE_SYSTEM,
    TOOLS,
    notes,
)
from tests.samples.pi_form import Part, Say, Think, Tokens, Use
from tests.samples.recording import Recording

ROUTE = {"provider": PROVIDER, "model": MODEL}
NOTES = notes(32)


@dataclass
class Talk:
    """A session while it is held: its log, the tee, what the model saw so far, what the server has of the log."""

    log: SessionLog
    wire: Recording
    items: list[Item] = field(default_factory=list)
    accepted: int = -1
    loaded: bool = False
    tools: list[dict[str, Any]] = field(default_factory=lambda: TOOLS)

    def sent(self, through: int, items: list[Item], system: str = SYSTEM, **more: Any) -> str:
        along = self.log.along(self.accepted, through, loaded=self.loaded)
        return body(items, system, along, PACKAGES, **more)

    def call(
        self, at: float, step: tuple[int, int], through: int, response: str, parts: list[Part], tokens: Tokens
    ) -> int:
        """A request of a step, its acceptance and its answer; gives the answer's number."""
        uses = any(isinstance(part, Use) for part in parts)
        stream = reply(response, parts, tokens, "tool_use" if uses else "end_turn")
        add(self.wire, at, self.log.id, self.sent(through, self.items, tools=self.tools), stream)
        self.accepted = through
        self.log.accepted(at + 0.1, through)
        self.items.append(answered(*parts))
        return self.log.answer(at + 1.5, step, parts, tokens, "tool-calls" if uses else "stop")

    def aside(self, at: float, through: int, items: list[Item], answer: str, tokens: Tokens, **more: Any) -> None:
        """A request beside the conversation."""
        stream = reply(f"msg_aside{through}", [Say(answer)], tokens)
        add(self.wire, at, self.log.id, self.sent(through, items, **more), stream)

    def tool(self, at: float, step: tuple[int, int], use: Use, text: str) -> int:
        number = self.log.tool(at, step, use, text)
        self.log.ended(at, *step)
        self.items.append(result(use, text))
        return number


def compaction_and_resume(case: Path) -> None:
    """A title asked for beside the first call; a prune and a compaction in turn 2; turn 3 in a process of its own."""
    talk = Talk(SessionLog("session-7c1d0e52", CWD), recording())
    log = talk.log
    first, title = _opening(talk, "What is on sheet 41? The label says «Ährige Teufelskralle».")
    look = Use("toolu_herb01", "sheet", '{"number": 41, "label": "\\u00c4hrige"}')
    parts = [Think("The sheet itself will say.", SIGNATURES[0]), Say("I will look."), look]
    answer = talk.call(1.06, (1, 1), title, "msg_herb01", parts, Tokens(0, 420, 40, 6))
    log.accepted(2.6, title)
    source = {"kind": "provider", "provider": "first-prompt", "model": ROUTE}
    log.event(2.6, "session/title", {"title": "Sheet 41: Teufelskralle", "messageSeqs": [first], "source": source})
    seen = talk.tool(2.8, (1, 1), look, NOTES)
    parts = [Say("Sheet 41 holds Phyteuma spicatum, 32 leaves measured.")]
    last = talk.call(2.9, (1, 2), log.step(2.85, 1, 2), "msg_herb02", parts, Tokens(420, 700, 17))
    log.ended(4.4, 1, 2, whole=True)

    ask = "And sheet 42?"
    log.turn(10.0, 2, ask)
    talk.items.append(said(ask))
    other = Use("toolu_herb02", "sheet", '{"number": 42}')
    talk.call(10.05, (2, 1), log.user(10.02, ask), "msg_herb03", [other], Tokens(1120, 60, 20))
    talk.tool(11.7, (2, 1), other, "empty: lent to the museum\n")
    _compacted(talk, (first, answer, seen, last), look)
    talk.items.append(said(CONTEXT))
    log.step(13.5, 2, 2)
    log.user(13.5, CONTEXT, kind="runtime-context")
    through = log.request(13.5, TOOLS, "series")
    talk.call(13.55, (2, 2), through, "msg_herb04", [Say("Sheet 42 is lent out.")], Tokens(410, 260, 8))
    log.ended(15.1, 2, 2, whole=True)

    log.event(60.0, "session/end-seed", {})
    talk.loaded = True
    log.turn(61.0, 3, "Danke!")
    log.user(61.02, "Danke!")
    talk.items.append(said("Danke!"))
    through = log.request(61.03, TOOLS, "resume")
    talk.call(61.06, (3, 1), through, "msg_herb05", [Say("Gern.")], Tokens(670, 30, 3))
    log.ended(62.6, 3, 1, whole=True)
    log.write(case / "log")
    talk.wire.write(case / "wire")


def _opening(talk: Talk, ask: str) -> tuple[int, int]:
    """Up to the title's request; gives the numbers of the first message and of that request."""
    log = talk.log
    log.event(0.4, "permission/preset", {"preset": "read-only"})
    log.turn(1.0, 1, ask)
    log.system(1.02, SYSTEM)
    first = log.user(1.02, ask)
    log.user(1.02, CONTEXT, kind="runtime-context")
    log.request(1.03, TOOLS, "initial")
    log.event(1.03, "request/context", {**ROUTE, "contextWindow": 64000})
    words = TITLE_ASK + f'[{{"seq":{first},"text":"{ask}"}}]'
    content = [{"type": "text", "text": words}]
    message = {"content": content, "source": {"kind": "title"}, "role": "user", "id": log.message_id()}
    asked = {"titleProvider": "first-prompt", "messageSeqs": [first], "route": ROUTE, "system": TITLE_SYSTEM}
    asked |= {"messages": [message], "maxTokens": 512, "reasoningEffort": "off"}
    title = log.event(1.04, "session/title-llm-request", asked)
    cost = Tokens(0, 60, 5)
    talk.aside(1.05, title, [said(words)], "Sheet 41: Teufelskralle", cost, system=TITLE_SYSTEM, cap=512, effort="off")
    talk.items += [said(ask), said(CONTEXT)]
    return first, title


def _compacted(talk: Talk, seqs: tuple[int, int, int, int], look: Use) -> None:
    """A prune of the long result, then a compaction of the first turn, whose events have the numbers ``seqs``."""
    log, (first, answer, seen, last) = talk.log, seqs
    cut = NOTES[:300] + "\n[…]\n" + NOTES[-60:]
    span = {"shadowedRange": {"start": seen, "end": seen}, "shadowedSeqs": [seen], "shadowedTokenCount": 250}
    log.event(11.8, "compaction/prune", span)
    operation = {"op": "replace", "startSeq": seen, "endSeq": seen}
    pruned = log.tool(11.8, (1, 1), look, cut, sourceEventSeqs=[seen], surfaceOp=operation)
    talk.items[3] = result(look, cut)
    through = log.event(11.9, "compaction/start", {"compactionId": "c-1", "turn": 2})
    summary = "Asked: sheet 41. Found: Phyteuma spicatum, 32 leaves. Open: sheet 42."
    talk.aside(11.95, through, [*talk.items[:5], said(COMPACTOR)], summary, Tokens(420, 320, 21), tools=TOOLS, cap=2000)
    talk.accepted = through
    log.accepted(12.0, through)
    covered = [first, first + 1, answer, pruned, last]
    text = [{"type": "text", "text": summary}]
    told = {"compactionId": "c-1", "summary": text, "rawOutput": text, "llmStreamCall": True}
    told |= {"shadowedRange": {"start": first, "end": last}, "shadowedSeqs": covered, "shadowedTokenCount": 380}
    usage = {"inputTokens": 3, "outputTokens": 21, "cacheReadTokens": 420, "cacheWriteTokens": 320, "totalTokens": 764}
    log.event(13.4, "compaction/summary", {**told, **ROUTE, "maxTokens": 2000, "usage": usage})
    operation = {"op": "replace", "startSeq": first, "endSeq": last}
    texts = (CHECKPOINT, summary, CHECKPOINT_END)
    log.user(13.4, *texts, kind="compact-checkpoint", sourceEventSeqs=covered, surfaceOp=operation)
    log.event(13.4, "compaction/end", {"compactionId": "c-1", "turn": 2})
    talk.items[:5] = [said(*texts)]


def retry_and_subagent(case: Path) -> None:
    """The first request meets an overloaded server and is sent again, with more of the log; then a subagent's session."""
    name = "session-91aa34c0"
    talk = Talk(SessionLog(name, CWD), recording())
    log, ask = talk.log, "Who collected sheet 7?"
    log.turn(1.0, 1, ask)
    log.system(1.02, SYSTEM)
    log.user(1.02, ask)
    through = log.request(1.03, TOOLS, "initial")
    talk.items.append(said(ask))
    add(talk.wire, 1.06, name, talk.sent(through, talk.items, tools=TOOLS), BUSY, status=529)
    failure = {"code": "overloaded_error", "status": 529, "requestId": "req_busy1"}
    tried = {"turn": 1, "step": 1, "retryId": "r-1", "retry": 1}
    log.event(1.2, "llm/retry", {**tried, "maxRetries": 5, "delayMs": 1000, "failure": failure})
    through = log.event(2.2, "llm/retry-started", tried)
    use = Use("toolu_sub01", "subagent", '{"task": "collector of sheet 7"}')
    talk.call(2.25, (1, 1), through, "msg_sub01", [use], Tokens(0, 400, 22))

    task = "Who collected sheet 7? Answer with the name alone."
    more = {"delegationDepth": 1, "parentSession": name, "origin": "subagent"}
    below = Talk(SessionLog(f"{name}-sub1", CWD, 3.8, more), talk.wire, [said(task)], tools=TOOLS[:1])
    below.log.turn(3.8, 1, task)
    below.log.system(3.82, SYSTEM)
    below.log.user(3.82, task)
    through = below.log.request(3.83, TOOLS[:1], "initial")
    found = [Think("The label says it.", SIGNATURES[1]), Say("Ida Brandt")]
    below.call(3.86, (1, 1), through, "msg_below1", found, Tokens(0, 380, 9, 4))
    below.log.ended(5.4, 1, 1, whole=True)

    talk.tool(5.4, (1, 1), use, "Ida Brandt")
    through = log.step(5.5, 1, 2)
    talk.call(5.55, (1, 2), through, "msg_sub02", [Say("Ida Brandt did.")], Tokens(400, 70, 6))
    log.ended(7.1, 1, 2, whole=True)
    log.write(case / "log")
    below.log.write(case / "log")
    talk.wire.write(case / "wire")


CASES = (compaction_and_resume, retry_and_subagent)
