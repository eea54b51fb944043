"""Rollouts made for one rule each: lines as 0.98 writes them, and short sessions as 0.171 does."""

from __future__ import annotations

import json
from typing import Any

from ctxscope.agents import codex
from ctxscope.model import Learned
from tests.codex_cases import log_of
from tests.samples.codex_form import Session, Tokens, say, think, use, uuid7

SMALL = Tokens(900, 0, 9, 2)
Row = dict[str, Any]


def old(*rows: tuple[str, Row]) -> list[bytes]:
    """Lines as 0.98 writes them, one second apart."""
    meta = {"id": "thread", "cli_version": "0.98.0", "base_instructions": {"text": "Be exact."}}
    made = [("session_meta", meta), *rows]
    return [
        json.dumps(
            {"timestamp": f"2026-02-01T09:{n // 60:02d}:{n % 60:02d}.000Z", "type": kind, "payload": row}
        ).encode()
        for n, (kind, row) in enumerate(made)
    ]


def message(role: str, text: str) -> tuple[str, Row]:
    kind = "output_text" if role == "assistant" else "input_text"
    return "response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def call(name: str) -> tuple[str, Row]:
    return "response_item", {"type": "function_call", "name": "look", "arguments": "{}", "call_id": name}


def output(name: str) -> tuple[str, Row]:
    return "response_item", {"type": "function_call_output", "call_id": name, "output": "seen"}


def context(model: str = "m", effort: str | None = None) -> tuple[str, Row]:
    return "turn_context", {"model": model, "summary": "auto", **({"effort": effort} if effort else {})}


def count(total: int, last: int | None = None) -> tuple[str, Row]:
    def numbers(n: int) -> Row:
        return {"input_tokens": n, "cached_input_tokens": 0, "output_tokens": 0, "total_tokens": n}

    info = {"total_token_usage": numbers(total), "last_token_usage": numbers(total if last is None else last)}
    return "event_msg", {"type": "token_count", "info": info}


def items_of(lines: list[bytes], key: str) -> list[Row]:
    log = log_of(lines)
    point = next(p for p in codex.requests(log) if p.key == key)
    found: list[Row] = json.loads(codex.rebuild(log, point, codex.config(log), Learned()).data)["input"]
    return found


def texts(items: list[Row]) -> list[str]:
    return [i["content"][0]["text"] if "content" in i else i["type"] for i in items]


def conversation(session: Session, at: float, words: str, name: str) -> None:
    """One input and its answer."""
    session.begin(at, uuid7(at, 7))
    session.settings(at)
    session.user(at + 0.1, words)
    session.answer(at + 1.0, name, [say(round(at) + 100, f"{words} it is.")], SMALL)
    session.end(at + 1.1, "")


def short_session(**body: Any) -> tuple[Session, dict[str, bytes]]:
    """One turn with a tool: its log, and what was sent by key of the point."""
    session, served = Session(uuid7(0, 1)), {}
    session.meta(0.0)
    session.begin(0.1, uuid7(0.1, 2))
    session.settings(0.2)
    session.user(0.3, "How warm?")
    answer = [think(1, "Look.", "ZW52" * 300), use(2, "exec_command", "{}")]
    served[f"line:{len(session.lines) + 1}"] = session.body(**body).encode()
    session.answer(1.0, "resp_1", answer, SMALL)
    session.output(1.1, answer[1], "24 °C\n")
    served[f"line:{len(session.lines) + 1}"] = session.body(**body).encode()
    session.answer(2.0, "resp_2", [say(3, "24 °C.")], SMALL)
    return session, served
