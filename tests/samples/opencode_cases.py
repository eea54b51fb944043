"""The opencode samples: what each session says, what its database keeps, what crossed the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.samples.kimi_form import Tokens, reply
from tests.samples.opencode_form import (
    MODEL,
    Database,
    Use,
    answer_sent,
    body,
    headers,
    recording,
    text,
    thought,
    used,
)
from tests.samples.recording import compact

MAIN, CHILD = "ses_22a0f00d1ffeSampleSampleSam", "ses_22a0f00d2ffeSampleSampleSam"
SYSTEM = "You look after the moorings of a small harbour. Be short."
SUB = "You search the berth list for another agent. Report what you find — nothing else."
TITLES = "You are a title generator. You output ONLY a thread title. Nothing else."
SUMMARIES = "You are a context summarization agent. Summarise for whoever goes on."
CONTINUE = "Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed."
SUMMARY = "The «Möwe» lies at berth 7; the berth list says she stays until Monday."


def _tool(name: str, **properties: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {k: {"type": v} for k, v in properties.items()}}
    return {"type": "function", "function": {"name": name, "description": f"Runs {name}.", "parameters": schema}}


TOOLS = [_tool("berth", number="integer"), _tool("task", description="string", prompt="string", subagent_type="string")]
SUB_TOOLS = TOOLS[:1]


def child_and_summary(case: Path) -> None:
    """A subagent with a session of its own, then a summary made by the agent itself when the context was full."""
    rows, wire = Database(), recording(MAIN)
    rows.session(MAIN, "Moorings of the Möwe", 0.5)

    def system(words: str) -> dict[str, Any]:
        return {"role": "system", "content": words}

    def said(words: str) -> dict[str, Any]:
        return {"role": "user", "content": words}

    ask = "Where does the «Möwe» lie, and how long?"
    asked = rows.user(MAIN, 1.0, text(ask))
    title = [system(TITLES), said("Generate a title for this conversation:\n"), said(ask)]
    wire.add(1.1, body(title, []), reply("chatcmpl-22a001", Tokens(60, 0, 5), "Moorings of the Möwe", model=MODEL))

    look = Use("call_22a001", "berth", '{"number": 7}', "Möwe\n")
    messages = [system(SYSTEM), said(ask)]
    tokens = Tokens(200, 0, 14)
    wire.add(1.2, body(messages, TOOLS), reply("chatcmpl-22a002", tokens, "I look.", "Berth 7?", (look,), MODEL))
    rows.answer(MAIN, 1.2, asked, thought("Berth 7?"), text("I look."), used(look), tokens=(200, 0, 14))

    given = '{"description": "how long", "prompt": "How long does the Möwe stay?", "subagent_type": "general"}'
    found = f'<task id="{CHILD}" state="completed">\n<task_result>\nUntil Monday.\n</task_result>\n</task>'
    task = Use("call_22a002", "task", given, found)
    messages += answer_sent("I look.", "Berth 7?", (look,))
    tokens = Tokens(240, 200, 20)
    wire.add(3.0, body(messages, TOOLS), reply("chatcmpl-22a003", tokens, "", "", (task,), MODEL))
    rows.answer(MAIN, 3.0, asked, used(task), tokens=(240, 200, 20))

    rows.session(CHILD, "how long (@general subagent)", 4.7, MAIN, "general")
    prompt = "How long does the Möwe stay?"
    sub = rows.user(CHILD, 4.7, text(prompt), agent="general")
    tokens = Tokens(90, 0, 5)
    wire.headers = headers(CHILD)
    wire.add(
        4.8,
        body([system(SUB), said(prompt)], SUB_TOOLS),
        reply("chatcmpl-22a004", tokens, "Until Monday.", model=MODEL),
    )
    wire.headers = headers(MAIN)
    rows.answer(CHILD, 4.8, sub, text("Until Monday."), tokens=(90, 0, 5), agent="general")

    messages += answer_sent("", "", (task,))
    more = Use("call_22a003", "berth", '{"number": 8}', "")
    tokens = Tokens(3900, 240, 12)
    wire.add(
        7.0, body(messages, TOOLS), reply("chatcmpl-22a005", tokens, "She stays until Monday.", "", (more,), MODEL)
    )
    rows.answer(MAIN, 7.0, asked, text("She stays until Monday."), used(more), tokens=(3900, 240, 12))

    full = rows.user(MAIN, 9.0, {"type": "compaction", "auto": True, "overflow": False})
    told = (
        f"[User]: {ask}",
        f'[Assistant reasoning]: Berth 7?\n[Assistant]: I look.\n[Assistant tool call]: berth({{"number":7}})\n[Tool result]: {look.output}',
        f"[Assistant tool call]: task({compact(json.loads(given))})\n[Tool result]: {found}",
        '[Assistant]: She stays until Monday.\n[Assistant tool call]: berth({"number":8})\n[Tool result]: ',
    )
    between = "\n\n".join(told)
    conversation = f"Here is the conversation so far:\n\n<conversation>\n{between}\n</conversation>\n\nSum it up."
    tokens = Tokens(150, 0, 22)
    wire.add(
        9.1, body([system(SUMMARIES), said(conversation)], []), reply("chatcmpl-22a006", tokens, SUMMARY, model=MODEL)
    )
    rows.answer(MAIN, 9.1, full, text(SUMMARY), tokens=(150, 0, 22), agent="compaction", summary=True)

    on = rows.user(MAIN, 11.0, text(CONTINUE, synthetic=True, metadata={"compaction_continue": True}))
    messages = [system(SYSTEM), said("What did we do so far?"), *answer_sent(SUMMARY), said(CONTINUE)]
    tokens = Tokens(230, 190, 6)
    wire.add(11.1, body(messages, TOOLS), reply("chatcmpl-22a007", tokens, "All is said.", model=MODEL))
    rows.answer(MAIN, 11.1, on, text("All is said."), tokens=(230, 190, 6))

    rows.write(case / "log")
    wire.write(case / "wire")


CASES = (child_and_summary,)
