"""The Claude Code samples: a compaction between hooks with a subagent before it, and a session with request records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.samples.claude_code_form import (
    CWD,
    EPHEMERAL,
    Transcript,
    asked,
    canonical,
    listed,
    marked,
    metadata,
    recording,
    reminder,
    reply,
    request_digest,
    result,
    said,
    text,
)
from tests.samples.pi_form import Say, Think, Tokens, Use
from tests.samples.recording import Recording, compact

Make = Callable[[Path], None]
IDENTITY = "You keep the logbook of a bird observatory."
RULES = "Count what is there. Never guess a species. Ask before you delete a ring number.\n\n# Place\n" + CWD
HELPER = "You count entries for another agent and report one number."
TOOLS: list[dict[str, Any]] = [
    {
        "name": "Look",
        "description": "Read a page of the logbook.",
        "input_schema": {"type": "object", "properties": {"page": {"type": "string"}}, "required": ["page"]},
    },
    {
        "name": "Agent",
        "description": "Hand a task to a helper.",
        "input_schema": {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]},
    },
]
COUNT = {"name": "Count", "description": "Count lines.", "input_schema": {"type": "object", "properties": {}}}
CONTEXT = reminder("Codebase instructions are shown below.\n\nContents of CLAUDE.md:\n\nWrite dates as 2026-02-01.")
TODO = "\n\n<system-reminder>\nNo list of tasks is kept. Ignore this if none is needed.\n</system-reminder>"
SUMMARY_PROMPT = "CRITICAL: Respond with TEXT ONLY. Do not call any tools.\n\nSummarise the conversation so far."
CONTINUED = (
    "This session is being continued from a previous conversation that ran out of context. The summary below covers "
    "the earlier portion of the conversation.\n\nSummary:\n1. Two pages of ringing were read; 31 wrens, 7 of them new."
)
HOOKED = "Ring series in use this week: KA 4100 to KA 4199."


def system(billing: str, *blocks: str) -> list[dict[str, Any]]:
    line = text(f"x-anthropic-billing-header: cc_version={billing}; cc_entrypoint=sdk-cli; cch=00000;")
    return [line, *({**text(b), "cache_control": EPHEMERAL} for b in blocks)]


def old_body(session: str, model: str, messages: list[dict[str, Any]], billing: str, prompt: str = RULES) -> str:
    """As 2.1.112 orders a body."""
    return compact(
        {
            "model": model,
            "messages": marked(messages),
            "system": system(billing, IDENTITY, prompt),
            "tools": TOOLS if prompt is RULES else [COUNT],
            "metadata": metadata(session),
            "max_tokens": 32000,
            "stream": True,
        }
    )


def page(name: str, rows: int) -> str:
    return "\n".join(f"{name} {k:02d} wren KA 41{k:02d} wing {47 + k % 4} mm" for k in range(1, rows + 1))


def hooks_around_compaction(case: Path) -> None:
    """Two pages read at once, one counted by a helper; then the context is full, and a hook puts the ring series back."""
    session, model, agent = "5e55a001-0000-4000-8000-00000000c0de", "claude-sonnet-4-6", "ab12cd34ef56ab12c"
    log = Transcript(session, "2.1.112", model)
    wire = recording(session, "2.1.112")
    pages_read(case, log, wire, agent)
    compacted(log, wire)
    home = case / "log" / ".claude"
    log.write(home / "projects" / CWD.replace("/", "-") / f"{session}.jsonl")
    hooks = {"SessionStart": [{"matcher": "compact", "hooks": [{"type": "command", "command": "series.sh"}]}]}
    (home / "settings.json").write_bytes((compact({"hooks": hooks}) + "\n").encode())
    wire.write(case / "wire")


def pages_read(case: Path, log: Transcript, wire: Recording, agent: str) -> None:
    """The calls before the compaction, and its own, which the log does not hold."""
    session, model = log.session, log.model

    def send(at: float, messages: list[dict[str, Any]], answer: str) -> None:
        wire.add(at, old_body(session, model, messages, "2.1.112.a1b"), answer)

    ask = "How many wrens were ringed on both pages — and how many at the über-net?"
    log.user(1.0, ask)
    first = [
        Think("Both pages at once.", "c2lnbmF0dXJlLW9uZQ=="),
        Use("toolu_avi01", "Look", '{"page": "2026-01-30"}'),
        Use("toolu_avi02", "Look", '{"page": "2026-01-31"}'),
    ]
    messages = [asked([CONTEXT, text(ask)])]
    spent = Tokens(0, 612, 58)
    send(1.1, messages, reply(model, "msg_avi01", first, spent))
    places = log.answer(2.7, "msg_avi01", first, spent)
    one, two = page("30", 6), "  " + page("31", 5)
    assert isinstance(first[1], Use)
    assert isinstance(first[2], Use)
    log.user(2.8, [result(first[1], one)], places["toolu_avi01"], sourceToolAssistantUUID=places["toolu_avi01"])
    log.user(2.9, [result(first[2], two)], places["toolu_avi02"], sourceToolAssistantUUID=places["toolu_avi02"])

    second = [Say("I let a helper count."), Use("toolu_avi03", "Agent", '{"task": "Count the new rings."}')]
    sent_two = two.strip() + TODO  # a reminder put behind a result trims it
    messages = [*messages, said(*first), asked([result(first[1], one), result(first[2], sent_two)])]
    spent = Tokens(612, 431, 31)
    send(3.0, messages, reply(model, "msg_avi02", second, spent))
    places = log.answer(4.6, "msg_avi02", second, spent)
    helper(case, wire, session, model, agent)
    counted = "7 of 11 rings are new."
    assert isinstance(second[1], Use)
    log.user(7.6, [result(second[1], counted)], toolUseResult={"status": "completed", "agentId": agent})

    third = [Say("31 wrens in all, 7 of them newly ringed.")]
    messages = [*messages, said(*second), asked([result(second[1], counted)])]
    spent = Tokens(1043, 95, 17)
    send(7.7, messages, reply(model, "msg_avi03", third, spent))
    log.answer(9.2, "msg_avi03", third, spent)
    log.line(9.3, "system", {"subtype": "stop_hook_summary", "hookCount": 1, "hookInfos": [{"command": "tidy.sh"}]})

    messages = [*messages, said(*third), asked(SUMMARY_PROMPT)]
    summary = [Say("<summary>Two pages of ringing were read; 31 wrens, 7 of them new.</summary>")]
    send(20.0, messages, reply(model, "msg_avi04", summary, Tokens(1138, 40, 22)))


def compacted(log: Transcript, wire: Recording) -> None:
    """The boundary, what the hook put back, and the call behind it."""
    told = {"trigger": "manual", "preTokens": 1178, "postTokens": 140}
    fields = {"subtype": "compact_boundary", "content": "Conversation compacted", "compactMetadata": told}
    log.line(21.6, "system", {"logicalParentUuid": log.last, **fields}, None)
    log.user(21.6, CONTINUED, isCompactSummary=True, isVisibleInTranscriptOnly=True)
    hook = {"type": "hook_additional_context", "hookName": "SessionStart:compact", "hookEvent": "SessionStart"}
    log.attachment(21.7, {**hook, "toolUseID": "hook-1", "content": [HOOKED]})
    then = "Which series comes next?"
    log.user(30.0, then)
    last = [Say("KA 4200, once KA 4199 is used up.")]
    put_back = reminder(f"SessionStart:compact hook additional context: {HOOKED}")
    messages = [asked([CONTEXT, text(CONTINUED + "\n"), put_back, text(then)])]
    spent = Tokens(0, 635, 14)
    wire.add(
        30.1, old_body(log.session, log.model, messages, "2.1.112.c3d"), reply(log.model, "msg_avi05", last, spent)
    )
    log.answer(31.6, "msg_avi05", last, spent)


def helper(case: Path, wire: Recording, session: str, model: str, agent: str) -> None:
    """The subagent's transcript and its one call."""
    log = Transcript(session, "2.1.112", model, agent)
    task = "Count the new rings."
    log.user(4.7, task)
    done = [Say("7 of 11 rings are new.")]
    spent = Tokens(0, 240, 9)
    sent_ = old_body(session, model, [asked([CONTEXT, text(task)])], "2.1.112.e5f", HELPER)
    wire.add(4.8, sent_, reply(model, "msg_avi0a", done, spent))
    log.answer(6.3, "msg_avi0a", done, spent)
    folder = case / "log" / ".claude" / "projects" / CWD.replace("/", "-") / session / "subagents"
    log.write(folder / f"agent-{agent}.jsonl")
    facts = {"agentType": "counter", "description": "count", "toolUseId": "toolu_avi03", "spawnDepth": 1}
    (folder / f"agent-{agent}.meta.json").write_bytes(compact(facts).encode())


