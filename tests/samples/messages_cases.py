"""The samples of a team's own agent: what its log keeps of each session, what crossed the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.samples.recording import Recording, compact

CHAT_MODEL, CLAUDE = "gpt-4.1", "claude-sonnet-4-5"
EPHEMERAL = {"type": "ephemeral"}
SYSTEM = "You keep the orchard's harvest book. Answer from the book, in one or two sentences, with units."
SCHEMA = {
    "type": "object",
    "properties": {"row": {"type": "string", "description": "A row of trees, R1 to R9"}, "week": {"type": "integer"}},
    "required": ["row"],
}
WHAT = "Looks up what was picked in a row of trees."


def headers(agent: str) -> dict[str, str]:
    return {"host": "127.0.0.1:8413", "content-type": "application/json", "user-agent": agent, "authorization": "<cut>"}


# --- OpenAI: a file of messages, one a line --------------------------------------------------------------------------


def openai_lines(case: Path) -> None:
    """Messages one by one, with columns of the team's own; the first is the system prompt, tools stand in no log."""
    tools = [{"type": "function", "function": {"name": "harvest", "description": WHAT, "parameters": SCHEMA}}]
    wire = Recording("/v1/chat/completions", headers("orchard-bot/0.4 OpenAI/Python 2.3.0"))
    call = {"id": "call_orchard01", "type": "function"}
    call |= {"function": {"name": "harvest", "arguments": '{"row": "R4", "week": 38}'}}
    said: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "How many crates of «Boskoop» came from row 4 in week 38?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": "call_orchard01",
            "content": '{"crates": 31, "variety": "Schöner aus Boskoop"}',
        },
        {"role": "assistant", "content": "31 crates of Schöner aus Boskoop – row 4, week 38."},
        {"role": "user", "content": "Danke! And how much does a crate weigh?"},
        {"role": "assistant", "content": "The book counts 18 kg a crate, so 558 kg in all."},
    ]
    prompts = {2: (214, 0), 4: (271, 192), 6: (312, 256)}
    for at, (prompt, cached) in prompts.items():
        body = {"model": CHAT_MODEL, "messages": said[:at], "tools": tools, "temperature": 0.2}
        wire.add(10.0 * at, compact(body), chat_reply(f"chatcmpl-orchard{at:02d}", said[at], prompt, cached))
    rows = [{**message, "id": 4100 + i, "at": f"2026-02-01T09:{i:02d}:00Z"} for i, message in enumerate(said)]
    write(case / "log" / "chat.jsonl", rows)
    wire.write(case / "wire")


def chat_reply(name: str, message: dict[str, Any], prompt: int, cached: int) -> str:
    usage = {"prompt_tokens": prompt, "completion_tokens": 24, "total_tokens": prompt + 24}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if message.get("tool_calls") else "stop"}
    details = {"prompt_tokens_details": {"cached_tokens": cached}}
    return compact(
        {"id": name, "object": "chat.completion", "model": CHAT_MODEL, "choices": [choice], "usage": usage | details}
    )


# --- Anthropic: a snapshot of each request ---------------------------------------------------------------------------

TRIMMED = "[shortened: 9 of 10 lines left out]"


def anthropic_trimmed(case: Path) -> None:
    """Whole requests, logged before they are sent. On its way out the third one's tool result was cut to a line."""
    tools = [{"name": "harvest", "description": WHAT, "input_schema": SCHEMA}]
    wire = Recording("/v1/messages", headers("orchard-bot/0.5 Anthropic/Python 0.84.0"))
    book = "".join(f"R{row} week 38: {17 + 5 * row} crates, {2 + row % 3} of them windfall\n" for row in range(1, 11))
    use = {"type": "tool_use", "id": "toolu_orchard01", "name": "harvest", "input": {"row": "R1-R10", "week": 38}}
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "Which row gave most in week 38?"},
        {"role": "assistant", "content": [{"type": "text", "text": "I look it up for all rows."}, use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": book}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Row 10, with 67 crates."}]},
        {"role": "user", "content": "And which one the least windfall?"},
        {"role": "assistant", "content": [{"type": "text", "text": "I cannot see the other rows any more."}]},
        {"role": "user", "content": "Look again, please."},
        {"role": "assistant", "content": [{"type": "text", "text": "Rows 3, 6 and 9, with 2 crates each."}]},
    ]
    short = f"{book.splitlines()[0]}\n{TRIMMED}"
    tokens = {1: (0, 412, 44), 3: (412, 236, 12), 5: (361, 118, 13), 7: (648, 61, 16)}
    logged: list[dict[str, Any]] = []
    for at, usage in tokens.items():
        request = {"model": CLAUDE, "max_tokens": 1024, "system": SYSTEM, "tools": tools, "messages": said[:at]}
        logged.append({"at": f"2026-02-01T09:{at:02d}:00Z", "request": request})
        sent = [dict(m) for m in said[:at]]
        if at == 5:
            sent[2] = {**sent[2], "content": [{**sent[2]["content"][0], "content": short}]}
        body = {**request, "system": [{"type": "text", "text": SYSTEM, "cache_control": EPHEMERAL}]}
        wire.add(10.0 * at, compact({**body, "messages": marked(sent)}), claude_reply(at, said[at]["content"], usage))
    write(case / "log" / "requests.jsonl", logged)
    wire.write(case / "wire")


def marked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with the cache mark on the last block of the last one, as the client sets it."""
    *earlier, last = messages
    content = last["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [*earlier, {**last, "content": [*blocks[:-1], {**blocks[-1], "cache_control": EPHEMERAL}]}]


def claude_reply(at: int, content: list[dict[str, Any]], usage: tuple[int, int, int]) -> str:
    read, written, output = usage
    calls = any(block["type"] == "tool_use" for block in content)
    reply = {"id": f"msg_orchard{at:02d}", "type": "message", "role": "assistant", "model": CLAUDE, "content": content}
    reply |= {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    counted = {"input_tokens": 4, "cache_creation_input_tokens": written, "cache_read_input_tokens": read}
    return compact({**reply, "usage": {**counted, "output_tokens": output}})


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """JSON lines as Python's ``json.dumps`` writes them: with spaces, escaped to ASCII; not as they are sent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(json.dumps(row) + "\n" for row in rows).encode())


CASES = (openai_lines, anthropic_trimmed)
