"""Sessions of invented agents, written in every form a team may keep them in, each beside the bytes that it sent."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Exchange = tuple[dict[str, Any], dict[str, Any]]
"""Request and reply."""
CHAT, ANTHROPIC, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
GEMINI = "/v1beta/models/gemini-x:generateContent"


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def lines(values: Sequence[Any], dump: Callable[[Any], str] = compact) -> str:
    return "".join(dump(v) + "\n" for v in values)


@dataclass(frozen=True)
class Case:
    """A log and what was sent."""

    log: str
    exchanges: Sequence[Exchange]
    path: str = CHAT
    file: str = "chat.jsonl"
    dump: Callable[[Any], str] = compact
    scope: str = "body"

    def write(self, folder: Path, log: str | None = None) -> Path:
        """The case as a folder that ctxscope opens, perhaps with another log."""
        (folder / "log").mkdir(parents=True, exist_ok=True)
        (folder / "wire").mkdir(exist_ok=True)
        (folder / "log" / self.file).write_text(self.log if log is None else log, encoding="utf-8", newline="\n")
        rows = []
        for n, (request, reply) in enumerate(self.exchanges, 1):
            body = self.dump(request).encode()
            (folder / "wire" / f"{n:04d}.req").write_bytes(body)
            (folder / "wire" / f"{n:04d}.res").write_bytes(compact(reply).encode())
            about = {"n": n, "t": 1769936400 + n, "method": "POST", "path": self.path, "headers": {}, "status": 200}
            rows.append(about | {"req_bytes": len(body)})
        (folder / "wire" / "index.jsonl").write_text(lines(rows), encoding="utf-8")
        return folder


# --- OpenAI chat -----------------------------------------------------------------------------------------------------

SYSTEM = {"role": "system", "content": "You count boxes – exactly."}
_TOOL = {"name": "stock", "description": "Counts «things»", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "stock", "arguments": '{"sku": "A-7"}'}}
TALK: list[Message] = [
    {"role": "user", "content": "How many «A-7»?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": '{"tally": 12, "where": "Zürich"}'},
    {"role": "assistant", "content": "Twelve, in Zürich."},
    {"role": "user", "content": "And B-9?"},
    {"role": "assistant", "content": "None."},
]


def chat_calls(talk: Sequence[Message], system: Message | None = SYSTEM) -> list[Exchange]:
    found: list[Exchange] = []
    for at, message in enumerate(talk):
        if message["role"] == "assistant":
            sent = [*([system] if system else []), *talk[:at]]
            request = {"model": "m-1", "messages": copy.deepcopy(sent), "temperature": 0.2}
            request["tools"] = [{"type": "function", "function": _TOOL}]
            reason = "tool_calls" if message.get("tool_calls") else "stop"
            choice = {"index": 0, "message": message, "finish_reason": reason}
            usage = {"prompt_tokens": 10 * at + 5, "completion_tokens": 5, "total_tokens": 10 * at + 10}
            found.append((request, {"id": f"chatcmpl-{at}", "model": "m-1", "choices": [choice], "usage": usage}))
    return found


def jsonb(value: Any) -> Any:
    """Keys in the order PostgreSQL's jsonb keeps."""
    if isinstance(value, dict):
        return {k: jsonb(value[k]) for k in sorted(value, key=lambda k: (len(k), k))}
    return [jsonb(v) for v in value] if isinstance(value, list) else value


def _column(message: Message) -> Message:
    calls = json.dumps(message["tool_calls"]) if "tool_calls" in message else None
    return {
        "role": message["role"],
        "content": message["content"],
        "tool_calls": calls,
        "tool_call_id": message.get("tool_call_id"),
    }


def _net(value: Any) -> str:
    """Escapes with capital letters, which no form known here writes."""
    return "".join(c if c.isascii() else f"\\u{ord(c):04X}" for c in compact(value))


