"""The pydantic-ai sample: what an application stored of its runs, and what crossed the wire (2.51.0, Anthropic)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.samples.recording import T0, Recording, compact

CONVERSATION = "01a30000-7a01-7c11-8b2f-0e9d4a310001"
MODEL = "claude-sonnet-4-5"
INSTRUCTIONS = "You answer for a lighthouse. One sentence — no guesses."
TOOLS = [
    {
        "name": "lamp",
        "description": "State of the lamp.",
        "input_schema": {"additionalProperties": False, "properties": {"night": {"type": "string"}}, "type": "object"},
    }
]
CAP = 4096


def _iso(at: float) -> str:
    return datetime.fromtimestamp(T0 + at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def body(messages: list[dict[str, Any]]) -> str:
    """Keys in alphabetical order, as the SDK sends them."""
    head = {"max_tokens": CAP, "messages": messages, "model": MODEL, "stream": False}
    system = [{"type": "text", "text": INSTRUCTIONS}]
    thinking = {"type": "enabled", "budget_tokens": 1024}
    return compact({**head, "system": system, "thinking": thinking, "tool_choice": {"type": "auto"}, "tools": TOOLS})


def reply(response: str, content: list[dict[str, Any]], stop: str, output: int, cached: int) -> str:
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 90, "cache_read_input_tokens": cached}
    head = {"id": response, "type": "message", "role": "assistant", "model": MODEL, "content": content}
    return json.dumps({**head, "stop_reason": stop, "stop_sequence": None, "usage": {**usage, "output_tokens": output}})


def asked(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"text": text, "type": "text"}]}


def request(run: int, at: float, part: dict[str, Any]) -> dict[str, Any]:
    """A request as stored."""
    stamp = {"timestamp": _iso(at), "instructions": INSTRUCTIONS, "kind": "request"}
    return {"parts": [part], **stamp, **_run(run), "metadata": None, "state": "complete"}


def prompt(text: str, at: float) -> dict[str, Any]:
    return {"content": text, "timestamp": _iso(at), "part_kind": "user-prompt"}


def response(run: int, at: float, name: str, parts: list[dict[str, Any]], stop: str, output: int, cached: int) -> Any:
    """An answer as stored; ``state`` is ``complete`` whatever ended it."""
    usage = {
        "input_tokens": 95 + cached,
        "cache_write_tokens": 90,
        "cache_read_tokens": cached,
        "output_tokens": output,
    }
    reason = {"tool_use": "tool_call", "end_turn": "stop", "max_tokens": "length"}[stop]
    head = {"parts": parts, "usage": {**usage, "details": {}}, "model_name": MODEL, "timestamp": _iso(at)}
    where = {"kind": "response", "provider_name": "anthropic", "provider_url": "http://127.0.0.1:8413"}
    end = {"provider_details": {"finish_reason": stop}, "provider_response_id": name, "finish_reason": reason}
    return {**head, **where, **end, **_run(run), "metadata": None, "state": "complete"}


def _run(number: int) -> dict[str, str]:
    return {"run_id": f"01a30000-7a01-7c11-8b2f-0e9d4a31010{number}", "conversation_id": CONVERSATION}


def silent_4096(case: Path) -> None:
    """An answer cut at a cap that nobody chose and the history does not hold, then a run that failed and left nothing."""
    wire = Recording(
        "/v1/messages?beta=true",
        {"host": "127.0.0.1:8413", "content-type": "application/json", "user-agent": "pydantic-ai/2.51.0"},
    )
    history: list[Any] = []

    question = "Was the lamp lit last night? «Leuchtfeuer» 灯"
    thought = {"thinking": "I have to look.", "signature": "bGFtcA==" * 12}
    use = {"id": "toolu_lamp01", "type": "tool_use", "name": "lamp", "input": {"night": "Candlemas — é"}}
    messages = [asked(question)]
    answer = [{"type": "thinking", **thought}, use]
    wire.add(1.0, body(messages), reply("msg_lamp01", answer, "tool_use", 30, 0))
    history.append(request(1, 0.9, prompt(question, 0.9)))
    kept = [
        {"content": thought["thinking"], "id": None, "signature": thought["signature"], "provider_name": "anthropic"},
        {"tool_name": "lamp", "args": use["input"], "tool_call_id": use["id"], "part_kind": "tool-call"},
    ]
    kept[0] |= {"provider_details": None, "part_kind": "thinking"}
    history.append(response(1, 2.6, "msg_lamp01", kept, "tool_use", 30, 0))

    state = {"lit": True, "from": "17:04", "note": 'wick "new"'}
    messages.append({"role": "assistant", "content": [{**thought, "type": "thinking"}, use]})
    told = [{"text": compact(state), "type": "text"}]
    block = {"tool_use_id": "toolu_lamp01", "type": "tool_result", "content": told, "is_error": False}
    messages.append({"role": "user", "content": [block]})
    text = "Yes, from 17:04 on."
    wire.add(2.8, body(messages), reply("msg_lamp02", [{"type": "text", "text": text}], "end_turn", 9, 90))
    returned = {"tool_name": "lamp", "content": state, "tool_call_id": "toolu_lamp01", "metadata": None}
    history.append(request(1, 2.7, {**returned, "outcome": "success", "part_kind": "tool-return"}))
    history.append(response(1, 4.3, "msg_lamp02", [{"content": text, "part_kind": "text"}], "end_turn", 9, 90))

    question, cut = "Write the keeper's whole report.", "The keeper climbed at dusk and then"
    messages += [{"role": "assistant", "content": [{"text": text, "type": "text"}]}, asked(question)]
    wire.add(9.0, body(messages), reply("msg_lamp03", [{"type": "text", "text": cut}], "max_tokens", CAP, 180))
    history.append(request(2, 8.9, prompt(question, 8.9)))
    history.append(response(2, 10.6, "msg_lamp03", [{"content": cut, "part_kind": "text"}], "max_tokens", CAP, 180))

    messages.append({"role": "assistant", "content": [{"text": cut, "type": "text"}]})
    sealed = [{"type": "thinking", "thinking": "The report needs an end.", "signature": "ZW5k" * 24}]
    wire.add(20.0, body([*messages, asked("Go on.")]), reply("msg_lamp04", sealed, "max_tokens", CAP, 270))

    question, text = "In one word then?", "Lit."
    wire.add(
        30.0,
        body([*messages, asked(question)]),
        reply("msg_lamp05", [{"type": "text", "text": text}], "end_turn", 2, 270),
    )
    history.append(request(4, 29.9, prompt(question, 29.9)))
    history.append(response(4, 31.6, "msg_lamp05", [{"content": text, "part_kind": "text"}], "end_turn", 2, 270))

    (case / "log").mkdir(parents=True, exist_ok=True)
    (case / "log/history.json").write_bytes(compact(history).encode())
    wire.write(case / "wire")


CASES = (silent_4096,)