def request_records(case: Path) -> None:
    """Newer versions keep a record of each request; the second reading is changed on its way to the model."""
    session, model = "5e55a002-0000-4000-8000-00000000c0de", "claude-opus-5-5"
    log, wire = Transcript(session, "2.1.332", model), recording(session, "2.1.332")
    params = {"model": model, "betas": ["one"], "max_tokens": 64000, "output_config": {"effort": "low"}}
    shape = {"system": [text(IDENTITY), text(RULES)], "tools": TOOLS}

    def send(at: float, messages: list[dict[str, Any]], answer: str) -> None:
        fields = {
            "model": model,
            "messages": marked(messages),
            "system": system("2.1.332.9f0", IDENTITY, RULES),
            "tools": TOOLS,
            "metadata": metadata(session),
            "max_tokens": 64000,
            "output_config": {"effort": "low"},
            "stream": True,
        }
        wire.add(at, compact(fields), answer)

    def record(name: str, base: str | None, keep: int, messages: list[dict[str, Any]]) -> None:
        last = len(messages) - 1
        places = [
            ["system", 0],
            ["system", 1],
            ["messages", last, "content", len(listed(messages[last])["content"]) - 1],
        ]
        log.aside(
            {
                "type": "api-request",
                "id": name,
                "version": "2.1.332",
                "querySource": "sdk",
                "shapeHash": canonical(shape),
                "params": params,
                **({"base": base} if base else {}),
                "keep": keep,
                "tail": [canonical(listed(m)) for m in messages[keep:]],
                "cacheControl": [{"path": p, "value": EPHEMERAL} for p in places],
                "requestDigest": request_digest(params, shape, marked(messages)),
            }
        )

    ask = "Read the page of today and say what flew."
    log.user(1.0, ask)
    log.aside({"type": "api-request-shape", "shapeHash": canonical(shape), "shape": shape})
    opening = asked([CONTEXT, text(ask)])
    log.aside({"type": "api-request-blob", "hash": canonical(opening), "message": opening})
    messages = [opening]
    record("r-1", None, 0, messages)
    first = [Use("toolu_rec01", "Look", '{"page": "2026-02-01"}')]
    spent = Tokens(0, 540, 21)
    send(1.1, messages, reply(model, "msg_rec01", list(first), spent))
    log.answer(2.6, "msg_rec01", list(first), spent, requestRef="r-1")
    seen = "08:10 two teal\n08:40 one marsh harrier\n09:05 siskins, about forty"
    log.user(2.7, [result(first[0], seen)])

    second = [Say("Two teal, a marsh harrier and some forty siskins.")]
    messages = [*messages, said(*first), asked([result(first[0], seen)])]
    record("r-2", "r-1", 1, messages)
    spent = Tokens(540, 61, 19)
    send(2.8, messages, reply(model, "msg_rec02", list(second), spent))
    log.answer(4.3, "msg_rec02", list(second), spent, requestRef="r-2")

    again = "And the last of them at what time?"
    log.user(60.0, again)
    third = [Say("At 09:05.")]
    messages = [*messages, said(*second), asked(again)]
    record("r-3", "r-2", 3, messages)
    changed = [*messages[:2], asked([result(first[0], seen.replace("marsh harrier", "honey buzzard"))]), *messages[3:]]
    spent = Tokens(0, 661, 6)
    send(60.1, changed, reply(model, "msg_rec03", list(third), spent))
    log.answer(61.6, "msg_rec03", list(third), spent, requestRef="r-3")

    log.write(case / "log" / ".claude" / "projects" / CWD.replace("/", "-") / f"{session}.jsonl")
    wire.write(case / "wire")


CASES: tuple[Make, ...] = (hooks_around_compaction, request_records)