def _go(value: Any) -> str:
    return compact(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


FULL, CALLS = [SYSTEM, *TALK], chat_calls(TALK)
MARKUP = [{**m, "content": f"{m['content'] or ''} <b>&"} for m in TALK]
ROWS = [
    {"id": i, "created_at": f"2026-02-01T09:00:{i:02d}Z", **m, "tokens": 3, "name": None} for i, m in enumerate(FULL)
]
SPOKEN = [{"ts": 1769936400 + i, "request": q, "response": a} for i, (q, a) in enumerate(CALLS)]
CHAT_CASES = {
    "array": Case(json.dumps(FULL), CALLS, file="chat.json"),
    "array_indented": Case(json.dumps(TALK, indent=2, ensure_ascii=False), CALLS, file="chat.json"),
    "array_in_a_line": Case(json.dumps(FULL, ensure_ascii=False) + "\n", CALLS, file="chat.json"),
    "jsonb_column": Case(json.dumps(jsonb(FULL), ensure_ascii=False) + "\n", CALLS, file="chat.json", scope="semantic"),
    "row_with_a_text_column": Case(json.dumps({"id": 7, "messages": json.dumps(FULL)}), CALLS, file="row.json"),
    "lines": Case(lines(FULL), CALLS),
    "lines_without_system": Case(lines(TALK), CALLS),
    "rows": Case(lines(ROWS, json.dumps), CALLS),
    "table_as_json": Case(
        "[" + ",\n".join(json.dumps(_column(m), ensure_ascii=False) for m in FULL) + "]\n",
        CALLS,
        file="chat.json",
        scope="semantic",
    ),
    "sent_with_spaces_and_escapes": Case(lines(FULL), CALLS, dump=json.dumps),
    "sent_by_go": Case(lines(MARKUP), chat_calls(MARKUP), dump=_go),
    "sent_indented": Case(lines(FULL), CALLS, dump=lambda v: json.dumps(v, indent=2), scope="semantic"),
    "sent_in_no_known_form": Case(lines(TALK), CALLS, dump=_net, scope="semantic"),
    "snapshots": Case(lines([q for q, _ in CALLS]), CALLS),
    "snapshots_as_arrays": Case(lines([q["messages"] for q, _ in CALLS]), CALLS),
    "snapshots_with_replies": Case(lines(SPOKEN, json.dumps), CALLS),
    "snapshots_in_an_array": Case(json.dumps([q for q, _ in CALLS], indent=1), CALLS, file="calls.json"),
}

# --- Anthropic -------------------------------------------------------------------------------------------------------

SIGNED = {"type": "thinking", "thinking": "Look it up.", "signature": "c2ln" * 20}
CLAUDE: list[Message] = [
    {"role": "user", "content": "How many A-7?"},
    {
        "role": "assistant",
        "content": [
            SIGNED,
            {"type": "text", "text": "I look.", "citations": None},
            {"type": "tool_use", "id": "toolu_1", "name": "stock", "input": {"sku": "A-7", "at": "Zürich"}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "12 boxes"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Twelve.", "citations": None}]},
    {"role": "user", "content": "Thanks"},
    {"role": "assistant", "content": [{"type": "text", "text": "Welcome.", "citations": None}]},
]
_MARK = {"cache_control": {"type": "ephemeral"}}
_ATOOLS = [{"name": "stock", "description": "Counts", "input_schema": {"type": "object", "properties": {}}}]


def _sent(talk: Sequence[Message]) -> list[Message]:
    """What the client makes of the messages: no nulls, the mark on the last block."""
    found = copy.deepcopy(list(talk))
    for message in found:
        for block in message["content"] if isinstance(message["content"], list) else ():
            block.pop("citations", None)
    last = found[-1]
    if isinstance(last["content"], str):
        last["content"] = [{"type": "text", "text": last["content"]}]
    last["content"][-1] |= _MARK
    return found


def claude_calls(talk: Sequence[Message]) -> list[Exchange]:
    found: list[Exchange] = []
    for at, message in enumerate(talk):
        if message["role"] == "assistant":
            system = [{"type": "text", "text": "Count well.", **_MARK}]
            request = {"max_tokens": 1024, "messages": _sent(talk[:at]), "model": "claude-x", "system": system}
            content = [{k: v for k, v in b.items() if k != "citations"} for b in message["content"]]
            reply = {"id": f"msg_{at}", "type": "message", "role": "assistant", "model": "claude-x", "content": content}
            reply |= {"stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 9}}
            found.append((request | {"tools": _ATOOLS}, reply))
    return found


def _without_signature(talk: Sequence[Message]) -> list[Message]:
    found = copy.deepcopy(list(talk))
    del found[1]["content"][0]["signature"]
    return found


CLAUDE_CALLS = claude_calls(CLAUDE)
_LOGGED = {"model": "claude-x", "system": "Count well.", "max_tokens": 1024, "tools": _ATOOLS}
_AS_CHAT = [
    {"role": "system", "content": "Count well."},
    {"role": "user", "content": "How many A-7?"},
    {"role": "assistant", "content": "I look.", "tool_calls": [{**CALL, "id": "toolu_1"}]},
    {"role": "tool", "tool_call_id": "toolu_1", "content": "12 boxes"},
    {"role": "assistant", "content": "Twelve."},
    {"role": "user", "content": "Thanks"},
    {"role": "assistant", "content": "Welcome."},
]
_UNSIGNED = [
    {**m, "content": [b for b in m["content"] if b["type"] != "thinking"]} if isinstance(m["content"], list) else m
    for m in copy.deepcopy(CLAUDE)
]
_UNSIGNED[1]["content"][1]["input"] = {"sku": "A-7"}
CLAUDE_CASES = {
    "claude_array": Case(json.dumps(CLAUDE), CLAUDE_CALLS, ANTHROPIC, "chat.json"),
    "claude_lines": Case(lines(CLAUDE), CLAUDE_CALLS, ANTHROPIC),
    "claude_without_signatures": Case(lines(_without_signature(CLAUDE)), CLAUDE_CALLS, ANTHROPIC),
    "claude_snapshots": Case(lines([_LOGGED | {"messages": CLAUDE[:at]} for at in (1, 3, 5)]), CLAUDE_CALLS, ANTHROPIC),
    "claude_from_chat_messages": Case(lines(_AS_CHAT), claude_calls(_UNSIGNED), ANTHROPIC, scope="semantic"),
}

# --- Responses and Gemini --------------------------------------------------------------------------------------------

_SAID = {"type": "message", "role": "assistant", "status": "completed"}
ITEMS: list[Message] = [
    {"role": "user", "content": "How many A-7?"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA" * 30},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "stock", "arguments": '{"sku":"A-7"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "12 boxes"},
    {**_SAID, "id": "msg_1", "content": [{"type": "output_text", "text": "Twelve.", "annotations": []}]},
    {"role": "user", "content": "Thanks"},
    {**_SAID, "id": "msg_2", "content": [{"type": "output_text", "text": "Welcome.", "annotations": []}]},
]


def response_calls() -> list[Exchange]:
    found: list[Exchange] = []
    for start, end in ((1, 3), (4, 5), (6, 7)):
        request = {"model": "gpt-r", "instructions": "Count.", "input": ITEMS[:start], "store": False}
        reply = {"id": f"resp_{start}", "object": "response", "status": "completed", "output": ITEMS[start:end]}
        found.append((request, reply | {"usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}}))
    return found


def continued_calls() -> list[Exchange]:
    """The same by ``previous_response_id``, the first prompt a bare text."""
    found = copy.deepcopy(response_calls())
    found[0][0]["input"] = "How many A-7?"
    for at, (item, named) in enumerate(((3, "resp_1"), (5, "resp_4")), 1):
        found[at][0].update(input=[ITEMS[item]], previous_response_id=named)
    return found


CONTENTS: list[Message] = [
    {"role": "user", "parts": [{"text": "How many A-7?"}]},
    {
        "role": "model",
        "parts": [{"functionCall": {"name": "stock", "args": {"sku": "A-7"}}, "thoughtSignature": "QUJD"}],
    },
    {"role": "user", "parts": [{"functionResponse": {"name": "stock", "response": {"result": "12 boxes"}}}]},
    {"role": "model", "parts": [{"text": "Twelve boxes of them."}]},
]


def gemini_calls() -> list[Exchange]:
    found: list[Exchange] = []
    for at in (1, 3):
        head = {"systemInstruction": {"parts": [{"text": "Count."}]}, "generationConfig": {"maxOutputTokens": 99}}
        counted = {"promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 11}
        reply = {"candidates": [{"content": CONTENTS[at], "finishReason": "STOP"}], "usageMetadata": counted}
        found.append(({"contents": CONTENTS[:at], **head}, {**reply, "responseId": f"g{at}"}))
    return found


def _unsigned_contents() -> list[Message]:
    found = copy.deepcopy(CONTENTS)
    del found[1]["parts"][0]["thoughtSignature"]
    return found


OTHER_CASES = {
    "responses": Case(lines(ITEMS), response_calls(), RESPONSES),
    "responses_continued": Case(lines(ITEMS), continued_calls(), RESPONSES),
    "gemini": Case(lines(CONTENTS), gemini_calls(), GEMINI),
    "gemini_without_signatures": Case(lines(_unsigned_contents()), gemini_calls(), GEMINI),
}

# --- OpenTelemetry spans ---------------------------------------------------------------------------------------------


def _parts(message: Message) -> Message:
    if message["role"] == "tool":
        part = {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
        return {"role": "tool", "parts": [part]}
    parts: list[Message] = [{"type": "text", "content": message["content"]}] if message["content"] else []
    for call in message.get("tool_calls", ()):
        called = call["function"]
        parts.append(
            {
                "type": "tool_call",
                "id": call["id"],
                "name": called["name"],
                "arguments": json.loads(called["arguments"]),
            }
        )
    return {"role": message["role"], "parts": parts}


def spans() -> list[Message]:
    """A span a call, as ``ReadableSpan.to_json`` writes it, and one that is none."""
    found: list[Message] = []
    for at, message in enumerate(TALK):
        if message["role"] == "assistant":
            told = {
                "gen_ai.operation.name": "chat",
                "gen_ai.conversation.id": "boxes-1",
                "gen_ai.request.model": "m-1",
                "gen_ai.request.temperature": 0.2,
                "gen_ai.response.id": f"chatcmpl-{at}",
                "gen_ai.usage.input_tokens": 10 * at + 5,
                "gen_ai.usage.output_tokens": 5,
                "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM["content"]}]),
                "gen_ai.tool.definitions": json.dumps([{"type": "function", **_TOOL}]),
                "gen_ai.input.messages": json.dumps([_parts(m) for m in TALK[:at]]),
                "gen_ai.output.messages": json.dumps([_parts(message)]),
            }
            about = {"name": "chat m-1", "context": {"trace_id": "0x1", "span_id": f"0x{at + 2}"}, "parent_id": "0x9"}
            found.append(about | {"end_time": f"2026-02-01T09:00:{at:02d}Z", "attributes": told, "events": []})
    tool = {"name": "execute_tool stock", "context": {"trace_id": "0x1", "span_id": "0x8"}, "parent_id": "0x9"}
    found.insert(1, tool | {"attributes": {"gen_ai.operation.name": "execute_tool"}, "events": []})
    return found


def otlp(spans: Sequence[Message]) -> Message:
    """Spans as one OTLP/JSON batch."""

    def value(given: Any) -> Message:
        if isinstance(given, str):
            return {"stringValue": given}
        return {"intValue": str(given)} if isinstance(given, int) else {"doubleValue": given}

    found = []
    for span in spans:
        told = [{"key": k, "value": value(v)} for k, v in span["attributes"].items()]
        found.append({"traceId": "a1", "spanId": span["context"]["span_id"], "name": span["name"], "attributes": told})
    return {"resourceSpans": [{"scopeSpans": [{"spans": found}]}]}


def by_event(span: Message) -> Message:
    """The same span with its messages on an event, as the conventions also have it."""
    kept = {k: v for k, v in span["attributes"].items() if "messages" not in k}
    moved = {k: v for k, v in span["attributes"].items() if "messages" in k}
    event = {"name": "gen_ai.client.inference.operation.details", "attributes": moved}
    return {**span, "attributes": kept, "events": [event] if moved else []}


SPAN_CASES = {
    "spans": Case(lines(spans()), CALLS, file="spans.jsonl", scope="semantic"),
    "spans_with_events": Case(lines(list(map(by_event, spans()))), CALLS, file="spans.jsonl", scope="semantic"),
    "spans_in_batches": Case(
        lines([otlp(spans()[:2]), otlp(spans()[2:])]), CALLS, file="spans.jsonl", scope="semantic"
    ),
    "spans_indented": Case(
        "".join(json.dumps(s, indent=4) + "\n" for s in spans()), CALLS, file="spans.json", scope="semantic"
    ),
}
CASES = CHAT_CASES | CLAUDE_CASES | OTHER_CASES | SPAN_CASES
